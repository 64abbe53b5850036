//! The view of a causal profile: what each site would bring, how far that may be believed, and how it was measured.
//!
//! `dyno causal` shows it, `dyno report` draws it again.

mod answer;
mod belief;
mod curves;
mod sites;

use dyno_record::causal::{Candidate, Causal};

use super::block::{Block, Fact, OnPage, OnTerminal, Section, View};
use super::show::On;
use super::words::{self, counted};
use crate::number::{count, duration, latency};

/// Columns of the labels: the longest are "cut short" and "not tried".
const LABEL_COLUMNS: usize = 12;

/// All that is said of a causal profile.
pub(crate) fn view(record: &Causal) -> View {
    let cut_short = words::cut_short(record.cut_short.as_ref()).into_iter().collect();
    let sections = [
        words::alerts("cut-short", OnTerminal::Above, cut_short),
        words::alerts("warnings", OnTerminal::Last, words::warnings(&record.warnings)),
        Some(answer::answer(record)),
        Some(answer::limits(record)),
        belief::section(record),
        curves::section(record),
        sites::section(record),
        belief::of_each(record),
        not_tried(record),
        Some(measured(record)),
    ];
    let (name, when) = (&record.target.name, words::when(record.started_unix_s, record.duration_s));
    View {
        title: format!("{name} · dyno causal"),
        kicker: format!("Causal profile · {name} · {when}"),
        sections: sections.into_iter().flatten().collect(),
        foot: format!(
            "dyno {} · seed {} · the record beside this page holds every window; nothing on this page asks the network",
            record.version, record.seed
        ),
        label_columns: LABEL_COLUMNS,
    }
}

fn not_tried(record: &Causal) -> Option<Section> {
    let items = words::missing(&record.not_measured);
    let place = (OnPage::Body, OnTerminal::Below);
    let blocks = vec![Block::List("not tried", items)];
    (!record.not_measured.is_empty()).then(|| Section::new("unknown", "What was not tried", place, blocks))
}

/// The target, what was counted, the command, the machine.
fn measured(record: &Causal) -> Section {
    let options = &record.options;
    let levels: Vec<String> = options.levels_percent.iter().map(|level| format!("{level} %")).collect();
    let participants: Vec<String> = options.participants.iter().map(u32::to_string).collect();
    let machine = if record.machine.cpus > 0 { words::machine(&record.machine) } else { String::new() };
    let chosen = record.progress.chosen.as_ref().map(|why| format!("nothing was named; {why}"));
    let facts = vec![
        Fact::new("target", target(record)),
        Fact::new("progress", progress(record)),
        Fact::new("taken", chosen.unwrap_or_default()),
        Fact::new("or", others(record)),
        Fact::code("started as", record.target.argv.join(" ")).on(On::Page),
        Fact::code("command", record.command.join(" ")).on(On::Page),
        Fact::new("levels", levels.join(", ")).on(On::Page),
        Fact::new("budget", duration(options.budget_s)).on(On::Page),
        Fact::new("taking part", participants.join(", ")).on(On::Page),
        Fact::new("machine", machine).on(On::Page),
    ];
    let place = (OnPage::Body, OnTerminal::Above);
    Section::new("measured", "How it was measured", place, vec![Block::Facts(facts)])
}

fn target(record: &Causal) -> String {
    let pid = record.target.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
    let sites = counted(record.sites.len(), "site");
    format!("{}{pid} · {:.1} s · {sites} · seed {}", record.target.name, record.duration_s, record.seed)
}

fn progress(record: &Causal) -> String {
    let progress = &record.progress;
    let latency = progress.latency_us.map(|us| format!(" · {} from begin to end", latency(us)));
    let rate = match progress.per_second {
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => count(rate),
    };
    format!("{} · {rate} per second{}", progress.name, latency.unwrap_or_default())
}

/// What could be counted instead, as it would be asked for.
fn others(record: &Causal) -> String {
    let one = |one: &Candidate| {
        let share = one.share_percent.map(|share| format!(", on {share:.0} % of its stacks"));
        format!("{} ({} per second{})", one.name, count(one.per_second), share.unwrap_or_default())
    };
    let all: Vec<String> = record.progress.candidates.iter().map(one).collect();
    if all.is_empty() { String::new() } else { format!("--progress {}", all.join(", ")) }
}
