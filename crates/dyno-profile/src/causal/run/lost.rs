//! Windows of a site that do not count, by cause: the verdict says nothing where most were lost to one, and a run that is still
//! under way says beforehand when it will come to that. Pure.

use dyno_record::causal::Credibility;

use super::measured::{Excluded, Measured};
use super::schedule::ROUNDS_MIN;

/// Share of the windows that may be lost to one cause before nothing is said.
const LOST_SHARE_MAX: f64 = 0.5;
/// Rounds of a site after which what was lost so far is no chance.
const ROUNDS_SEEN_MIN: u32 = 3;

/// Windows that do not count, by cause, as shares of all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lost {
    /// Other processes used the CPUs.
    pub(super) to_others: f64,
    pub(super) to_hypervisor: f64,
    pub(super) to_few_visits: f64,
    /// The kernel's watchdog ended them.
    pub(super) to_expiry: f64,
}

impl Lost {
    /// Of all windows of a site, those left out that another time to settle has replaced.
    pub(super) fn of(measured: &[Measured]) -> Lost {
        let settled = || measured.iter().filter(|one| !one.excluded.is_some_and(Excluded::is_replaced));
        let all = settled().count().max(1) as f64;
        let share = |why| settled().filter(|one| one.excluded == Some(why)).count() as f64 / all;
        let few_visits = share(Excluded::Visits);
        debug_assert!((0.0..=1.0).contains(&few_visits), "a share of all");
        Lost {
            to_others: share(Excluded::Foreign),
            to_hypervisor: share(Excluded::Stolen),
            to_few_visits: few_visits,
            to_expiry: share(Excluded::Expired),
        }
    }

    /// What most windows were lost to, if it is one cause.
    pub(super) fn most(self, credibility: &Credibility) -> Option<String> {
        let is_most = |share: f64| share > LOST_SHARE_MAX;
        if is_most(self.to_few_visits) {
            return Some(format!(
                "too few visits of the progress point: {:.0} % of the windows had none or one",
                100.0 * self.to_few_visits
            ));
        }
        if is_most(self.to_others) {
            return Some(format!(
                "other processes used {:.1} % of the CPUs: {:.0} % of the windows were lost to them",
                credibility.foreign_percent,
                100.0 * self.to_others
            ));
        }
        if is_most(self.to_hypervisor) {
            return Some(format!(
                "the hypervisor kept {:.0} % of the CPUs: {:.0} % of the windows were lost to it",
                credibility.steal_percent,
                100.0 * self.to_hypervisor
            ));
        }
        is_most(self.to_expiry).then(|| {
            format!(
                "dyno itself was kept from the CPUs: {:.0} % of the windows were cut short by it",
                100.0 * self.to_expiry
            )
        })
    }
}

/// How far a site is while the run is under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// It needs no more.
    pub(super) is_done: bool,
    /// Rounds of it.
    pub(super) rounds: u32,
    /// Those that could be used.
    pub(super) used: usize,
    /// What most of its windows were lost to.
    pub(super) lost: Option<String>,
}

/// Why no site can be answered, where that is to be seen already; `rounds_left` are those that each open site still has.
pub(super) fn unanswerable(sites: &[Standing], rounds_left: usize) -> Option<String> {
    let is_lost = |site: &Standing| site.rounds >= ROUNDS_SEEN_MIN && site.lost.is_some();
    let is_late = |site: &Standing| site.used + rounds_left < ROUNDS_MIN;
    if sites.iter().any(|site| site.is_done || site.rounds == 0 || !is_lost(site) && !is_late(site)) {
        return None;
    }
    let lost = sites.iter().filter(|site| is_lost(site)).find_map(|site| site.lost.as_deref());
    match (lost, sites.first()) {
        (Some(why), _) => Some(format!("no site can be answered if this goes on: {why}")),
        (None, Some(site)) => Some(format!(
            "no site can be answered in the time that is left: a verdict needs {ROUNDS_MIN} rounds, {} could be used and there is time for {rounds_left} more",
            site.used
        )),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn site(rounds: u32, used: usize, lost: Option<&str>) -> Standing {
        Standing { is_done: false, rounds, used, lost: lost.map(str::to_owned) }
    }

    /// Planted fault: only the end of the run says that nothing could be told.
    #[test]
    fn a_run_that_comes_to_nothing_is_known_before_its_end() {
        let lost = "other processes used 48.0 % of the CPUs: 93 % of the windows were lost to them";
        let all_lost = [site(3, 0, Some(lost)), site(4, 1, Some(lost))];
        let why = unanswerable(&all_lost, 100).unwrap();
        assert!(
            why.starts_with("no site can be answered if this goes on: other processes used 48.0 %"),
            "{why}"
        );
        assert_eq!(unanswerable(&[site(2, 0, Some(lost))], 100), None, "two rounds are chance");
        assert_eq!(
            unanswerable(&[site(3, 0, Some(lost)), site(3, 3, None)], 100),
            None,
            "one can be answered"
        );
        assert_eq!(unanswerable(&[], 0), None);
        let late = unanswerable(&[site(2, 2, None)], 2).unwrap();
        assert!(late.contains("needs 5 rounds, 2 could be used and there is time for 2 more"), "{late}");
        assert_eq!(unanswerable(&[site(2, 2, None)], 3), None);
        let done = Standing { is_done: true, ..site(9, 9, None) };
        assert_eq!(unanswerable(&[done, site(3, 0, Some(lost))], 9), None);
    }
}
