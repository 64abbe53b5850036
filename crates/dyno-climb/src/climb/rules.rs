//! The rules of a climb: when its judge looks, and how sure it must be. A record carries the rule of each of its trials.

use dyno_measure::judge::{Basis, INSTANCES_LOOK_MIN, Rule};
use dyno_measure::rounds::{STARTS_MIN, TOTAL_Z};
use dyno_record::trial::Schedule;

/// Bursty trials are judged at these looks: each pair lasts ten times as long.
pub(crate) const BURSTY: Rule = Rule { first: 20, step: 20, last: 120, ..Rule::QUICK.by_totals() };
/// Instances measured one after another: each pair takes about a second. As many looks as [`Rule::QUICK`] has.
pub(crate) const IN_TURN: Rule =
    Rule { first: INSTANCES_LOOK_MIN, step: 8, last: 68, ..Rule::QUICK.by_instances() };
/// Chance of an answer by its last look below which a step gives up. A rung without an effect then takes 100 pairs on average
/// instead of all that there is time for, and that time goes to those that may yet have an answer. From 0.05 to 0.2 about as
/// many effects are found (simulated).
const HOPELESS: f64 = 0.1;
/// Pairs that are kept for each rung to come while one has more than its share: most rungs without an effect take no more.
pub(crate) const NULL_PAIRS: usize = 90;
/// One look: 1.2 % false alarms on fresh data, after a step that had 1 % itself.
pub(crate) const CONFIRM_Z: f64 = 2.5;
/// A pair of long blocks lasts as long as this many pairs of short ones.
pub(crate) const LONG_PAIRS: u64 = 9;
/// Pairs of long blocks after which all servers are started anew.
pub(crate) const RENEW_LONG_PAIRS: usize = 20;
/// Starts of the total at most: there Student's t is within 10 % of its limit.
pub(crate) const STARTS_MAX: usize = 24;

/// The rule by which a step is judged whose servers are alive like this.
#[must_use]
pub const fn step_rule(schedule: Schedule) -> Rule {
    match schedule {
        Schedule::LivePairs => Rule::QUICK.giving_up_below(HOPELESS),
        Schedule::LongPairs => BURSTY,
        Schedule::InTurn => IN_TURN,
    }
}

/// The rule of the total: one look when the time is up, over so many starts of all arms, whose levels are read like this.
pub(crate) const fn total(basis: Basis) -> Rule {
    Rule { first: STARTS_MIN, step: 1, last: STARTS_MAX, basis, ..Rule::once(STARTS_MAX, TOTAL_Z) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted faults: a way of measuring that is judged by another's rule, or gives up where its pairs are dear; a total that is
    /// judged as a step.
    #[test]
    fn each_way_of_measuring_has_its_own_looks() {
        let shape = |rule: Rule| (rule.first, rule.step, rule.last, rule.basis, rule.hopeless);
        for (schedule, wanted) in [
            (Schedule::LivePairs, (30, 30, 240, Basis::Pairs, Some(HOPELESS))),
            (Schedule::LongPairs, (20, 20, 120, Basis::Totals, None)),
            (Schedule::InTurn, (12, 8, 68, Basis::Instances, None)),
        ] {
            assert_eq!(shape(step_rule(schedule)), wanted);
            assert!(step_rule(schedule).is_sound() && step_rule(schedule).z == Rule::QUICK.z);
        }
        for basis in [Basis::Pairs, Basis::Totals] {
            let rule = total(basis);
            assert_eq!(shape(rule), (STARTS_MIN, 1, STARTS_MAX, basis, None));
            assert!(rule.z == TOTAL_Z && rule.worthwhile_percent == 1.0);
        }
    }
}
