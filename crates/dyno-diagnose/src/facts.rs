//! An observation digested once for all rules: where CPU time went by kind of work, what threads waited for, which loops
//! are hot.
//!
//! Every stack's time is counted to one kind of work only, the deepest cause first, so that shares add up to one. Pure:
//! the same observation gives the same facts.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::name;
use dyno_record::observation::{HotSpot, Observation, ThreadCost};
use dyno_record::profile::{Frame, Origin, Profile, Stack};

use super::code::Loop;
use super::draft::Outcome;
use super::frames::{crowd, leaf_first, own_place, place};
use super::goroutines::AtMutexes;
use super::makes;
use super::names;
use super::waits::OffCpu;

/// What rules about locks and pools need of a Go program.
const GOROUTINES: &str = "what goroutines wait for";

/// From half of the CPU time on what has no name outweighs what has one.
const UNNAMED_MIN: f64 = 0.5;

/// What CPU time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cost {
    /// The program's own code, and what is not told apart.
    Own,
    Allocation,
    /// Locks inside the allocator.
    AllocatorLock,
    Format,
    Copy,
    /// What could be kept is made.
    SetUp,
    /// Stacks of goroutines are made larger.
    StackGrowth,
    /// Taking and giving back locks, in user code.
    UserLock,
    /// The kernel's part of user locks, of whatever calls futex(2).
    Futex,
    /// The same where a lock's own functions make the call: they do so only where another thread holds the lock or waits for it.
    LockCall,
    /// The same for conditions, barriers and idle threads.
    Waking,
    Yield,
    KernelSpin,
    PageFault,
    Filter,
    Tap,
    Firewall,
    Connect,
    Network,
    /// Getting bytes onto a disk before a call comes back.
    Sync,
    Files,
    SystemCall,
    Interrupt,
}

/// Everything that rules ask for.
pub(super) struct Facts<'o> {
    pub(super) seen: &'o Observation,
    pub(super) on: Option<OnCpu<'o>>,
    pub(super) off: Option<OffCpu<'o>>,
    pub(super) loops: Vec<Hot<'o>>,
    /// Goroutines at mutexes, where it is a Go program that shows them.
    pub(super) at_mutexes: Option<AtMutexes>,
}

/// A hot instruction and the loop around it.
pub(super) struct Hot<'o> {
    pub(super) spot: &'o HotSpot,
    pub(super) code: Loop,
}

/// Programs that are named of those that live too short to be sampled.
const SHORT_NAMES_MAX: usize = 3;

/// The on-CPU profile by kind of work.
pub(super) struct OnCpu<'o> {
    profile: &'o Profile,
    /// All CPU time, the kernel's included where that could not be sampled.
    total_ns: f64,
    /// The share of it that could be sampled.
    seen_share: f64,
    is_user_only: bool,
    costs: BTreeMap<Cost, u64>,
    places: BTreeMap<Cost, BTreeMap<String, u64>>,
}

impl<'o> Facts<'o> {
    pub(super) fn new(seen: &'o Observation) -> Facts<'o> {
        let hot = seen.hot.iter().filter_map(|spot| Some(Hot { spot, code: Loop::around(spot)? }));
        let enough = |profile: &&Profile| profile.total_ns() > 0 && samples(profile) >= SAMPLES_MIN;
        let off = seen.off_cpu.as_ref().map(|profile| OffCpu::new(profile, seen));
        Facts {
            seen,
            at_mutexes: seen
                .goroutines
                .as_ref()
                .filter(|looked| looked.looks > 0)
                .map(|looked| AtMutexes::of(looked, off.as_ref())),
            on: seen.on_cpu.as_ref().filter(enough).map(|profile| OnCpu::new(profile, seen)),
            off,
            loops: hot.collect(),
        }
    }

    /// Share of CPU time spent on these kinds of work; `None` without a profile, and for the kernel's work where only
    /// user code could be sampled.
    pub(super) fn cpu_share(&self, costs: &[Cost]) -> Option<f64> {
        let on = self.on.as_ref()?;
        let is_seen = !on.is_user_only || costs.iter().any(|cost| !cost.is_the_kernels());
        is_seen.then(|| on.share(costs))
    }

    /// The profile, where the kernel's side could be sampled.
    pub(super) fn on_both_sides(&self) -> Option<&OnCpu<'o>> {
        self.on.as_ref().filter(|on| !on.is_user_only)
    }

    /// Share of what the target may use of its CPUs that neither it, nor its peers, nor this program wanted: what it could use if
    /// nothing held it back. What others took counts as free here, but for what they took while its threads could run: that is
    /// `noisy_neighbor`'s. Of a quota no more is free than it leaves, however idle the CPUs are.
    pub(super) fn spare(&self) -> Option<f64> {
        let host = &self.seen.host;
        let wanted = (self.seen.process.cpu_ns + host.own_ns + host.peers_ns + host.interrupts_ns) as f64
            + self.kept_off_ns();
        (host.all_ns > 0).then(|| self.of_quota((1.0 - wanted / host.all_ns as f64).max(0.0)))
    }

    /// What is free of its CPUs' time as a share of what its quota pays for.
    fn of_quota(&self, free: f64) -> f64 {
        if self.paid_cpus().is_none() {
            return free;
        }
        let (paid_ns, own_ns) = (self.usable_ns(), self.seen.process.cpu_ns as f64);
        let free_ns = (free * self.seen.host.all_ns as f64).min(paid_ns - own_ns);
        (free_ns / paid_ns.max(1.0)).max(0.0)
    }

    /// The CPU time that the target may use.
    fn usable_ns(&self) -> f64 {
        let all_ns = self.seen.host.all_ns as f64;
        self.paid_cpus().map_or(all_ns, |cpus| (cpus * self.seen.duration_s * 1e9).min(all_ns))
    }

    /// The CPUs that its quota pays for, where those are fewer than it may run on.
    pub(super) fn paid_cpus(&self) -> Option<f64> {
        let quota = self.seen.quota.as_ref()?.cpus?;
        (quota < f64::from(self.seen.host.cpus)).then_some(quota)
    }

    /// What others took while its threads could run.
    fn kept_off_ns(&self) -> f64 {
        let waited: u64 = self.seen.threads.iter().map(|thread| thread.wait_ns).sum();
        (waited as f64 * self.crowd()).min(self.seen.host.foreign_ns as f64)
    }

    /// Others' share of the CPU time that the target and they used.
    pub(super) fn crowd(&self) -> f64 {
        crowd(self.seen)
    }

    /// Whether its CPUs are no scarce thing: free for most of the time, and no thread is busy for half of it.
    pub(super) fn has_cpu_to_spare(&self) -> bool {
        let busiest = self.seen.threads.iter().map(|thread| thread.run_ns).max().unwrap_or(0);
        self.spare().is_some_and(|spare| spare >= FREE_MIN)
            && (busiest as f64) < BUSIEST_MAX * self.seen.duration_s * 1e9
    }

    /// The thread that runs most, and the share of the window that it ran, or would have run had others not been there.
    pub(super) fn busiest(&self) -> Option<(&'o ThreadCost, f64)> {
        let busiest = self.seen.threads.iter().max_by_key(|thread| thread.run_ns)?;
        Some((busiest, self.runs(busiest)))
    }

    /// Of the time, what a thread ran or others kept it from running.
    pub(super) fn runs(&self, thread: &ThreadCost) -> f64 {
        let kept_off = thread.wait_ns as f64 * self.crowd();
        (thread.run_ns as f64 + kept_off) / 1e9 / self.seen.duration_s.max(1e-9)
    }

    /// What a rule says that asks for goroutines too. Where they could not be read, its silence is no "no": their waits need no
    /// thread. What other evidence found is found all the same.
    pub(super) fn as_goroutines_show(&self, outcome: Outcome) -> Outcome {
        let is_blind = self.seen.goroutines.as_ref().is_some_and(|looked| looked.looks == 0);
        match outcome {
            Outcome::Against(_) | Outcome::Near(_) if is_blind => Outcome::Unseen(GOROUTINES),
            Outcome::Noted(draft) if is_blind => Outcome::Partly(draft, GOROUTINES),
            outcome => outcome,
        }
    }

    /// Why there is no profile to judge: it was not to be had, or next to nothing ran.
    pub(super) fn no_profile(&self) -> Outcome {
        match &self.seen.on_cpu {
            Some(profile) => {
                let (samples, seconds) = (samples(profile), profile.duration_s);
                Outcome::Against(format!("it hardly ran: {samples} samples in {seconds:.1} s"))
            }
            None => Outcome::Unseen("where CPU time went"),
        }
    }

    /// The same for the kernel's side, which an ordinary user may not sample.
    pub(super) fn no_kernel_profile(&self) -> Outcome {
        if self.on.is_some() {
            Outcome::Unseen("where CPU time went in the kernel")
        } else {
            self.no_profile()
        }
    }

    /// Why there are no loops to judge: code was not to be had, or none of the hot code is a tight loop. `line` is the share of samples
    /// from which on loops would tell.
    pub(super) fn no_loops(&self, line: f64, needs: &'static str) -> Outcome {
        let refused = self.seen.not_looked_at.iter().any(|one| one.what == HOT_CODE);
        if self.seen.on_cpu.is_none() || refused && self.seen.hot.is_empty() || self.unread() >= line {
            return Outcome::Unseen(needs);
        }
        if self.seen.hot.is_empty() {
            return Outcome::Against("it was hardly seen at work in user code".to_owned());
        }
        Outcome::Against(format!(
            "none of its {} hottest instructions lies in a tight loop",
            self.seen.hot.len()
        ))
    }

    /// Loops that fall short of their line; or not seen, where code that could not be read might make up for it.
    pub(super) fn short_of(&self, (share, line): (f64, f64), needs: &'static str, by: String) -> Outcome {
        if share < line && share + self.unread() >= line {
            return Outcome::Unseen(needs);
        }
        Outcome::near(&[(share, line)], by)
    }

    /// Share of all samples at hot instructions of which nobody could read the code: their process has ended, or it took the code away.
    fn unread(&self) -> f64 {
        let unread = self.seen.hot.iter().filter(|spot| spot.code.is_empty()).map(|spot| spot.share);
        (unread.sum::<f64>() + 0.0).min(1.0) * self.on.as_ref().map_or(1.0, |on| on.seen_share)
    }

    /// What it could use, in CPUs.
    pub(super) fn spare_cpus(&self) -> Option<f64> {
        let cpus = self.paid_cpus().unwrap_or(f64::from(self.seen.host.cpus));
        self.spare().map(|spare| spare * cpus)
    }

    /// How much more the free CPUs could do, as a share of what would be done by the target and those who ask it were nobody else
    /// there: its work brings theirs, and what others take of its time they take of theirs.
    pub(super) fn gain_at_most(&self) -> Option<f64> {
        let host = &self.seen.host;
        let (own_ns, peers_ns) = (self.seen.process.cpu_ns as f64, host.peers_ns as f64);
        let kept_off = self.kept_off_ns() / own_ns.max(1.0);
        let used = (own_ns + peers_ns) * (1.0 + kept_off);
        let free = (self.spare()? * self.usable_ns() - peers_ns * kept_off).max(0.0);
        (used > 0.0).then(|| free / used)
    }

    /// Share of all samples that lie in loops of which `holds` is true; each loop's instructions are summed.
    pub(super) fn loop_share(&self, holds: impl Fn(&Hot<'_>) -> bool) -> f64 {
        let shares = self.loops.iter().filter(|hot| holds(hot)).map(|hot| hot.spot.share);
        // A sum of nothing is minus zero, which would be printed so. A library's sample stands for its caller too.
        (shares.sum::<f64>() + 0.0).min(1.0) * self.on.as_ref().map_or(1.0, |on| on.seen_share)
    }

    /// The hottest instruction in loops of which `holds` is true.
    pub(super) fn hottest(&self, holds: impl Fn(&Hot<'_>) -> bool) -> Option<&Hot<'o>> {
        let hot = self.loops.iter().filter(|hot| holds(hot));
        hot.max_by(|a, b| a.spot.share.total_cmp(&b.spot.share))
    }

    /// Per request where requests were counted, else per second: the figure and its unit.
    pub(super) fn per(&self, count: u64) -> (f64, &'static str) {
        match self.seen.requests() {
            Some(requests) => (count as f64 / requests, "per request"),
            None => (count as f64 / self.seen.duration_s.max(1e-9), "per second"),
        }
    }
}

impl Hot<'_> {
    /// Function and place, for people.
    pub(super) fn place(&self) -> String {
        match &self.spot.place {
            Some(place) => format!("{} ({place})", self.spot.function),
            None => self.spot.function.clone(),
        }
    }
}

impl<'o> OnCpu<'o> {
    fn new(profile: &'o Profile, seen: &Observation) -> OnCpu<'o> {
        let is_user_only = is_user_only(profile);
        let kernel = seen.process.kernel_share.filter(|share| is_user_only && *share < 1.0).unwrap_or(0.0);
        let seen_share = 1.0 - kernel;
        let mut on = OnCpu {
            profile,
            total_ns: profile.total_ns() as f64 / seen_share,
            seen_share,
            is_user_only,
            costs: BTreeMap::new(),
            places: BTreeMap::new(),
        };
        for stack in &profile.stacks {
            let frames = leaf_first(profile, stack);
            let cost = match cost(&frames) {
                Cost::Own | Cost::Copy if is_by(profile, stack, names::COLLECTOR_THREADS) => Cost::Allocation,
                cost => cost,
            };
            *on.costs.entry(cost).or_default() += stack.weight_ns;
            if let Some(place) = own_place(profile, &frames) {
                *on.places.entry(cost).or_default().entry(place).or_default() += stack.weight_ns;
            }
        }
        on
    }

    /// Share of the time spent on these kinds of work.
    pub(super) fn share(&self, costs: &[Cost]) -> f64 {
        let sum: u64 = costs.iter().filter_map(|cost| self.costs.get(cost)).sum();
        sum as f64 / self.total_ns
    }

    /// The same without what going to sleep and waking others take.
    pub(super) fn share_awake(&self, costs: &[Cost]) -> f64 {
        let switches =
            |frame: &&Frame| frame.origin == Origin::Kernel && names::is(&frame.name, names::SWITCH);
        self.share_where(|frames| costs.contains(&cost(frames)) && !frames.iter().any(switches))
    }

    /// Share of the time spent on these kinds of work in which a thread goes to sleep until something comes, or looks through a list of
    /// descriptors for it.
    pub(super) fn share_for_events(&self, costs: &[Cost]) -> f64 {
        let has = |frames: &[&Frame], table: names::Table| {
            frames.iter().any(|frame| frame.origin == Origin::Kernel && names::is(&frame.name, table))
        };
        self.share_where(|frames| {
            has(frames, names::WAITS_FOR_EVENTS)
                && (has(frames, names::LOOKS_THROUGH) || has(frames, names::SWITCH))
                && costs.contains(&cost(frames))
        })
    }

    /// Share of the time with a frame of this table in the stack.
    pub(super) fn share_with(&self, table: names::Table) -> f64 {
        self.share_with_or(table, |_| false)
    }

    /// Share of the time in which memory is collected, as far as threads or functions tell.
    pub(super) fn share_of_collectors(&self) -> f64 {
        self.share_with_or(names::COLLECTORS, |stack| is_by(self.profile, stack, names::COLLECTOR_THREADS))
    }

    /// The part of it in which the program goes on.
    pub(super) fn share_of_collectors_beside(&self) -> f64 {
        let table = names::COLLECTOR_THREADS_BESIDE;
        self.share_with_or(names::COLLECTORS_BESIDE, |stack| is_by(self.profile, stack, table))
    }

    /// Share of the time with a frame of this table in the stack, or in a stack that counts besides.
    fn share_with_or(&self, table: names::Table, counts: impl Fn(&Stack) -> bool) -> f64 {
        // A function is in thousands of stacks: each is held against the table once.
        let is_in: Vec<bool> =
            self.profile.frames.iter().map(|frame| names::is(&frame.name, table)).collect();
        let has = |stack: &&Stack| counts(stack) || stack.frames.iter().any(|at| is_in[*at as usize]);
        let stacks = self.profile.stacks.iter().filter(has);
        stacks.map(|stack| stack.weight_ns).sum::<u64>() as f64 / self.total_ns
    }

    /// Share of the time with a frame of one table that was called, by way of others, by one of another.
    pub(super) fn share_below(&self, callers: names::Table, table: names::Table) -> f64 {
        self.share_where(|frames| {
            let at = frames.iter().position(|frame| names::is(&frame.name, table));
            at.is_some_and(|at| frames[at..].iter().any(|frame| names::is(&frame.name, callers)))
        })
    }

    /// Share of the time of those threads that were sampled in this system call.
    pub(super) fn share_of_callers(&self, call: &str) -> f64 {
        self.callers(call).1 as f64 / self.total_ns
    }

    /// Of the time of those threads, what they were in it.
    pub(super) fn share_in_of_callers(&self, call: &str) -> f64 {
        let (in_it_ns, all_ns) = self.callers(call);
        in_it_ns as f64 / all_ns.max(1) as f64
    }

    /// Time in this system call, and all time of the threads that were sampled in it.
    fn callers(&self, call: &str) -> (u64, u64) {
        // The library's function enters the kernel and leaves it.
        let is_it = |name: &str| {
            let of_kernel = name.strip_prefix("__x64_sys_").or(name.strip_prefix("__arm64_sys_"));
            of_kernel.unwrap_or(name) == call
        };
        let calls = |stack: &&Stack| leaf_first(self.profile, stack).iter().any(|frame| is_it(&frame.name));
        let calling = || self.profile.stacks.iter().filter(calls);
        let callers: BTreeSet<u32> = calling().map(|stack| stack.thread).collect();
        let theirs = self.profile.stacks.iter().filter(|stack| callers.contains(&stack.thread));
        (calling().map(|stack| stack.weight_ns).sum(), theirs.map(|stack| stack.weight_ns).sum())
    }

    /// The program's own place from which most of what has a frame of this table comes.
    pub(super) fn place_with(&self, table: names::Table) -> Option<String> {
        let mut sums = BTreeMap::<String, u64>::new();
        for stack in &self.profile.stacks {
            let frames = leaf_first(self.profile, stack);
            if frames.iter().any(|frame| names::is(&frame.name, table)) {
                let place = own_place(self.profile, &frames).unwrap_or_default();
                *sums.entry(place).or_default() += stack.weight_ns;
            }
        }
        let most = sums.into_iter().max_by_key(|(_, ns)| *ns).map(|(place, _)| place);
        most.filter(|place| !place.is_empty())
    }

    /// Share of the time in processes of which each lived for less than about a tick of the sampling clock, a millisecond, and the
    /// programs that most of it was in. What such a one does is begin and end.
    pub(super) fn short_processes(&self) -> (f64, Vec<&'o str>) {
        let mut processes: Vec<(&str, u64)> = Vec::new();
        for stack in self.profile.stacks.iter().filter(|stack| stack.samples == 0) {
            let is_unseen = leaf_first(self.profile, stack).iter().all(|frame| frame.origin == Origin::Mark);
            let thread = &self.profile.threads[stack.thread as usize];
            // Of one without a name it is not known that it is no thread: its beginning was missed.
            if is_unseen && thread.pid == thread.tid && !thread.name.is_empty() {
                processes.push((&thread.name, stack.weight_ns));
            }
        }
        processes.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let ns: u64 = processes.iter().map(|(_, ns)| ns).sum();
        (ns as f64 / self.total_ns, processes.iter().take(SHORT_NAMES_MAX).map(|(name, _)| *name).collect())
    }

    /// Of the time spent on this kind of work, the share in processes that began after threads were counted, and how many
    /// those are.
    pub(super) fn in_new_processes(&self, wanted: Cost, seen: &Observation) -> (f64, usize) {
        let is_old = |pid: u32| seen.threads.iter().any(|thread| thread.tid == pid);
        let (mut all_ns, mut new_ns, mut processes) = (0, 0, BTreeSet::new());
        for stack in &self.profile.stacks {
            let pid = self.profile.threads.get(stack.thread as usize).map_or(0, |thread| thread.pid);
            let is_it = cost(&leaf_first(self.profile, stack)) == wanted;
            all_ns += if is_it { stack.weight_ns } else { 0 };
            if is_it && !is_old(pid) {
                new_ns += stack.weight_ns;
                processes.insert(pid);
            }
        }
        (new_ns as f64 / all_ns.max(1) as f64, processes.len())
    }

    /// Share of the time in stacks of which `holds` is true; frames come leaf first.
    pub(super) fn share_where(&self, holds: impl Fn(&[&Frame]) -> bool) -> f64 {
        let stacks = self.profile.stacks.iter().filter(|stack| holds(&leaf_first(self.profile, stack)));
        stacks.map(|stack| stack.weight_ns).sum::<u64>() as f64 / self.total_ns
    }

    /// Whether most of the time lies in code without names, stripped or compiled at run time: rules that go by the names of
    /// functions cannot look there.
    pub(super) fn lacks_names(&self) -> bool {
        let unnamed = |frames: &[&Frame]| {
            frames.first().is_some_and(|leaf| leaf.origin == Origin::User && leaf.name.starts_with("0x"))
        };
        self.share_where(unnamed) >= UNNAMED_MIN
    }

    /// Share of the time in the kernel.
    pub(super) fn kernel_share(&self) -> f64 {
        self.share_where(|frames| frames.first().is_some_and(|leaf| leaf.origin == Origin::Kernel))
    }

    /// The program's own places in the code that cause most of this work, the largest first, with their shares.
    pub(super) fn places(&self, costs: &[Cost]) -> Vec<(String, f64)> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for (place, ns) in costs.iter().filter_map(|cost| self.places.get(cost)).flatten() {
            *sums.entry(place).or_default() += ns;
        }
        let mut places: Vec<(String, f64)> =
            sums.into_iter().map(|(place, ns)| (place.to_owned(), ns as f64 / self.total_ns)).collect();
        places.sort_by(|a, b| b.1.total_cmp(&a.1));
        places
    }

    /// The system call in which most of this work is done.
    pub(super) fn top_call(&self, wanted: Cost) -> Option<String> {
        let call = |frame: &&'o Frame| {
            ["__x64_sys_", "__arm64_sys_"].iter().find_map(|prefix| frame.name.strip_prefix(prefix))
        };
        let mut sums = BTreeMap::<&str, u64>::new();
        for stack in &self.profile.stacks {
            let frames = leaf_first(self.profile, stack);
            if let Some(call) = frames.iter().find_map(call).filter(|_| cost(&frames) == wanted) {
                *sums.entry(call).or_default() += stack.weight_ns;
            }
        }
        sums.into_iter().max_by_key(|(_, ns)| *ns).map(|(call, _)| call.to_owned())
    }

    /// The share of all CPU time that could be sampled.
    pub(super) fn seen_share(&self) -> f64 {
        self.seen_share
    }

    /// The user function that is the leaf most often, with its share.
    pub(super) fn top_function(&self) -> Option<(String, f64)> {
        let top = self.top_among(&|_| true, &physical)?;
        Some((top.place, top.ns as f64 / self.total_ns))
    }

    /// The same of one thread, with its share of what that thread was sampled at. What compares and searches bytes for it counts as its
    /// own: the C library does it with vectors, and a function that calls it for each thing that it looks at is one search.
    pub(super) fn top_function_of(&self, tid: u32) -> Option<TopOfThread> {
        let threads = &self.profile.threads;
        let is_its =
            |stack: &Stack| threads.get(stack.thread as usize).is_some_and(|thread| thread.tid == tid);
        let all: u64 =
            self.profile.stacks.iter().filter(|stack| is_its(stack)).map(|stack| stack.weight_ns).sum();
        let top = self.top_among(&is_its, &who_compares)?;
        let part = |ns: u64| ns as f64 / all.max(1) as f64;
        Some(TopOfThread { share: part(top.ns), compares: part(top.below_ns), place: top.place })
    }

    fn top_among(&self, wanted: &dyn Fn(&Stack) -> bool, whose: &Whose<'o>) -> Option<Top> {
        // By name: a function of many lines is one function. The line that is named is that of its heaviest stack.
        let mut sums = BTreeMap::<String, (Top, u64, &Frame)>::new();
        for stack in self.profile.stacks.iter().filter(|stack| wanted(stack)) {
            let frames = leaf_first(self.profile, stack);
            if let Some((frame, depth)) = whose(&frames) {
                let name = name::of_frame(self.profile, frame);
                let sum = sums.entry(name).or_insert_with(|| (Top::default(), 0, frame));
                sum.0.ns += stack.weight_ns;
                sum.0.below_ns += if depth == Depth::Below { stack.weight_ns } else { 0 };
                if stack.weight_ns > sum.1 {
                    (sum.1, sum.2) = (stack.weight_ns, frame);
                }
            }
        }
        let (name, (top, _, frame)) = sums.into_iter().max_by_key(|(_, sum)| sum.0.ns)?;
        let place = if name == frame.name { place(frame) } else { name };
        Some(Top { place, ..top })
    }

    /// Names of the frames of this table that were seen, the most frequent first.
    pub(super) fn seen_of(&self, table: names::Table) -> Vec<String> {
        let mut sums = BTreeMap::<&str, u64>::new();
        for stack in &self.profile.stacks {
            let names: BTreeSet<&str> =
                leaf_first(self.profile, stack).iter().map(|frame| frame.name.as_str()).collect();
            for name in names.into_iter().filter(|name| names::is(name, table)) {
                *sums.entry(name).or_default() += stack.weight_ns;
            }
        }
        let mut seen: Vec<(&str, u64)> = sums.into_iter().collect();
        seen.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        seen.into_iter().map(|(name, _)| name.to_owned()).collect()
    }
}

/// The function that takes most of a thread.
#[derive(Debug, PartialEq)]
pub(super) struct TopOfThread {
    pub(super) place: String,
    /// Of what the thread was sampled at.
    pub(super) share: f64,
    /// The part of it that the C library's comparisons and searches take for it.
    pub(super) compares: f64,
}

#[derive(Default)]
struct Top {
    place: String,
    ns: u64,
    /// In what it calls.
    below_ns: u64,
}

/// Whether a stack's time is spent in a function itself, or in what it calls.
#[derive(PartialEq)]
enum Depth {
    Itself,
    Below,
}

/// Whose a stack's time is; frames come leaf first.
type Whose<'o> = dyn Fn(&[&'o Frame]) -> Option<(&'o Frame, Depth)>;

/// The function whose code ran, where that is user code. What was folded into its caller is its caller's.
fn physical<'o>(frames: &[&'o Frame]) -> Option<(&'o Frame, Depth)> {
    let in_user = frames.first().is_some_and(|leaf| leaf.origin == Origin::User);
    let mut real = frames.iter().filter(|frame| frame.origin == Origin::User && !frame.inlined);
    real.next().filter(|_| in_user).map(|frame| (*frame, Depth::Itself))
}

/// The same; or who called it, where it compares or searches bytes.
fn who_compares<'o>(frames: &[&'o Frame]) -> Option<(&'o Frame, Depth)> {
    let (leaf, _) = physical(frames)?;
    let mut real = frames.iter().filter(|frame| !frame.inlined);
    let caller = real.nth(1).filter(|caller| caller.origin == Origin::User);
    match caller.filter(|_| names::is(&leaf.name, names::COMPARE)) {
        Some(caller) => Some((caller, Depth::Below)),
        None => Some((leaf, Depth::Itself)),
    }
}

/// What the watcher says when it could not read code.
const HOT_CODE: &str = "the code at hot instructions";
/// Free share of the CPUs from which on, with no thread busier than the next figure, CPU time is not scarce.
const FREE_MIN: f64 = 0.75;
const BUSIEST_MAX: f64 = 0.50;
/// Samples below which a share is an accident: of a hundred, five may be two or nine.
const SAMPLES_MIN: u64 = 100;

fn samples(profile: &Profile) -> u64 {
    profile.stacks.iter().map(|stack| stack.samples).sum()
}

/// An ordinary user may be refused the kernel's side: then its time makes no samples (`cpu-clock:u`).
fn is_user_only(profile: &Profile) -> bool {
    profile.sampling.event.ends_with(":u")
}

impl Cost {
    /// Whether it is the kernel that does it.
    fn is_the_kernels(self) -> bool {
        !matches!(
            self,
            Cost::Own
                | Cost::Allocation
                | Cost::AllocatorLock
                | Cost::Format
                | Cost::Copy
                | Cost::SetUp
                | Cost::StackGrowth
                | Cost::UserLock
        )
    }
}

/// Whether the thread is one that collects memory.
fn is_by(profile: &Profile, stack: &Stack, threads: names::Table) -> bool {
    let thread = profile.threads.get(stack.thread as usize);
    thread.is_some_and(|thread| names::is(&thread.name, threads))
}

/// What a stack's time was spent on. The kernel's side decides where there is one; then the deepest cause.
fn cost(frames: &[&Frame]) -> Cost {
    let any = |origin: Origin, table: names::Table| {
        frames.iter().any(|frame| frame.origin == origin && names::is(&frame.name, table))
    };
    let kernel = |table: names::Table| any(Origin::Kernel, table);
    let user = |table: names::Table| any(Origin::User, table);
    if frames.iter().any(|frame| frame.origin == Origin::Kernel) {
        return kernel_cost(kernel, user, takes_lock(frames));
    }
    let near = |table: names::Table| frames.iter().take(2).any(|frame| names::is(&frame.name, table));
    if takes_lock(frames) || user(names::RELEASE) {
        return if user(names::ALLOCATOR) { Cost::AllocatorLock } else { Cost::UserLock };
    }
    match () {
        () if user(names::STACK_GROWTH) => Cost::StackGrowth,
        () if frames.iter().any(|frame| frame.origin == Origin::User && makes::is(&frame.name)) => {
            Cost::SetUp
        }
        () if collects(frames) => Cost::Allocation,
        () if formats(frames) => Cost::Format,
        () if user(names::ALLOCATOR) => Cost::Allocation,
        () if near(names::COPY) => Cost::Copy,
        () => Cost::Own,
    }
}

/// Whether memory is collected, for whatever needed some: text that is made calls for it, and does not do it.
fn collects(frames: &[&Frame]) -> bool {
    let first = frames.iter().filter(|frame| frame.origin == Origin::User).find_map(|frame| {
        let collects = names::is(&frame.name, names::COLLECTORS) || names::is(&frame.name, names::HEAPS);
        (collects || names::is(&frame.name, names::FORMAT)).then_some(collects)
    });
    first.unwrap_or(false)
}

/// Whether it makes text; and does not do what a writer does with the text that it was handed: compress it, say.
fn formats(frames: &[&Frame]) -> bool {
    let writes = |name: &str| names::is(name, names::WRITER) && !names::is(name, names::BUFFER);
    let first = frames.iter().filter(|frame| frame.origin == Origin::User).find_map(|frame| {
        let formats = names::is(&frame.name, names::FORMAT) || names::is(&frame.name, names::PICKLES);
        (formats || writes(&frame.name)).then_some(formats)
    });
    first.unwrap_or(false)
}

/// Frames of a run-time between a function that runs code under a lock and the lock itself.
const LOCK_FRAMES_MAX: usize = 3;

/// Whether a lock is taken, and not something done that is done under one.
fn takes_lock(frames: &[&Frame]) -> bool {
    let mut user = frames.iter().filter(|frame| frame.origin == Origin::User).enumerate();
    user.any(|(inside, frame)| {
        names::is(&frame.name, names::ACQUIRE)
            && (inside < LOCK_FRAMES_MAX || !names::is(&frame.name, names::RUNS_UNDER_LOCK))
    })
}

fn kernel_cost(
    kernel: impl Fn(names::Table) -> bool,
    user: impl Fn(names::Table) -> bool,
    takes_lock: bool,
) -> Cost {
    let is_locks = || takes_lock || user(names::RELEASE) && !user(names::WAKES);
    match () {
        () if kernel(names::FILTER) || kernel(names::PROBES) => Cost::Filter,
        () if kernel(names::TAP) => Cost::Tap,
        () if kernel(names::FIREWALL) => Cost::Firewall,
        () if kernel(names::PAGE_FAULT) || kernel(names::UNMAP) || kernel(names::FORK) => Cost::PageFault,
        () if kernel(names::RECLAIM) => Cost::PageFault,
        () if kernel(names::FUTEX) && user(names::ALLOCATOR) => Cost::AllocatorLock,
        () if kernel(names::FUTEX) && user(names::AWAIT) => Cost::Waking,
        () if kernel(names::FUTEX) && is_locks() => Cost::LockCall,
        () if kernel(names::FUTEX) => Cost::Futex,
        () if kernel(names::KERNEL_SPIN) => Cost::KernelSpin,
        () if kernel(names::YIELD) => Cost::Yield,
        () if kernel(names::CONNECT) => Cost::Connect,
        () if kernel(names::NETWORK) => Cost::Network,
        () if kernel(names::SYNC) => Cost::Sync,
        () if kernel(names::FILES) || kernel(names::DESCRIPTORS) => Cost::Files,
        () if user(names::ALLOCATOR) => Cost::Allocation,
        // The way in and out of a call.
        () if kernel(names::SYSTEM_CALL) && is_locks() => Cost::LockCall,
        () if kernel(names::SYSTEM_CALL) => Cost::SystemCall,
        () => Cost::Interrupt,
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
