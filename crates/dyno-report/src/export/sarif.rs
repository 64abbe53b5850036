//! An audit as SARIF 2.1.0 (OASIS), which code hosts and editors show.

use dyno_record::audit::{Audit, AuditFinding, Level};
use serde_json::{Value, json};

/// The whole log. `rules` are id and subject of every check.
pub fn sarif(audit: &Audit, rules: &[(&str, &str)]) -> String {
    let rules: Vec<Value> =
        rules.iter().map(|(id, about)| json!({"id": id, "shortDescription": {"text": about}})).collect();
    let unseen: Vec<Value> = audit
        .not_looked_at
        .iter()
        .map(|one| {
            json!({
                "level": "warning",
                "descriptor": {"id": one.id},
                "message": {"text": format!("could not look: {}; needs: {}", one.why, one.needs)},
            })
        })
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "dyno", "version": audit.version, "rules": rules}},
            // What could not be looked at is a notification of the run: no result says that it is fine.
            "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": unseen}],
            "results": audit.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

fn result(finding: &AuditFinding) -> Value {
    let level = match finding.level {
        Level::High => "error",
        Level::Medium => "warning",
        Level::Low => "note",
    };
    let object = if finding.object.is_empty() { "host" } else { &finding.object };
    json!({
        "ruleId": finding.id,
        "level": level,
        "message": {"text": format!("{}. Found: {}. Better: {}.", finding.title, finding.found, finding.recommended)},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": object, "kind": "resource"}]}],
        "partialFingerprints": {"checkAndObject/v1": format!("{}:{object}", finding.id)},
        "properties": {
            "gain": finding.gain, "risk": finding.risk, "prices": finding.prices,
            "see": finding.see, "apply": finding.apply, "revert": finding.revert,
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::NotLooked;

    #[test]
    fn findings_are_results_and_what_was_not_seen_is_a_notification() {
        let finding = AuditFinding { id: "net.rps".into(), level: Level::High, ..AuditFinding::default() };
        let unseen = NotLooked { id: "sec.bpf".into(), why: "refused".into(), needs: "root".into() };
        let audit = Audit { findings: vec![finding], not_looked_at: vec![unseen], ..Audit::default() };
        let log: Value = serde_json::from_str(&sarif(&audit, &[("net.rps", "RPS")])).unwrap();
        let run = &log["runs"][0];
        assert_eq!(
            (&run["results"][0]["ruleId"], &run["results"][0]["level"]),
            (&json!("net.rps"), &json!("error"))
        );
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "net.rps");
        assert_eq!(run["invocations"][0]["toolExecutionNotifications"][0]["descriptor"]["id"], "sec.bpf");
    }
}
