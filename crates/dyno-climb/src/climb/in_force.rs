//! Proofs of what was kept, read on the total's own servers.
//!
//! Each rung was proved on the servers of its step and of its confirmation; the total has others. A proof must hold there on every
//! server with the change. Against the start it says less than against the setting before: other rungs stand between. What holds
//! at the start as well is a warning, and a rise or a drop is not asked for; what does not hold with the change ends the total.

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
    /// Of the first servers of start and end before their load, and of the latest after it; the same of what was reached before
    /// confirmation, which may become the end.
    lines: [[Vec<ProofLine>; 2]; 2],
    /// Arms that are told beside the way and are not what their names say.
    unproved: Vec<Role>,
    /// Why the total says nothing of what was kept.
    pub(crate) not_applied: Option<String>,
    /// What these servers could not tell, each rung once.
    pub(crate) doubts: Vec<String>,
}

impl InForce {
    /// Nothing is read yet.
    pub(crate) fn due(due: Vec<Due>) -> Self {
        Self { due, ..Self::default() }
    }

    /// The lines of the record, where this is the end.
    pub(crate) fn into_lines(self, end: Role) -> Vec<ProofLine> {
        let [of_final, of_reached] = self.lines;
        let lines = if end == Role::Reached { of_reached } else { of_final };
        lines.into_iter().flatten().collect()
    }

    /// Whether nothing was found that is not in force on this arm.
    pub(crate) fn is_proved(&self, role: Role) -> bool {
        !self.unproved.contains(&role)
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
                Ok([at_start, _]) => at_start,
                // What the start cannot tell says nothing of the end, which must hold by itself.
                Err(_) => due.proof.holds(with, with).is_ok_and(|[_, holds]| holds),
            };
            if !is_doubt && role == Role::Final {
                self.not_applied = self.not_applied.take().or(Some(why));
                continue;
            }
            if !is_doubt && self.is_proved(role) {
                self.unproved.push(role);
            }
            // Once for each rung: readings differ from start to start.
            if !self.doubts.iter().any(|told| told.starts_with(&format!("{}: ", due.rung))) {
                self.doubts.push(why);
            }
        }
        let of_role = match role {
            Role::Final => &mut self.lines[0],
            Role::Reached => &mut self.lines[1],
            _ => return,
        };
        let kept = &mut of_role[usize::from(when == "after")];
        if when == "after" || kept.is_empty() {
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
    fn held(count: Bound, start: Reading, end: Reading) -> (Option<String>, Vec<String>) {
        let mut in_force = InForce::due(vec![due(count)]);
        for when in ["before", "after", "after"] {
            in_force.hold(Role::Final, std::slice::from_ref(&start), &[(0, end.clone())], when);
        }
        assert_eq!(in_force.lines[0].each_ref().map(Vec::len), [2, 2]);
        (in_force.not_applied, in_force.doubts)
    }

    /// Planted faults: what holds at the start as well ends the total; what does not hold at the end is a doubt.
    #[test]
    fn what_does_not_hold_at_the_end_ends_the_total_and_what_others_may_hide_is_a_doubt() {
        let number = Reading::Number;
        let no = |why: &str| Some(format!("a=on: {why}"));
        assert_eq!(held(Bound::AtMost(3.0), number(4.0), number(3.0)), (None, vec![]));
        let not = no("not in force: threads: at most 3, read 5");
        assert_eq!(held(Bound::AtMost(3.0), number(4.0), number(5.0)), (not, vec![]));
        let gone = held(Bound::AtMost(3.0), number(4.0), Reading::CannotTell("gone".into()));
        assert_eq!(gone, (no("cannot be proved: gone"), vec![]));
        let (none, doubts) = held(Bound::AtMost(3.0), number(2.0), number(3.0));
        assert!(none.is_none() && doubts.len() == 1, "{doubts:?}");
        let blind = || Reading::CannotTell("it forks".into());
        let (none, doubts) = held(Bound::AtMost(3.0), blind(), number(3.0));
        assert!(none.is_none() && doubts.len() == 1, "the start is no proof of the end: {doubts:?}");
        assert!(held(Bound::AtMost(3.0), blind(), number(5.0)).0.is_some());
    }

    /// Planted faults: an arm beside the way ends the total; its lines are told as the end's; each reading is a doubt of its own.
    #[test]
    fn what_does_not_hold_beside_the_way_leaves_that_arm_out_and_a_rung_is_doubted_once() {
        let mut in_force = InForce::due(vec![due(Bound::AtMost(3.0))]);
        let [start, end] = [4.0, 3.0].map(Reading::Number);
        for read in [5.0, 6.0] {
            let start = [start.clone()];
            in_force.hold(Role::Final, &start, &[(0, end.clone())], "before");
            in_force.hold(Role::NaiveWithHeadline, &start, &[(0, Reading::Number(read))], "before");
            in_force.hold(Role::Reached, &start, &[(0, Reading::Number(read))], "after");
        }
        assert_eq!((&in_force.not_applied, in_force.doubts.len()), (&None, 1));
        let proved =
            [Role::Final, Role::NaiveWithHeadline, Role::Reached].map(|role| in_force.is_proved(role));
        assert_eq!(proved, [true, false, false]);
        let read = |lines: &[ProofLine]| lines.iter().any(|line| line.read == "6");
        assert_eq!(in_force.lines.each_ref().map(|of_role| read(&of_role.concat())), [false, true]);
        assert!(!read(&in_force.into_lines(Role::Final)));
    }

    /// What the start shows as well is a doubt of that arm, and none that it is not what its name says.
    #[test]
    fn an_arm_beside_the_way_stays_where_the_start_shows_the_same() {
        let mut in_force = InForce::due(vec![due(Bound::AtMost(3.0))]);
        let start = [Reading::Number(2.0)];
        for role in [Role::Reached, Role::NaiveWithHeadline, Role::Final] {
            in_force.hold(role, &start, &[(0, Reading::Number(3.0))], "before");
            assert!(in_force.is_proved(role), "{role:?}");
        }
        assert_eq!((in_force.not_applied, in_force.doubts.len()), (None, 1));
    }

    /// Planted faults: what was read after the load stands in the place of what was read before it; the latest takes the first one's.
    #[test]
    fn the_first_reading_before_the_load_and_the_latest_after_it_are_told() {
        let read = |end| {
            let mut in_force = InForce::due(vec![due(Bound::AtMost(3.0))]);
            for (when, [at_start, with]) in
                [("before", [9.0, 1.0]), ("after", [8.0, 2.0]), ("before", [7.0, 0.0]), ("after", [6.0, 3.0])]
            {
                let start = [Reading::Number(at_start)];
                in_force.hold(end, &start, &[(0, Reading::Number(with))], when);
            }
            let lines = in_force.into_lines(end);
            lines.into_iter().map(|line| (line.when, line.read)).collect::<Vec<_>>()
        };
        let wanted = [("before", "9"), ("before", "1"), ("after", "6"), ("after", "3")];
        let wanted = wanted.map(|(when, read)| (when.to_owned(), read.to_owned()));
        for end in [Role::Final, Role::Reached] {
            assert_eq!(read(end), wanted, "{end:?}");
        }
    }
}
