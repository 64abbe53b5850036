//! The total where servers burn CPU outside their blocks: arms one after another, in several starts.
//!
//! What `total` is where they may live side by side. The rounds have the same shape, so that the same estimator reads them; a
//! start's servers share no moment, and its mood is in what starts differ by.

use super::climber::{Climber, Event};
use super::in_turn::VISIT_BLOCKS_MIN;
use super::total::{Live, STARTS_MAX, dead};
use crate::meter::{Length, Measured, Meter, Trouble};

impl<M: Meter> Climber<'_, M> {
    /// Starts every arm by itself, measures it and closes it, one after the other, again and again.
    pub(super) fn starts_in_turn(
        &mut self,
        live: &mut Vec<Live<M::Arm>>,
        starts: &mut Vec<u32>,
    ) -> Result<(), Trouble> {
        let mut longest_ns = 0;
        for start in 0..STARTS_MAX as u32 {
            let began_ns = self.meter.now_ns();
            if start > 0 && longest_ns > self.left_ns() {
                break;
            }
            let mut blocks = vec![Vec::new(); live.len()];
            self.start_in_turn(live, &mut blocks)?;
            // The floor, which is the last, may have been left out.
            blocks.truncate(live.len());
            self.add_rounds(live, blocks, (start, &mut *starts));
            longest_ns = longest_ns.max(self.meter.now_ns() - began_ns);
            let (left_ns, pair) = (self.left_ns(), starts.len());
            let of = pair + VISIT_BLOCKS_MIN * (left_ns / longest_ns.max(1)) as usize;
            let name = "naive, final, floor";
            (self.watch)(&Event::Pair { stage: "total", name, pair, of, estimate: None, left_ns });
        }
        Ok(())
    }

    /// A start: arms in random order, the floor right after the end, whose answer it learns.
    fn start_in_turn(
        &mut self,
        live: &mut Vec<Live<M::Arm>>,
        blocks: &mut [Vec<Measured>],
    ) -> Result<(), Trouble> {
        let load = self.plan.load.clone();
        for at in self.order_of(live) {
            self.open_arm(&mut live[at])?;
            self.blocks_of(&mut live[at], &mut blocks[at])?;
            let floor = live.iter().position(|one| one.setting.is_none());
            let floor = floor.filter(|_| live[at].name == "final");
            let opened = floor.map(|_| self.floor_beside(live, at, &load)).transpose()?.flatten();
            self.close_arm(&mut live[at]);
            if let (Some(floor), Some(arm)) = (floor, opened) {
                self.began(&mut live[floor], arm);
                self.blocks_of(&mut live[floor], &mut blocks[floor])?;
                self.close_arm(&mut live[floor]);
            }
        }
        Ok(())
    }

    fn blocks_of(&mut self, one: &mut Live<M::Arm>, blocks: &mut Vec<Measured>) -> Result<(), Trouble> {
        let arm = one.arm.as_mut().expect("it was just opened");
        for _ in 0..VISIT_BLOCKS_MIN {
            blocks.push(self.meter.block(arm, Length::Long)?);
        }
        Ok(())
    }

    /// The blocks of a start as rounds; none of them where one had no reply or no clock.
    fn add_rounds(
        &mut self,
        live: &mut [Live<M::Arm>],
        blocks: Vec<Vec<Measured>>,
        (start, starts): (u32, &mut Vec<u32>),
    ) {
        if blocks.iter().flatten().any(|measured| dead(&measured.block)) {
            return;
        }
        for (one, blocks) in live.iter_mut().zip(blocks) {
            blocks.into_iter().for_each(|measured| one.add(measured));
        }
        starts.extend([start; VISIT_BLOCKS_MIN]);
    }
}
