//! The servers of one comparison: opened, given their blocks, closed, in one place for noise, steps and confirmations.
//!
//! Two sides are alive together, or one set of servers is toggled, or none is kept alive and every pair opens its own. What is
//! opened here is closed here, but for the side that the climb goes on with.

use dyno_measure::series::Side;
use dyno_record::climb::ProofLine;
use dyno_record::trial::Schedule;

use super::climber::{Climber, SideArms};
use super::comparison::{Comparison, Sides};
use crate::dial::Setting;
use crate::meter::{ArmSpec, Length, Measured, Meter, Trouble, Vitals};
use crate::proof::{Proof, Reading};

/// Where the two sides of a comparison live.
pub(crate) enum Bench<A> {
    /// Each in processes of its own, all alive. The host was there before, the guest was opened for this.
    Live { sides: [SideArms<A>; 2], host: Side },
    /// In the same processes, whose dial is toggled.
    Toggled { arms: SideArms<A>, dial: String, settings: [Setting; 2] },
    /// Never two servers at the same time.
    InTurn(Turns),
}

/// Two settings of which only one is alive at a time.
pub(crate) struct Turns {
    pub(crate) specs: [ArmSpec; 2],
    /// The live dial to toggle within each instance; `None` where each side has instances of its own.
    pub(crate) toggles: Option<String>,
    /// What must distinguish the sides, read in every pair.
    pub(crate) proofs: Vec<Proof>,
    /// What was read of them in the first pair before its load, and in the latest after it.
    pub(crate) before: Vec<ProofLine>,
    pub(crate) after: Vec<ProofLine>,
    /// Why a proof did not hold.
    pub(crate) not_applied: Option<String>,
    /// The largest memory of an instance of each side, bytes.
    pub(crate) rss_peak_bytes: [u64; 2],
    /// The clock that CPU was read from.
    pub(crate) clock: String,
}

impl Turns {
    fn new(comparison: &Comparison<Sides>, proofs: &[Proof]) -> Self {
        Self {
            specs: comparison.arms.settings().each_ref().map(|setting| comparison.spec(setting)),
            toggles: comparison.arms.toggles().map(str::to_owned),
            proofs: proofs.to_vec(),
            before: Vec::new(),
            after: Vec::new(),
            not_applied: None,
            rss_peak_bytes: [0; 2],
            clock: String::new(),
        }
    }

    /// The lines of the record.
    pub(crate) fn lines(&mut self) -> Vec<ProofLine> {
        let mut lines = std::mem::take(&mut self.before);
        lines.append(&mut self.after);
        lines
    }
}

impl<A: Vitals> Bench<A> {
    /// Live servers of each side.
    pub(crate) fn instances(&self) -> usize {
        match self {
            Self::Live { sides: [a, b], .. } => a.arms.len().min(b.arms.len()),
            Self::Toggled { arms, .. } => arms.arms.len(),
            Self::InTurn(_) => 1,
        }
    }

    /// The clock of the side with the change.
    pub(crate) fn clock(&self) -> String {
        match self {
            Self::Live { sides: [_, side], .. } | Self::Toggled { arms: side, .. } => side.arms[0].clock(),
            Self::InTurn(turns) => turns.clock.clone(),
        }
    }

    /// The largest instance of each side; a server toggled in place has no two memories to compare.
    pub(crate) fn memory(&self) -> [u64; 2] {
        let largest =
            |side: &SideArms<A>| side.arms.iter().map(|arm| arm.memory().server_bytes).max().unwrap_or(0);
        match self {
            Self::Live { sides, .. } => sides.each_ref().map(largest),
            Self::Toggled { .. } => [0, 0],
            Self::InTurn(turns) => turns.rss_peak_bytes,
        }
    }
}

impl<M: Meter> Climber<'_, M> {
    /// Opens what a comparison needs. Trouble with the second side leaves the first one open.
    pub(crate) fn open_bench(
        &mut self,
        comparison: &Comparison<Sides>,
        proofs: &[Proof],
    ) -> Result<Bench<M::Arm>, (Side, Trouble)> {
        comparison.check();
        if comparison.schedule == Schedule::InTurn {
            self.close_current();
            assert!(self.current.is_none(), "no server lives between visits");
            return Ok(Bench::InTurn(Turns::new(comparison, proofs)));
        }
        let settings = comparison.arms.settings();
        let host = self.host_of(settings);
        self.ensure_current(comparison.spec(&settings[host.index()])).map_err(|trouble| (host, trouble))?;
        if let Some(dial) = comparison.arms.toggles() {
            let arms = self.current.take().expect("ensure_current() has opened it");
            return Ok(Bench::Toggled { arms, dial: dial.to_owned(), settings: settings.clone() });
        }
        let guest = other(host);
        let opened = self.open_side(comparison.spec(&settings[guest.index()]));
        let guests = opened.map_err(|trouble| (guest, trouble))?;
        let hosts = self.current.take().expect("ensure_current() has opened it");
        assert!(hosts.spec.load == guests.spec.load, "both sides serve the same load");
        assert!(!hosts.arms.is_empty() && !guests.arms.is_empty(), "each side of a live pair has a server");
        let sides = if host == Side::A { [hosts, guests] } else { [guests, hosts] };
        Ok(Bench::Live { sides, host })
    }

    /// The side that stands already; A where none does.
    fn host_of(&self, settings: &[Setting; 2]) -> Side {
        if settings[0] != self.standing && settings[1] == self.standing { Side::B } else { Side::A }
    }

    /// Closes what is not to stay. With no side to stay all are closed: a side that was in trouble may have lost an instance.
    pub(crate) fn close_bench(
        &mut self,
        bench: Bench<M::Arm>,
        stays: Option<Side>,
    ) -> Result<(), (Side, Trouble)> {
        assert!(self.current.is_none(), "the servers that stood are on the bench, and others stand");
        match (bench, stays) {
            (Bench::InTurn(_), _) => {}
            (Bench::Live { sides: [a, b], host }, stays) => {
                let last = stays.unwrap_or(host);
                let (first, last) = if last == Side::A { (b, a) } else { (a, b) };
                self.close_side(first);
                match stays {
                    Some(_) => self.current = Some(last),
                    None => self.close_side(last),
                }
            }
            (Bench::Toggled { arms, .. }, None) => self.close_side(arms),
            (Bench::Toggled { mut arms, dial, settings }, Some(side)) => {
                let setting = &settings[side.index()];
                let turned = arms.arms.iter_mut().try_for_each(|arm| self.meter.turn(arm, setting, &dial));
                if let Err(trouble) = turned {
                    self.close_side(arms);
                    return Err((Side::B, trouble));
                }
                arms.spec.setting = setting.clone();
                self.current = Some(arms);
            }
        }
        Ok(())
    }

    /// The side that the climb stands on already, to be kept after a comparison that decides nothing about it.
    pub(crate) fn standing_side(&self, comparison: &Comparison<Sides>) -> Side {
        self.host_of(comparison.arms.settings())
    }

    /// An instance that stands as this side.
    ///
    /// # Panics
    /// Where no server is alive between visits.
    pub(crate) fn arm_of<'b>(
        &mut self,
        bench: &'b mut Bench<M::Arm>,
        side: Side,
        at: usize,
    ) -> Result<&'b mut M::Arm, Trouble> {
        assert!(at < bench.instances(), "instance {at} is none of the {} that live", bench.instances());
        match bench {
            Bench::Live { sides, .. } => Ok(&mut sides[side.index()].arms[at]),
            Bench::Toggled { arms, dial, settings } => {
                let arm = &mut arms.arms[at];
                self.meter.turn(arm, &settings[side.index()], dial)?;
                Ok(arm)
            }
            Bench::InTurn(_) => unreachable!("a visit opens its own"),
        }
    }

    /// A block on an instance of this side.
    pub(crate) fn block_on(
        &mut self,
        bench: &mut Bench<M::Arm>,
        side: Side,
        at: usize,
        length: Length,
    ) -> Result<Measured, Trouble> {
        let arm = self.arm_of(bench, side, at)?;
        self.meter.block(arm, length)
    }

    pub(crate) fn read_on(
        &mut self,
        bench: &mut Bench<M::Arm>,
        side: Side,
        proof: &Proof,
    ) -> Result<Reading, Trouble> {
        let arm = self.arm_of(bench, side, 0)?;
        self.meter.prove(arm, proof)
    }
}

pub(crate) fn other(side: Side) -> Side {
    if side == Side::A { Side::B } else { Side::A }
}
