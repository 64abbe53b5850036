//! A profile of one arm under its load: where the server's CPU time goes while it answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_load::{BlockReport, BlockSpec, Edge};
use dyno_profile::{Options, Recorder, Target};
use dyno_record::profile::{Profile, Requests};

use crate::failure::chain;
use crate::launch::{Arm, World};

/// A slow server is loaded until it gave so many right answers, for twice the time at most: a share of a handful of
/// requests says little.
const REPLIES_MIN: u64 = 500;

impl World<'_> {
    /// Samples while the load runs beside it. Its threads end here: nobody forks meanwhile.
    pub(crate) fn profile_of(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        self.check_interrupt().map_err(|trouble| trouble.to_string())?;
        let longest_ns = 2 * for_ns;
        let options = Options { duration: Some(Duration::from_nanos(longest_ns)), ..Options::default() };
        let recorder = Recorder::open(&Target::Process(arm.pid), &options).map_err(|error| chain(&error))?;
        // All of it is measured: every answer is one of a request that the profile saw.
        let spec = BlockSpec {
            settle_ns: 0,
            measure_ns: for_ns,
            replies_min: REPLIES_MIN,
            ns_max: longest_ns,
            ..BlockSpec::default()
        };
        let (never, loaded) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut at_edge = |edge| {
            if edge == Edge::End {
                loaded.store(true, Ordering::Relaxed);
            }
        };
        let (report, profile) =
            arm.driver.beside(&spec, &never, &mut at_edge, |_load| recorder.record(&loaded));
        self.belongs_to_no_block(arm);
        let profile = profile.map_err(|error| chain(&error))?;
        // It ends when the load does: nothing was cut short, unless somebody wants to stop.
        let cut_short = profile.cut_short.filter(|_| self.interrupt.seen());
        Ok(Profile { requests: requests(&report), cut_short, ..profile })
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

fn requests(report: &BlockReport) -> Option<Requests> {
    let count = report.replies;
    (count > 0).then(|| Requests { count, source: "load".to_owned() })
}
