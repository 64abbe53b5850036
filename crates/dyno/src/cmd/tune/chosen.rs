//! Which findings are meant: ids as the audit has them, one object of them perhaps; and the plan that follows.

use std::collections::BTreeSet;
use std::time::Duration;

use dyno_diagnose::audit::{audit, catalogue};
use dyno_host::facts::{self, Wanted};
use dyno_host::host::Kernel;
use dyno_host::tune::plan;
use dyno_lab::Failure;
use dyno_record::alike::did_you_mean;
use dyno_record::audit::{AuditFinding, Goal};
use dyno_record::tune::Plan;
use dyno_sys::proc;

use crate::cli::tune::Chosen;

/// Neighbours are no setting: they are looked at as short as a tick allows.
const WATCH: Duration = Duration::from_millis(20);

/// What the ids of findings begin with that are about network devices.
const OF_DEVICES: &str = "net.";

/// One id of the command line.
struct Asked<'a> {
    id: &'a str,
    object: Option<&'a str>,
}

/// The plan for these ids, or for all findings of the goal.
pub(super) fn plan_for(ids: &[String], chosen: &Chosen) -> Result<Plan, Failure> {
    let known: Vec<&str> = catalogue().into_iter().map(|(id, _)| id).collect();
    let asked: Vec<Asked<'_>> = ids.iter().map(|id| asked(id, &known)).collect::<Result<_, _>>()?;
    if let Some(pid) = chosen.pid.filter(|pid| proc::stat(*pid).is_err()) {
        return Err(Failure::error(format!("there is no process {pid}"))
            .likely("it has ended")
            .try_this("pgrep -a NAME"));
    }
    let facts = facts::read(&Wanted { server: chosen.pid, watch: WATCH });
    let goals = if ids.is_empty() { vec![chosen.goal.goal()] } else { Goal::ALL.to_vec() };
    let found: Vec<AuditFinding> = goals.into_iter().flat_map(|goal| audit(&facts, goal).findings).collect();
    if let Some(devices) = facts.network.devices.value() {
        let devices: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
        let strange =
            asked.iter().find(|one| !found.iter().any(|finding| one.means(finding)) && one.lacks(&devices));
        if let Some(strange) = strange {
            return Err(no_device(strange.object.unwrap_or_default(), &devices));
        }
    }
    let is_meant = |finding: &AuditFinding| asked.is_empty() || asked.iter().any(|one| one.means(finding));
    let findings = each_once(found.into_iter().filter(is_meant));
    let mut plan = plan::plan(&findings, chosen.pid, &Kernel);
    env!("CARGO_PKG_VERSION").clone_into(&mut plan.version);
    plan.nothing_to_do = idle(ids, &asked, &plan);
    Ok(plan)
}

impl Asked<'_> {
    fn means(&self, finding: &AuditFinding) -> bool {
        self.is(&finding.id, &finding.object)
    }

    fn is(&self, id: &str, object: &str) -> bool {
        self.id == id && self.object.is_none_or(|wanted| wanted == object)
    }

    /// Whether it is asked of a device that is none of these. What findings of the network are about is devices.
    fn lacks(&self, devices: &[&str]) -> bool {
        self.id.starts_with(OF_DEVICES) && self.object.is_some_and(|object| !devices.contains(&object))
    }
}

fn asked<'a>(text: &'a str, known: &[&str]) -> Result<Asked<'a>, Failure> {
    let (id, object) = text.split_once(':').map_or((text, None), |(id, object)| (id, Some(object)));
    match known.contains(&id) {
        true => Ok(Asked { id, object }),
        false => Err(unknown(id, known)),
    }
}

/// An id that nobody has, with the one that was perhaps meant.
pub(super) fn unknown(id: &str, known: &[&str]) -> Failure {
    let likely =
        did_you_mean(id, known.iter().copied()).unwrap_or_else(|| "it is spelt otherwise".to_owned());
    Failure::usage(format!("there is no finding {id}"))
        .likely(likely)
        .try_this("dyno tune plan, which lists what there is")
}

/// "Nothing to do" would say that a device stands well that is not there.
fn no_device(name: &str, devices: &[&str]) -> Failure {
    let failure = Failure::usage(format!("there is no network device {name} here"));
    let meant = did_you_mean(name, devices.iter().copied());
    failure
        .likely(meant.unwrap_or_else(|| format!("there are {}", devices.join(", "))))
        .try_this("ip -brief link")
}

/// A finding helps several goals and is one finding.
fn each_once(findings: impl Iterator<Item = AuditFinding>) -> Vec<AuditFinding> {
    let mut seen = BTreeSet::new();
    findings.filter(|finding| seen.insert((finding.id.clone(), finding.object.clone()))).collect()
}

/// Ids for which nothing is found, or all stands already.
fn idle(ids: &[String], asked: &[Asked<'_>], plan: &Plan) -> Vec<String> {
    let is_busy = |one: &Asked<'_>| {
        let steps = plan.steps.iter().filter(|step| !step.changes.is_empty() || step.cannot.is_some());
        steps
            .map(|step| (&step.id, &step.object))
            .chain(plan.by_hand.iter().map(|hand| (&hand.id, &hand.object)))
            .any(|(id, object)| one.is(id, object))
    };
    ids.iter().zip(asked).filter(|(_, one)| !is_busy(one)).map(|(id, _)| id.clone()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_unknown_id_says_what_was_perhaps_meant() {
        let known = ["net.rps", "nf.linear"];
        let lines = unknown("net.rsp", &known).lines();
        assert!(lines.contains("did you mean net.rps?"), "{lines}");
        assert!(!unknown("<img src=x>\u{1b}[2J", &known).lines().contains('\u{1b}'));
        assert!(asked("net.rps:eth0", &known).is_ok_and(|one| one.object == Some("eth0")));
    }

    /// Planted fault: what nothing is found of has nothing to be done about it.
    #[test]
    fn a_device_that_is_not_there_is_no_device_with_nothing_to_do() {
        let (known, devices) = (["net.rps", "app.shared"], ["lo", "eth0"]);
        let lacks = |text: &str| asked(text, &known).is_ok_and(|one| one.lacks(&devices));
        assert!(lacks("net.rps:eth9") && lacks("net.rps:"));
        assert!(!lacks("net.rps:eth0") && !lacks("net.rps") && !lacks("app.shared:127.0.0.1:80"));
        let lines = no_device("eth1", &devices).lines();
        assert!(lines.contains("no network device eth1") && lines.contains("did you mean eth0?"), "{lines}");
        assert!(!no_device("\u{1b}[2J", &devices).lines().contains('\u{1b}'));
    }

    #[test]
    fn every_id_of_the_catalogue_is_accepted() {
        let known: Vec<&str> = catalogue().into_iter().map(|(id, _)| id).collect();
        assert!(known.iter().all(|id| asked(id, &known).is_ok()));
    }
}
