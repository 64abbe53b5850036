//! Steps as programs in the wild have them: chance, time-outs, batches, stealing, readers and writers.

use std::collections::VecDeque;

use super::{Machine, State, Step};

/// Whether a thread goes on at once, or computes or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    On,
    Off,
}

/// A lock of readers and writers.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared {
    readers: usize,
    writer: Option<usize>,
    /// Who waits, and whether to write.
    waiting: VecDeque<(usize, bool)>,
}

impl Machine {
    /// A step that is none of the plain ones.
    pub(super) fn wild(&mut self, at: usize, step: Step) -> Goes {
        let now = self.now.get();
        match step {
            Step::Varied(site, mean) => {
                let times = -(1.0 - self.rng.unit()).max(1e-9).ln();
                let ns = self.duration(site, (mean as f64 * times) as u64);
                self.compute(at, ns);
                Goes::Off
            }
            Step::RunEach(site, all, each) => {
                let ns = self.duration(site, all + each * self.threads[at].batch);
                self.compute(at, ns);
                Goes::Off
            }
            Step::Stale(site, every, ns) => {
                if now < self.threads[at].kept + every {
                    return Goes::On;
                }
                self.threads[at].kept = now;
                let ns = self.duration(site, ns);
                self.compute(at, ns);
                Goes::Off
            }
            Step::Chance(percent, skip) => {
                self.threads[at].at += if self.rng.below(100) < percent { 0 } else { skip };
                Goes::On
            }
            Step::Skip(steps) => {
                self.threads[at].at += steps;
                Goes::On
            }
            Step::VisitEach => {
                (0..self.threads[at].batch).for_each(|_| self.visit(at));
                Goes::On
            }
            Step::VisitOnceIn(many) => {
                self.threads[at].passed += 1;
                if self.threads[at].passed.is_multiple_of(many) {
                    self.visit(at);
                }
                Goes::On
            }
            Step::Token(ns, saved) => {
                let due = (self.threads[at].kept + ns).max(now.saturating_sub(saved * ns));
                self.threads[at].kept = due;
                if due <= now {
                    return Goes::On;
                }
                self.sleep(at, due);
                Goes::Off
            }
            Step::Read(_) | Step::Write(_) | Step::Leave(_) => self.shares(at, step),
            _ => self.queues(at, step),
        }
    }

    fn queues(&mut self, at: usize, step: Step) -> Goes {
        let now = self.now.get();
        match step {
            Step::PushOrDrop(queue) => {
                if self.items[queue] < self.program.queues[queue] {
                    self.items[queue] += 1;
                    self.hand_out(at, queue);
                }
                return Goes::On;
            }
            Step::PushEach(queue) => {
                for _ in 0..self.threads[at].batch {
                    self.items[queue] += 1;
                    self.hand_out(at, queue);
                }
                return Goes::On;
            }
            Step::TryPop(queue, skip) => {
                if self.items[queue] > 0 {
                    self.take(at, queue);
                } else {
                    self.threads[at].at += skip;
                }
                return Goes::On;
            }
            Step::PopEither(own, other) => {
                if let Some(queue) = [own, other].into_iter().find(|queue| self.items[*queue] > 0) {
                    self.take(at, queue);
                    return Goes::On;
                }
                for queue in [own, other] {
                    self.poppers[queue].push_back(at);
                }
            }
            Step::PopFor(queue, ns, _) => {
                if self.items[queue] > 0 {
                    self.take(at, queue);
                    return Goes::On;
                }
                self.poppers[queue].push_back(at);
                self.threads[at].times_out = Some(now + ns);
            }
            Step::Poll(queue, first, most) => {
                if self.items[queue] > 0 {
                    self.take(at, queue);
                    self.threads[at].backs_off = 0;
                    return Goes::On;
                }
                let thread = &mut self.threads[at];
                thread.backs_off = (2 * thread.backs_off).clamp(first, most);
                // It looks again: as many steps on as there are.
                thread.at += self.program.threads[at].len() - 1;
                let until = now + thread.backs_off;
                self.sleep(at, until);
                return Goes::Off;
            }
            Step::Collect(queue, many, ns) => {
                if self.items[queue] >= many {
                    self.collect(at, queue);
                    return Goes::On;
                }
                self.collectors[queue] = Some((at, many));
                self.threads[at].times_out = Some(now.saturating_add(ns));
            }
            _ => unreachable!("{step:?} is a plain step"),
        }
        self.block(at);
        Goes::Off
    }

    fn collect(&mut self, at: usize, queue: usize) {
        self.threads[at].batch = std::mem::take(&mut self.items[queue]) as u64;
        for _ in 0..self.pushers[queue].len().min(self.program.queues[queue]) {
            self.let_in(at, queue);
        }
    }

    /// Of items that were put into a queue, one goes to who waits for one, or all to who collects.
    pub(super) fn hand_out(&mut self, at: usize, queue: usize) {
        if let Some(popper) = self.poppers[queue].pop_front() {
            self.items[queue] -= 1;
            self.poppers.iter_mut().for_each(|waiting| waiting.retain(|other| *other != popper));
            self.wake(at, popper);
        } else if let Some((collector, _)) =
            self.collectors[queue].filter(|(_, many)| self.items[queue] >= *many)
        {
            self.collectors[queue] = None;
            self.collect(collector, queue);
            self.wake(at, collector);
        }
    }

    /// A wait has lasted as long as it may.
    pub(super) fn time_out(&mut self, at: usize) {
        match self.step_of(at) {
            Step::PopFor(queue, _, skip) => {
                self.poppers[queue].retain(|other| *other != at);
                self.threads[at].at += skip;
            }
            Step::Collect(queue, _, ns) if self.items[queue] == 0 => {
                self.threads[at].times_out = Some(self.now.get() + ns);
                return;
            }
            Step::Collect(queue, ..) => {
                self.collectors[queue] = None;
                self.collect(at, queue);
            }
            step => unreachable!("{step:?} has no end by the clock"),
        }
        debug_assert_eq!(self.threads[at].state, State::Blocked);
        self.threads[at].at += 1;
        self.seen.outer_wakes += u64::from(self.counting);
        self.off_core(at);
        self.run_on(at);
    }

    fn shares(&mut self, at: usize, step: Step) -> Goes {
        let (lock, writes) = match step {
            Step::Read(lock) => (lock, false),
            Step::Write(lock) => (lock, true),
            Step::Leave(lock) => {
                self.leave(at, lock);
                return Goes::On;
            }
            _ => unreachable!("{step:?} shares nothing"),
        };
        let shared = &mut self.shared[lock];
        let is_free = match writes {
            true => shared.writer.is_none() && shared.readers == 0,
            false => shared.writer.is_none() && !shared.waiting.iter().any(|(_, writes)| *writes),
        };
        if !is_free {
            shared.waiting.push_back((at, writes));
            self.block(at);
            return Goes::Off;
        }
        if writes {
            shared.writer = Some(at);
        } else {
            shared.readers += 1;
        }
        Goes::On
    }

    fn leave(&mut self, at: usize, lock: usize) {
        let shared = &mut self.shared[lock];
        if shared.writer == Some(at) {
            shared.writer = None;
        } else {
            shared.readers -= 1;
        }
        if shared.readers > 0 {
            return;
        }
        if let Some(first) = shared.waiting.iter().position(|(_, writes)| *writes) {
            let (next, _) = shared.waiting.remove(first).unwrap();
            shared.writer = Some(next);
            return self.wake(at, next);
        }
        let all = std::mem::take(&mut shared.waiting);
        shared.readers = all.len();
        for (next, _) in all {
            self.wake(at, next);
        }
    }
}
