//! A profile of one arm under its load: where the server's CPU time goes while it answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_load::{BlockReport, BlockSpec};
use dyno_profile::{Options, Recorder, Target};
use dyno_record::profile::{Profile, Requests};
use dyno_sys::clock::mono_ns;

use crate::failure::chain;
use crate::launch::{Arm, World};

/// Two stretches of load follow each other without a pause that could be seen among samples.
const BLOCKS: u64 = 4;

impl World<'_> {
    /// Samples while a thread of its own drives the load. That thread ends here: nobody forks meanwhile.
    pub(crate) fn profile_of(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        self.check_interrupt().map_err(|trouble| trouble.to_string())?;
        let options = Options { duration: Some(Duration::from_nanos(2 * for_ns)), ..Options::default() };
        let recorder = Recorder::open(&Target::Process(arm.pid), &options).map_err(|error| said(&error))?;
        let (stop, driver) = (AtomicBool::new(false), &mut arm.driver);
        let (load, profile) = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let began_ns = mono_ns();
                let spec = BlockSpec { measure_ns: for_ns / BLOCKS, ..BlockSpec::default() };
                let reports = (0..BLOCKS).map(|_| driver.block(&spec, &mut |_| ())).collect();
                stop.store(true, Ordering::Relaxed);
                Load { reports, ran_ns: mono_ns() - began_ns }
            });
            let profile = recorder.record(&stop);
            (load.join(), profile)
        });
        self.belongs_to_no_block(arm);
        let profile = profile.map_err(|error| said(&error))?;
        let load = load.map_err(|_| "the load failed".to_owned())?;
        // It ends when the load does: nothing was cut short, unless somebody wants to stop.
        let cut_short = profile.cut_short.filter(|_| self.interrupt.seen());
        Ok(Profile { requests: load.requests(), cut_short, ..profile })
    }

    /// What the arm burnt since its last block is its own, and no block's.
    fn belongs_to_no_block(&mut self, arm: &mut Arm) {
        if let (Some(last), Ok(now)) = (arm.last_end_ns, arm.clock.read_ns()) {
            let burnt_ns = now.saturating_sub(last);
            arm.seen_ns += burnt_ns;
            arm.last_end_ns = Some(now);
            let _ = self.tally.since_last(burnt_ns);
        }
    }
}

/// What the load did while samples were taken.
struct Load {
    reports: Vec<BlockReport>,
    /// All of it, what no block measures included. The server is idle for the rest of the profile.
    ran_ns: u64,
}

impl Load {
    /// Requests answered: the rate of the blocks, over the time that the load ran.
    fn requests(&self) -> Option<Requests> {
        let replies: u64 = self.reports.iter().map(|report| report.replies).sum();
        let wall_ns: u64 = self.reports.iter().map(|report| report.wall_ns).sum();
        let count = (replies as f64 * self.ran_ns as f64 / wall_ns as f64) as u64;
        (wall_ns > 0 && count > 0).then(|| Requests { count, source: "load".to_owned() })
    }
}

/// An error and what caused it, in one line.
fn said(error: &dyno_profile::Error) -> String {
    chain(error)
}
