//! All that the audit says of the host on which all is well and of each of its troubles, word for word: figures, levels, what is
//! advised and what would be set.
//!
//! It is written down in `data/audit_told.txt`; a change that is meant is written with `GOLDEN=write cargo test`. Why something
//! costs is constant text and left out.

use std::collections::BTreeSet;
use std::fmt::Write;

use dyno_diagnose::audit::audit;
use dyno_record::audit::{AuditFinding, Goal};
use dyno_record::facts::Facts;

use crate::golden::assert_golden;
use crate::host::edited;
use crate::lines;
use crate::pairs::{SPEAK, SPEAK_WITH};

fn of_finding(out: &mut String, one: &AuditFinding) {
    let goals: Vec<&str> = one.goals.iter().map(|goal| goal.name()).collect();
    let percent =
        one.gain.percent.map_or_else(|| "?".to_owned(), |[least, most]| format!("{least} to {most}"));
    writeln!(out, "{} [{}] {}", one.id, one.object, one.title).unwrap();
    writeln!(out, "  {}, {percent} %, for {}, risk {}", one.level.name(), goals.join(" "), one.risk.name())
        .unwrap();
    writeln!(out, "  {} -> {}", one.found, one.recommended).unwrap();
    writeln!(out, "  {}: {}", one.gain.source.name(), one.gain.of).unwrap();
    let lines = [("see", &one.see), ("do", &one.apply), ("undo", &one.revert)];
    let lines = lines.iter().flat_map(|(what, all)| all.iter().map(move |line| format!("{what}: {line}")));
    let sets = one.changes.iter().map(|spec| format!("set: {} = {}", spec.what, spec.wanted));
    let by_hand = Some(format!("by hand: {}", one.by_hand)).filter(|_| !one.by_hand.is_empty());
    lines.chain(sets).chain(by_hand).for_each(|line| writeln!(out, "  {}", line.replace('\n', " ")).unwrap());
}

/// What is found for any goal, each once, in the order in which it is told.
fn of_host(out: &mut String, facts: &Facts) {
    let mut told = BTreeSet::new();
    for finding in Goal::ALL.into_iter().flat_map(|goal| audit(facts, goal).findings) {
        if told.insert((finding.id.clone(), finding.object.clone(), finding.title.clone())) {
            of_finding(out, &finding);
        }
    }
}

fn all() -> String {
    let mut out = String::new();
    for one in audit(&edited(&[]), Goal::Throughput).fine {
        writeln!(out, "{}: {}", one.id, one.found).unwrap();
    }
    let speak = SPEAK.iter().map(|(_, edits)| edits);
    let with = SPEAK_WITH.iter().map(|(_, _, edits)| edits);
    for edits in speak.chain(with).chain(lines::all().map(|(_, _, at)| at)) {
        writeln!(
            out,
            "\n# {}",
            edits
                .iter()
                .map(|(place, text)| format!("{place} {text}"))
                .collect::<Vec<_>>()
                .join(", ")
                .replace('\n', " ")
        )
        .unwrap();
        of_host(&mut out, &edited(edits));
    }
    out
}

/// Planted faults: a counter's two figures swapped; a limit advised that is half of what it was; a queue's number left out.
#[test]
fn every_trouble_is_told_with_its_figures_and_what_to_do() {
    assert_golden("audit_told.txt", &all());
}
