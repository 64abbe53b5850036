//! A tree of boxes drawn: within a page, as a file of its own, as data for the script of a page; and threads' lanes.
//!
//! Charts and the pages of profiles use it. Functions of the program are blue, the kernel's are warm, and a function has one
//! hue in all pictures; waits have a colour per kind; a comparison is red and blue.

mod colour;
mod data;
mod draw;
mod key;
mod timeline;

use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::tied;
use crate::view::boxes::Boxes;

pub(super) use data::island;
#[cfg(test)]
pub(super) use draw::ROW;
pub(super) use draw::{file, in_page};
pub(super) use timeline::lanes;

/// The picture that a page is about, with its key.
pub(super) fn explorable(boxes: &Boxes, sentence: &str, caption: &str) -> Tag {
    let laid = data::laid(boxes);
    let folded = match laid.folded {
        0 => String::new(),
        folded => format!(
            " {} boxes narrower than {:.3} % of the whole are folded away, also when zoomed.",
            number::count(folded as f64),
            100.0 * laid.share_min
        ),
    };
    tag("figure")
        .attr("id", "flame")
        .push(tag("div").class("flame-static").push(in_page(boxes, sentence)))
        .push(key::key(boxes))
        .push(tag("figcaption").text(tied(&format!("{caption}{folded}"))))
}
