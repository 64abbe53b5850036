//! What must be turned for a rung, or why it cannot be; and what turning a kept one back takes with it.
//!
//! Steps and confirmations ask it. It measures nothing.

use dyno_record::climb::RungVerdict;

use super::climber::Climber;
use super::turned::{Kept, Turned, apply};
use crate::dial::Setting;
use crate::meter::Meter;
use crate::rung::Rung;

/// What is turned for an attempt.
pub(crate) struct Change {
    pub(crate) turned: Vec<Turned>,
    /// Rungs tried together with it.
    pub(crate) bundle: Vec<String>,
}

impl<M: Meter> Climber<'_, M> {
    /// What must be turned for the rung, or why it cannot be.
    pub(crate) fn change(&self, rung: &Rung) -> Result<Change, String> {
        self.possible(rung)?;
        let mut change = Change { turned: Vec::new(), bundle: Vec::new() };
        self.meet_needs(rung, &mut change)?;
        self.turn_to(&rung.dial, &rung.to, &mut change.turned)?;
        assert!(change.turned.iter().all(|turn| turn.from != turn.to), "every dial of a change is turned");
        Ok(change)
    }

    /// Whether it can be had here at all.
    pub(crate) fn possible(&self, rung: &Rung) -> Result<(), String> {
        if let Some(why) = &rung.impossible {
            return Err(why.clone());
        }
        let cpus = self.options.server_cpus;
        if cpus < rung.server_cpus {
            let plural = if cpus == 1 { "" } else { "s" };
            return Err(format!("{cpus} server CPU{plural}, it needs {}", rung.server_cpus));
        }
        Ok(())
    }

    fn meet_needs(&self, rung: &Rung, change: &mut Change) -> Result<(), String> {
        for need in &rung.needs {
            let turned = change.turned.iter().any(|turn| turn.dial == need.dial && turn.to == need.value);
            if !turned && self.standing.get(&need.dial) != need.value {
                self.needed(&need.dial, &need.value, change)?;
            }
        }
        Ok(())
    }

    /// A needed dial that showed no difference by itself, or too little for its price, is judged with what needs it; one that
    /// harmed is not.
    fn needed(&self, dial: &str, value: &str, change: &mut Change) -> Result<(), String> {
        let provider =
            self.record.rungs.iter().find(|done| {
                self.plan.rung(&done.id).is_ok_and(|rung| rung.dial == dial && rung.to == value)
            });
        match provider {
            Some(done)
                if matches!(done.attempt.verdict, RungVerdict::NoDifference | RungVerdict::NotWorthwhile) =>
            {
                change.bundle.push(done.id.clone());
                self.turn_to(dial, value, &mut change.turned)?;
                // What it needs itself may be one of these too.
                self.meet_needs(self.plan.rung(&done.id).expect("found above"), change)
            }
            Some(done) => {
                Err(format!("needs {dial}={value}, and {} was {}", done.id, done.attempt.verdict.words()))
            }
            None => Err(format!("needs {dial}={value}, which no rung before it sets")),
        }
    }

    fn turn_to(&self, dial: &str, to: &str, turned: &mut Vec<Turned>) -> Result<(), String> {
        let from = self.standing.get(dial).to_owned();
        if from == to {
            return Err(format!("{dial} stands at {to} already"));
        }
        assert!(
            self.plan.dial(dial).position(to).is_some(),
            "{dial} is turned to {to}, which it does not have"
        );
        turned.push(Turned { dial: dial.to_owned(), from, to: to.to_owned() });
        Ok(())
    }

    /// A setting with this rung's dials where the climb found them, and those of every rung that needs it.
    pub(crate) fn turned_back(&self, with: &Setting, one: &Kept, all: &[Kept]) -> Setting {
        assert!(!one.turned.is_empty(), "a kept rung has turned something");
        // Who needs one of those that fall falls too.
        let mut fallen = vec![one];
        while let Some(next) = all.iter().find(|other| {
            fallen.iter().all(|known| known.rung != other.rung)
                && fallen.iter().any(|known| self.depends(other, known))
        }) {
            fallen.push(next);
        }
        let later = all.iter().filter(|other| fallen[1..].iter().any(|known| known.rung == other.rung));
        let mut dependent: Vec<Turned> = later.flat_map(|other| &other.turned).map(Turned::back).collect();
        dependent.reverse();
        let own: Vec<Turned> = one.turned.iter().rev().map(Turned::back).collect();
        apply(&apply(with, &dependent), &own)
    }

    /// Whether `other` cannot stand without `one`: by a declared need, or because it moved the same dial on.
    fn depends(&self, other: &Kept, one: &Kept) -> bool {
        let Ok(rung) = self.plan.rung(&self.record.rungs[other.rung].id) else { return false };
        let moved_on = other.turned.iter().any(|turn| one.brought(&turn.dial, &turn.from));
        moved_on || rung.needs.iter().any(|need| one.brought(&need.dial, &need.value))
    }

    /// What a kept rung stood on that does not stand in this setting, as `dial=value`.
    pub(crate) fn lacks(&self, kept: &Kept, setting: &Setting) -> Option<String> {
        let moved_from = kept.turned.iter().map(|turn| (&turn.dial, &turn.from));
        let needed = self.rung_of(kept.rung).needs.iter().map(|need| (&need.dial, &need.value));
        let needed = needed.filter(|(dial, value)| !kept.brought(dial, value));
        moved_from
            .chain(needed)
            .find(|(dial, value)| setting.get(dial) != value.as_str())
            .map(|(dial, value)| format!("{dial}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::still::{Still, keep, needs, on_a_climb, options, plan, tried};

    fn change_of(climber: &Climber<'_, Still>, at: usize) -> Result<(Vec<String>, Vec<String>), String> {
        let change = climber.change(&climber.plan.rungs[at])?;
        let turned = change.turned.iter().map(|turn| format!("{}: {} to {}", turn.dial, turn.from, turn.to));
        Ok((turned.collect(), change.bundle))
    }

    fn alone(turned: &str) -> Result<(Vec<String>, Vec<String>), String> {
        Ok((vec![turned.to_owned()], vec![]))
    }

    #[test]
    fn a_rung_is_possible_with_as_many_cpus_as_it_needs() {
        let mut plan = plan(&["a=on", "b=on"]);
        plan.rungs[0].server_cpus = 3;
        plan.rungs[1].impossible = Some("no such library here".into());
        let on = |server_cpus| {
            let options = crate::climb::options::Options { server_cpus, ..options() };
            on_a_climb(&plan, &options, |climber| climber.possible(&plan.rungs[0]))
        };
        assert_eq!(on(1), Err("1 server CPU, it needs 3".into()));
        assert_eq!(on(2), Err("2 server CPUs, it needs 3".into()));
        assert_eq!((on(3), on(4)), (Ok(()), Ok(())));
        on_a_climb(&plan, &options(), |climber| {
            assert_eq!(climber.possible(&plan.rungs[1]), Err("no such library here".into()));
            assert_eq!(change_of(climber, 1), Err("no such library here".into()));
        });
    }

    /// Planted faults: a dial is turned to where it stands; what is needed and stands is turned once more.
    #[test]
    fn a_change_turns_what_does_not_stand_yet() {
        let mut plan = plan(&["log=ring", "log=none", "top=on"]);
        plan.rungs[2].needs = needs("log=ring");
        on_a_climb(&plan, &options(), |climber| {
            assert_eq!(change_of(climber, 0), alone("log: off to ring"));
            assert_eq!(change_of(climber, 2), Err("needs log=ring, which no rung before it sets".into()));
            keep(climber, 0);
            assert_eq!(change_of(climber, 0), Err("log stands at ring already".into()));
            assert_eq!(change_of(climber, 1), alone("log: ring to none"), "from where it stands");
            assert_eq!(change_of(climber, 2), alone("top: off to on"), "what it needs stands");
        });
    }

    /// Planted faults: what harmed is tried with what needs it, or what showed no difference is not.
    #[test]
    fn a_needed_rung_is_bundled_where_it_showed_no_difference_only() {
        let mut plan = plan(&["cellar=on", "base=on", "top=on"]);
        (plan.rungs[1].needs, plan.rungs[2].needs) = (needs("cellar=on"), needs("base=on"));
        on_a_climb(&plan, &options(), |climber| {
            for at in [0, 1] {
                tried(climber, at, RungVerdict::NoDifference);
            }
            let turned =
                ["base: off to on", "cellar: off to on", "top: off to on"].map(str::to_owned).to_vec();
            let bundle = ["base=on", "cellar=on"].map(str::to_owned).to_vec();
            assert_eq!(change_of(climber, 2), Ok((turned, bundle)));
            for verdict in [RungVerdict::Reverted, RungVerdict::NotMeasured, RungVerdict::Unconfirmed] {
                climber.record.rungs[1].attempt.verdict = verdict;
                let why = format!("needs base=on, and base=on was {}", verdict.words());
                assert_eq!(change_of(climber, 2), Err(why));
            }
        });
    }

    /// `a` is needed by `b`, moved on by `a2`, and has nothing to do with `c`.
    #[test]
    fn turning_a_rung_back_takes_with_it_what_stands_on_it_and_nothing_else() {
        let mut plan = plan(&["a=on", "b=on", "c=on", "a=more"]);
        plan.rungs[1].needs = needs("a=on");
        on_a_climb(&plan, &options(), |climber| {
            let kept = [0, 1, 2, 3].map(|at| keep(climber, at));
            assert_eq!(climber.standing.words(), ["a=more", "b=on", "c=on"]);
            let back = |one: &Kept| climber.turned_back(&climber.standing, one, &kept).words().join(" ");
            assert_eq!(back(&kept[0]), "a=off b=off c=on");
            assert_eq!(back(&kept[1]), "a=more b=off c=on");
            assert_eq!(back(&kept[2]), "a=more b=on c=off");
            assert_eq!(back(&kept[3]), "a=on b=on c=on");
            let depends = |other: usize| climber.depends(&kept[other], &kept[0]);
            assert_eq!([1, 2, 3].map(depends), [true, false, true]);
        });
    }

    /// `c` needs `b`, which needs `a`. Planted fault: who needs the rung itself falls with it, and nobody else.
    #[test]
    fn who_needs_one_that_falls_falls_too() {
        let mut plan = plan(&["c=on", "a=on", "b=on"]);
        (plan.rungs[0].needs, plan.rungs[2].needs) = (needs("b=on"), needs("a=on"));
        on_a_climb(&plan, &options(), |climber| {
            let kept = [1, 2, 0].map(|at| keep(climber, at));
            let back = |one: &Kept| climber.turned_back(&climber.standing, one, &kept).words().join(" ");
            assert_eq!(back(&kept[0]), "a=off b=off c=off");
            assert_eq!(back(&kept[1]), "a=on b=off c=off");
        });
    }

    #[test]
    fn what_a_kept_rung_stood_on_is_missed_where_it_does_not_stand() {
        let mut plan = plan(&["a=on", "b=on", "a=more"]);
        plan.rungs[1].needs = needs("a=on");
        on_a_climb(&plan, &options(), |climber| {
            let kept = [0, 1, 2].map(|at| keep(climber, at));
            let start = climber.plan.start();
            let lacks = |at: usize, setting: &Setting| climber.lacks(&kept[at], setting);
            let missed = |text: &str| Some(text.to_owned());
            assert_eq!([0, 1, 2].map(|at| lacks(at, &start)), [None, missed("a=on"), missed("a=on")]);
            let grown = start.with("a", "on");
            assert_eq!([1, 2].map(|at| lacks(at, &grown)), [None, None]);
            assert_eq!(lacks(0, &grown), missed("a=off"), "it moved its dial from there");
            let turned_on = grown.with("b", "on");
            assert_eq!(lacks(1, &turned_on), missed("b=off"));
            // What a rung brought itself, in a bundle, it does not miss.
            let both =
                Kept { turned: [&kept[0].turned[..], &kept[1].turned[..]].concat(), ..kept[1].clone() };
            assert_eq!(climber.lacks(&both, &start), None);
        });
    }
}
