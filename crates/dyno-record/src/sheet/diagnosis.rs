//! The sheet of a diagnosis: the card's figures, and every finding with what it costs.

use crate::diagnosis::Diagnosis;
use crate::figure::{Better, Condition, Figure, Forbids, Sheet, Starts, Unit, of_machine};
use crate::finding::Confidence;

/// All that a diagnosis comes to.
#[must_use]
pub fn of_diagnosis(record: &Diagnosis) -> Sheet {
    Sheet {
        kind: "diagnosis",
        schema: record.schema.clone(),
        version: record.version.clone(),
        started_unix_s: record.started_unix_s,
        duration_s: record.duration_s,
        cut_short: record.cut_short.clone(),
        conditions: conditions(record),
        texts: Vec::new(),
        figures: findings(record).into_iter().chain(card(record)).collect(),
        starts: Starts::One,
        warnings: record.warnings.clone(),
    }
}

fn conditions(record: &Diagnosis) -> Vec<Condition> {
    let own = [
        Condition::new("program", record.target.name.clone(), Forbids::All),
        Condition::new("figures per", record.card.per.clone(), Forbids::Absolute),
        Condition::new("version", record.version.clone(), Forbids::Nothing),
        Condition::new("not looked at", unseen(record), Forbids::Cause),
    ];
    of_machine(&record.machine).into_iter().filter(|one| !one.value.is_empty()).chain(own).collect()
}

fn unseen(record: &Diagnosis) -> String {
    let names: Vec<&str> = record.not_looked_at.iter().map(|one| one.what.as_str()).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// How sure a finding is, as a word.
fn sure(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "sure",
        Confidence::Medium => "likely",
        Confidence::Low => "perhaps",
    }
}

fn findings(record: &Diagnosis) -> Vec<Figure> {
    let count = record.findings.len() as f64;
    let all = Figure::new("findings", "what is wrong", (Unit::Count, Better::Lower), Some(count));
    let each = record.findings.iter().map(|finding| {
        let name = format!("finding.{}", finding.class);
        let figure =
            Figure::new(name, &finding.summary, (Unit::Share, Better::Lower), Some(100.0 * finding.weight));
        figure.word(sure(finding.confidence)).basis("what it costs, of the resource that it wastes")
    });
    std::iter::once(all).chain(each).collect()
}

fn card(record: &Diagnosis) -> Vec<Figure> {
    let (card, used) = (&record.card, &record.card.resources);
    let per = &card.per;
    let lower = |unit| (unit, Better::Lower);
    let figure = |name: &str, what: String, how, value: Option<f64>| Figure::new(name, what, how, value);
    vec![
        figure(
            "rps",
            "right answers per second".into(),
            (Unit::PerSecond, Better::Higher),
            card.requests_per_second,
        ),
        figure("p50", "median latency".into(), lower(Unit::Us), card.latency_us.map(|tail| tail.p50)),
        figure("p99", "99 % latency".into(), lower(Unit::Us), card.latency_us.map(|tail| tail.p99)),
        figure("cpu", format!("CPU per {per}"), lower(Unit::Us), Some(used.cpu_us)),
        figure("system_calls", format!("system calls per {per}"), lower(Unit::Count), used.system_calls),
        figure("switches", format!("context switches per {per}"), lower(Unit::Count), Some(used.switches)),
        figure("faults", format!("page faults per {per}"), lower(Unit::Count), Some(used.faults)),
        figure("cpus_used", "CPUs kept busy".into(), (Unit::Count, Better::Neither), Some(card.cpus_used)),
    ]
}
