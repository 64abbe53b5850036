//! The view of a diagnosis: the figures, then findings with their evidence, what was ruled out, what to try.

use dyno_measure::usl::{Estimate, Usl};
use dyno_record::diagnosis::{Card as Figures, Diagnosis};
use dyno_record::finding::{Class, Confidence, Finding, Next};
use dyno_record::observation::{NotLookedAt, Part, Way};
use dyno_record::profile::{Kind, Profile};

use super::block::{Block, Card, Fact, Headline, Item, OnPage, OnTerminal, Section, Shown, View, Voice};
use super::boxes::Boxes;
use super::chart::{Chart, Figure};
use super::look::Look;
use super::show::{Tone, Verdict};
use super::words::{self, paragraph, said};
use crate::number::{count, latency, micros};

/// Columns of the labels: the longest are "per request" and "scalability".
const LABEL_COLUMNS: usize = 13;
/// Points that lie farther from the curve than this, on average, do not follow the law.
const MISFIT_MAX: f64 = 0.10;

/// All that is said of a diagnosis; the profiles that it rests on are drawn on its page.
pub(crate) fn view(record: &Diagnosis, profiles: &[&Profile]) -> View {
    let cut_short = words::cut_short(record.cut_short.as_ref()).into_iter().collect();
    let sections = [
        words::alerts("cut-short", OnTerminal::Above, cut_short),
        Some(Section::page("answer", "", OnPage::Head, vec![Block::Headline(headline(record))])),
        Some(Section::new(
            "figures",
            "",
            (OnPage::Head, OnTerminal::Above),
            vec![Block::Facts(seen(record))],
        )),
        words::alerts("warnings", OnTerminal::Last, words::warnings(&record.warnings)),
        Some(found(record)),
        facts("notes", "Seen, and no fault by itself", notes(record)),
        facts("unseen", "Not looked at", unseen(record)),
        ruled_out(record),
        drawn(profiles),
        Some(measured(record)),
    ];
    View {
        title: format!("{} · dyno diagnose", name_of(record)),
        kicker: format!(
            "dyno diagnose · {} · {}",
            name_of(record),
            words::when(record.started_unix_s, record.duration_s)
        ),
        sections: sections.into_iter().flatten().collect(),
        foot: format!(
            "dyno {} · every finding rests on the figures beside it; nothing on this page asks the network",
            record.version
        ),
        label_columns: LABEL_COLUMNS,
    }
}

fn name_of(record: &Diagnosis) -> String {
    match record.target.pid {
        Some(pid) => format!("{} ({pid})", record.target.name),
        None => "a record".to_owned(),
    }
}

/// What holds it back, or that nothing was found.
fn headline(record: &Diagnosis) -> Headline {
    match record.findings.first() {
        Some(first) => {
            let others = record.findings.len() - 1;
            let more = if others > 0 {
                format!("; {} more below", words::counted(others, "finding"))
            } else {
                String::new()
            };
            Headline {
                unit: capital(&first.class.name().replace('_', " ")),
                interval: format!("{}{more}", sureness(first.confidence)),
                from: first.summary.clone(),
                ..Headline::default()
            }
        }
        None => Headline { unit: capital(&nothing_found(record)), ..Headline::default() },
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(char::to_uppercase).into_iter().flatten().chain(letters).collect()
}

fn sureness(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "sure",
        Confidence::Medium => "likely",
        Confidence::Low => "perhaps",
    }
}

fn seen(record: &Diagnosis) -> Vec<Fact> {
    std::iter::once(target(record)).chain(parts(record)).chain(figures(&record.card)).collect()
}

fn found(record: &Diagnosis) -> Section {
    // A page says in its headline that there is none.
    let on_page = if record.findings.is_empty() { OnPage::Nowhere } else { OnPage::Body };
    Section::new("findings", "Findings", (on_page, OnTerminal::Found), vec![findings(record)])
}

fn notes(record: &Diagnosis) -> Vec<Fact> {
    let nearest = record.nearest.iter().filter(|_| record.findings.is_empty());
    let nearest = nearest.map(|out| Fact::new("nearest", format!("{}: {}", out.class, out.by)));
    let none =
        (is_told_nothing(record) && record.nearest.is_empty()).then(|| Fact::new("nearest", NOTHING_NEAR));
    let note = |note: &Finding| Fact::new("note", format!("{}: {}", note.class, note.summary));
    nearest.chain(none).chain(record.notes.iter().map(note)).collect()
}

const NOTHING_NEAR: &str = "nothing: no figure comes to a quarter of what a finding takes";

/// Whether enough of the rules looked, and none had anything to say.
fn is_told_nothing(record: &Diagnosis) -> bool {
    record.findings.is_empty() && record.notes.is_empty() && has_looked(record) && !is_blind(record)
}

/// What could not be looked at, by the reason: one right that is missing takes many rules at once.
fn unseen(record: &Diagnosis) -> Vec<Fact> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for NotLookedAt { what, why } in &record.not_looked_at {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, whats)) => whats.push(what),
            None => reasons.push((why, vec![what])),
        }
    }
    let fact =
        |(why, whats): (&str, Vec<&str>)| Fact::new("not seen", format!("{}: {why}", whats.join(", ")));
    reasons.into_iter().map(fact).collect()
}

fn facts(id: &'static str, heading: &'static str, facts: Vec<Fact>) -> Option<Section> {
    let place = (OnPage::Body, OnTerminal::Below);
    (!facts.is_empty()).then(|| Section::new(id, heading, place, vec![Block::Facts(facts)]))
}

/// What is not wrong, and the figure that says so: a terminal has no room for it.
fn ruled_out(record: &Diagnosis) -> Option<Section> {
    let items = record.ruled_out.iter().map(|out| Item::new(format!("{}:", out.class), &out.by)).collect();
    let section = |items| {
        Section::page("ruled-out", "Looked at and ruled out", OnPage::Body, vec![Block::List("", items)])
    };
    (!record.ruled_out.is_empty()).then(|| section(items))
}

/// The profiles as pictures.
fn drawn(profiles: &[&Profile]) -> Option<Section> {
    let blocks = profiles.iter().filter(|profile| !profile.stacks.is_empty()).flat_map(|profile| {
        let boxes = Boxes::of(profile, Look::default());
        let sentence = boxes.summary();
        let heading = match profile.kind {
            Kind::OnCpu => "Where CPU time went",
            Kind::OffCpu => "What threads waited for",
        };
        let chart = Chart::Boxes(Box::new(boxes));
        [Block::Heading(heading), Block::Figure(Figure { chart, sentence, caption: String::new() })]
    });
    let blocks: Vec<Block> = blocks.collect();
    (!blocks.is_empty()).then(|| Section::page("profiles", "Profiles", OnPage::Body, blocks))
}

fn measured(record: &Diagnosis) -> Section {
    let machine = if record.machine.cpus > 0 { words::machine(&record.machine) } else { String::new() };
    let facts = vec![
        Fact::code("started as", record.target.argv.join(" ")),
        Fact::code("command", record.command.join(" ")),
        Fact::new("machine", machine),
    ];
    Section::page("measured", "How it was watched", OnPage::Body, vec![Block::Facts(facts)])
}

fn target(record: &Diagnosis) -> Fact {
    let works_in =
        record.works_in.as_ref().map_or_else(String::new, |name| format!(", which works in {name}"));
    let target = format!("{}{works_in}", name_of(record));
    let used = format!("{:.2} of {} CPUs busy", record.card.cpus_used, record.card.cpus);
    Fact::new("target", format!("{target} · {used} · watched for {:.1} s", record.duration_s))
}

/// How long each part was really seen, where that is known; what was to be seen for longer says for how long.
fn parts(record: &Diagnosis) -> Option<Fact> {
    let named = |part: &Part| {
        let what = match part.way {
            Way::Counters => "counters",
            Way::Looks => "connections",
            Way::OnCpu => "CPU time",
            Way::HotCode => "hot code",
            Way::OffCpu => "waits",
        };
        let of = if part.is_short() { format!(" of {:.1}", part.asked_s) } else { String::new() };
        format!("{what} {:.1}{of} s", part.seen_s)
    };
    let last = record.parts.last()?;
    let all: Vec<String> = record.parts.iter().map(named).collect();
    let took = last.began_s + last.seen_s;
    // To put names to addresses and to begin anew takes longer where CPUs are scarce: then the parts lie far apart.
    let apart = took > APART_MIN * record.duration_s;
    let within = if apart { format!(" · within {took:.1} s") } else { String::new() };
    Some(Fact::new("seen for", format!("{}{within}", all.join(" · "))))
}

/// Of the time that was seen, what all of it must take from which on that is told.
const APART_MIN: f64 = 1.3;

fn figures(card: &Figures) -> Vec<Fact> {
    let throughput = card.requests_per_second.zip(card.latency_us).map(|(rate, tail)| {
        let (p50, p99) = (latency(tail.p50), latency(tail.p99));
        Fact::new("throughput", format!("{} requests/s · latency p50 {p50}, p99 {p99}", count(rate)))
    });
    let scalability = card.scalability.as_ref().map(|usl| Fact::new("scalability", of_usl(usl)));
    throughput.into_iter().chain([resources(card)]).chain(scalability).collect()
}

/// What each request, or each second, takes.
fn resources(card: &Figures) -> Fact {
    let resources = &card.resources;
    let parts = [
        Some(format!("CPU {} µs", micros(resources.cpu_us))),
        resources.system_calls.map(|calls| format!("{} system calls", few(calls))),
        Some(format!("{} switches", few(resources.switches))),
        Some(format!("{} page faults", few(resources.faults))),
        resources.wire_bytes.map(|bytes| format!("{} bytes on the wire", count(bytes))),
        resources.connections.map(|opened| format!("{} connections", few(opened))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Fact::new(format!("per {}", card.per), parts.join(" · "))
}

fn findings(record: &Diagnosis) -> Block {
    match record.findings.is_empty() {
        true => paragraph(nothing_found(record)),
        false => Block::Cards(record.findings.iter().map(finding).collect()),
    }
}

fn finding(finding: &Finding) -> Card {
    let evidence = finding.evidence.iter().map(|fact| Item::new("·", &fact.text));
    let out = finding.ruled_out.iter().map(|out| Item::new("not", format!("{}: {}", out.class, out.by)));
    let next = finding.next.iter().map(|next| Item::new("try", of_next(next)));
    let points = evidence.chain(out).chain(next).collect();
    let name = finding.class.name();
    Card {
        anchor: name.to_owned(),
        name: name.to_owned(),
        aside: String::new(),
        verdict: Some(Verdict { word: sureness(finding.confidence), tone: Tone::Bad }),
        shown: Shown::Open,
        blocks: vec![said(Voice::Plain, "", &finding.summary), Block::List("", points)],
    }
}

/// How much was looked at; where nothing ran no rule had anything to look at.
fn nothing_found(record: &Diagnosis) -> String {
    if !has_looked(record) {
        return "no rule had anything to look at".to_owned();
    }
    let (all, unseen) = (Class::ALL.len(), unseen_rules(record));
    if is_blind(record) {
        return format!(
            "too little could be seen to say that nothing is wrong: {unseen} of {all} rules could not look"
        );
    }
    format!("nothing found by {} of {all} rules", all.saturating_sub(unseen))
}

/// Whether any rule said what it saw.
fn has_looked(record: &Diagnosis) -> bool {
    !(record.ruled_out.is_empty() && record.notes.is_empty())
}

/// Whether most rules could not look.
fn is_blind(record: &Diagnosis) -> bool {
    2 * unseen_rules(record) > Class::ALL.len()
}

/// Rules say by their class's name that they did not look.
fn unseen_rules(record: &Diagnosis) -> usize {
    record.not_looked_at.iter().filter(|one| Class::named(&one.what).is_some()).count()
}

fn of_next(next: &Next) -> String {
    let also = [
        next.code.as_ref().map(|code| format!("code: {code}")),
        next.rung.as_ref().map(|rung| format!("rung: {rung}")),
        next.specimen.as_ref().map(|name| format!("see: dyno specimen explain {name}")),
    ];
    let also: Vec<String> = also.into_iter().flatten().collect();
    if also.is_empty() { next.text.clone() } else { format!("{} [{}]", next.text, also.join("; ")) }
}

fn of_usl(usl: &Usl) -> String {
    let percent = |estimate: &Estimate, digits: usize| {
        let [low, high] = estimate.interval.map(|end| 100.0 * end);
        format!("{:.digits$} % ({low:.digits$} … {high:.digits$})", estimate.value * 100.0)
    };
    let [low, high] = usl.one.interval.map(count);
    // A law that does not describe the server gives no more than a picture of it.
    let misfit = (usl.misfit > MISFIT_MAX).then(|| {
        let off = usl.misfit * 100.0;
        format!(" · the points lie {off:.0} % off the curve: it does not describe this server")
    });
    format!(
        "one connection {} requests/s ({low} … {high}) · contention {} · coherency {} · {}{}",
        count(usl.one.value),
        percent(&usl.contention, 1),
        percent(&usl.coherency, 3),
        knee(usl),
        misfit.unwrap_or_default(),
    )
}

fn knee(usl: &Usl) -> String {
    match (&usl.knee, &usl.ceiling) {
        (Some(knee), Some(ceiling)) => {
            let ([low, high], there) = (knee.interval, count(ceiling.value));
            format!("knee at {:.0} connections ({low:.0} … {high:.0}), {there} requests/s there", knee.value)
        }
        (None, Some(ceiling)) => format!("no knee; never more than {} requests/s", count(ceiling.value)),
        (_, None) => "no knee and no ceiling in sight".to_owned(),
    }
}

/// Small figures with decimals, large ones without.
fn few(value: f64) -> String {
    if value < 100.0 { format!("{value:.2}") } else { count(value) }
}
