//! An audit as metrics, for the textfile collector of Prometheus' node_exporter.

use dyno_record::audit::Audit;

use crate::number::visible;

/// The whole file.
pub fn textfile(audit: &Audit) -> String {
    let mut out = String::new();
    let goal = audit.goal.name();
    head(&mut out, "dyno_audit_finding", "Something of this host costs speed.");
    for one in &audit.findings {
        let (level, risk) = (one.level.name(), one.risk.name());
        line(
            &mut out,
            "dyno_audit_finding",
            &[("check", &one.id), ("object", &one.object), ("level", level), ("risk", risk)],
            1.0,
        );
    }
    head(
        &mut out,
        "dyno_audit_cost_percent",
        "What a finding costs at most, in percent of the goal's figure, where that is known.",
    );
    for one in &audit.findings {
        if let Some([_, most]) = one.gain.percent {
            line(&mut out, "dyno_audit_cost_percent", &[("check", &one.id), ("object", &one.object)], most);
        }
    }
    head(&mut out, "dyno_audit_checks", "Checks by what came of them.");
    let found = audit.checks() - audit.fine.len() - audit.not_here.len() - audit.not_looked_at.len();
    let states = [
        ("found", found),
        ("fine", audit.fine.len()),
        ("not_here", audit.not_here.len()),
        ("not_looked_at", audit.not_looked_at.len()),
    ];
    for (state, count) in states {
        line(&mut out, "dyno_audit_checks", &[("state", state), ("goal", goal)], count as f64);
    }
    head(&mut out, "dyno_audit_timestamp_seconds", "When the facts were read.");
    line(&mut out, "dyno_audit_timestamp_seconds", &[], audit.started_unix_s as f64);
    out
}

fn head(out: &mut String, name: &str, help: &str) {
    out.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
}

fn line(out: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    out.push_str(&format!("{name}{labels} {value}\n"));
}

/// A label's value as the exposition format has it; line ends became blanks before.
fn escaped(value: &str) -> String {
    visible(value).replace('\\', r"\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::audit::{AuditFinding, Gain};

    #[test]
    fn a_hostile_name_stays_one_value_on_one_line() {
        let finding = AuditFinding {
            id: "tap.packet".into(),
            object: "a\"b\\c\nd 1".into(),
            gain: Gain { percent: Some([1.0, 2.5]), ..Gain::default() },
            ..AuditFinding::default()
        };
        let text = textfile(&Audit { findings: vec![finding], ..Audit::default() });
        assert!(
            text.contains(r#"dyno_audit_cost_percent{check="tap.packet",object="a\"b\\c d 1"} 2.5"#),
            "{text}"
        );
        assert!(text.lines().all(|line| line.starts_with(['#', 'd'])), "{text}");
        assert!(text.contains("dyno_audit_checks{state=\"found\",goal=\"throughput\"} 1"));
    }
}
