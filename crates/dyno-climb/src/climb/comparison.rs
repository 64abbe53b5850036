//! A comparison: which settings, when their servers are alive, by which rule, under which load.
//!
//! Noise, steps, confirmations and the total each write one down and hand it to `pairs` or `starts`. How something was
//! measured is in these fields, here and in the record, and nowhere else.

use dyno_measure::judge::{Basis, Rule};
use dyno_record::trial::Schedule;

use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::{ArmSpec, Length};

/// What is compared, and how. `A` says what is compared: two [`Sides`], or the arms of the total.
#[derive(Debug, Clone)]
pub(crate) struct Comparison<A> {
    /// What is compared.
    pub(crate) arms: A,
    /// When the servers are alive, and how long a block is.
    pub(crate) schedule: Schedule,
    /// By what it is judged.
    pub(crate) rule: Rule,
    /// What every server serves.
    pub(crate) load: LoadSpec,
}

/// Two settings: A, and B, which has the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sides {
    settings: [Setting; 2],
    toggles: Option<String>,
}

impl Sides {
    /// Each side in servers of its own.
    pub(crate) fn apart(settings: [Setting; 2]) -> Self {
        Self { settings, toggles: None }
    }

    /// Both sides in the same servers, whose live dial is toggled.
    ///
    /// # Panics
    /// When the sides differ in anything else: turning one dial would not make A of B.
    pub(crate) fn toggled(settings: [Setting; 2], dial: &str) -> Self {
        let [a, b] = &settings;
        assert!(a.with(dial, b.get(dial)) == *b, "{dial} is not all that {a:?} and {b:?} differ by");
        assert!(a.get(dial) != b.get(dial), "{dial} is to be toggled and stands still");
        Self { settings, toggles: Some(dial.to_owned()) }
    }

    /// Where the dials of A and B stand.
    pub(crate) fn settings(&self) -> &[Setting; 2] {
        &self.settings
    }

    /// The live dial that makes one of the other; none where each side has servers of its own.
    pub(crate) fn toggles(&self) -> Option<&str> {
        self.toggles.as_deref()
    }
}

impl<A> Comparison<A> {
    /// What servers of a setting are opened with.
    pub(crate) fn spec(&self, setting: &Setting) -> ArmSpec {
        ArmSpec { setting: setting.clone(), load: self.load.clone() }
    }

    /// How long its blocks are.
    pub(crate) fn length(&self) -> Length {
        match self.schedule {
            Schedule::LivePairs => Length::Short,
            Schedule::LongPairs | Schedule::InTurn => Length::Long,
        }
    }
}

impl Comparison<Sides> {
    /// The same by another schedule and its rule.
    pub(crate) fn by(&self, schedule: Schedule, rule: Rule) -> Self {
        let other = Self { schedule, rule, ..self.clone() };
        other.check();
        other
    }

    /// # Panics
    /// When the rule does not read what the schedule gives.
    pub(crate) fn check(&self) {
        let fits = match self.schedule {
            Schedule::LivePairs => Basis::Pairs,
            Schedule::LongPairs => Basis::Totals,
            Schedule::InTurn => Basis::Instances,
        };
        assert!(self.rule.basis == fits, "{:?} are not judged by {:?}", self.schedule, self.rule.basis);
        assert!(self.rule.first <= self.rule.last, "a rule whose first look comes after its last");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::{Dial, How, Value};

    fn setting() -> Setting {
        let value = |name: &str| Value { name: name.into(), words: vec![], text: String::new() };
        let dial = |name: &str| Dial {
            name: name.into(),
            how: How::Live,
            values: vec![value("off"), value("on")],
            start: 0,
        };
        Setting::start(&[dial("spin"), dial("log")])
    }

    #[test]
    #[should_panic(expected = "is not all that")]
    fn sides_that_differ_in_two_dials_are_never_toggled_by_one() {
        let start = setting();
        let both = start.with("spin", "on").with("log", "on");
        let _ = Sides::toggled([start, both], "spin");
    }

    #[test]
    #[should_panic(expected = "stands still")]
    fn a_dial_that_stands_still_is_never_toggled() {
        let _ = Sides::toggled([setting(), setting()], "spin");
    }

    #[test]
    #[should_panic(expected = "are not judged by")]
    fn visits_are_never_judged_as_live_pairs() {
        let sides = Sides::apart([setting(), setting().with("spin", "on")]);
        let (schedule, rule, load) = (Schedule::LivePairs, Rule::QUICK, LoadSpec::default());
        let comparison = Comparison { arms: sides, schedule, rule, load };
        comparison.check();
        let _ = comparison.by(Schedule::InTurn, Rule::QUICK);
    }

    fn comparison(schedule: Schedule, rule: Rule) -> Comparison<Sides> {
        let arms = Sides::apart([setting(), setting().with("spin", "on")]);
        let load = LoadSpec { connections: 3, ..LoadSpec::default() };
        Comparison { arms, schedule, rule, load }
    }

    /// Planted faults: a schedule that goes with another basis, blocks that are short where work comes in bursts.
    #[test]
    fn each_schedule_has_its_basis_and_its_blocks() {
        for (schedule, rule, length) in [
            (Schedule::LivePairs, Rule::QUICK, Length::Short),
            (Schedule::LongPairs, Rule::QUICK.by_totals(), Length::Long),
            (Schedule::InTurn, Rule::QUICK.by_instances(), Length::Long),
        ] {
            let one = comparison(Schedule::LivePairs, Rule::QUICK).by(schedule, rule);
            assert_eq!((one.schedule, one.rule, one.length()), (schedule, rule, length));
            let spec = one.spec(&setting());
            assert_eq!((spec.setting, spec.load.connections), (setting(), 3), "the load goes with it");
        }
    }

    #[test]
    fn a_rule_may_look_once_and_never_first_after_it_looked_last() {
        comparison(Schedule::LivePairs, Rule::once(30, 2.5)).check();
        let turned_round = Rule { first: 31, ..Rule::once(30, 2.5) };
        let checked = std::panic::catch_unwind(|| comparison(Schedule::LivePairs, turned_round).check());
        assert!(checked.is_err(), "{turned_round:?}");
    }

    #[test]
    fn a_toggled_dial_is_told_and_sides_apart_have_none() {
        let sides = [setting(), setting().with("spin", "on")];
        assert_eq!(Sides::toggled(sides.clone(), "spin").toggles(), Some("spin"));
        let apart = Sides::apart(sides.clone());
        assert_eq!((apart.toggles(), apart.settings()), (None, &sides));
    }
}
