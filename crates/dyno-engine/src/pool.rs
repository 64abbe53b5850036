//! Threads for what takes long: a database, a file that may be cold, arithmetic. A handler hands work over and its worker
//! serves on; the answer comes back by the worker's mailbox.
//!
//! Handlers call it. The number of threads and of jobs that wait is fixed when a pool is made, so that neither memory nor
//! waiting grows without bound. Whoever hands work over takes no lock and makes one system call.

use crate::answer::Answer;
use crate::error::{EngineError, refused};
use crate::later::Responder;
use crate::reply::Reply;
use crate::response::Response;
use crossbeam_queue::ArrayQueue;
use dyno_sys::event::Semaphore;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How full threads should be in the long run. At 0.7 jobs wait about as long as they take where they come by chance; towards
/// 1 waiting grows without bound (queueing theory's 1 / (1 - load)).
const LOAD: f64 = 0.7;

/// More threads than this are no pool: each holds a stack and a place in the scheduler.
const THREADS_MAX: usize = 4_096;

/// More jobs than this nobody waits for.
const WAITING_MAX: usize = 1 << 20;

/// After how many seconds a client that found the pool full is told to come again.
const RETRY_AFTER_S: &str = "1";

/// How many threads a pool has, and how many jobs may wait for them.
///
/// ```
/// use dyno_engine::PoolSize;
/// use std::time::Duration;
///
/// // 300 requests a second of 10 ms each, none of which should wait longer than a second.
/// let size = PoolSize::for_load(300.0, Duration::from_millis(10), Duration::from_secs(1));
/// assert_eq!((size.threads.get(), size.waiting_max), (5, 500));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSize {
    /// Threads; each works on one job at a time.
    pub threads: NonZeroUsize,
    /// Jobs that wait; who comes when there are as many is told 503.
    pub waiting_max: usize,
}

impl PoolSize {
    /// As many threads, and as many jobs that wait.
    ///
    /// ```
    /// # use dyno_engine::PoolSize;
    /// assert_eq!(PoolSize::new(0, 64).threads.get(), 1);
    /// ```
    #[must_use]
    pub fn new(threads: usize, waiting_max: usize) -> PoolSize {
        let threads = NonZeroUsize::new(threads.clamp(1, THREADS_MAX)).unwrap_or(NonZeroUsize::MIN);
        PoolSize { threads, waiting_max: waiting_max.min(WAITING_MAX) }
    }

    /// What a load needs, by Little's law: the jobs that are worked on at a time are those that come per second times the
    /// seconds that each takes (L = λW). That many threads would always be busy and jobs wait without end, so there are
    /// more, each busy seven tenths of its time. A job that finds `n` before it waits `n` times its own time, divided by
    /// the threads; so that nobody waits longer than `wait_max`, no more may wait than that comes to.
    ///
    /// Threads that compute are of no use beyond the CPUs that workers leave; threads that wait, for a disk or a
    /// database, are.
    ///
    /// ```
    /// # use dyno_engine::*;
    ///
    /// use std::time::Duration;
    ///
    /// let size = PoolSize::for_load(50.0, Duration::from_millis(100), Duration::from_millis(500));
    /// assert_eq!((size.threads.get(), size.waiting_max), (8, 40));
    /// ```
    #[must_use]
    pub fn for_load(jobs_per_second: f64, job: Duration, wait_max: Duration) -> PoolSize {
        let job_s = job.as_secs_f64().max(1e-9);
        // A load that is none, or no number, is one thread's: casts go to the nearest there is.
        let threads = (jobs_per_second * job_s / LOAD).ceil().max(1.0) as usize;
        let PoolSize { threads, .. } = PoolSize::new(threads, 0);
        let waiting = (wait_max.as_secs_f64() * threads.get() as f64 / job_s).floor();
        PoolSize { threads, waiting_max: (waiting as usize).min(WAITING_MAX) }
    }
}

/// Threads that work for handlers, each with a state of its own: nothing, or a connection to a database.
///
/// Copies are the same pool. When the last one is gone its threads finish what was handed over and end; a server that
/// drains waits for its requests' answers, so that those come before. A job that panics costs its request a 500 and its
/// thread's state, which is made anew. A job for
/// whose answer nobody can wait any more is not begun.
///
/// Make it where a worker's routes are made: threads do not go along when a process forks.
///
/// ```no_run
/// use dyno_engine::{Answer, Method, Pool, PoolSize, Server};
///
/// let pool = Pool::new(PoolSize::new(4, 64))?;
/// Server::new()
///     .listen("127.0.0.1:8080")
///     .route(Method::Get, "/report/{name}", move |request, reply| {
///         let Some(name) = request.param("name").map(str::to_owned) else { return reply.status(400).empty() };
///         pool.answer(reply, move |()| match std::fs::read(format!("reports/{name}.txt")) {
///             Ok(text) => Answer::bytes("text/plain", text),
///             Err(_) => Answer::text("there is no such report\n").status(404),
///         })
///     })
///     .run()?;
/// # Ok::<(), dyno_engine::EngineError>(())
/// ```
#[derive(Debug)]
pub struct Pool<S: 'static = ()> {
    handle: Arc<Handle<S>>,
}

impl<S> Clone for Pool<S> {
    fn clone(&self) -> Pool<S> {
        Pool { handle: Arc::clone(&self.handle) }
    }
}

/// Goes with the last copy of a pool.
#[derive(Debug)]
struct Handle<S: 'static> {
    desk: Arc<Desk<S>>,
    threads: u64,
}

type Work<S> = Box<dyn FnOnce(&mut S) -> Answer + Send>;

struct Job<S> {
    work: Work<S>,
    responder: Responder,
}

/// Where jobs are handed over and taken.
struct Desk<S> {
    jobs: ArrayQueue<Job<S>>,
    /// Places in the queue that are taken, those of jobs that are about to be put in among them.
    taken: AtomicUsize,
    waiting_max: usize,
    /// One for each job, and one for each thread when no more can come.
    calls: Semaphore,
    is_closed: AtomicBool,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    answered: AtomicU64,
    refused: AtomicU64,
    skipped: AtomicU64,
    panics: AtomicU64,
}

/// What a pool has done.
///
/// ```
/// use dyno_engine::{Pool, PoolSize};
///
/// let pool = Pool::new(PoolSize::new(1, 8))?;
/// assert_eq!((pool.counts().answered, pool.counts().waiting), (0, 0));
/// # Ok::<(), dyno_engine::EngineError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Jobs that wait now.
    pub waiting: usize,
    /// Jobs that were done, those that panicked among them.
    pub answered: u64,
    /// Requests that found as many jobs waiting as may be: answered with 503.
    pub refused: u64,
    /// Jobs that were not begun because nobody waited for them any more.
    pub skipped: u64,
    /// Jobs that panicked: answered with 500.
    pub panics: u64,
}

impl Pool {
    /// Threads without a state.
    ///
    /// ```
    /// use dyno_engine::{Pool, PoolSize};
    ///
    /// let pool = Pool::new(PoolSize::new(2, 64))?;
    /// # let _ = pool;
    /// # Ok::<(), dyno_engine::EngineError>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::System`] when a thread cannot be started.
    pub fn new(size: PoolSize) -> Result<Pool, EngineError> {
        Pool::with(size, || ())
    }
}

impl<S: 'static> Pool<S> {
    /// Threads of which each makes a state when it has its first job, and anew after a job that panicked. Where making one
    /// panics, the job is answered with 500 and the next job tries again.
    ///
    /// ```
    /// use dyno_engine::{Pool, PoolSize};
    ///
    /// // Each thread counts what it did.
    /// let pool: Pool<u64> = Pool::with(PoolSize::new(2, 64), || 0)?;
    /// # let _ = pool;
    /// # Ok::<(), dyno_engine::EngineError>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::System`] when a thread cannot be started.
    pub fn with(
        size: PoolSize,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<Pool<S>, EngineError> {
        let PoolSize { threads, waiting_max } = PoolSize::new(size.threads.get(), size.waiting_max);
        let desk = Arc::new(Desk {
            jobs: ArrayQueue::new(waiting_max.max(1)),
            taken: AtomicUsize::new(0),
            waiting_max: waiting_max.max(1),
            calls: Semaphore::new().map_err(refused("make a semaphore"))?,
            is_closed: AtomicBool::new(false),
            tally: Tally::default(),
        });
        let make = Arc::new(make);
        // Made first: where a thread cannot be started, dropping it ends those that were.
        let pool = Pool { handle: Arc::new(Handle { desk, threads: threads.get() as u64 }) };
        for number in 0..threads.get() {
            let (desk, make) = (Arc::clone(&pool.handle.desk), Arc::clone(&make));
            let thread = thread::Builder::new().name(format!("dyno-pool-{number}"));
            thread.spawn(move || desk.serve(&*make)).map_err(refused("start a thread of a pool"))?;
        }
        Ok(pool)
    }

    /// Leaves the answer to a thread of the pool; it is waited for as long as
    /// [`Limits::later_ns`](crate::Limits::later_ns) says, then the client is told 504. Where as many jobs wait as may, the
    /// client is told 503 at once, with `Retry-After`.
    ///
    /// Take out of the request what the work needs, as owned data.
    ///
    /// ```no_run
    /// # use dyno_engine::{Answer, Method, Pool, PoolSize, Server};
    /// let pool = Pool::new(PoolSize::new(2, 64))?;
    /// let server = Server::new().route(Method::Post, "/sum", move |request, reply| {
    ///     let text = String::from_utf8_lossy(request.body()).into_owned();
    ///     pool.answer(reply, move |()| {
    ///         let sum: i64 = text.lines().filter_map(|line| line.trim().parse::<i64>().ok()).sum();
    ///         Answer::text(format!("{sum}\n"))
    ///     })
    /// });
    /// # let _ = server;
    /// # Ok::<(), dyno_engine::EngineError>(())
    /// ```
    pub fn answer(&self, reply: Reply<'_>, work: impl FnOnce(&mut S) -> Answer + Send + 'static) -> Response {
        match Slot::of(&self.handle.desk) {
            Some(slot) => reply.later(|responder| slot.fill(Box::new(work), responder)),
            None => self.refuse(reply),
        }
    }

    /// The same with a deadline of its own.
    ///
    /// ```no_run
    /// # use dyno_engine::{Answer, Method, Pool, PoolSize, Server};
    /// # use std::time::Duration;
    /// let pool = Pool::new(PoolSize::new(2, 64))?;
    /// let server = Server::new().route(Method::Get, "/slow", move |_request, reply| {
    ///     pool.answer_within(reply, Duration::from_secs(2), |()| Answer::text("done\n"))
    /// });
    /// # let _ = server;
    /// # Ok::<(), dyno_engine::EngineError>(())
    /// ```
    pub fn answer_within(
        &self,
        reply: Reply<'_>,
        wait: Duration,
        work: impl FnOnce(&mut S) -> Answer + Send + 'static,
    ) -> Response {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        match Slot::of(&self.handle.desk) {
            Some(slot) => reply.later_within(wait_ns, |responder| slot.fill(Box::new(work), responder)),
            None => self.refuse(reply),
        }
    }

    /// What it has done.
    ///
    /// ```
    /// # use dyno_engine::{Pool, PoolSize};
    /// assert_eq!(Pool::new(PoolSize::new(1, 1))?.counts().refused, 0);
    /// # Ok::<(), dyno_engine::EngineError>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> PoolCounts {
        let Desk { taken, tally, .. } = &*self.handle.desk;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PoolCounts {
            waiting: taken.load(Ordering::Relaxed),
            answered: of(&tally.answered),
            refused: of(&tally.refused),
            skipped: of(&tally.skipped),
            panics: of(&tally.panics),
        }
    }

    #[cold]
    fn refuse(&self, reply: Reply<'_>) -> Response {
        count(&self.handle.desk.tally.refused);
        reply.status(503).header("Retry-After", RETRY_AFTER_S).text("too much work is waiting\n")
    }
}

impl<S> Drop for Handle<S> {
    fn drop(&mut self) {
        self.desk.is_closed.store(true, Ordering::SeqCst);
        // Calls for jobs come first or last: each thread goes on while there is a job, and one call ends each.
        self.desk.calls.add(self.threads);
    }
}

/// A place in a queue, given back unless it is filled.
struct Slot<'d, S> {
    desk: &'d Desk<S>,
}

impl<'d, S> Slot<'d, S> {
    fn of(desk: &'d Desk<S>) -> Option<Slot<'d, S>> {
        let more = |taken: usize| (taken < desk.waiting_max).then_some(taken + 1);
        desk.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).ok()?;
        Some(Slot { desk })
    }

    fn fill(self, work: Work<S>, responder: Responder) {
        let desk = self.desk;
        std::mem::forget(self);
        let put = desk.jobs.push(Job { work, responder });
        assert!(put.is_ok(), "a place was taken for this job");
        desk.calls.add(1);
    }
}

impl<S> Drop for Slot<'_, S> {
    fn drop(&mut self) {
        self.desk.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S> Desk<S> {
    /// A thread's life.
    fn serve(&self, make: &dyn Fn() -> S) {
        let mut state = None;
        loop {
            self.calls.take();
            match self.jobs.pop() {
                Some(job) => {
                    // After it was taken out: a place that is free has room.
                    self.taken.fetch_sub(1, Ordering::AcqRel);
                    self.work(job, &mut state, make);
                }
                None if self.is_closed.load(Ordering::SeqCst) => return,
                None => {}
            }
        }
    }

    fn work(&self, Job { work, responder }: Job<S>, state: &mut Option<S>, make: &dyn Fn() -> S) {
        if responder.is_over() {
            count(&self.tally.skipped);
            return responder.answer(Answer::empty());
        }
        let answer = catch_unwind(AssertUnwindSafe(|| work(state.get_or_insert_with(make))));
        count(&self.tally.answered);
        let answer = answer.unwrap_or_else(|_| {
            count(&self.tally.panics);
            // What is half changed is of no use to the next job; dropping it may panic as well.
            let _ = catch_unwind(AssertUnwindSafe(|| *state = None));
            Answer::text("the work on this request failed\n").status(500)
        });
        responder.answer(answer);
    }
}

impl<S> std::fmt::Debug for Desk<S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Desk({} of {} waiting)", self.taken.load(Ordering::Relaxed), self.waiting_max)
    }
}

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_follows_from_littles_law() {
        let size = |rate, job_ms, wait_ms| {
            let size =
                PoolSize::for_load(rate, Duration::from_millis(job_ms), Duration::from_millis(wait_ms));
            (size.threads.get(), size.waiting_max)
        };
        // 7 threads' worth of work: 10 threads, each at 0.7.
        assert_eq!(size(700.0, 10, 1_000), (10, 1_000));
        assert_eq!(size(1.0, 10, 1_000), (1, 100));
        assert_eq!(size(0.0, 0, 0), (1, 0));
        assert_eq!(size(f64::NAN, 10, 10), (1, 1));
        assert_eq!(size(f64::INFINITY, 10, 10), (THREADS_MAX, THREADS_MAX));
        assert_eq!(size(1.0, 0, 1_000).1, WAITING_MAX);
    }
}
