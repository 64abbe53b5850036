//! What being watched costs the target: pairs of windows with and without everything attached, beside each other.

use std::time::Duration;

use dyno_record::causal::{Overhead, OverheadPart};

use super::mean::Mean;
use super::measured::{Effective, excluded};
use crate::causal::rig::window::Window;
use crate::causal::rig::{Hooks, Rig, Span, Treatment};
use crate::error::Error;

/// Share of the budget that goes into what watching costs.
const BUDGET_SHARE: f64 = 0.08;
/// Pairs of windows for it that are enough whatever they say.
const PAIRS_MAX: usize = 24;
/// Pairs before the target is let go because watching costs it too much.
const PAIRS_MIN: usize = 5;
/// Cost of watching, percent, at which it is let go.
const PERCENT_MAX: f64 = 25.0;

const NS_PER_S: f64 = 1e9;

/// What is known of it. There are never more pairs than [`PAIRS_MAX`], and the programs are looked at once.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// What attached windows take over detached ones, as log ratios.
    ratios: Vec<f64>,
    /// What the rig's programs in the kernel took; none until that was looked at.
    hooks: Option<Hooks>,
    /// How long all of this took.
    spent_ns: u64,
}

impl Watching {
    /// Whether another pair is worth its time, when so much of the budget is spent.
    pub(super) fn wants_more(&self, spent_ns: u64) -> bool {
        let share = self.spent_ns as f64 / spent_ns.max(1) as f64;
        share <= BUDGET_SHARE && self.ratios.len() < PAIRS_MAX
    }

    /// How many windows' time [`Watching::pair`] takes.
    pub(super) fn windows(&self) -> u32 {
        2 + u32::from(self.hooks.is_none())
    }

    /// One detached and one attached window beside each other; the attached one is a null like any other and goes to
    /// `nulls`.
    pub(super) fn pair(
        &mut self,
        rig: &mut dyn Rig,
        span: Span,
        is_detached_first: bool,
        nulls: &mut Vec<Window>,
    ) -> Result<(), Error> {
        assert!(self.ratios.len() < PAIRS_MAX, "no pair is run that is not wanted");
        let mut periods_ns = [None, None];
        for is_attached in [!is_detached_first, is_detached_first] {
            let window =
                if is_attached { rig.window(&Treatment::Nothing, span)? } else { rig.detached(span)? };
            let counts = excluded(&window).is_none();
            let effective = Effective::of(&window).filter(|_| counts);
            periods_ns[usize::from(is_attached)] = effective.map(|effective| effective.period_ns);
            if is_attached {
                nulls.push(window);
            }
        }
        if let [Some(detached_ns), Some(attached_ns)] = periods_ns {
            assert!(attached_ns > 0.0 && detached_ns > 0.0, "a window that counts has a time per visit");
            self.ratios.push((attached_ns / detached_ns).ln());
        }
        Ok(())
    }

    /// Asks once what the rig's programs take. Apart from the pairs: counting the programs' time takes a little time itself.
    pub(super) fn look_at_hooks(&mut self, rig: &mut dyn Rig, length: Duration) -> Result<(), Error> {
        if self.hooks.is_none() {
            self.hooks = Some(rig.hooks(length)?.unwrap_or_default());
        }
        Ok(())
    }

    /// How many windows without the rig there were that count.
    pub(super) fn windows_detached(&self) -> u32 {
        self.ratios.len() as u32
    }

    pub(super) fn spend(&mut self, ns: u64) {
        self.spent_ns += ns;
    }

    /// Watching must not hurt: a target that loses a quarter of its speed to it is let go.
    pub(super) fn too_dear(&self) -> Option<String> {
        let mean = Mean::of(&self.ratios).filter(|mean| mean.n >= PAIRS_MIN)?;
        let least_percent = percent(mean.interval()[0]);
        (least_percent > PERCENT_MAX).then(|| {
            format!("watching alone costs the target {:.0} % of its speed: it was let go", percent(mean.mean))
        })
    }

    /// No pair could be used.
    pub(super) fn is_unknown(&self) -> bool {
        self.ratios.is_empty()
    }

    /// As a record has it.
    pub(super) fn overhead(&self, inserted_percent: f64) -> Overhead {
        assert!(self.ratios.len() <= PAIRS_MAX, "no pair is run that is not wanted");
        let parts = self.hooks.as_ref().map(parts).unwrap_or_default();
        let Some(mean) = Mean::of(&self.ratios) else {
            return Overhead { inserted_percent, parts, ..Overhead::default() };
        };
        Overhead {
            attached_percent: percent(mean.mean),
            interval_percent: Some(mean.interval().map(percent)),
            rounds: mean.n,
            inserted_percent,
            parts,
        }
    }
}

/// How much longer, in percent, of a log ratio.
fn percent(ln: f64) -> f64 {
    100.0 * ln.exp_m1()
}

/// What each program took; those that never ran are left out.
fn parts(hooks: &Hooks) -> Vec<OverheadPart> {
    let part = |(name, ns, count): &(&str, u64, u64)| OverheadPart {
        name: (*name).to_owned(),
        percent: 100.0 * *ns as f64 / hooks.machine_ns.max(1) as f64,
        per_second: *count as f64 * NS_PER_S / hooks.length_ns.max(1) as f64,
    };
    hooks.ran.iter().filter(|(_, _, count)| *count > 0).map(part).collect()
}
