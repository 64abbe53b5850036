//! The audit: pure rules from a host's facts to what costs speed, what mending it would bring, and what that would cost.
//!
//! `dyno audit` calls [`audit`]. A check reads facts and nothing else, so that facts from another machine, or made up, are
//! judged alike. It asks each fact with `?`: what could not be read ends up in the record as not looked at, never as fine.
//! A check is a function in a file of this folder and a line in its list.

mod app;
mod app_filters;
mod app_memory;
mod app_order;
mod app_watched;
mod cpu_list;
mod draft;
mod here;
mod host_cpus;
mod host_kept;
mod host_memory;
mod host_others;
mod moved;
mod net_drops;
mod net_irq;
mod net_offload;
mod net_polling;
mod net_queues;
mod net_tcp;
mod netfilter;
mod placed;
mod rule_walk;
mod security;
mod taps;

use dyno_record::audit::{Audit, AuditFinding, Fine, Goal, NotHere, NotLooked, OtherGoal};
use dyno_record::fact::Gap;
use dyno_record::facts::Facts;

use draft::{Check, Looked};

/// Every check, by what it is about.
fn checks() -> impl Iterator<Item = &'static Check> {
    let lists: [&'static [Check]; 17] = [
        app::CHECKS,
        app_filters::CHECKS,
        app_memory::CHECKS,
        app_watched::CHECKS,
        security::CHECKS,
        netfilter::CHECKS,
        taps::CHECKS,
        net_queues::CHECKS,
        net_irq::CHECKS,
        net_polling::CHECKS,
        net_offload::CHECKS,
        net_drops::CHECKS,
        net_tcp::CHECKS,
        host_cpus::CHECKS,
        host_memory::CHECKS,
        host_kept::CHECKS,
        host_others::CHECKS,
    ];
    lists.into_iter().flatten()
}

/// Id and subject of every check, for lists and for SARIF's rules.
pub fn catalogue() -> Vec<(&'static str, &'static str)> {
    checks().map(|check| (check.id, check.about)).collect()
}

/// Judges facts for a goal. Machine, command line and times are for the caller to fill in.
#[must_use]
pub fn audit(facts: &Facts, goal: Goal) -> Audit {
    let mut audit =
        Audit { goal, took_s: facts.took_s, started_unix_s: facts.taken_unix_s, ..Audit::default() };
    audit.measured.clone_from(&facts.measured);
    audit.server = facts.server.as_ref().map(|server| format!("{} ({})", server.name, server.pid));
    for check in checks() {
        enter(&mut audit, check, facts);
    }
    let dearest = |finding: &AuditFinding| finding.gain.percent.map_or(0.0, |[_, most]| most);
    audit
        .findings
        .sort_by(|a, b| b.level.cmp(&a.level).then(dearest(b).total_cmp(&dearest(a))).then(a.id.cmp(&b.id)));
    let cut = facts.cut.iter().map(|what| format!("too many to read all: {what} were left out"));
    audit.warnings = missing(facts).into_iter().chain(cut).collect();
    audit
}

/// Parts that a warning names; a file that holds less than that is told by their number.
const NAMED_MAX: usize = 8;

fn missing(facts: &Facts) -> Option<String> {
    let named = facts.missing.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = facts.missing.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty())
        .then(|| format!("these facts do not hold {named}{more}: what rests on them could not be looked at"))
}

fn enter(audit: &mut Audit, check: &Check, facts: &Facts) {
    let id = || check.id.to_owned();
    match (check.look)(facts) {
        Ok(Looked::Fine(found)) => audit.fine.push(Fine { id: id(), found }),
        Ok(Looked::NotHere(what)) | Err(Gap::Absent(what)) => audit.not_here.push(NotHere { id: id(), what }),
        Ok(Looked::Found(findings)) => {
            assert!(!findings.is_empty(), "{}: nothing was found is said in another way", check.id);
            for finding in findings {
                let changes = placed::placed(finding.changes.clone(), facts);
                let by_hand = match placed::read_only(&changes, facts) {
                    Some(why) => why,
                    None => finding.by_hand.clone(),
                };
                enter_finding(audit, AuditFinding { id: id(), changes, by_hand, ..finding });
            }
        }
        Err(Gap::Unread(why)) => {
            let words = if why.what.is_empty() { why.why } else { format!("{}: {}", why.what, why.why) };
            audit.not_looked_at.push(NotLooked { id: id(), why: words, needs: why.needs });
        }
    }
}

fn enter_finding(audit: &mut Audit, finding: AuditFinding) {
    assert!(!finding.goals.is_empty(), "{}: it helps nobody", finding.id);
    if finding.goals.contains(&audit.goal) {
        audit.findings.push(finding);
    } else {
        let AuditFinding { id, found, goals, .. } = finding;
        audit.other_goals.push(OtherGoal { id, found, goals });
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_here;
