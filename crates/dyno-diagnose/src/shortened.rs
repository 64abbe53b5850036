//! What a finding rests on was seen for less than was asked for: on a full machine this program's threads run late too.
//!
//! The finding stays, says so, and is a step less sure. Called once by `diagnose`, after all rules have spoken.

use dyno_record::finding::{Class, Confidence, Evidence, Finding};
use dyno_record::observation::{Observation, Part, Way};

/// The way of watching whose figures make the finding.
fn way(class: Class) -> Way {
    match class {
        Class::SyncIo | Class::LockContention | Class::AllocatorContention | Class::PoolLimit => Way::OffCpu,
        Class::DelayedAck => Way::Looks,
        Class::Spinning
        | Class::FalseSharingSuspected
        | Class::TlbReach
        | Class::CacheMissesSuspected
        | Class::UserHotSpot => Way::HotCode,
        Class::GeneratorLimited
        | Class::Throttled
        | Class::SingleThreadLimit
        | Class::NoisyNeighbor
        | Class::PacketTap
        | Class::WrongCore => Way::Counters,
        _ => Way::OnCpu,
    }
}

/// Says of each finding that rests on a short look that it does.
pub(super) fn tell(findings: &mut [Finding], seen: &Observation) {
    for finding in findings {
        let part = seen.parts.iter().find(|part| part.way == way(finding.class));
        let Some(part) = part.filter(|part| part.is_short()) else { continue };
        finding.confidence = match finding.confidence {
            Confidence::High => Confidence::Medium,
            Confidence::Medium | Confidence::Low => Confidence::Low,
        };
        finding.evidence.push(in_words(part));
    }
}

fn in_words(part: &Part) -> Evidence {
    let (seen, asked) = (part.seen_s, part.asked_s);
    Evidence {
        text: format!("it rests on a look of {seen:.1} s where {asked:.1} s were asked for"),
        value: Some(seen),
        unit: "s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use dyno_record::finding::{Class, Confidence};
    use dyno_record::observation::{Part, Way};

    use crate::scene::synchronous_log;

    /// Planted faults: every part counts for every finding; the least share of a whole look is nothing (`WHOLE_MIN` of 0).
    #[test]
    fn a_finding_that_rests_on_a_short_look_says_so_and_is_less_sure() {
        let judged = |way, seen_s| {
            let part = Part { way, began_s: 0.0, asked_s: 3.0, seen_s };
            let said = synchronous_log().with(|seen| seen.parts = vec![part]).diagnosed();
            let finding = said.findings.into_iter().next();
            finding.filter(|finding| finding.class == Class::SyncIo).map(|finding| {
                let told = finding.evidence.iter().any(|fact| fact.text.contains("a look of"));
                (finding.confidence, told)
            })
        };
        assert_eq!(judged(Way::OffCpu, 0.9), Some((Confidence::Medium, true)));
        assert_eq!(judged(Way::OffCpu, 2.9), Some((Confidence::High, false)));
        assert_eq!(
            judged(Way::OnCpu, 0.9),
            Some((Confidence::High, false)),
            "it rests on what was waited for"
        );
    }
}
