//! A profile of one arm under its load: where the server's CPU time goes while it answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_load::{BlockReport, BlockSpec};
use dyno_measure::profile::{Profile, Requests};
use dyno_profile::{Options, Recorder, Target};

use super::{Arm, World};

/// Two stretches of load follow each other without a pause that could be seen among samples.
const BLOCKS: u64 = 4;

impl World<'_> {
    /// Samples while a thread of its own drives the load. That thread ends here: nobody forks meanwhile.
    pub(super) fn profile_of(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        self.check_interrupt().map_err(|trouble| trouble.to_string())?;
        let options = Options { duration: Some(Duration::from_nanos(2 * for_ns)), ..Options::default() };
        let recorder = Recorder::open(&Target::Process(arm.pid), &options).map_err(|error| said(&error))?;
        let (stop, driver) = (AtomicBool::new(false), &mut arm.driver);
        let (reports, profile) = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let spec = BlockSpec { measure_ns: for_ns / BLOCKS, ..BlockSpec::default() };
                let reports = (0..BLOCKS).map(|_| driver.block(&spec, &mut |_| ())).collect();
                stop.store(true, Ordering::Relaxed);
                reports
            });
            let profile = recorder.record(&stop);
            let reports: std::thread::Result<Vec<BlockReport>> = load.join();
            (reports, profile)
        });
        self.belongs_to_no_block(arm);
        let profile = profile.map_err(|error| said(&error))?;
        let reports = reports.map_err(|_| "the load failed".to_owned())?;
        Ok(Profile { requests: requests(&reports, &profile), ..profile })
    }

    /// What the arm burnt since its last block is its own, and no block's.
    fn belongs_to_no_block(&mut self, arm: &mut Arm) {
        if let (Some(last), Ok(now)) = (arm.last_end_ns, arm.clock.read_ns()) {
            let burnt_ns = now.saturating_sub(last);
            arm.seen_ns += burnt_ns;
            arm.last_end_ns = Some(now);
            let _ = self.tally.news(burnt_ns);
        }
    }
}

/// Requests answered while samples were taken: the rate of the blocks, over the time that was watched.
fn requests(reports: &[BlockReport], profile: &Profile) -> Option<Requests> {
    let replies: u64 = reports.iter().map(|report| report.replies).sum();
    let wall_ns: u64 = reports.iter().map(|report| report.wall_ns).sum();
    let count = (replies as f64 / (wall_ns as f64 / 1e9) * profile.duration_s) as u64;
    (wall_ns > 0 && count > 0).then(|| Requests { count, source: "load".to_owned() })
}

/// An error and what caused it, in one line.
fn said(error: &dyno_profile::Error) -> String {
    super::chain(error)
}
