//! The picture without a script: within a page, as wide as its place; and as a file of its own.

use dyno_profile::layout::{Cell, Layout, Limits, layout};
use dyno_record::name;

use super::{colour, key};
use crate::page::html::{Tag, tag};
use crate::view::Orientation;
use crate::view::boxes::Boxes;

/// Height of a box in pixels: a line of small text and a hair of air.
pub(in crate::page) const ROW: u32 = 18;

/// In a page: a box of 1.5 pixels on a page 1,000 wide, and as many as keep the page small.
const IN_PAGE: Limits = Limits { share_min: 0.0015, cells_max: 1_500 };
/// The narrowest box with a name, as a share: 30 pixels hold three letters.
const NAMED_MIN: f64 = 0.03;

/// What parts a box from its neighbour on the right, in shares of a page and in pixels of a file: about half a pixel.
const PAGE_GAP: f64 = 0.000_5;
const FILE_GAP: f64 = 0.6;

/// A file of its own: half a pixel; viewers open six thousand boxes at once.
const IN_FILE: Limits = Limits { share_min: 0.0005, cells_max: 6_000 };
/// Width of the file in pixels.
const FILE_WIDTH: f64 = 1_200.0;
/// Above and below the boxes: title and unit; key and what was left out.
const FILE_HEAD: u32 = 52;
const FILE_FOOT: u32 = 48;
/// Blank at its left and right.
const FILE_MARGIN: f64 = 16.0;
/// Width of a letter of 11 pixels in a monospaced type (0.6 em), rounded up.
const LETTER: f64 = 6.7;

const FILE_STYLE: &str = concat!(include_str!("svg.css"), include_str!("flame.css"));

/// Where a box stands, from the top of all boxes.
fn top(cell: &Cell, levels: u32, orientation: Orientation) -> u32 {
    match orientation {
        Orientation::Flame => (levels - 1 - cell.depth) * ROW,
        Orientation::Icicle => cell.depth * ROW,
    }
}

/// A box's width without its gap; what is hardly wider than that has none.
fn gapped(width: f64, gap: f64) -> f64 {
    if width > 5.0 * gap { width - gap } else { width }
}

/// What was too narrow for a picture, in a sentence; empty when nothing was.
pub(super) fn folded_words(laid: &Layout) -> String {
    match laid.folded {
        0 => String::new(),
        folded => format!("{folded} boxes narrower than {:.2} % are folded away.", 100.0 * laid.share_min),
    }
}

/// The picture in a page.
pub(in crate::page) fn in_page(boxes: &Boxes, sentence: &str) -> Tag {
    let laid = layout(&boxes.tree, IN_PAGE);
    let svg = tag("svg")
        .class(on_paper(laid.levels))
        .attr("width", "100%")
        .attr("height", (laid.levels * ROW).max(ROW))
        .attr("role", "img")
        .attr("aria-label", sentence);
    svg.push_all(laid.cells.iter().map(|cell| page_box(boxes, cell, &laid)))
}

/// Rows that a sheet holds below a heading at full size, and at two thirds: 250 mm of A4 or letter are 945 pixels.
const SHEET_ROWS: u32 = 47;
const SMALLER_SHEET_ROWS: u32 = 72;

/// A sheet cannot be scrolled: what is too tall for one is printed smaller.
fn on_paper(levels: u32) -> &'static str {
    if levels <= SHEET_ROWS {
        "flame-boxes"
    } else if levels <= SMALLER_SHEET_ROWS {
        "flame-boxes tall"
    } else {
        "flame-boxes taller"
    }
}

fn page_box(boxes: &Boxes, cell: &Cell, laid: &Layout) -> Tag {
    let y = top(cell, laid.levels, boxes.orientation);
    let (x, width) =
        (format!("{:.3}%", 100.0 * cell.from), format!("{:.3}%", 100.0 * gapped(cell.width, PAGE_GAP)));
    let rect = tag("rect")
        .attr("x", &x)
        .attr("y", y)
        .attr("width", &width)
        .attr("height", ROW - 1)
        .attr("class", colour::of(boxes, cell.what));
    let group = tag("g").push(tag("title").text(boxes.sentence(cell))).push(rect);
    if cell.width < NAMED_MIN {
        return group;
    }
    // A drawing within the drawing cuts its text where the box ends, however wide the page is.
    let text = tag("text").attr("x", 4).attr("y", 12.5).text(boxes.name(cell.what));
    let inner = tag("svg").attr("x", x).attr("y", y).attr("width", width).attr("height", ROW);
    group.push(inner.class("cut").push(text))
}

/// The picture as a file.
pub(in crate::page) fn file(boxes: &Boxes) -> String {
    let laid = layout(&boxes.tree, IN_FILE);
    let high = laid.levels.max(1) * ROW;
    let height = FILE_HEAD + high + FILE_FOOT;
    let svg = tag("svg")
        .attr("xmlns", "http://www.w3.org/2000/svg")
        .attr("viewBox", format!("0 0 {FILE_WIDTH} {height}"))
        .attr("width", FILE_WIDTH)
        .attr("height", height)
        .attr("role", "img")
        .push(tag("title").text(boxes.summary()))
        .style(FILE_STYLE)
        .push(tag("rect").class("paper").attr("width", "100%").attr("height", "100%"))
        .push(words(24, "title", &boxes.title))
        .push(words(42, "said", &boxes.width_words()))
        .push_all(laid.cells.iter().map(|cell| file_box(boxes, cell, &laid)))
        .push(key::file_key(boxes, FILE_MARGIN, f64::from(FILE_HEAD + high + 20)))
        .push(words(FILE_HEAD + high + 38, "said", &folded_words(&laid)));
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{svg}\n")
}

/// A line of text at the left edge.
fn words(y: u32, class: &'static str, text: &str) -> Tag {
    tag("text").attr("x", FILE_MARGIN).attr("y", y).class(class).text(text)
}

fn file_box(boxes: &Boxes, cell: &Cell, laid: &Layout) -> Tag {
    let room = FILE_WIDTH - 2.0 * FILE_MARGIN;
    let y = FILE_HEAD + top(cell, laid.levels, boxes.orientation);
    let (x, width) = (FILE_MARGIN + room * cell.from, room * cell.width);
    let rect = tag("rect")
        .attr("x", format!("{x:.2}"))
        .attr("y", y)
        .attr("width", format!("{:.2}", gapped(width, FILE_GAP)))
        .attr("height", ROW - 1)
        .attr("class", colour::of(boxes, cell.what));
    let group = tag("g").push(tag("title").text(boxes.sentence(cell))).push(rect);
    match fitted(&boxes.name(cell.what), width) {
        text if text.is_empty() => group,
        text => {
            let place = tag("text").attr("x", format!("{:.2}", x + 3.0)).attr("y", f64::from(y) + 12.5);
            group.push(place.text(text))
        }
    }
}

/// As much of a name as its box holds: whole, else its last parts, else its beginning.
fn fitted(name: &str, width: f64) -> String {
    let letters = ((width - 6.0) / LETTER).floor().max(0.0) as usize;
    let plain = name::plain(name);
    let short = name::short(&plain);
    match plain.chars().count() {
        whole if whole <= letters => plain,
        _ if short.chars().count() <= letters => short.to_owned(),
        _ if letters < 3 => String::new(),
        _ => short.chars().take(letters - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_tall_for_a_sheet_is_printed_smaller() {
        let css = include_str!("../flame/page.css");
        assert_eq!(on_paper(SHEET_ROWS), "flame-boxes");
        for levels in [SHEET_ROWS + 1, SMALLER_SHEET_ROWS + 1] {
            let (_, size) = on_paper(levels).split_once(' ').unwrap_or_default();
            assert!(css.contains(&format!(".{size} {{ zoom:")), "{size}");
        }
    }

    #[test]
    fn a_name_is_cut_to_its_box() {
        let name = "dyno_engine::worker::Worker::turn";
        assert_eq!(fitted(name, 400.0), name);
        assert_eq!(fitted(name, 100.0), "Worker::turn");
        assert_eq!(fitted(name, 60.0), "Worker:…");
        assert_eq!(fitted(name, 20.0), "");
    }
}
