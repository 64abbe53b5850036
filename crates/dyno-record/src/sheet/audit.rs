//! The sheet of an audit: how many findings of which level, and what each costs at most.

use crate::audit::{Audit, Level};
use crate::figure::{Better, Figure, Sheet, Starts, Unit, of_machine};

/// All that an audit comes to.
#[must_use]
pub fn of_audit(audit: &Audit) -> Sheet {
    Sheet {
        kind: "audit",
        schema: audit.schema.clone(),
        version: audit.version.clone(),
        started_unix_s: audit.started_unix_s,
        duration_s: audit.took_s,
        cut_short: None,
        conditions: of_machine(&audit.machine),
        texts: Vec::new(),
        figures: counts(audit).into_iter().chain(findings(audit)).collect(),
        starts: Starts::One,
        warnings: audit.warnings.clone(),
    }
}

fn counts(audit: &Audit) -> Vec<Figure> {
    let of = |level: Level| audit.findings.iter().filter(|finding| finding.level == level).count();
    let all = [
        ("findings", "findings".to_owned(), audit.findings.len()),
        ("findings.high", "findings of level high".to_owned(), of(Level::High)),
        ("findings.medium", "findings of level medium".to_owned(), of(Level::Medium)),
        ("findings.low", "findings of level low".to_owned(), of(Level::Low)),
    ];
    all.into_iter()
        .map(|(name, what, count)| Figure::new(name, what, (Unit::Count, Better::Lower), Some(count as f64)))
        .collect()
}

fn findings(audit: &Audit) -> Vec<Figure> {
    let figure = |finding: &crate::audit::AuditFinding| {
        let object = if finding.object.is_empty() { String::new() } else { format!(" {}", finding.object) };
        let name = format!("finding.{}{object}", finding.id);
        let most = finding.gain.percent.map(|[_, most]| most);
        let figure = Figure::new(name, &finding.title, (Unit::Share, Better::Lower), most)
            .within(finding.gain.percent);
        figure.word(finding.level.name()).basis(format!("found {}", finding.found))
    };
    audit.findings.iter().map(figure).collect()
}
