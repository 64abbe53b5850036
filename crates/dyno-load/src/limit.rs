//! Was the generator the limit? A pure function of what a block showed.
//!
//! The same server gave 8k to 136k requests/s according to the generator asked; each generator was at least 92 % busy.
//! So a rate is only the server's when this says so. `dyno load` and the climb ask for every run.

use crate::report::BlockReport;

/// Events per `epoll_wait` from which work piles up before the generator (measured with 64 connections: 31-32 with a
/// slowed generator, 5-12 with both sides 95 % busy, 1.0-1.5 with a slow server).
pub const EVENTS_PER_WAIT_MIN: f64 = 3.0;
/// Share of the wall that the generator's threads were running. Alone it proves nothing: 0.88-0.91 was measured with a
/// server that was slower.
pub const BUSY_MIN: f64 = 0.93;
/// A server's busiest thread at or above this share is a limit itself.
pub const SERVER_BUSY_MIN: f64 = 0.9;
/// A rate at or above this share of the floor server's, under the same load, is the generator's.
pub const OF_FLOOR_MIN: f64 = 0.9;

/// What a block showed, and what else is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signs {
    /// Connections over which the requests went.
    pub connections: usize,
    /// Events delivered …
    pub events: u64,
    /// … by so many waits.
    pub waits: u64,
    /// CPU time of the generator's threads.
    pub cpu_ns: u64,
    /// Wall time, and …
    pub wall_ns: u64,
    /// … threads that ran in it …
    pub threads: usize,
    /// … on so many CPUs at a time.
    pub cpus: usize,
    /// Share of the wall that the server's busiest thread ran, if it can be seen.
    pub server_busy: Option<f64>,
    /// This rate divided by the floor server's under the same load, if that was measured.
    pub of_floor: Option<f64>,
}

/// Whether the figure is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// The generator had time left: the figure is the server's.
    No,
    /// Both sides were at their limit: the rate is near the server's, the latencies hold the generator's queue too.
    Both,
    /// The generator was the limit: the server gives at least this.
    Yes,
    /// The generator was busy and nothing is known of the server.
    CannotTell,
}

impl Signs {
    /// The signs that a block itself holds, of the part that its rate is of: while the last answers are awaited no
    /// generator is busy. Nothing is known of the server.
    #[must_use]
    pub fn of(report: &BlockReport, connections: usize) -> Self {
        let loaded = &report.loaded;
        Self {
            connections,
            events: loaded.events,
            waits: loaded.waits,
            cpu_ns: loaded.cpu_ns,
            wall_ns: loaded.wall_ns,
            threads: report.threads,
            cpus: report.cpus,
            server_busy: None,
            of_floor: None,
        }
    }

    /// Share of the wall that the generator's threads ran, of as many as have a CPU at a time, 0 to 1.
    #[must_use]
    pub fn busy(&self) -> f64 {
        let could_run_ns = self.wall_ns as f64 * self.threads.min(self.cpus) as f64;
        if could_run_ns > 0.0 { self.cpu_ns as f64 / could_run_ns } else { 0.0 }
    }

    /// Events per wait; 0 without a wait.
    #[must_use]
    pub fn events_per_wait(&self) -> f64 {
        if self.waits == 0 { 0.0 } else { self.events as f64 / self.waits as f64 }
    }

    /// The verdict.
    #[must_use]
    pub fn limited(&self) -> Limited {
        if self.of_floor.is_some_and(|share| share >= OF_FLOOR_MIN) {
            return Limited::Yes;
        }
        if self.busy() < BUSY_MIN {
            return Limited::No;
        }
        match self.server_busy {
            Some(busy) if busy >= SERVER_BUSY_MIN && self.piles_up() => Limited::Both,
            Some(busy) if busy >= SERVER_BUSY_MIN => Limited::No,
            Some(_) => Limited::Yes,
            None if self.piles_up() => Limited::Yes,
            None if self.could_pile_up() => Limited::No,
            None => Limited::CannotTell,
        }
    }

    fn piles_up(&self) -> bool {
        self.events_per_wait() >= EVENTS_PER_WAIT_MIN
    }

    /// With few connections no wait can bring many events, however slow the generator is.
    fn could_pile_up(&self) -> bool {
        self.connections as f64 >= 2.0 * EVENTS_PER_WAIT_MIN * self.threads as f64
    }
}

impl Limited {
    /// The verdict as a sentence for a report.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::No => "the generator was not the limit",
            Self::Both => {
                "generator and server were both at their limit: latencies hold the generator's queue too"
            }
            Self::Yes => "the generator was the limit: the server gives at least this",
            Self::CannotTell => "the generator was busy; whether it was the limit cannot be told from here",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Loaded;

    fn signs(events_per_wait: u64, busy_percent: u64) -> Signs {
        Signs {
            connections: 64,
            events: events_per_wait * 1_000,
            waits: 1_000,
            cpu_ns: busy_percent * 10_000_000,
            wall_ns: 1_000_000_000,
            threads: 1,
            cpus: 1,
            server_busy: None,
            of_floor: None,
        }
    }

    /// Planted fault: each thread could have a CPU of its own; then four on one are a quarter busy.
    #[test]
    fn threads_that_share_a_cpu_are_no_busier_than_it() {
        let shared = Signs { threads: 4, ..signs(31, 97) };
        assert!((shared.busy() - 0.97).abs() < 1e-9 && shared.limited() == Limited::Yes);
        let apart = Signs { threads: 4, cpus: 8, ..signs(31, 97) };
        assert!((apart.busy() - 0.97 / 4.0).abs() < 1e-9 && apart.limited() == Limited::No);
    }

    #[test]
    fn a_generator_with_time_left_is_no_limit_however_many_events_a_wait_brings() {
        assert_eq!(signs(1, 60).limited(), Limited::No);
        assert_eq!(signs(31, 92).limited(), Limited::No);
    }

    /// Planted fault: signs of the time in which nothing was sent any more, beside a rate of the time before it.
    #[test]
    fn waiting_for_a_straggler_makes_no_generator_idle() {
        let loaded = Loaded { wall_ns: 5_000, cpu_ns: 4_900, events: 310, waits: 10, ..Loaded::default() };
        let report = BlockReport {
            loaded,
            wall_ns: 6_800,
            cpu_ns: 4_905,
            events: 311,
            waits: 100,
            threads: 1,
            cpus: 1,
            ..BlockReport::default()
        };
        assert_eq!(Signs::of(&report, 64).limited(), Limited::Yes);
    }

    #[test]
    fn a_busy_generator_before_which_work_piles_up_is_the_limit() {
        assert_eq!(signs(31, 97).limited(), Limited::Yes);
        assert_eq!(signs(3, 93).limited(), Limited::Yes);
        assert_eq!(signs(2, 97).limited(), Limited::No);
    }

    #[test]
    fn what_is_known_of_the_server_decides() {
        let with_server =
            |events, busy, server| Signs { server_busy: Some(server), ..signs(events, busy) }.limited();
        assert_eq!(with_server(31, 97, 0.5), Limited::Yes);
        assert_eq!(with_server(2, 97, 0.5), Limited::Yes);
        assert_eq!(with_server(8, 95, 0.95), Limited::Both);
        assert_eq!(with_server(1, 95, 0.95), Limited::No);
        assert_eq!(with_server(1, 60, 0.5), Limited::No);
    }

    #[test]
    fn with_few_connections_events_per_wait_say_nothing() {
        let one = Signs { connections: 1, ..signs(1, 97) };
        assert_eq!(one.limited(), Limited::CannotTell);
        assert_eq!(Signs { server_busy: Some(0.4), ..one }.limited(), Limited::Yes);
        assert_eq!(
            Signs { threads: 16, cpus: 16, cpu_ns: 16 * one.cpu_ns, ..signs(1, 97) }.limited(),
            Limited::CannotTell
        );
    }

    #[test]
    fn a_rate_near_the_floors_is_the_generators() {
        assert_eq!(Signs { of_floor: Some(0.95), ..signs(1, 50) }.limited(), Limited::Yes);
        assert_eq!(Signs { of_floor: Some(0.5), ..signs(1, 50) }.limited(), Limited::No);
    }

    #[test]
    fn an_empty_block_divides_by_nothing() {
        let nothing = Signs { events: 0, waits: 0, cpu_ns: 0, wall_ns: 0, ..signs(0, 0) };
        assert_eq!((nothing.limited(), nothing.busy(), nothing.events_per_wait()), (Limited::No, 0.0, 0.0));
    }
}
