//! What happened between two looks, per second.

use super::scrape::{Look, Worker};

/// One worker's rates, or all workers' together. What is open and held is as it is now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    /// Replies by class, from 2xx on.
    pub(super) replies: [f64; 4],
    pub(super) accepted: f64,
    pub(super) closed: f64,
    pub(super) received: f64,
    pub(super) sent: f64,
    /// CPUs kept busy.
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) open: f64,
    pub(super) buffered: f64,
}

impl Rates {
    pub(super) fn requests(&self) -> f64 {
        self.replies.iter().sum()
    }

    /// Microseconds of CPU per request, in user space and in the kernel; `None` without requests.
    pub(super) fn cpu_us(&self) -> Option<(f64, f64)> {
        let requests = self.requests();
        (requests > 0.0).then(|| (self.user / requests * 1e6, self.system / requests * 1e6))
    }

    fn between(before: &Worker, now: &Worker, seconds: f64) -> Rates {
        let rate = |before: f64, now: f64| {
            // A counter that is less than it was has started anew.
            let grown = if now >= before { now - before } else { now };
            grown / seconds
        };
        let mut replies = [0.0; 4];
        for (at, reply) in replies.iter_mut().enumerate() {
            *reply = rate(before.replies[at], now.replies[at]);
        }
        Rates {
            replies,
            accepted: rate(before.accepted, now.accepted),
            closed: rate(before.closed, now.closed),
            received: rate(before.received, now.received),
            sent: rate(before.sent, now.sent),
            user: rate(before.user_s, now.user_s),
            system: rate(before.system_s, now.system_s),
            open: now.open,
            buffered: now.buffered,
        }
    }

    fn plus(self, other: &Rates) -> Rates {
        let mut replies = self.replies;
        replies.iter_mut().zip(other.replies).for_each(|(sum, more)| *sum += more);
        Rates {
            replies,
            accepted: self.accepted + other.accepted,
            closed: self.closed + other.closed,
            received: self.received + other.received,
            sent: self.sent + other.sent,
            user: self.user + other.user,
            system: self.system + other.system,
            open: self.open + other.open,
            buffered: self.buffered + other.buffered,
        }
    }
}

/// The rates of each worker between two looks; of a worker that was not there before, since its start.
pub(super) fn by_worker(before: &Look, now: &Look) -> Vec<Rates> {
    let seconds = (now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9).max(1e-3);
    let none = Worker::default();
    let each = now.workers.iter().enumerate();
    each.map(|(at, worker)| Rates::between(before.workers.get(at).unwrap_or(&none), worker, seconds))
        .collect()
}

/// All of them together.
pub(super) fn together(workers: &[Rates]) -> Rates {
    workers.iter().fold(Rates::default(), Rates::plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_s: u64, requests: f64, user_s: f64) -> Look {
        let worker = Worker { replies: [requests, 0.0, 1.0, 0.0], user_s, open: 3.0, ..Worker::default() };
        Look { at_ns: at_s * 1_000_000_000, workers: vec![worker; 2], ..Look::default() }
    }

    #[test]
    fn rates_are_per_second_and_sums_are_over_workers() {
        let workers = by_worker(&look(1, 100.0, 1.0), &look(3, 300.0, 1.002));
        let all = together(&workers);
        assert_eq!((workers.len(), workers[0].requests(), all.requests()), (2, 100.0, 200.0));
        assert_eq!((workers[0].open, all.open, all.replies[2]), (3.0, 6.0, 0.0));
        let (user, system) = all.cpu_us().unwrap_or_default();
        assert!((user - 10.0).abs() < 1e-6 && system == 0.0, "{user}");
    }

    #[test]
    fn a_counter_that_started_anew_counts_from_there() {
        let workers = by_worker(&look(1, 100.0, 9.0), &look(2, 10.0, 0.0));
        assert_eq!(workers[0].requests(), 10.0);
        assert_eq!(by_worker(&look(1, 5.0, 0.0), &look(2, 5.0, 0.0))[0].cpu_us(), None);
    }
}
