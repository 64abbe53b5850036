//! One block of load on one arm, with its clocks.

use dyno_climb::meter::{Length, Measured, Trouble};
use dyno_load::{BlockReport, BlockSpec, Edge};
use dyno_measure::series::Block;

use crate::launch::{Arm, TIMEOUT_NS, World};

/// In a block of a server that works in bursts several of them fit.
const LONG_NS: u64 = 250_000_000;

fn spec(length: Length) -> BlockSpec {
    // An answer that may yet come in time is awaited.
    let short = BlockSpec { drain_ns_max: TIMEOUT_NS, ..BlockSpec::default() };
    match length {
        Length::Short => short,
        Length::Long => BlockSpec { measure_ns: LONG_NS, ..short },
    }
}

impl World<'_> {
    pub(crate) fn block_on(&mut self, arm: &mut Arm, length: Length) -> Result<Measured, Trouble> {
        if let Some(status) = self.death_of(arm.pid, arm.warden) {
            return Err(Trouble::Died { status, stderr_tail: arm.output_tail() });
        }
        let spec = spec(length);
        let (report, read) = run(arm, spec)?;
        self.check(arm, &report, &spec)?;
        let cpu_in_ns = read.end.saturating_sub(read.begin);
        let cpu_off_ns = arm.last_end_ns.map_or(0, |last| read.start.saturating_sub(last));
        let settle_ns = read.begin.saturating_sub(read.start);
        arm.last_end_ns = Some(read.end);
        arm.seen_ns += cpu_in_ns + cpu_off_ns + settle_ns;
        self.tally.generator_ns += report.cpu_ns;
        self.tally.replies += report.replies;
        let [steal_ns, foreign_ns] = self.tally.since_last(cpu_in_ns + cpu_off_ns + settle_ns);
        let block = Block {
            replies: report.replies,
            wrong: report.wrong,
            wall_ns: report.wall_ns,
            cpu_in_ns,
            cpu_off_ns,
            p50_ns: report.latencies.quantile(0.50),
            p99_ns: report.latencies.quantile(0.99),
            generator_ns: report.cpu_ns,
            events_per_wait_milli: 1_000 * report.events / report.waits.max(1),
            steal_ns,
            foreign_ns,
        };
        Ok(Measured { block, latencies: report.latencies })
    }
}

/// The server's clock at the start of issuing, at the end of settling, at the end.
#[derive(Debug, Default, Clone, Copy)]
struct Edges {
    start: u64,
    begin: u64,
    end: u64,
}

fn run(arm: &mut Arm, mut spec: BlockSpec) -> Result<(BlockReport, Edges), Trouble> {
    let lost = |error: std::io::Error| Trouble::ClockLost { why: error.to_string() };
    let running = arm.clock.reads_running();
    if !running {
        // The clock can be read only while the server sleeps: settling is measured with the rest, on both sides.
        spec.measure_ns += spec.settle_ns;
        spec.settle_ns = 0;
    }
    let start = arm.clock.read_ns().map_err(lost)?;
    let before = arm.family.take().or_else(|| arm.clock.family());
    let mut edges = Edges { start, begin: start, end: start };
    let mut failed = None;
    let clock = &arm.clock;
    let report = arm.driver.block(&spec, &mut |edge| {
        if edge == Edge::SettleEnd && !running {
            return;
        }
        match (clock.read_ns(), edge) {
            (Ok(now), Edge::SettleEnd) => edges.begin = now,
            (Ok(now), Edge::End) => edges.end = now,
            (Err(error), _) => failed = Some(error),
        }
    });
    if let Some(error) = failed {
        return Err(lost(error));
    }
    arm.family = arm.clock.family();
    match before.zip(arm.family.as_ref()) {
        Some((before, now)) if now.has_lost_since(&before) => Err(Trouble::ClockLost {
            why: "a process of it ended, and without perf events its time is lost with it".into(),
        }),
        _ => Ok((report, edges)),
    }
}
