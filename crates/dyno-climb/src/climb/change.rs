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
        let later = all.iter().filter(|other| other.rung != one.rung && self.depends(other, one));
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
