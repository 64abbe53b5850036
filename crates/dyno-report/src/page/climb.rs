//! The page of a climb: one file, no network, readable without scripts.
//!
//! `dyno climb` writes it, `dyno report` redraws any old record. A page says nothing that is not in its record and
//! measures nothing; it is a pure function of it.

mod card;
mod conditions;
mod figures;
mod foretold;
mod ladder;
mod latency;
mod look;
mod series;
mod summary;
#[cfg(test)]
mod tests;
mod view;

use dyno_record::climb::Climb;

use super::html::{Tag, document, tag};
use super::parts::{SCRIPT, Section, contents};
use view::View;

const STYLE: &str = include_str!("style.css");
const STYLE_WITH_FLAMES: &str = concat!(include_str!("style.css"), include_str!("flame/flame.css"));

/// The whole page.
pub fn render(climb: &Climb) -> String {
    let view = View::of(climb);
    let sections = [
        ladder::section(&view),
        card::section(&view),
        latency::section(&view),
        figures::section(&view),
        conditions::noise(&view),
        conditions::machine(&view),
        conditions::not_measured(&view),
    ];
    let sections: Vec<Section> = sections.into_iter().flatten().collect();
    let main = tag("main")
        .push(summary::head(&view))
        .push(contents(&sections))
        .push_all(sections.into_iter().map(Section::tag));
    let body = tag("body").push(main).push(foot(climb));
    // The colours of flame graphs only where there are some.
    let style = if climb.profiles.is_empty() { STYLE } else { STYLE_WITH_FLAMES };
    document(&summary::title(climb), body, style, SCRIPT)
}

fn foot(climb: &Climb) -> Tag {
    let made = format!(
        "dyno {} · seed {} · the record beside this page holds every block; dyno judge reaches the same verdicts from it.",
        climb.version, climb.seed
    );
    tag("footer").push(tag("p").text(made))
}
