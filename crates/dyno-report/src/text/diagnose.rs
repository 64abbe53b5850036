//! A diagnosis on a terminal: the card, then findings with their evidence, what was ruled out, what to try.

use dyno_measure::usl::{Estimate, Usl};
use dyno_record::diagnosis::{Card, Diagnosis};
use dyno_record::finding::{Confidence, Finding, Next};

use super::table::lines;
use crate::color::Color;
use crate::number::{count, latency, micros, visible};

/// Columns of the labels.
const LABEL_WIDTH: usize = 13;
/// Columns before what stands under a finding.
const UNDER: usize = 7;
/// The narrowest page.
const WIDTH_MIN: usize = 40;

/// The whole diagnosis in at most `width` columns.
pub fn diagnosis_card(record: &Diagnosis, width: usize, color: Color) -> String {
    let mut page = Page { out: String::new(), width: width.max(WIDTH_MIN), color };
    page.head(record);
    page.card(&record.card);
    page.out.push('\n');
    page.findings(record);
    page.rest(record);
    page.out
}

struct Page {
    out: String,
    width: usize,
    color: Color,
}

impl Page {
    fn head(&mut self, record: &Diagnosis) {
        if let Some(why) = &record.cut_short {
            self.label("cut short", why);
        }
        let pid = record
            .target
            .pid
            .map_or_else(|| "a record".to_owned(), |pid| format!("{} ({pid})", record.target.name));
        let card = &record.card;
        let used = format!("{:.2} of {} CPUs busy", card.cpus_used, card.cpus);
        self.label("target", &format!("{pid} · {used} · watched for {:.1} s", record.duration_s));
    }

    fn card(&mut self, card: &Card) {
        if let (Some(rate), Some(tail)) = (card.requests_per_second, card.latency_us) {
            let text = format!(
                "{} requests/s · latency p50 {}, p99 {}",
                count(rate),
                latency(tail.p50),
                latency(tail.p99)
            );
            self.label("throughput", &text);
        }
        let resources = &card.resources;
        let mut parts = vec![format!("CPU {} µs", micros(resources.cpu_us))];
        parts.extend(resources.system_calls.map(|calls| format!("{} system calls", few(calls))));
        parts.push(format!("{} switches", few(resources.switches)));
        parts.push(format!("{} page faults", few(resources.faults)));
        parts.extend(resources.wire_bytes.map(|bytes| format!("{} bytes on the wire", count(bytes))));
        parts.extend(resources.connections.map(|opened| format!("{} connections", few(opened))));
        self.label(&format!("per {}", card.per), &parts.join(" · "));
        if let Some(usl) = &card.scalability {
            self.label("scalability", &in_words(usl));
        }
    }

    fn findings(&mut self, record: &Diagnosis) {
        if record.findings.is_empty() {
            self.text(0, &nothing_found(record));
        }
        for (at, finding) in record.findings.iter().enumerate() {
            self.finding(at + 1, finding);
        }
    }

    fn finding(&mut self, number: usize, finding: &Finding) {
        let class = self.painted(finding.class.name(), 31);
        let sure = match finding.confidence {
            Confidence::High => "sure",
            Confidence::Medium => "likely",
            Confidence::Low => "perhaps",
        };
        self.out.push_str(&format!("{number:>3}  {class}  ({sure})\n"));
        self.text(5, &finding.summary);
        for fact in &finding.evidence {
            self.item("·", &fact.text);
        }
        for out in &finding.ruled_out {
            self.item("not", &format!("{}: {}", out.class, out.by));
        }
        for next in &finding.next {
            self.item("try", &in_words_next(next));
        }
        self.out.push('\n');
    }

    fn rest(&mut self, record: &Diagnosis) {
        for note in &record.notes {
            self.label("note", &format!("{}: {}", note.class, note.summary));
        }
        for one in &record.not_looked_at {
            self.label("not seen", &format!("{}: {}", one.what, one.why));
        }
        for warning in &record.warnings {
            self.label("warning", warning);
        }
    }

    fn item(&mut self, mark: &str, text: &str) {
        let indent = UNDER + 4;
        for (k, line) in lines(&visible(text), self.width - indent).iter().enumerate() {
            let mark = if k == 0 { mark } else { "" };
            self.out.push_str(&format!("{:UNDER$}{mark:<4}{line}\n", ""));
        }
    }

    fn text(&mut self, indent: usize, text: &str) {
        for line in lines(&visible(text), self.width - indent) {
            self.out.push_str(&format!("{:indent$}{line}\n", ""));
        }
    }

    fn label(&mut self, label: &str, text: &str) {
        for (k, line) in lines(&visible(text), self.width - LABEL_WIDTH).iter().enumerate() {
            let label = if k == 0 { label } else { "" };
            self.out.push_str(&format!("{label:<LABEL_WIDTH$}{line}\n"));
        }
    }

    fn painted(&self, word: &str, sgr: u8) -> String {
        match self.color {
            Color::Plain => word.to_owned(),
            Color::Ansi => format!("\u{1b}[{sgr}m{word}\u{1b}[0m"),
        }
    }
}

/// How much was looked at; where nothing ran no rule had anything to look at.
fn nothing_found(record: &Diagnosis) -> String {
    if record.ruled_out.is_empty() && record.notes.is_empty() {
        return "no rule had anything to look at".to_owned();
    }
    format!("nothing found by {} of 22 rules", 22_usize.saturating_sub(classes_unseen(record)))
}

/// Rules that say by their class's name that they did not look.
fn classes_unseen(record: &Diagnosis) -> usize {
    let is_class = |what: &str| dyno_record::finding::Class::named(what).is_some();
    record.not_looked_at.iter().filter(|one| is_class(&one.what)).count()
}

fn in_words_next(next: &Next) -> String {
    let mut text = next.text.clone();
    let also = [
        next.code.as_ref().map(|code| format!("code: {code}")),
        next.rung.as_ref().map(|rung| format!("rung: {rung}")),
        next.specimen.as_ref().map(|name| format!("see: dyno specimen explain {name}")),
    ];
    let also: Vec<String> = also.into_iter().flatten().collect();
    if !also.is_empty() {
        text.push_str(&format!(" [{}]", also.join("; ")));
    }
    text
}

fn in_words(usl: &Usl) -> String {
    let percent = |estimate: &Estimate, digits: usize| {
        let [low, high] = estimate.interval;
        format!(
            "{:.digits$} % ({:.digits$} … {:.digits$})",
            estimate.value * 100.0,
            low * 100.0,
            high * 100.0
        )
    };
    let knee = match (&usl.knee, &usl.ceiling) {
        (Some(knee), Some(ceiling)) => {
            let [low, high] = knee.interval;
            format!(
                "knee at {:.0} connections ({low:.0} … {high:.0}), {} requests/s there",
                knee.value,
                count(ceiling.value)
            )
        }
        (None, Some(ceiling)) => format!("no knee; never more than {} requests/s", count(ceiling.value)),
        (_, None) => "no knee and no ceiling in sight".to_owned(),
    };
    let [low, high] = usl.one.interval;
    format!(
        "one connection {} requests/s ({} … {}) · contention {} · coherency {} · {knee}{}",
        count(usl.one.value),
        count(low),
        count(high),
        percent(&usl.contention, 1),
        percent(&usl.coherency, 3),
        misfit(usl),
    )
}

/// Points that lie farther from the curve than this, on average, do not follow the law.
const MISFIT_MAX: f64 = 0.10;

/// A word where the law does not describe this server: its figures are then no more than a picture of it.
fn misfit(usl: &Usl) -> String {
    if usl.misfit <= MISFIT_MAX {
        return String::new();
    }
    format!(" · the points lie {:.0} % off the curve: it does not describe this server", usl.misfit * 100.0)
}

/// Small figures with decimals, large ones without.
fn few(value: f64) -> String {
    if value < 100.0 { format!("{value:.2}") } else { count(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::diagnosis::{Resources, Tail};
    use dyno_record::finding::{Class, Evidence, RuledOut};
    use dyno_record::observation::NotLookedAt;
    use dyno_record::profile::Target;

    fn small() -> Diagnosis {
        let evidence = Evidence {
            text: "80 % of it waits for the disk itself".into(),
            value: Some(0.8),
            unit: "share".into(),
        };
        let next = Next {
            text: "gather records".into(),
            rung: Some("log-ring".into()),
            code: None,
            specimen: Some("sync-log".into()),
        };
        Diagnosis {
            duration_s: 10.0,
            target: Target { pid: Some(42), name: "program".into(), ..Target::default() },
            card: Card {
                requests_per_second: Some(1_234.0),
                latency_us: Some(Tail { p50: 1_900.0, p99: 8_100.0 }),
                cpus_used: 0.25,
                cpus: 2,
                per: "request".into(),
                resources: Resources {
                    cpu_us: 81.0,
                    system_calls: Some(4.1),
                    switches: 1.0,
                    faults: 0.0,
                    wire_bytes: None,
                    connections: None,
                },
                scalability: None,
            },
            findings: vec![Finding {
                class: Class::SyncIo,
                confidence: Confidence::High,
                weight: 0.9,
                summary: "90 % of the working threads' time goes into waiting for fdatasync".into(),
                evidence: vec![evidence],
                ruled_out: vec![RuledOut {
                    class: Class::LockContention,
                    by: "0.1 % waits for locks".into(),
                }],
                next: vec![next],
            }],
            not_looked_at: vec![NotLookedAt { what: "tlb_reach".into(), why: "it needs the code".into() }],
            ..Diagnosis::default()
        }
    }

    #[test]
    fn a_card_says_the_figures_then_what_is_wrong_then_what_to_try() {
        let text = diagnosis_card(&small(), 78, Color::Plain);
        assert_eq!(
            text,
            "target       program (42) · 0.25 of 2 CPUs busy · watched for 10.0 s\n\
             throughput   1,234 requests/s · latency p50 1.90 ms, p99 8.10 ms\n\
             per request  CPU 81.0 µs · 4.10 system calls · 1.00 switches · 0.00 page\n\
             \x20            faults\n\
             \n\
             \x20 1  sync_io  (sure)\n\
             \x20    90 % of the working threads' time goes into waiting for fdatasync\n\
             \x20      ·   80 % of it waits for the disk itself\n\
             \x20      not lock_contention: 0.1 % waits for locks\n\
             \x20      try gather records [rung: log-ring; see: dyno specimen explain\n\
             \x20          sync-log]\n\
             \n\
             not seen     tlb_reach: it needs the code\n"
        );
    }

    #[test]
    fn nothing_found_says_how_much_was_looked_at() {
        let ruled_out = vec![RuledOut { class: Class::Spinning, by: "no loop only looks".into() }];
        let healthy = Diagnosis { findings: Vec::new(), ruled_out, ..small() };
        assert!(diagnosis_card(&healthy, 80, Color::Plain).contains("nothing found by 21 of 22 rules"));
        let idle = Diagnosis { findings: Vec::new(), ..small() };
        assert!(diagnosis_card(&idle, 80, Color::Plain).contains("no rule had anything to look at"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_escapes_are_shown() {
        let mut record = small();
        record.target.name = "evil\u{1b}[2J".into();
        for width in [40, 60, 100] {
            let text = diagnosis_card(&record, width, Color::Plain);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(!text.contains('\u{1b}'));
        }
    }
}
