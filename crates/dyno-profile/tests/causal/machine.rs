//! A machine with a core for each thread, whose programs are lists of steps: how long everything takes is known, so the
//! truth of every speed-up is.
//!
//! Delays and credit follow the rules of the live mechanism, event by event: a sample in the site moves its thread ahead,
//! others pause at their own next sample until they have caught up, who is woken by another is credited with what was
//! inserted while it slept. Noise is drift that all share, jitter of each step, and wild stretches.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use dyno_measure::Prng;
use dyno_profile::Error;
use dyno_profile::causal::{Moment, Pair, Pause, Rig, Span, Treatment, Window};
use dyno_record::causal::SlowedAt;

mod cores;
mod wild;

/// Time between samples, unless finer ones are asked for.
pub(crate) const PERIOD_NS: u64 = 1_000_000;
/// Drift changes this often.
const DRIFT_NS: u64 = 20_000_000;
/// Beside what is asked for.
const SETTLE_MORE_NS: u64 = 3_000_000;
const COOL_NS: u64 = 8_000_000;
/// Longer than any run, and not so long that it could not be added to.
const FOR_EVER: u64 = 1 << 60;
/// Sites of a program, at most.
const SITES: usize = 16;
/// In which a quota is spent.
const QUOTA_PERIOD_NS: u64 = 100_000_000;

/// What a thread does; the list is begun again at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Computes in a site for so long.
    Run(usize, u64),
    Lock(usize),
    Unlock(usize),
    /// Puts an item into a queue, waiting for room.
    Push(usize),
    Pop(usize),
    /// Waits until all threads of the program are there.
    Meet,
    Sleep(u64),
    /// Sleeps until the clock is at a multiple of this: a frame, a tick.
    Until(u64),
    /// Waits for the next of what comes in every so often, however late it is fetched: an open load, a rate limit.
    Arrival(u64),
    /// Sleeps until so long after it was here last, and what is late is late for good: a limit that saves nothing up.
    Every(u64),
    /// Looks at the clock in a loop until the next of what comes in every so often: it is never seen to wait.
    Look(u64),
    /// One visit for each item that lies in a queue, and all of them are taken: a poll.
    Drain(usize),
    /// A unit of work begins, and ends: the pair of a latency, first in first out. Ends are visits.
    Begin,
    End,
    Visit,
    /// As `Run`, of a length that varies as waits for chance do, with this mean.
    Varied(usize, u64),
    /// Goes on with such a chance, percent; else so many steps are left out.
    Chance(u64, usize),
    /// Leaves out so many steps.
    Skip(usize),
    /// Puts an item into a queue; where there is no room the oldest is lost.
    PushOrDrop(usize),
    /// Takes an item; where there is none so many steps are left out.
    TryPop(usize, usize),
    /// Takes an item of the one queue, else of the other, else waits for either.
    PopEither(usize, usize),
    /// Waits so long at most for an item; where none came so many steps are left out.
    PopFor(usize, u64, usize),
    /// Looks for an item, and sleeps twice as long each time there is none, from so long to so long.
    Poll(usize, u64, u64),
    /// Takes all that lies in a queue once it is so many, or so long after it began to wait for that.
    Collect(usize, usize, u64),
    /// Computes so long, and so long for each of what was collected.
    RunEach(usize, u64, u64),
    /// A visit, or an item for a queue, for each of what was collected.
    VisitEach,
    PushEach(usize),
    /// A lock of which readers hold any number and a writer all; who waits to write goes first.
    Read(usize),
    Write(usize),
    Leave(usize),
    /// A limit of one in so long, of which so many may be saved up.
    Token(u64, u64),
    /// Computes for so long whenever that was last done longer ago than this.
    Stale(usize, u64, u64),
    /// One visit for each so many of them.
    VisitOnceIn(u64),
}

/// Threads and what they share.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) threads: Vec<Vec<Step>>,
    /// Room of each queue.
    pub(crate) queues: Vec<usize>,
    /// What lies in each of them when all begins.
    pub(crate) items: Vec<usize>,
    /// Room that a queue must have before who waits for it is woken: a pipe wakes its writer when a page of it is free.
    pub(crate) wakes_at: usize,
    /// CPU time of all threads together in each tenth of a second, pauses included.
    pub(crate) quota_ns: Option<u64>,
    /// Who waits for another thread does so in a loop, and for how long before it sleeps.
    pub(crate) spins: bool,
    pub(crate) spins_for: Option<u64>,
    /// Fewer cores than threads.
    pub(crate) cores: Option<usize>,
}

/// How much a machine misbehaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    /// Of every step, as a share.
    pub(crate) jitter: f64,
    /// Deviation of the drift that all share.
    pub(crate) drift: f64,
    /// Share of other processes in the ticks.
    pub(crate) foreign: f64,
    /// What being attached costs.
    pub(crate) attached: f64,
}

pub(crate) const QUIET: Noise = Noise { jitter: 0.1, drift: 0.0, foreign: 0.0, attached: 0.0 };
/// As measured beside neighbours: windows of a quarter of a second deviate by 2 to 4 %, neighbours are alike.
pub(crate) const NOISY: Noise = Noise { jitter: 0.1, drift: 0.03, foreign: 0.0, attached: 0.02 };

#[derive(Debug, Clone, Copy, PartialEq)]
enum Passed {
    Begin,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Running,
    Paused { until: u64, debt: u64 },
    Blocked,
    Sleeping { until: u64 },
}

#[derive(Debug, Clone)]
struct Thread {
    at: usize,
    /// Of the step that runs.
    left: u64,
    state: State,
    /// Since when the state is what it is, for those that run.
    since: u64,
    next_tick: u64,
    /// Delay position, and the greatest one when it left the core, and when.
    l: u64,
    g_off: u64,
    t_off: u64,
    /// Of what comes in, what was fetched.
    fetched: u64,
    /// When it was last at a step that keeps a distance.
    kept: u64,
    /// Units that it has begun and not ended.
    begun: u64,
    /// It waits in a loop; where its last sample found it, the greatest position then, and what came between the two before.
    waits_in_loop: bool,
    spun: Spun,
    spun_g: u64,
    before: u64,
    late: u64,
    /// When a wait ends by the clock, what was collected, how long it sleeps next, and what passed the point.
    times_out: Option<u64>,
    batch: u64,
    backs_off: u64,
    passed: u64,
    /// It waits for a core, on which its next step begins, or goes on.
    is_ready: bool,
    begins_step: bool,
    core: Option<usize>,
    entered: u64,
}

/// Where a sample found a thread that waits in loops, as the probe has it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spun {
    Never,
    InLoop,
    Left,
    Out,
}

/// The machine, seen as a rig.
pub(crate) struct Machine {
    program: Program,
    threads: Vec<Thread>,
    holders: Vec<Option<usize>>,
    lock_queues: Vec<VecDeque<usize>>,
    items: Vec<usize>,
    poppers: Vec<VecDeque<usize>>,
    pushers: Vec<VecDeque<usize>>,
    meeting: Vec<usize>,
    collectors: Vec<Option<(usize, usize)>>,
    shared: Vec<wild::Shared>,
    cores: cores::Cores,
    /// How much of each site's time is left, for the truth.
    shortened: Option<(usize, f64)>,
    noise: Noise,
    period_ns: u64,
    /// Whether it lets itself be sampled twice as often.
    has_cheap_interrupts: bool,
    /// How long it takes to let go of a target.
    lets_go_in_ns: u64,
    rng: Prng,
    now: Rc<Cell<u64>>,
    drift: f64,
    next_drift: u64,
    /// How much slower it is at the beginning, and until when.
    warm_up: (f64, u64),
    treatment: Treatment,
    /// Percent of the time that all owe, and since when.
    alike: Option<(u32, u64)>,
    /// CPU time of this period, and until when nobody runs.
    spent_ns: u64,
    held_until: u64,
    /// A rig that has no control, as others may be.
    has_control: bool,
    counts_calls: bool,
    active: bool,
    g: u64,
    seen: Window,
    /// The experiment's beginning, what is counted of begins and ends, when units on their way were begun, and how long those
    /// took that ended, by the clock.
    start_ns: u64,
    pair: Pair,
    begun_ns: VecDeque<u64>,
    took_ns: u64,
    counting: bool,
    /// How often each site was entered.
    calls: [u64; SITES],
    /// Samples in loops that wait, and all.
    sampled: [u64; 2],
}

impl Machine {
    pub(crate) fn new(program: &Program, noise: Noise, seed: u64) -> Machine {
        let mut rng = Prng::new(seed);
        let threads = (0..program.threads.len()).map(|_| Thread {
            at: 0,
            left: 0,
            state: State::Running,
            since: 0,
            next_tick: rng.below(PERIOD_NS),
            l: 0,
            g_off: 0,
            t_off: 0,
            fetched: 0,
            kept: 0,
            begun: 0,
            waits_in_loop: false,
            spun: Spun::Never,
            spun_g: 0,
            before: 0,
            late: 0,
            times_out: None,
            batch: 0,
            backs_off: 0,
            passed: 0,
            is_ready: false,
            begins_step: false,
            core: None,
            entered: 0,
        });
        let threads: Vec<Thread> = threads.collect();
        let locks = 4;
        let cores = cores::Cores::new(program.cores, &mut rng);
        let mut machine = Machine {
            holders: vec![None; locks],
            lock_queues: vec![VecDeque::new(); locks],
            items: (0..program.queues.len()).map(|at| program.items.get(at).copied().unwrap_or(0)).collect(),
            poppers: vec![VecDeque::new(); program.queues.len()],
            pushers: vec![VecDeque::new(); program.queues.len()],
            meeting: Vec::new(),
            collectors: vec![None; program.queues.len()],
            shared: vec![wild::Shared::default(); locks],
            cores,
            program: program.clone(),
            threads,
            shortened: None,
            noise,
            period_ns: PERIOD_NS,
            has_cheap_interrupts: false,
            lets_go_in_ns: 0,
            rng,
            now: Rc::default(),
            drift: 0.0,
            next_drift: 0,
            warm_up: (0.0, 1),
            treatment: Treatment::Nothing,
            alike: None,
            spent_ns: 0,
            held_until: 0,
            has_control: true,
            counts_calls: true,
            active: false,
            g: 0,
            seen: Window::default(),
            start_ns: 0,
            pair: Pair::default(),
            begun_ns: VecDeque::new(),
            took_ns: 0,
            counting: false,
            calls: [0; SITES],
            sampled: [0; 2],
        };
        for thread in 0..machine.threads.len() {
            if machine.gets_core(thread) {
                machine.begin(thread);
            }
        }
        machine
    }

    /// One that is slower by such a part at first, and by less and less until then.
    #[allow(dead_code, reason = "asked by one of the tests that share it")]
    pub(crate) fn warming_up(self, slower: f64, until_ns: u64) -> Machine {
        Machine { warm_up: (slower, until_ns), ..self }
    }

    fn warmth(&self) -> f64 {
        let (slower, until_ns) = self.warm_up;
        1.0 + slower * (1.0 - self.now.get() as f64 / until_ns as f64).max(0.0)
    }

    pub(crate) fn with_cheap_interrupts(self) -> Machine {
        Machine { has_cheap_interrupts: true, ..self }
    }

    /// A kernel that waits for long before a probe is out.
    #[allow(dead_code, reason = "asked by one of the tests that share it")]
    pub(crate) fn lets_go_in(self, ns: u64) -> Machine {
        Machine { lets_go_in_ns: ns, ..self }
    }

    /// A rig that counts no calls.
    pub(crate) fn without_calls(self) -> Machine {
        Machine { counts_calls: false, ..self }
    }

    pub(crate) fn without_control(self) -> Machine {
        Machine { has_control: false, ..self }
    }

    /// The machine's clock.
    pub(crate) fn clock(&self) -> impl Fn() -> u64 + use<> {
        let now = Rc::clone(&self.now);
        move || now.get()
    }

    /// Time saved per visit, in percent, when a site really is shorter by so many percent.
    pub(crate) fn truth(program: &Program, site: usize, percent: u32) -> f64 {
        Machine::changed(program, site, -f64::from(percent))
    }

    /// The same, counted for longer, where chance decides much.
    #[allow(dead_code, reason = "asked of programs of chance alone")]
    pub(crate) fn truth_over(program: &Program, site: usize, percent: u32, seconds: u64) -> f64 {
        let period = |shortened| {
            let mut machine = Machine { shortened, ..Machine::new(program, QUIET, 1) };
            let window = machine.count(Duration::from_secs(seconds));
            (window.last.at_ns - window.first.at_ns) as f64 / (window.visits - 1) as f64
        };
        100.0 * (1.0 - period(Some((site, 1.0 - f64::from(percent) / 100.0))) / period(None))
    }

    /// What a site that takes so much longer, percent, costs.
    #[allow(dead_code, reason = "a test that slows nothing down asks for no cost")]
    pub(crate) fn cost(program: &Program, site: usize, percent: f64) -> f64 {
        -Machine::changed(program, site, percent)
    }

    /// What is saved where a site takes so much longer, percent.
    fn changed(program: &Program, site: usize, percent: f64) -> f64 {
        let period = |shortened| {
            let mut machine = Machine { shortened, ..Machine::new(program, QUIET, 1) };
            let window = machine.count(Duration::from_secs(40));
            (window.last.at_ns - window.first.at_ns) as f64 / (window.visits - 1) as f64
        };
        100.0 * (1.0 - period(Some((site, 1.0 + percent / 100.0))) / period(None))
    }

    /// Time saved from begin to end, in percent, when a site really is shorter by so many percent: unit by unit.
    pub(crate) fn true_latency(program: &Program, site: usize, percent: u32) -> f64 {
        let latency = |shortened| {
            let mut machine = Machine { shortened, ..Machine::new(program, QUIET, 1) };
            let window = machine.count(Duration::from_secs(40));
            machine.took_ns as f64 / window.visits as f64
        };
        100.0 * (1.0 - latency(Some((site, 1.0 - f64::from(percent) / 100.0))) / latency(None))
    }

    fn count(&mut self, length: Duration) -> Window {
        let from = self.now.get();
        (self.seen, self.took_ns) = (Window::default(), 0);
        let in_flight = self.begun_ns.len() as i64;
        self.pair = Pair { start_ns: self.start_ns, opened_ns: from, in_flight, ..Pair::default() };
        self.counting = true;
        self.advance(from + length.as_nanos() as u64);
        self.counting = false;
        self.pair.closed_ns = self.now.get();
        let pair = self.has_pair().then_some(self.pair);
        Window { length_ns: self.now.get() - from, pair, ..std::mem::take(&mut self.seen) }
    }

    /// Whether turns differ, so that none says how often a site is entered.
    fn is_wild(&self) -> bool {
        let is_plain = |step: &Step| {
            !matches!(
                step,
                Step::Chance(..)
                    | Step::Skip(_)
                    | Step::TryPop(..)
                    | Step::PopFor(..)
                    | Step::VisitEach
                    | Step::VisitOnceIn(_)
                    | Step::Stale(..)
                    | Step::RunEach(..)
                    | Step::PopEither(..)
                    | Step::PushOrDrop(_)
            )
        };
        !self.program.threads.iter().flatten().all(is_plain)
    }

    fn has_pair(&self) -> bool {
        self.program.threads.iter().flatten().any(|step| matches!(step, Step::End))
    }

    /// Goes on until `end`, event by event.
    fn advance(&mut self, end: u64) {
        while let Some((time, thread)) = self.next().filter(|(time, _)| *time <= end) {
            self.now.set(time);
            if time >= self.next_drift {
                self.next_drift = time + DRIFT_NS;
                // Half a second until half of it is forgotten.
                self.drift = 0.97 * self.drift + 0.243 * self.noise.drift * self.rng.normal();
            }
            self.event(thread);
        }
        self.now.set(end);
        for thread in 0..self.threads.len() {
            self.book(thread);
        }
    }

    fn next(&self) -> Option<(u64, usize)> {
        let when = |thread: &Thread| match thread.state {
            State::Running | State::Paused { .. } if thread.is_ready => u64::MAX,
            State::Running => (thread.since + thread.left).min(thread.next_tick).min(self.slice_ends(thread)),
            State::Paused { until, .. } => until.min(self.slice_ends(thread)),
            State::Sleeping { until } => until,
            State::Blocked => thread.times_out.unwrap_or(u64::MAX),
        };
        let next = self.threads.iter().enumerate().map(|(at, thread)| (when(thread), at)).min()?;
        (next.0 < u64::MAX).then_some(next)
    }

    /// Takes what a thread has run since off what it has left.
    fn book(&mut self, at: usize) {
        let now = self.now.get();
        let thread = &mut self.threads[at];
        if matches!(thread.state, State::Running | State::Paused { .. }) && !thread.is_ready {
            let ran = now.saturating_sub(thread.since);
            if self.counting {
                self.seen.target_cpu_ns += ran;
            }
            if thread.state == State::Running {
                thread.left = thread.left.saturating_sub(ran);
            }
            thread.since = thread.since.max(now);
            self.spend(ran);
        }
    }

    /// Where a quota is used up nobody runs, and no pause ends, before the next period begins.
    fn spend(&mut self, ran: u64) {
        let Some(quota_ns) = self.program.quota_ns else { return };
        let now = self.now.get();
        self.spent_ns += ran;
        if self.spent_ns < quota_ns {
            return;
        }
        self.spent_ns = 0;
        let until = (now / QUOTA_PERIOD_NS + 1) * QUOTA_PERIOD_NS;
        self.held_until = until;
        for thread in &mut self.threads {
            let held = until - thread.since.min(until);
            match &mut thread.state {
                State::Running => (thread.since, thread.next_tick) = (until, thread.next_tick + held),
                State::Paused { until: end, .. } => (thread.since, *end) = (until, *end + held),
                State::Blocked | State::Sleeping { .. } => {}
            }
        }
    }

    fn event(&mut self, at: usize) {
        let now = self.now.get();
        self.book(at);
        if self.slice_ends(&self.threads[at]) <= now {
            return self.preempt(at);
        }
        match self.threads[at].state {
            State::Paused { debt, .. } => {
                // Who waited for its core meanwhile may have been credited.
                self.threads[at].l = (self.threads[at].l + debt).min(self.g.max(self.threads[at].l));
                self.threads[at].state = State::Running;
                self.skip_ticks(at);
                // What it looks for has not waited.
                if let Step::Look(ns) = self.step_of(at) {
                    self.threads[at].left = (self.threads[at].fetched * ns).saturating_sub(now);
                }
            }
            State::Sleeping { .. } => {
                if self.counting {
                    self.seen.outer_wakes += 1;
                }
                self.off_core(at);
                self.run_on(at);
            }
            State::Running if now >= self.threads[at].next_tick => self.tick(at),
            State::Running if self.threads[at].waits_in_loop => self.sleep_after_spinning(at),
            State::Running => {
                self.threads[at].at += 1;
                self.step(at);
            }
            State::Blocked => self.time_out(at),
        }
    }

    fn skip_ticks(&mut self, at: usize) {
        let (now, period_ns) = (self.now.get().max(self.held_until), self.period_ns);
        if let Some(core) = self.threads[at].core {
            self.threads[at].next_tick = self.cores.next_tick(core, now, period_ns);
            return;
        }
        let thread = &mut self.threads[at];
        while thread.next_tick <= now {
            thread.next_tick += period_ns;
        }
    }

    /// Goes on with its next step, or waits for a core to do so.
    fn run_on(&mut self, at: usize) {
        self.threads[at].state = State::Running;
        self.threads[at].times_out = None;
        if self.gets_core(at) {
            self.threads[at].since = self.now.get().max(self.held_until);
            self.skip_ticks(at);
            self.step(at);
        }
    }

    /// A sample.
    fn tick(&mut self, at: usize) {
        self.threads[at].next_tick += self.period_ns;
        if !self.active {
            return;
        }
        if self.counting {
            self.seen.samples += 1;
            let foreign = u64::from(self.rng.unit() < self.noise.foreign);
            self.seen.foreign += foreign;
            self.seen.queued_ns += foreign * self.period_ns;
        }
        self.sampled[0] += u64::from(self.threads[at].waits_in_loop);
        self.sampled[1] += 1;
        let waits = self.owes_nothing_yet(at);
        if let Treatment::SpeedUp { site, percent } = self.treatment {
            let here = self.site_of(at);
            if here == Some(site) {
                self.threads[at].l += u64::from(percent) * self.period_ns / 100;
                self.g = self.g.max(self.threads[at].l);
                if self.counting {
                    self.seen.hits += 1;
                }
            }
        }
        if let Some((percent, since)) = self.alike {
            self.g = self.g.max((self.now.get() - since) * u64::from(percent) / 100);
        }
        if let Treatment::SlowDown { site, at: SlowedAt::Samples, ns } = self.treatment
            && self.site_of(at) == Some(site)
        {
            // It pauses for itself: nothing is paid off by it.
            self.threads[at].state = State::Paused { until: self.now.get() + ns, debt: 0 };
            if self.counting {
                self.seen.hits += 1;
                self.seen.paid_ns += ns;
            }
            return;
        }
        if waits {
            return;
        }
        let debt = self.g - self.threads[at].l;
        if debt > 0 {
            let until = self.now.get() + debt;
            self.threads[at].state = State::Paused { until, debt };
            if self.counting {
                self.seen.paid_ns += debt;
            }
        }
    }

    /// Who waits in a loop has waited for what was inserted meanwhile; of what came in while it left the loop a part.
    fn owes_nothing_yet(&mut self, at: usize) -> bool {
        let thread = &mut self.threads[at];
        let more = self.g.saturating_sub(thread.spun_g);
        if thread.spun == Spun::Left {
            // Who is ahead of all has inserted itself what came since.
            let both = thread.before + if thread.l < self.g { more } else { 0 };
            thread.l += (thread.late * thread.before).checked_div(both).unwrap_or(thread.late / 2);
            thread.spun = Spun::Out;
            self.g = self.g.max(thread.l);
        }
        let was_in_loop = thread.spun == Spun::InLoop;
        if thread.waits_in_loop {
            thread.before = if was_in_loop { more } else { 0 };
            (thread.spun, thread.spun_g, thread.l) = (Spun::InLoop, self.g, thread.l.max(self.g));
        } else if was_in_loop {
            thread.late = self.g.saturating_sub(thread.l);
            (thread.spun, thread.spun_g) = (Spun::Left, self.g);
        }
        let thread = &self.threads[at];
        if self.counting && thread.spun != Spun::Never {
            self.seen.of_spinners += 1;
            self.seen.spun += u64::from(thread.waits_in_loop);
            self.seen.spins += u64::from(thread.spun == Spun::Left);
        }
        thread.waits_in_loop || thread.spun == Spun::Left
    }

    fn step_of(&self, at: usize) -> Step {
        let steps = &self.program.threads[at];
        steps[self.threads[at].at % steps.len()]
    }

    fn site_of(&self, at: usize) -> Option<usize> {
        match self.step_of(at) {
            _ if self.threads[at].waits_in_loop => None,
            Step::Run(site, _) | Step::Varied(site, _) | Step::RunEach(site, ..) => Some(site),
            Step::Stale(site, ..) => Some(site),
            _ => None,
        }
    }

    fn begin(&mut self, at: usize) {
        self.step(at);
    }

    /// Does steps that take no time until one does, or the thread waits.
    fn step(&mut self, at: usize) {
        loop {
            match self.step_of(at) {
                Step::Run(site, ns) => {
                    let duration = self.duration(site, ns);
                    return self.compute(at, duration);
                }
                Step::Visit => self.visit(at),
                Step::Drain(queue) => {
                    for _ in 0..std::mem::take(&mut self.items[queue]) {
                        self.visit(at);
                    }
                }
                Step::Begin => self.pass(at, Passed::Begin),
                Step::End => self.pass(at, Passed::End),
                Step::Lock(lock) if self.holders[lock].is_none() => self.holders[lock] = Some(at),
                Step::Lock(lock) => {
                    self.lock_queues[lock].push_back(at);
                    return self.block(at);
                }
                Step::Unlock(lock) => {
                    // Handed over: whoever waits longest has it next.
                    self.holders[lock] = self.lock_queues[lock].pop_front();
                    if let Some(next) = self.holders[lock] {
                        self.wake(at, next);
                    }
                }
                Step::Push(queue) if self.items[queue] < self.program.queues[queue] => {
                    self.items[queue] += 1;
                    self.hand_out(at, queue);
                }
                Step::Push(queue) => {
                    self.pushers[queue].push_back(at);
                    return self.block(at);
                }
                Step::Pop(queue) if self.items[queue] > 0 => {
                    self.take(at, queue);
                }
                Step::Pop(queue) => {
                    self.poppers[queue].push_back(at);
                    return self.block(at);
                }
                Step::Meet if self.meeting.len() + 1 == self.threads.len() => {
                    for other in std::mem::take(&mut self.meeting) {
                        self.wake(at, other);
                    }
                }
                Step::Meet => {
                    self.meeting.push(at);
                    return self.block(at);
                }
                Step::Sleep(ns) => return self.sleep(at, self.now.get() + ns),
                Step::Until(ns) => return self.sleep(at, (self.now.get() / ns + 1) * ns),
                Step::Every(ns) => {
                    let due = (self.threads[at].kept + ns).max(self.now.get());
                    self.threads[at].kept = due;
                    if due > self.now.get() {
                        return self.sleep(at, due);
                    }
                }
                Step::Look(ns) => {
                    self.threads[at].fetched += 1;
                    let due = self.threads[at].fetched * ns;
                    if due > self.now.get() {
                        self.threads[at].left = due - self.now.get();
                        self.threads[at].since = self.now.get().max(self.held_until);
                        return;
                    }
                }
                Step::Arrival(ns) => {
                    self.threads[at].fetched += 1;
                    let due = self.threads[at].fetched * ns;
                    if due > self.now.get() {
                        return self.sleep(at, due);
                    }
                }
                step => {
                    if self.wild(at, step) == wild::Goes::Off {
                        return;
                    }
                }
            }
            self.threads[at].at += 1;
        }
    }

    fn compute(&mut self, at: usize, ns: u64) {
        self.threads[at].left = ns;
        self.threads[at].since = self.now.get().max(self.held_until);
    }

    /// Takes an item that is there, and lets one in that waits for room.
    fn take(&mut self, at: usize, queue: usize) {
        self.items[queue] -= 1;
        self.let_in(at, queue);
    }

    fn let_in(&mut self, at: usize, queue: usize) {
        let has_room = self.program.queues[queue] - self.items[queue] >= self.program.wakes_at;
        if let Some(pusher) = self.pushers[queue].front().copied().filter(|_| has_room) {
            self.pushers[queue].pop_front();
            self.items[queue] += 1;
            self.wake(at, pusher);
        }
    }

    fn sleep(&mut self, at: usize, until: u64) {
        self.off_core(at);
        self.threads[at].state = State::Sleeping { until };
        self.threads[at].at += 1;
        self.leave_core(at);
    }

    fn duration(&mut self, site: usize, ns: u64) -> u64 {
        self.calls[site] += 1;
        let left = self.shortened.map_or(1.0, |(short, left)| if short == site { left } else { 1.0 });
        let jitter = (1.0 + self.noise.jitter * self.rng.normal()).max(0.2);
        let attached = if self.active { 1.0 + self.noise.attached } else { 1.0 };
        let added = match self.treatment {
            Treatment::SlowDown { site: slowed, at: SlowedAt::Calls, ns } if slowed == site => ns,
            _ => 0,
        };
        let slow = self.drift.exp() * self.warmth();
        ((ns as f64 * left * jitter * attached * slow) as u64).max(1) + added
    }

    /// Waits in a loop, or leaves its core.
    fn block(&mut self, at: usize) {
        let now = self.now.get();
        if self.program.spins && self.threads[at].times_out.is_none() {
            let thread = &mut self.threads[at];
            let most = self.program.spins_for.unwrap_or(FOR_EVER);
            (thread.waits_in_loop, thread.left, thread.since) = (true, most, now);
            return;
        }
        self.off_core(at);
        self.threads[at].state = State::Blocked;
        self.leave_core(at);
    }

    fn off_core(&mut self, at: usize) {
        let (now, g) = (self.now.get(), self.g);
        (self.threads[at].t_off, self.threads[at].g_off) = (now, g);
    }

    /// It has looked for long enough. Who gives up looking and sleeps is credited by its waker.
    fn sleep_after_spinning(&mut self, at: usize) {
        let thread = &mut self.threads[at];
        thread.waits_in_loop = false;
        thread.spun = if thread.spun == Spun::Never { Spun::Never } else { Spun::Out };
        thread.state = State::Blocked;
        self.off_core(at);
        self.leave_core(at);
    }

    /// Wakes a thread with credit for what was inserted while it slept. Its waiting step is done.
    fn wake(&mut self, waker: usize, at: usize) {
        if self.threads[at].waits_in_loop {
            self.book(at);
            self.threads[at].waits_in_loop = false;
            self.threads[at].at += 1;
            if self.threads[at].is_ready || matches!(self.threads[at].state, State::Paused { .. }) {
                self.threads[at].begins_step = true;
            } else {
                self.step(at);
            }
            return;
        }
        self.credit(waker, at);
        self.threads[at].at += 1;
        if self.counting {
            self.seen.inner_wakes += 1;
        }
        self.off_core(at);
        self.run_on(at);
    }

    /// Takes over what was inserted while it was off its core, and of old debt as much as that time would have hidden.
    fn credit(&mut self, giver: usize, at: usize) {
        let (now, l_giver, g) = (self.now.get(), self.threads[giver].l, self.g);
        let thread = &mut self.threads[at];
        let inserted = g.saturating_sub(thread.g_off);
        let old = thread.g_off.saturating_sub(thread.l).min(now - thread.t_off);
        thread.l += l_giver.saturating_sub(thread.l).min(inserted + old);
    }

    /// A begin or an end of a unit; which one ends says who waits longest.
    fn pass(&mut self, at: usize, passed: Passed) {
        let (now, thread) = (self.now.get(), &mut self.threads[at]);
        let marks = match passed {
            Passed::Begin => {
                self.begun_ns.push_back(now);
                thread.begun += 1;
                &mut self.pair.begins
            }
            Passed::End => {
                let begun_ns = self.begun_ns.pop_front().unwrap_or(now);
                self.took_ns += now - begun_ns;
                self.pair.carried += u64::from(self.counting && thread.begun == 0);
                thread.begun = thread.begun.saturating_sub(1);
                &mut self.pair.ends
            }
        };
        if self.counting {
            marks.count += 1;
            marks.since_start_ns += now - self.start_ns;
            marks.inserted_ns += thread.l;
            marks.owed_ns += self.g.saturating_sub(thread.l);
        }
        if passed == Passed::End {
            self.visit(at);
        }
    }

    fn visit(&mut self, at: usize) {
        if !self.counting {
            return;
        }
        let moment = Moment { at_ns: self.now.get(), inserted_ns: self.threads[at].l };
        let owed_ns = self.g.saturating_sub(self.threads[at].l);
        if self.seen.visits == 0 {
            (self.seen.first, self.seen.first_owed_ns) = (moment, owed_ns);
        }
        (self.seen.last, self.seen.last_owed_ns) = (moment, owed_ns);
        self.seen.visits += 1;
    }
}

impl Machine {
    fn experiment(&mut self, treatment: Treatment, alike: Option<u32>, span: Span) -> Window {
        self.treatment = treatment;
        self.alike = alike.map(|percent| (percent, self.now.get()));
        self.active = true;
        self.g = 0;
        self.start_ns = self.now.get();
        for thread in &mut self.threads {
            (thread.l, thread.g_off, thread.spun) = (0, 0, Spun::Never);
            // A pause that a used up quota has kept from ending pays for no other experiment.
            if let State::Paused { debt, .. } = &mut thread.state {
                *debt = 0;
            }
        }
        let jitter = self.rng.below(3_000_000);
        self.advance(self.now.get() + span.settle.as_nanos() as u64 + SETTLE_MORE_NS + jitter);
        let window = self.count(span.length);
        // Who sleeps is credited by its waker, or pays when it runs.
        let sleeps = |state| matches!(state, State::Blocked | State::Sleeping { .. });
        let owed = self.threads.iter().filter(|thread| !sleeps(thread.state));
        let owed_ns = owed.map(|thread| self.g.saturating_sub(thread.l)).sum();
        let delay_ns = match treatment {
            Treatment::SpeedUp { percent, .. } => u64::from(percent) * self.period_ns / 100,
            _ => 0,
        };
        let threads = self.threads.len() as u64;
        (self.active, self.alike) = (false, None);
        self.treatment = Treatment::Nothing;
        self.advance(self.now.get() + COOL_NS);
        Window { owed_ns, delay_ns, threads, ..window }
    }
}

impl Rig for Machine {
    fn window(&mut self, treatment: &Treatment, span: Span) -> Result<Window, Error> {
        Ok(self.experiment(*treatment, None, span))
    }

    fn alike(&mut self, percent: u32, span: Span) -> Result<Option<Window>, Error> {
        Ok(self.has_control.then(|| self.experiment(Treatment::Nothing, Some(percent), span)))
    }

    fn detached(&mut self, span: Span) -> Result<Window, Error> {
        self.advance(self.now.get() + self.lets_go_in_ns);
        Ok(self.count(span.length))
    }

    fn period_ns(&self) -> u64 {
        self.period_ns
    }

    fn sample_finely(&mut self) {
        if self.has_cheap_interrupts {
            self.period_ns = PERIOD_NS / 2;
        }
    }

    /// As a profile finds it beforehand.
    fn spinning_percent(&self) -> f64 {
        let [in_loops, all] = self.sampled;
        100.0 * in_loops as f64 / all.max(1) as f64
    }

    fn pause(&self) -> Pause {
        Pause::TaskWork
    }

    fn entries_per_second(&mut self, site: usize, length: Duration) -> Result<Option<f64>, Error> {
        if !self.counts_calls {
            return Ok(None);
        }
        let of_site = |step: &&Step| matches!(step, Step::Run(of, _) | Step::Varied(of, _) if *of == site);
        let per_turn: usize =
            self.program.threads.iter().map(|steps| steps.iter().filter(of_site).count()).sum();
        let visits = |step: &&Step| matches!(step, Step::Visit | Step::End);
        let per_turn_visits: usize =
            self.program.threads.iter().map(|steps| steps.iter().filter(visits).count()).sum();
        let calls = self.calls[site];
        let window = self.count(length);
        if self.is_wild() {
            return Ok(Some((self.calls[site] - calls) as f64 * 1e9 / window.length_ns as f64));
        }
        let turns = window.visits as f64 / per_turn_visits as f64;
        Ok(Some(turns * per_turn as f64 * 1e9 / window.length_ns as f64))
    }
}
