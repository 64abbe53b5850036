//! The page: the picture first, then the tables it can be read by, then how it was measured.

use dyno_profile::layout::Layout;
use dyno_record::profile::Profile;

use super::look::Orientation;
use super::view::View;
use super::{data, draw, header, timeline, tops, waits};
use crate::number;
use crate::page::html::{Tag, document, tag};
use crate::page::parts::{Section, contents, fact, facts, paragraph};

const STYLE: &str =
    concat!(include_str!("../style.css"), include_str!("flame.css"), include_str!("page.css"));
const SCRIPT: &str = concat!(include_str!("../page.js"), include_str!("flame.js"));

/// The page of one profile.
pub(super) fn of_profile(view: &View, profile: &Profile) -> String {
    let sections = [
        waits::rows(profile, &view.measure).map(|table| Section::new("waits", "What it waited for", table)),
        timeline::picture(profile).map(|lanes| Section::new("timeline", "What each thread did when", lanes)),
        Some(Section::new("functions", "Functions", tops::functions_table(profile, &view.measure))),
        tops::system_calls(profile).map(|table| Section::new("calls", "System calls", table)),
        Some(Section::new("measured", "How it was measured", measured(profile))),
    ];
    page(view, header::of_profile(view, profile), sections.into_iter().flatten().collect(), &profile.version)
}

/// The page of a comparison.
pub(super) fn of_diff(view: &View, before: &Profile, after: &Profile) -> String {
    let basis = view.basis.expect("a comparison has a basis");
    let sections = vec![
        Section::new("functions", "Functions", tops::changes_table(before, after, basis, &view.measure)),
        Section::new("before", "How the first was measured", measured(before)),
        Section::new("after", "How the second was measured", measured(after)),
    ];
    page(view, header::of_diff(view, before, after), sections, &after.version)
}

fn page(view: &View, header: Tag, sections: Vec<Section>, version: &str) -> String {
    let (island, laid) = data::island(view);
    let picture = Section::new("picture", title(view), figure(view, &laid));
    let sections: Vec<Section> = std::iter::once(picture).chain(sections).collect();
    let main =
        tag("main").push(header).push(contents(&sections)).push_all(sections.into_iter().map(Section::tag));
    let made = format!("dyno {} · nothing on this page asks the network", number::visible(version));
    let foot = tag("footer").push(paragraph(made));
    let body = tag("body").push(main).push(foot).push(island);
    document(&number::visible(&view.title), body, STYLE, SCRIPT)
}

fn title(view: &View) -> &'static str {
    match (view.basis, view.orientation) {
        (Some(_), _) => "What grew and what shrank",
        (None, Orientation::Flame) => "Flame graph",
        (None, Orientation::Icicle) => "Icicle graph",
    }
}

fn figure(view: &View, laid: &Layout) -> Tag {
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
        .push(tag("div").class("flame-static").push(draw::in_page(view)))
        .push(waits::key(view))
        .push(tag("figcaption").text(format!("{}{folded}", view.width_words())))
}

fn measured(profile: &Profile) -> Tag {
    let sampling = &profile.sampling;
    let text = |text: &str| if text.is_empty() { tag("dd") } else { fact(number::visible(text)) };
    let count = |count: u64, what: &str| fact(format!("{} {what}", number::count(count as f64)));
    let machine = &profile.machine;
    let cpus = if machine.cpus > 0 { format!("{} CPUs", machine.cpus) } else { String::new() };
    let parts = [machine.model.clone(), cpus, machine.kernel.clone()];
    let where_ran: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let overhead = match profile.overhead.profiler_percent {
        percent if percent > 0.0 => fact(format!("{percent:.1} % of one CPU for watching")),
        _ => tag("dd"),
    };
    let watched =
        if profile.duration_s > 0.0 { fact(format!("{:.1} s", profile.duration_s)) } else { tag("dd") };
    facts([
        ("target", text(&profile.target.argv.join(" "))),
        ("command", text(&profile.command.join(" "))),
        ("watched", watched),
        ("event", text(&sampling.event)),
        ("stacks by", text(&sampling.call_graph)),
        ("lost", count(sampling.lost, "samples")),
        ("cut stacks", count(sampling.truncated, "end before main or the thread's start")),
        ("overhead", overhead),
        ("machine", text(&where_ran.join(", "))),
    ])
}
