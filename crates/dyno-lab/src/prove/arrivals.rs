//! By what way a server's requests come, read while they come.
//!
//! The kernel notes on a socket where its last packet was worked on. Between blocks that is no request: a client acknowledges the
//! last answer some 40 ms later, from the CPU on which its timer runs, and through whatever stands in a laboratory by then. Read
//! at rest, connections of which every request crosses the CPUs look local, and those of one side look like the other's.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_climb::meter::Trouble;
use dyno_climb::proof::Reading;
use dyno_load::{Beside, BlockSpec, Waited};

use super::seen::{Looks, Serving, Share, serving};
use crate::launch::{Arm, World};

/// Between two looks. A thread of the load that has not begun yet has asked nothing on its connections.
const STEP: Duration = Duration::from_millis(5);
/// The load lasts as long as the look, and no longer than a server may take to answer every connection.
const LOAD: BlockSpec = BlockSpec {
    settle_ns: 0,
    measure_ns: 3_000_000_000,
    replies_min: 0,
    ns_max: 3_000_000_000,
    drain_ns_max: 3_000_000_000,
    drain_slow_ns_max: 0,
};

impl World<'_> {
    /// What `read` finds on the connections of a port while they carry requests: of all, or of as many as were told in time.
    pub(super) fn while_it_serves(
        &mut self,
        arm: &mut Arm,
        read: fn(&[Serving], &mut Looks) -> Share,
    ) -> Result<Reading, Trouble> {
        let serving = serving(&arm.processes(), arm.port);
        let look = |load: &Beside| {
            let (mut share, mut looks) = (Share::default(), Looks::default());
            while load.wait(STEP) == Waited::TimedOut {
                share = share.fuller(read(&serving, &mut looks));
                if share.is_whole() {
                    break;
                }
            }
            share
        };
        let (report, share) = arm.driver.beside(&LOAD, &AtomicBool::new(false), &mut |_edge| {}, look);
        self.check(arm, &report, &LOAD)?;
        Ok(share.reading())
    }
}
