//! Proofs of what was kept, read on the total's own servers.
//!
//! Each rung was proved on the servers of its step and of its confirmation; the total has others. A proof must hold there on every
//! server with the change. Against the start it says less than against the setting before: other rungs stand between. What needs
//! the other side's reading, or holds at the start as well, is a warning; what does not hold with the change ends the total.

use dyno_record::climb::{ProofLine, Role};

use super::proofs::hold;
use crate::dial::Setting;
use crate::proof::{Proof, Reading};

/// What a rung must show on servers of the total.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Due {
    /// The rung.
    pub(crate) rung: String,
    pub(crate) proof: Proof,
    pub(crate) dial: String,
    pub(crate) value: String,
}

/// What was read of it.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    pub(crate) due: Vec<Due>,
    /// Of the first servers of start and end before their load, and of the latest after it; of the first that differ.
    pub(crate) lines: [Vec<ProofLine>; 2],
    /// Why the total says nothing of what was kept.
    pub(crate) not_applied: Option<String>,
    /// What these servers could not tell, each rung once.
    pub(crate) doubts: Vec<String>,
}

impl InForce {
    /// The lines of the record.
    pub(crate) fn into_lines(self) -> Vec<ProofLine> {
        self.lines.into_iter().flatten().collect()
    }

    /// What is due on an arm that stands so.
    pub(crate) fn of<'d>(&'d self, setting: &'d Setting) -> impl Iterator<Item = (usize, &'d Due)> {
        self.due.iter().enumerate().filter(|(_, due)| setting.get(&due.dial) == due.value)
    }

    /// Holds what was read with a change against what the start read.
    pub(crate) fn hold(&mut self, role: Role, start: &[Reading], with: &[(usize, Reading)], when: &str) {
        let mut lines = Vec::new();
        for (at, with) in with {
            let due = &self.due[*at];
            let Some(why) = hold(&due.proof, [&start[*at], with], when, &mut lines) else { continue };
            let why = format!("{}: {why}", due.rung);
            let is_doubt = match due.proof.holds(&start[*at], with) {
                Ok([at_start, _]) => at_start || due.proof.is_relative(),
                Err(_) => false,
            };
            match is_doubt {
                true if self.doubts.contains(&why) => {}
                true => self.doubts.push(why),
                false => self.not_applied = self.not_applied.take().or(Some(why)),
            }
        }
        let kept = &mut self.lines[usize::from(when == "after")];
        if role == Role::Final && (when == "after" || kept.is_empty()) {
            *kept = lines;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Bound;

    fn due(count: Bound) -> Due {
        Due { rung: "a=on".into(), proof: Proof::Threads { count }, dial: "a".into(), value: "on".into() }
    }

    /// Why a total is none, and its doubts, where start and end read so many threads.
    fn held(count: Bound, start: f64, end: Reading) -> (Option<String>, Vec<String>) {
        let mut in_force = InForce { due: vec![due(count)], ..InForce::default() };
        for when in ["before", "after", "after"] {
            in_force.hold(Role::Final, &[Reading::Number(start)], &[(0, end.clone())], when);
        }
        assert_eq!(in_force.lines.each_ref().map(Vec::len), [2, 2]);
        (in_force.not_applied, in_force.doubts)
    }

    /// Planted faults: what holds at the start as well ends the total; what does not hold at the end is a doubt.
    #[test]
    fn what_does_not_hold_at_the_end_ends_the_total_and_what_others_may_hide_is_a_doubt() {
        let number = Reading::Number;
        let no = |why: &str| Some(format!("a=on: {why}"));
        assert_eq!(held(Bound::AtMost(3.0), 4.0, number(3.0)), (None, vec![]));
        let not = no("not in force: threads: at most 3, read 5");
        assert_eq!(held(Bound::AtMost(3.0), 4.0, number(5.0)), (not, vec![]));
        let gone = held(Bound::AtMost(3.0), 4.0, Reading::CannotTell("gone".into()));
        assert_eq!(gone, (no("cannot be proved: gone"), vec![]));
        let (none, doubts) = held(Bound::AtMost(3.0), 2.0, number(3.0));
        assert!(none.is_none() && doubts.len() == 1, "{doubts:?}");
        let (none, doubts) = held(Bound::Rises(1.0), 4.0, number(4.0));
        assert!(
            none.is_none() && doubts.len() == 1 && doubts[0].starts_with("a=on: not in force"),
            "{doubts:?}"
        );
    }
}
