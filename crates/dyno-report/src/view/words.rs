//! Words that more than one record's view says.

use dyno_proto::date::imf_fixdate;
use dyno_record::climb::Ratio;
use dyno_record::machine::{Machine, Missing};

use super::block::{Block, Fact, Item, OnPage, OnTerminal, Paragraph, Section, Voice};
use crate::number;

/// What is said behind a ratio whose interval holds 1.
pub(crate) fn seen(ratio: &Ratio) -> &'static str {
    if unclear(ratio) { ": no difference seen" } else { "" }
}

/// Whether an interval holds 1, or is none at all.
pub(crate) fn unclear(ratio: &Ratio) -> bool {
    let [low, high] = ratio.interval;
    !(low > 1.0 || high < 1.0)
}

/// A run that ended early.
pub(crate) fn cut_short(why: Option<&String>) -> Option<Fact> {
    let why = why?;
    let why = why.strip_prefix("cut short: ").unwrap_or(why);
    Some(Fact::alert("cut short", format!("{why}: what follows was measured before that")))
}

pub(crate) fn warnings(warnings: &[String]) -> Vec<Fact> {
    warnings.iter().map(|warning| Fact::alert("warning", warning)).collect()
}

/// What nobody looked at, and why.
pub(crate) fn missing(missing: &[Missing]) -> Vec<Item> {
    missing.iter().map(|one| Item::new(format!("{}:", one.what), &one.why)).collect()
}

/// `3 CPUs`, `1 CPU`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// The processors: `2 CPUs (AMD EPYC, VM), Linux 6.18.5`.
pub(crate) fn machine(m: &Machine) -> String {
    let vm = if m.virtual_machine { ", VM" } else { "" };
    let kernel = if m.kernel.is_empty() { String::new() } else { format!(", Linux {}", m.kernel) };
    format!("{} ({}{vm}){kernel}", counted(m.cpus, "CPU"), m.model)
}

/// A moment: `Mon, 23 Nov 2026 19:00:00 GMT`.
pub(crate) fn date(unix_s: u64) -> String {
    String::from_utf8_lossy(&imf_fixdate(unix_s)).into_owned()
}

/// When it began, where that is known, and how long it took.
pub(crate) fn when(started_unix_s: u64, duration_s: f64) -> String {
    if started_unix_s == 0 {
        return number::duration(duration_s);
    }
    format!("{} · {}", date(started_unix_s), number::duration(duration_s))
}

/// What changes how all the rest is to be read, in the head of a page.
pub(crate) fn alerts(id: &'static str, place: OnTerminal, facts: Vec<Fact>) -> Option<Section> {
    (!facts.is_empty()).then(|| Section::new(id, "", (OnPage::Head, place), vec![Block::Facts(facts)]))
}

pub(crate) fn paragraph(words: impl Into<String>) -> Block {
    said(Voice::Plain, "", words)
}

pub(crate) fn said(voice: Voice, lead: &'static str, words: impl Into<String>) -> Block {
    Block::Paragraph(Paragraph { lead, words: words.into(), voice })
}
