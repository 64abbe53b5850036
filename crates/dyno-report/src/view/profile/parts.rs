//! What the views of a profile and of a change between two say alike.

use dyno_record::profile::{Kind, Profile, Unit};

use crate::number::{self, count};
use crate::view::block::{Block, Fact, OnPage, Section};
use crate::view::boxes::Boxes;
use crate::view::chart::{Chart, Figure};
use crate::view::look::Orientation;
use crate::view::measure::share;
use crate::view::show::On;
use crate::view::words;

/// Columns of the labels: the longest are "cut short" and "own cost".
pub(super) const LABEL_COLUMNS: usize = 10;
/// Lost samples above this share make the figures doubtful.
const LOST_MAX: f64 = 0.01;
/// Stacks that end too early above this share leave towers without their root.
const TRUNCATED_MAX: f64 = 0.02;

pub(super) fn foot(profile: &Profile) -> String {
    format!("dyno {} · nothing on this page asks the network", profile.version)
}

/// The picture, which the page's script can search and enlarge.
pub(super) fn picture(boxes: Boxes) -> Section {
    let heading = match (boxes.basis, boxes.orientation) {
        (Some(_), _) => "What grew and what shrank",
        (None, Orientation::Flame) => "Flame graph",
        (None, Orientation::Icicle) => "Icicle graph",
    };
    let (sentence, caption) = (boxes.summary(), boxes.width_words());
    let chart = Chart::Explorable(Box::new(boxes));
    Section::page("picture", heading, OnPage::Body, vec![Block::Figure(Figure { chart, sentence, caption })])
}

/// What is missing, which is said before anything else.
pub(super) fn lost(profile: &Profile) -> Vec<Fact> {
    let sampling = &profile.sampling;
    let seen = (sampling.samples + sampling.lost) as f64;
    let of = |part: u64| format!("{} ({})", count(part as f64), share(part as f64, seen));
    let mut lost = Vec::new();
    if sampling.lost as f64 > LOST_MAX * seen {
        let words = match profile.kind {
            Kind::OnCpu => format!("{} samples: what ran then is missing", of(sampling.lost)),
            Kind::OffCpu => {
                format!("{} waits or their stacks: tables or the ring were full", of(sampling.lost))
            }
        };
        lost.push(Fact::alert("lost", words));
    }
    if sampling.coarse > 0 {
        let why =
            "with their time, but without who ended them, what for, or their stack: the tables were full";
        lost.push(Fact::alert("coarse", format!("{} waits stand {why}", of(sampling.coarse))));
    }
    lost
}

/// What changes how the figures are to be read.
pub(super) fn doubts(profile: &Profile) -> Vec<Fact> {
    let sampling = &profile.sampling;
    let mut found = Vec::new();
    // Of a wait two stacks may be cut, its own and that of who ended it: its own counts.
    let cut = match profile.kind {
        Kind::OnCpu => sampling.truncated,
        Kind::OffCpu => profile.truncated_stacks(),
    };
    if cut as f64 > TRUNCATED_MAX * sampling.samples as f64 {
        let part = share(cut as f64, sampling.samples as f64);
        let words = format!("{part} of the stacks end before main or the thread's start");
        found.push(Fact::alert("cut", words));
    }
    if profile.unit == Unit::Samples {
        found.push(Fact::alert("samples", "the input does not say how much time a sample stands for"));
    }
    found.extend(words::warnings(&profile.warnings));
    found
}

/// Who was watched: `server (7)`.
pub(super) fn watched(profile: &Profile) -> String {
    profile.target.in_words().unwrap_or_default()
}

/// What watching cost.
pub(super) fn own_cost(profile: &Profile) -> String {
    let cost = &profile.overhead;
    let hooks = cost.hook_percent.map(|percent| format!(", {percent:.1} % in its programs in the kernel"));
    format!("{:.1} % of one CPU in this profiler{}", cost.profiler_percent, hooks.unwrap_or_default())
}

pub(super) fn requests(profile: &Profile) -> Fact {
    let words = profile
        .requests
        .as_ref()
        .map(|requests| format!("{} (counted by {})", count(requests.count as f64), requests.source));
    Fact::new("requests", words.unwrap_or_default()).on(On::Page)
}

pub(super) fn measured(profile: &Profile) -> Block {
    let sampling = &profile.sampling;
    let counted = |count: u64, what: &str| format!("{} {what}", number::count(count as f64));
    let machine = &profile.machine;
    let cpus = if machine.cpus > 0 { words::counted(machine.cpus, "CPU") } else { String::new() };
    let parts = [machine.model.clone(), cpus, machine.kernel.clone()];
    let machine: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let watched =
        if profile.duration_s > 0.0 { format!("{:.1} s", profile.duration_s) } else { String::new() };
    Block::Facts(vec![
        Fact::new("target", profile.target.argv.join(" ")),
        Fact::new("command", profile.command.join(" ")),
        Fact::new("watched", watched),
        Fact::new("event", &sampling.event),
        Fact::new("stacks by", &sampling.call_graph),
        Fact::new("lost", counted(sampling.lost, "samples")),
        Fact::new("cut stacks", counted(sampling.truncated, "end before main or the thread's start")),
        Fact::new("machine", machine.join(", ")),
    ])
}
