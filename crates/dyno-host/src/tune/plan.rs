//! From findings to a plan: what each setting reads now, the commands that do the same, and what could cut the way in.
//!
//! The verb calls [`plan`] to show it, and again to carry it out: the hash says whether it is still the same. It only reads.

use dyno_record::audit::AuditFinding;
use dyno_record::change::{ChangeSpec, Network, What};
use dyno_record::commands::command;
use dyno_record::tune::{ByHand, PLAN_SCHEMA, Plan, Planned, Step};
use dyno_sys::Pid;

use crate::host::Host;
use crate::place;

/// Makes the plan. Devices and namespaces are those of this thread, or of the server that was named.
#[must_use]
pub fn plan(findings: &[AuditFinding], server: Option<Pid>, host: &dyn Host) -> Plan {
    let known = Known::look(server);
    let mut plan = Plan { schema: PLAN_SCHEMA.into(), ..Plan::default() };
    for finding in findings {
        match finding.changes.is_empty() {
            true => plan.by_hand.push(by_hand(finding)),
            false => plan.steps.push(step(finding, &known, host)),
        }
    }
    plan.hash = Plan::hash_of(&plan.steps);
    plan
}

/// Namespaces with their cookies.
struct Known {
    networks: Vec<Network>,
    own: Option<Network>,
    server: Option<Pid>,
}

impl Known {
    fn look(server: Option<Pid>) -> Known {
        let own = place::network().ok();
        let of_server = server.and_then(|pid| place::network_of(pid).ok());
        Known { networks: own.into_iter().chain(of_server).collect(), own, server }
    }

    /// What a command needs said beside it: it is for the setting's namespace.
    fn beside(&self, what: &What) -> String {
        match (network_of(what).filter(|network| Some(*network) != self.own), self.server) {
            (Some(_), Some(pid)) => format!("  # in the network namespace of process {pid}"),
            (Some(network), None) => format!("  # in net:[{}]", network.inode),
            (None, _) => String::new(),
        }
    }

    /// The change, with the cookie of its namespace: facts know the number alone.
    fn completed(&self, spec: &ChangeSpec) -> ChangeSpec {
        let mut spec = spec.clone();
        let network = match &mut spec.what {
            What::NetworkFile { network, .. }
            | What::Table { network, .. }
            | What::FirstRule { network, .. } => Some(network),
            What::DeviceFile { device, .. }
            | What::Feature { device, .. }
            | What::Hardware { device, .. }
            | What::Qdisc { device } => Some(&mut device.network),
            _ => None,
        };
        if let Some(network) = network {
            let same = self.networks.iter().find(|known| known.inode == network.inode);
            *network = same.copied().unwrap_or(*network);
        }
        spec
    }
}

fn network_of(what: &What) -> Option<Network> {
    match what {
        What::NetworkFile { network, .. } | What::Table { network, .. } | What::FirstRule { network, .. } => {
            Some(*network)
        }
        what => what.device().map(|device| device.network),
    }
}

fn by_hand(finding: &AuditFinding) -> ByHand {
    let AuditFinding { id, object, title, by_hand, apply, revert, .. } = finding.clone();
    ByHand { id, object, title, why: by_hand, apply, revert }
}

fn step(finding: &AuditFinding, known: &Known, host: &dyn Host) -> Step {
    let AuditFinding { id, object, title, level, gain, risk, prices, .. } = finding.clone();
    let mut step = Step { id, object, title, level, gain, risk, prices, ..Step::default() };
    for spec in &finding.changes {
        match planned(known.completed(spec), known, host) {
            Ok(planned) => step.changes.extend(planned),
            Err(why) => step.cannot = Some(why),
        }
    }
    if !finding.by_hand.is_empty() {
        step.cannot = Some(finding.by_hand.clone());
    }
    if step.cannot.is_some() {
        // All of a finding or none: half of it is not what was judged.
        step.changes.clear();
    }
    step
}

/// The change, or nothing where the setting stands there already.
fn planned(spec: ChangeSpec, known: &Known, host: &dyn Host) -> Result<Option<Planned>, String> {
    let was = host.read(&spec.what).map_err(|error| chain(&error))?;
    if let Some(why) = host.advises_against(&spec.what, spec.wanted.as_bytes()) {
        return Err(why);
    }
    if host.holds(&spec.what, spec.wanted.as_bytes()).map_err(|error| chain(&error))? {
        return Ok(None);
    }
    let was = String::from_utf8_lossy(&was).into_owned();
    let told = |value: &str| command(&spec.what, value) + &known.beside(&spec.what);
    let (set, undo) = (told(&spec.wanted), told(&was));
    let cuts = cuts(&spec.what).map(str::to_owned);
    Ok(Some(Planned { spec, was, set, undo, cuts }))
}

/// How a change could cut the way in to this machine.
fn cuts(what: &What) -> Option<&'static str> {
    match what {
        What::Qdisc { .. } => Some("a device whose queue is wrong sends nothing"),
        What::Table { .. } | What::FirstRule { .. } => {
            Some("a packet filter can refuse the connection you came by")
        }
        What::Hardware { field, .. } if !field.starts_with("coalesce") => {
            Some("the device is reset, and may not come back")
        }
        What::Interrupt { .. } => Some("a device whose interrupt reaches no CPU receives nothing"),
        _ => None,
    }
}

/// An error with its sources.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::InMemory;
    use dyno_sys::knob::KnobError;

    fn finding(id: &str, changes: &[(&str, &str)]) -> AuditFinding {
        let spec = |(path, wanted): &(&str, &str)| ChangeSpec {
            what: What::File((*path).into()),
            wanted: (*wanted).into(),
            why: "a test".into(),
        };
        AuditFinding { id: id.into(), changes: changes.iter().map(spec).collect(), ..AuditFinding::default() }
    }

    #[test]
    fn a_plan_says_what_is_and_what_will_be_and_leaves_out_what_stands() {
        let host = InMemory::holding(&[("/a", "0"), ("/b", "1")]);
        let findings = [finding("x", &[("/a", "1"), ("/b", "1")]), finding("by.hand", &[])];
        let plan = plan(&findings, None, &host);
        assert_eq!(plan.steps[0].changes.len(), 1);
        let change = &plan.steps[0].changes[0];
        assert_eq!((change.was.as_str(), change.undo.as_str()), ("0", "echo 0 | sudo tee /a"));
        assert_eq!(plan.by_hand[0].id, "by.hand");
    }

    #[test]
    fn a_finding_of_which_a_part_cannot_be_read_is_left_alone() {
        let host = InMemory::holding(&[("/a", "0")]);
        let plan = plan(&[finding("x", &[("/a", "1"), ("/missing", "1")])], None, &host);
        assert!(plan.steps[0].changes.is_empty());
        assert!(plan.steps[0].cannot.as_ref().is_some_and(|why| why.contains("/missing")));
    }

    /// Planted fault: the reason is for people alone; then a setting is tried that nobody may write here.
    #[test]
    fn what_keeps_a_change_from_being_made_here_is_why_it_cannot_be_done() {
        let host = InMemory::holding(&[("/a", "0")]);
        let closed = AuditFinding { by_hand: "/a is read-only here".into(), ..finding("x", &[("/a", "1")]) };
        let hand = AuditFinding { by_hand: "why".into(), revert: vec!["undo".into()], ..finding("y", &[]) };
        let plan = plan(&[closed, hand], None, &host);
        assert_eq!(plan.steps[0].cannot.as_deref(), Some("/a is read-only here"));
        assert!(plan.steps[0].changes.is_empty());
        assert_eq!((plan.by_hand[0].why.as_str(), plan.by_hand[0].revert.len()), ("why", 1));
    }

    /// A host where everything stands as it is wanted, and should not be left so.
    struct Behind;

    impl Host for Behind {
        fn read(&self, _: &What) -> Result<Vec<u8>, KnobError> {
            Ok(b"1".to_vec())
        }

        fn holds(&self, _: &What, _: &[u8]) -> Result<bool, KnobError> {
            Ok(true)
        }

        fn advises_against(&self, _: &What, _: &[u8]) -> Option<String> {
            Some("it is no longer the first".into())
        }

        fn write(&mut self, what: &What, _: &[u8]) -> Result<(), KnobError> {
            panic!("{what} is planned and not written")
        }

        fn put_back(&mut self, what: &What, _: &[u8]) -> Result<(), KnobError> {
            panic!("{what} is planned and not written")
        }
    }

    #[test]
    fn what_is_there_and_does_not_work_any_more_is_told_and_not_taken_for_done() {
        let plan = plan(&[finding("x", &[("/a", "1")])], None, &Behind);
        assert_eq!(plan.steps[0].cannot.as_deref(), Some("it is no longer the first"));
    }

    #[test]
    fn what_can_cut_the_way_in_says_how() {
        let device = dyno_record::change::Device::default();
        assert!(cuts(&What::Qdisc { device: device.clone() }).is_some());
        assert!(cuts(&What::Interrupt { irq: 9, name: "eth0-rx-0".into() }).is_some());
        assert!(cuts(&What::DeviceFile { device, file: "threaded".into() }).is_none());
    }
}
