//! The rule for system calls that the work does not need: that carry nothing, or carry in small pieces what one could.
//!
//! A server that reads a request and writes its answer makes as few calls as there are; what they cost then is the
//! network's price. So calls are set against units of work: requests where a load counts them, else the calls in the other
//! direction; and CPU time against what the kernel did for packets, pages and disks.

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::{Observation, Packets, Transfers};
use dyno_record::profile::{Frame, Origin, Profile};
use std::collections::{BTreeMap, BTreeSet};

use super::answers;
use super::draft::{Draft, Outcome, percent};
use super::facts::{Cost, Facts, OnCpu};
use super::idle::is_poll;
use super::names;
use super::temporary;
use super::threads_begun;

/// Share of the CPU in the kernel from which fewer calls would be felt.
const KERNEL_SHARE_MIN: f64 = 0.35;
/// Calls per second of CPU from which calls are what it does: at 1 µs each that is a tenth.
const CALLS_PER_CPU_S_MIN: f64 = 100_000.0;
/// Calls that write for each request that is read: head, body, and a line of a log.
const OUT_PER_REQUEST_MAX: f64 = 3.5;
/// Calls that read for each request: two, and as many that find nothing more.
const IN_PER_REQUEST_MAX: f64 = 4.5;
/// Calls of other kinds for each request: a file opened, looked at and closed, a timer set, an event waited for.
const OTHERS_PER_REQUEST_MAX: f64 = 12.0;
/// The same together, where requests are only guessed at.
const CALLS_PER_UNIT_MAX: f64 = 16.0;
/// Calls in one direction for each in the other from which what they carry comes in pieces.
const PIECES_MIN: f64 = 6.0;
/// Bytes per call below which the call costs more than the bytes: 1 KiB is copied in some 50 ns.
const PIECE_BYTES_MAX: f64 = 1_024.0;
/// A call that moves a page or more pays for itself.
const PAYS_BYTES: f64 = 4_096.0;
/// Calls that look at files for each one that lists a folder, up to which the program goes through folders: each of its files
/// has to be looked at.
const LOOKS_PER_LIST_MAX: f64 = 1_000.0;
/// Reads of a file that is opened on the way: its bytes, and that there are no more.
const READS_PER_OPEN_MAX: f64 = 4.0;
/// Share of the working time waited at locks from which their calls are the lock's doing.
const LOCKS_MIN: f64 = 0.2;

/// The kernel's part of sleeps by the clock.
const SLEEPS: &[&str] = &["*_nanosleep", "hrtimer_nanosleep*", "common_nsleep*"];
/// Sleeps from which on they are no pace: each costs some 10 µs.
const SLEEPS_PER_S_MIN: f64 = 20_000.0;
/// CPUs in use from which on they are missed.
const LOOKING_CPUS_MIN: f64 = 0.5;

/// Where the kernel looks at all descriptors of a call, one after another.
const SCANS: &[&str] = &["do_sys_poll*", "do_select*", "core_sys_select*"];
/// Of the CPU time: without it, two thirds more would be done.
const SCANS_MIN: f64 = 0.4;
/// CPU time of a call in which it is the number of descriptors that costs: a call by itself takes a microsecond or two.
const SCAN_US_MIN: f64 = 20.0;

/// Most of the CPU looks through long lists of descriptors, of which few have anything.
fn scans(facts: &Facts<'_>) -> Option<Draft> {
    let (on, off) = (facts.on_both_sides()?, facts.off.as_ref()?);
    let calls = off.profile.system_calls.iter().filter(|(name, _)| is_poll(name));
    let per_s = calls.map(|(_, call)| call.count).sum::<u64>() as f64 / off.profile.duration_s.max(1e-9);
    if per_s < 1.0 {
        return None;
    }
    let kernel = |frames: &[&Frame], table: names::Table| {
        frames.iter().any(|frame| frame.origin == Origin::Kernel && names::is(&frame.name, table))
    };
    let share = on.share_where(|frames| kernel(frames, SCANS) && !kernel(frames, names::SWITCH));
    let each_us = 1e6 * share * facts.seen.cpus_used() / per_s;
    (share >= SCANS_MIN && each_us >= SCAN_US_MIN).then(|| {
        let summary = format!(
            "{} of the CPU looks through lists of descriptors in poll or select: {each_us:.0} µs each time",
            percent(share)
        );
        Draft::new(Class::SyscallHeavy, share, summary)
            .sure(Confidence::High)
            .fact(format!("{per_s:.0} such calls a second"), per_s, "calls/s")
            .next("epoll: the kernel then tells of those that have something, however many there are; or fewer connections for each thread")
            .at(on.place_with(SCANS))
    })
}

/// The kernel's way through a folder.
const LISTS: &[&str] = &["iterate_dir"];
/// Of the CPU time.
const LISTS_MIN: f64 = 0.5;

/// Most of the CPU reads folders. Whoever looks for a file by its name need not; a backup must.
fn lists(facts: &Facts<'_>) -> Option<Draft> {
    let on = facts.on_both_sides()?;
    let is_kernel = |frame: &&Frame| frame.origin == Origin::Kernel && names::is(&frame.name, LISTS);
    let share = on.share_where(|frames| frames.iter().any(&is_kernel));
    (share >= LISTS_MIN).then(|| {
        let summary = format!("{} of the CPU reads the entries of folders", percent(share));
        Draft::new(Class::SyscallHeavy, share, summary)
            .sure(Confidence::Low)
            .sign("whether all the entries are wanted, who asks for them knows")
            .next("a file whose name is known: open or stat it by that; keep the list, and hear of changes (inotify); a folder for each thousand files")
            .at(on.place_with(LISTS))
    })
}

/// Writes a line to the system's log, by way of a socket and another process.
const SYSTEM_LOG: &[&str] =
    &["syslog", "__syslog*", "vsyslog", "__vsyslog*", "sd_journal_send*", "sd_journal_print*"];

/// Lines for the system's log take the CPU: each is a message to the process that keeps it.
fn log_lines(facts: &Facts<'_>) -> Option<Draft> {
    let on = facts.on_both_sides()?;
    let share = on.share_with(SYSTEM_LOG);
    (share >= KERNEL_SHARE_MIN).then(|| {
        let summary = format!("{} of the CPU writes lines to the system's log", percent(share));
        Draft::new(Class::SyscallHeavy, share, summary)
            .sure(Confidence::Medium)
            .sign(format!("in {}", on.seen_of(SYSTEM_LOG).into_iter().take(3).collect::<Vec<_>>().join(", ")))
            .next("fewer lines (a higher level: setlogmask), several in one message, or a buffer and a file of its own")
            .at(on.place_with(SYSTEM_LOG))
    })
}

/// Many system calls for little work.
pub(super) fn syscall_heavy(facts: &Facts<'_>) -> Outcome {
    let Some(kernel) = kernel_share(facts) else {
        return Outcome::Unseen("the share of CPU time in the kernel");
    };
    if let Some(draft) = scans(facts)
        .or_else(|| lists(facts))
        .or_else(|| log_lines(facts))
        .or_else(|| threads_begun::again_and_again(facts))
    {
        return Outcome::Found(draft);
    }
    let calls = Calls::of(facts);
    if let Some(draft) = answers::many_questions(facts, kernel) {
        return if kernel < KERNEL_SHARE_MIN { Outcome::Noted(draft) } else { Outcome::Found(draft) };
    }
    if let Some(draft) = temporary::files(facts).filter(|_| kernel >= KERNEL_SHARE_MIN) {
        return Outcome::Found(draft);
    }
    let reading = if kernel < KERNEL_SHARE_MIN { None } else { calls.waste(facts) };
    let Some(waste) = reading else { return calls.against(kernel) };
    let place = facts.on.as_ref().and_then(|on| {
        on.places(&[Cost::SystemCall, Cost::Files, Cost::Futex, Cost::Network]).first().cloned()
    });
    let draft = Draft::new(Class::SyscallHeavy, kernel, waste.summary).sure(Confidence::High).fact(
        format!("{} of the CPU is spent in the kernel", percent(kernel)),
        kernel,
        "share",
    );
    let draft = match calls.per_cpu_s {
        Some(rate) => draft.fact(format!("{rate:.0} calls per second of its CPU"), rate, "calls/s"),
        None => draft,
    };
    let draft = calls.top.iter().fold(draft, |draft, (name, rate)| {
        draft.fact(format!("{name}: {rate:.2} {}", calls.unit), *rate, calls.unit)
    });
    let draft = draft.next(waste.next);
    let draft = if waste.is_answer { draft.rung("one-send") } else { draft };
    Outcome::Found(draft.at(place.map(|place| place.0)).specimen("byte-per-call"))
}

/// The kernel's share of the CPU time: from the profile, else from the tick.
fn kernel_share(facts: &Facts<'_>) -> Option<f64> {
    facts.on_both_sides().map(OnCpu::kernel_share).or(facts.seen.process.kernel_share)
}

/// Calls that could be left out.
struct Waste {
    summary: String,
    next: &'static str,
    /// Whether an answer is sent in pieces.
    is_answer: bool,
}

const GATHER: &str =
    "move more with each call: a buffer, one send for head and body, readv and writev, one log line for many";
/// Calls that no program makes where the kernel's page of code (vDSO) can read the clock.
const CLOCKS: [&str; 3] = ["clock_gettime", "gettimeofday", "time"];
const CLOCK: &str = "the clock is read by a system call, which needs none where the CPU's own counter is the kernel's clock: see \
     /sys/devices/system/clocksource/clocksource0 (tsc, or the hypervisor's), or read it less often";
const LEAVE_OUT: &str = "leave them out: keep what they tell, ask once, wake only who waits";

/// System calls as far as they were counted, per second.
struct Calls {
    requests: Option<f64>,
    all: Option<f64>,
    in_: f64,
    out: f64,
    /// Questions to other servers for each request.
    questions: f64,
    /// Requests that may have been answered, as far as calls and packets tell.
    units: f64,
    per_cpu_s: Option<f64>,
    /// Of all, the share in which a thread slept or that woke one.
    waiting: f64,
    /// The same of those that look at files while it goes through folders.
    walking: f64,
    /// The most frequent, per request or second.
    top: Vec<(String, f64)>,
    /// The most frequent of those that came back at once.
    top_at_once: Option<(String, f64)>,
    unit: &'static str,
}

impl Calls {
    fn of(facts: &Facts<'_>) -> Calls {
        let seen = facts.seen;
        let counted = seen.off_cpu.as_ref().filter(|profile| !profile.system_calls.is_empty());
        let seconds = counted.map_or(1.0, |profile| profile.duration_s.max(1e-9));
        let requests = request_rate(seen, seconds);
        let calls = counted.into_iter().flat_map(|profile| &profile.system_calls);
        let rates: Vec<(&str, f64)> =
            calls.map(|(name, call)| (name.as_str(), call.count as f64 / seconds)).collect();
        let sum = |table: names::Table| {
            // A sum of nothing is minus zero, which would be printed so.
            rates.iter().filter(|(name, _)| names::is(name, table)).map(|call| call.1).sum::<f64>() + 0.0
        };
        let all = counted.map(|_| rates.iter().map(|call| call.1).sum::<f64>());
        let by_io = vfs_calls(seen);
        let fastest = all
            .into_iter()
            .chain(by_io)
            .fold(None, |most: Option<f64>, rate| Some(most.map_or(rate, |most| most.max(rate))));
        let cpus = seen.cpus_used();
        let mut top: Vec<(String, f64)> =
            rates.iter().map(|(name, rate)| ((*name).to_owned(), rate / requests.unwrap_or(1.0))).collect();
        top.sort_by(|a, b| b.1.total_cmp(&a.1));
        top.truncate(5);
        let waiting = counted.map(waiting_calls).unwrap_or_default();
        let waits = |name: &str| waiting.get(name).map_or(0.0, |count| *count as f64 / seconds);
        let at_once = rates.iter().map(|(name, rate)| (*name, (rate - waits(name)).max(0.0)));
        let at_once: Vec<(&str, f64)> = at_once.collect();
        let top_at_once = at_once.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let at_once_per_s = at_once.iter().map(|call| call.1).sum::<f64>();
        let (in_, out) = (sum(names::CALLS_IN), sum(names::CALLS_OUT));
        Calls {
            requests,
            all,
            in_,
            out,
            // One call is the answer's: a question of many segments is one call.
            questions: questions(seen).min(requests.map_or(0.0, |requests| (out / requests - 1.0).max(0.0))),
            units: in_.min(out).min(packets_per_s(seen)),
            per_cpu_s: fastest.filter(|_| cpus > 0.0).map(|rate| rate / cpus),
            waiting: all.filter(|all| *all > 0.0).map_or(0.0, |all| 1.0 - at_once_per_s / all),
            walking: all.filter(|all| *all > 0.0).map_or(0.0, |all| walking(&sum) / all),
            top,
            top_at_once: top_at_once.map(|(name, rate)| ((*name).to_owned(), *rate)),
            unit: if requests.is_some() { "per request" } else { "per second" },
        }
    }

    /// What could be left out, the surest reading first.
    fn waste(&self, facts: &Facts<'_>) -> Option<Waste> {
        let looks = || self.looks_again(facts);
        self.for_each_request()
            .or_else(|| self.in_pieces(facts))
            .or_else(looks)
            .or_else(|| self.for_nothing(facts))
    }

    /// Sleeps by the clock, so short that going to sleep and waking takes most of the CPU.
    fn looks_again(&self, facts: &Facts<'_>) -> Option<Waste> {
        let (on, off) = (facts.on_both_sides()?, facts.off.as_ref()?);
        let sleeps = off.sum(|time| time.sleeps) as f64 / (off.window_ns / 1e9).max(1e-9);
        if sleeps < SLEEPS_PER_S_MIN || facts.seen.cpus_used() < LOOKING_CPUS_MIN {
            return None;
        }
        let share = on.share_with(SLEEPS);
        (share >= KERNEL_SHARE_MIN).then(|| Waste {
            summary: format!(
                "{} of the CPU goes into sleeping for a moment and waking again, {sleeps:.0} times a second",
                percent(share)
            ),
            next: "wait for what they look for (a condition, a futex, poll), or look less often",
            is_answer: false,
        })
    }

    /// Calls for each request: that read, that write, others; without those by which other servers are asked.
    fn each(&self) -> Option<(f64, f64, f64)> {
        let (requests, all) = (self.requests?, self.all?);
        // A question is a call that writes, one that reads the answer, and one that waits for it.
        let less = |calls: f64| (calls / requests - self.questions).max(0.0);
        Some((less(self.in_), less(self.out), less(all - self.in_ - self.out)))
    }

    fn for_each_request(&self) -> Option<Waste> {
        let (requests, all, questions) = (self.requests?, self.all?, self.questions);
        let (in_, out, others) = self.each()?;
        let is_answer = out > OUT_PER_REQUEST_MAX;
        if !is_answer && in_ <= IN_PER_REQUEST_MAX && others <= OTHERS_PER_REQUEST_MAX {
            return None;
        }
        let beside = match questions {
            0.05.. => format!(", beside those for {questions:.1} questions to other servers"),
            _ => String::new(),
        };
        let summary = format!(
            "{:.1} system calls for each request: {in_:.1} that read, {out:.1} that write, {others:.1} others{beside}",
            all / requests
        );
        let next = if is_answer || in_ > IN_PER_REQUEST_MAX { GATHER } else { LEAVE_OUT };
        Some(Waste { summary, next, is_answer })
    }

    /// One direction has many calls for each in the other, and each moves little. One in and many out may be one out to each
    /// of many connections.
    fn in_pieces(&self, facts: &Facts<'_>) -> Option<Waste> {
        let seen = facts.seen;
        if self.per_cpu_s? < CALLS_PER_CPU_S_MIN || self.requests.is_some() {
            return None;
        }
        let connections = seen.packets.as_ref().map_or(0.0, |packets| packets.connections as f64);
        // A stream that goes one way has no answers: there it is packets that calls are held against.
        let packets = packets_per_s(seen);
        let of_one_way = |many: f64, few: f64| few == 0.0 && packets > 0.0 && many > PIECES_MIN * packets;
        let pieces = |many: f64, few: f64| {
            many > PIECES_MIN.max(connections) * few && few > 0.0 || of_one_way(many, few)
        };
        let of_sockets = |of: fn(&Packets) -> f64| seen.packets.as_ref().map_or(0.0, of);
        let (what, moved, over_tcp) = match () {
            () if pieces(self.out, self.in_) => {
                ("write", seen.process.writes, of_sockets(|packets| packets.bytes_sent_per_s))
            }
            () if pieces(self.in_, self.out) => {
                ("read", seen.process.reads, of_sockets(|packets| packets.bytes_received_per_s))
            }
            () => return None,
        };
        let (many, few) = (self.out.max(self.in_), self.out.min(self.in_));
        // The kernel counts the bytes of read and write alone: what sendto and its like move is seen at the connections.
        let counted = moved.is_some_and(|moved| moved.calls as f64 / seen.duration_s.max(1e-9) >= many / 2.0);
        let at_sockets = (over_tcp > 0.0).then(|| over_tcp / many.max(1.0));
        let bytes = bytes_per_call(moved).filter(|_| counted).or(at_sockets)?;
        let summary = if few > 0.0 {
            let times = many / few;
            format!(
                "{times:.0} calls that {what} {} bytes each for every call in the other direction",
                few_bytes(bytes)
            )
        } else {
            format!(
                "{:.0} calls that {what} {} bytes each for every packet",
                many / packets,
                few_bytes(bytes)
            )
        };
        (bytes < PIECE_BYTES_MAX).then_some(Waste { summary, next: GATHER, is_answer: what == "write" })
    }

    /// The kernel's time goes into calls themselves: not into packets, pages, disks or waiting.
    fn for_nothing(&self, facts: &Facts<'_>) -> Option<Waste> {
        let seen = facts.seen;
        let on = facts.on_both_sides();
        let gathered = [seen.process.reads, seen.process.writes]
            .into_iter()
            .filter(|moved| moved.is_some_and(|moved| moved.calls as f64 >= seen.duration_s * 1e3));
        let pays = gathered.filter_map(bytes_per_call).fold(f64::INFINITY, f64::min) >= PAYS_BYTES;
        let locks = facts.off.as_ref().map_or(0.0, |off| off.share(|time| time.contended + time.allocator));
        let mut costs = vec![Cost::SystemCall];
        costs.extend((!pays || vfs_calls(seen).is_none()).then_some(Cost::Files));
        costs.extend((locks < LOCKS_MIN).then_some(Cost::Futex));
        let share = match on {
            Some(on) => on.share_awake(&costs),
            // Only the tick knows, and not for what: where nothing goes over the network it is for calls.
            None if !pays && !is_on_the_network(seen) => seen.process.kernel_share?,
            None => return None,
        };
        // A call in which a thread sleeps, or that wakes one, is how it waits: it carries nothing and is needed.
        let rate = self.per_cpu_s? * (1.0 - self.waiting - self.walking);
        // Whoever answers requests with so few calls for each needs them.
        let serves = self.all.is_some_and(|all| all <= CALLS_PER_UNIT_MAX * self.units);
        if serves || share < KERNEL_SHARE_MIN || rate < CALLS_PER_CPU_S_MIN {
            return None;
        }
        let moved =
            smallest(seen).filter(|(_, bytes, calls)| *bytes < PIECE_BYTES_MAX && *calls >= rate / 4.0);
        let (summary, next) = match (moved, &self.top_at_once) {
            (Some((what, bytes, _)), _) => (
                format!(
                    "{} of the CPU goes into system calls; those that {what} move {bytes:.1} bytes each",
                    percent(share)
                ),
                GATHER,
            ),
            (None, Some((name, rate))) => (
                format!(
                    "{} of the CPU goes into system calls that move next to nothing: {name}, {rate:.0} times a second",
                    percent(share)
                ),
                if CLOCKS.contains(&name.as_str()) { CLOCK } else { LEAVE_OUT },
            ),
            (None, None) => {
                (format!("{} of the CPU goes into system calls themselves", percent(share)), LEAVE_OUT)
            }
        };
        Some(Waste { summary, next, is_answer: false })
    }

    /// Nothing to leave out, and what comes nearest to it.
    fn against(&self, share: f64) -> Outcome {
        let kernel = percent(share);
        let text = match (self.requests, self.all, self.per_cpu_s) {
            (Some(requests), Some(all), _) => {
                format!("{:.1} system calls per request, {kernel} of the CPU in the kernel", all / requests)
            }
            (_, _, Some(rate)) => format!(
                "{rate:.0} calls per second of CPU, {:.0} in and {:.0} out a second, {kernel} of it in the kernel",
                self.in_, self.out
            ),
            _ => format!("{kernel} of the CPU in the kernel; its calls were not counted"),
        };
        self.short_of(share, &text).unwrap_or(Outcome::Against(text))
    }

    /// Of calls for each request, those that come nearest to too many; what the kernel takes is needed as well.
    fn short_of(&self, kernel: f64, text: &str) -> Option<Outcome> {
        let (in_, out, others) = self.each()?;
        let kinds = [
            (out, OUT_PER_REQUEST_MAX, "that write"),
            (in_, IN_PER_REQUEST_MAX, "that read"),
            (others, OTHERS_PER_REQUEST_MAX, "others"),
        ];
        let (many, most, kind) = kinds.into_iter().max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))?;
        if kernel / KERNEL_SHARE_MIN < many / most {
            return Some(Outcome::near(&[(kernel, KERNEL_SHARE_MIN)], text));
        }
        Some(Outcome::short(many / most, format!("{most}"), format!("{text}, {many:.1} {kind}")))
    }
}

/// Of few bytes a tenth is told.
fn few_bytes(bytes: f64) -> String {
    if bytes < 10.0 { format!("{bytes:.1}") } else { format!("{bytes:.0}") }
}

/// Calls per second that look at files, where it goes through folders.
fn walking(sum: &dyn Fn(names::Table) -> f64) -> f64 {
    let (lists, opens) = (sum(&["getdents*"]), sum(&["open", "openat*"]));
    let looks = sum(names::CALLS_FOR_FILES) + lists + opens;
    let reads = sum(&["read", "pread64"]).min(READS_PER_OPEN_MAX * opens);
    if looks <= LOOKS_PER_LIST_MAX * lists { looks + reads } else { 0.0 }
}

/// Questions to other servers for each request of the load, by their segments while counters ran.
fn questions(seen: &Observation) -> f64 {
    let asked = seen.packets.iter().flat_map(|packets| &packets.asked);
    let per_s = asked.map(|one| one.sent_per_s).sum::<f64>();
    let replies = seen.load.as_ref().map(|load| load.replies_per_s).filter(|rate| *rate > 0.0);
    replies.map_or(0.0, |replies| per_s / replies)
}

/// Requests per second while calls were counted, else while counters ran.
fn request_rate(seen: &Observation, seconds: f64) -> Option<f64> {
    let then = seen.off_cpu.as_ref().and_then(|profile| profile.requests.as_ref());
    let then = then.map(|requests| requests.count as f64 / seconds);
    let whole = seen.load.as_ref().map(|load| load.replies_per_s);
    then.or(whole).filter(|rate| *rate > 0.0)
}

/// Packets per second, of the whole network namespace; none where the target has no connection.
fn packets_per_s(seen: &Observation) -> f64 {
    let packets = seen.packets.as_ref().filter(|packets| packets.connections > 0);
    let all = packets.map_or(0, |packets| packets.loopback_packets + packets.device_packets);
    all as f64 / seen.duration_s.max(1e-9)
}

/// Calls in which a thread slept, and those that woke one, by name: as many as there are waits.
fn waiting_calls(profile: &Profile) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::<String, u64>::new();
    let own: BTreeSet<u32> = profile.threads.iter().map(|thread| thread.tid).collect();
    for stack in &profile.stacks {
        if let Some(call) = stack.wait.as_ref().and_then(|wait| wait.system_call.clone()) {
            *counts.entry(call).or_default() += stack.samples;
        }
        let waker = stack.waker.and_then(|at| profile.wakers.get(at as usize));
        let by_own = waker.filter(|waker| own.contains(&waker.tid));
        let mut frames = by_own.into_iter().flat_map(|waker| &waker.frames);
        if frames.any(|at| names::is(&profile.frames[*at as usize].name, names::FUTEX)) {
            *counts.entry("futex".to_owned()).or_default() += stack.samples;
        }
    }
    counts
}

/// Calls that read and write, per second, as /proc counts them.
fn vfs_calls(seen: &Observation) -> Option<f64> {
    let calls = |moved: Option<Transfers>| moved.map(|moved| moved.calls as f64 / seen.duration_s.max(1e-9));
    Some(calls(seen.process.reads)? + calls(seen.process.writes).unwrap_or(0.0))
}

fn bytes_per_call(moved: Option<Transfers>) -> Option<f64> {
    moved.filter(|moved| moved.calls > 0).map(|moved| moved.bytes as f64 / moved.calls as f64)
}

/// Reads or writes, whichever there are more of: bytes per call, and calls per second of CPU.
fn smallest(seen: &Observation) -> Option<(&'static str, f64, f64)> {
    let cpu_s = seen.process.cpu_ns as f64 / 1e9;
    let row = |what, moved: Option<Transfers>| {
        let calls = moved.filter(|_| cpu_s > 0.0)?.calls as f64;
        Some((what, bytes_per_call(moved)?, calls / cpu_s))
    };
    let both = [row("read", seen.process.reads), row("write", seen.process.writes)];
    both.into_iter().flatten().max_by(|a, b| a.2.total_cmp(&b.2))
}

/// Whether packets go over the network at anything like the rate of calls.
pub(super) fn is_on_the_network(seen: &Observation) -> bool {
    let packets =
        seen.packets.as_ref().map_or(0, |packets| packets.loopback_packets + packets.device_packets);
    let calls = vfs_calls(seen).unwrap_or(0.0) * seen.duration_s;
    packets as f64 >= 0.1 * calls
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use dyno_record::finding::Class;
    use dyno_record::observation::{Asked, Packets, Transfers};
    use dyno_record::profile::{SystemCall, WaitClass};

    use crate::scene::{S, Scene, busy_load};

    #[test]
    fn many_calls_for_few_bytes_are_distinguished_from_many_bytes() {
        let reads = |bytes: u64| {
            Scene::new(&[10.0])
                .on("main;work", 30)
                .on("main;read;entry_SYSCALL_64_[k];vfs_read_[k]", 70)
                .with(|seen| {
                    seen.process.reads = Some(Transfers { calls: 5_000_000, bytes: 5_000_000 * bytes });
                })
        };
        assert_eq!(reads(1).classes(), [Class::SyscallHeavy]);
        assert_eq!(reads(65_536).classes(), []);
    }

    /// A clock of the kernel's that needs a call, as where the CPU's counter is not trusted. Planted fault: to keep what they tell is
    /// advised, as of any other.
    #[test]
    fn a_clock_that_is_read_by_system_calls_is_advised_on() {
        let next = |name: &str| {
            let call = SystemCall { count: 3_000_000, ..SystemCall::default() };
            let stack = format!("main;work;entry_SYSCALL_64_[k];__x64_sys_{name}_[k]");
            let scene = Scene::new(&[10.0]).on("main;work", 40).on(&stack, 60).with(|seen| {
                seen.off_cpu.as_mut().unwrap().system_calls = BTreeMap::from([(name.to_owned(), call)]);
            });
            scene.diagnosed().findings.remove(0).next.remove(0).text
        };
        assert!(next("clock_gettime").contains("clocksource"), "{}", next("clock_gettime"));
        assert!(next("getpid").starts_with("leave them out"), "{}", next("getpid"));
    }

    /// `syslog` for each request: each line is a message to another process. Planted faults: it is the network's path and no more (no
    /// `log_lines`); however little.
    #[test]
    fn lines_for_the_systems_log_are_told_by_who_writes_them() {
        let line = "main;serve;__vsyslog_internal;__send;do_syscall_64_[k];__sys_sendto_[k];sock_sendmsg_[k];unix_dgram_sendmsg_[k]";
        let scene =
            |hundredths| Scene::new(&[9.0]).on("main;serve;work", 100 - hundredths).on(line, hundredths);
        let found = scene(50).diagnosed().findings.remove(0);
        assert_eq!(found.class, Class::SyscallHeavy);
        assert!(
            found.summary.starts_with("50 % of the CPU writes lines to the system's log"),
            "{}",
            found.summary
        );
        assert_eq!(scene(30).classes(), []);
    }

    #[test]
    fn calls_per_request_count_where_requests_are_counted() {
        let calls = |per_request: u64| {
            let call = SystemCall { count: 100_000 * per_request, ..SystemCall::default() };
            Scene::new(&[9.0])
                .on("main;work", 40)
                .on("main;do_syscall_64_[k];tcp_sendmsg_[k]", 60)
                .load(busy_load())
                .with(|seen| {
                    seen.host.own_ns = 9 * S;
                    seen.off_cpu.as_mut().unwrap().system_calls =
                        BTreeMap::from([("write".to_owned(), call)]);
                })
        };
        assert_eq!(calls(6).first(), Some(Class::SyscallHeavy));
        assert_eq!(calls(3).classes(), []);
        // Requests of fifty bytes make reads of fifty bytes: that is no fault while there are few of them.
        let small = |per_request| {
            calls(per_request)
                .with(|seen| seen.process.reads = Some(Transfers { calls: 2_000_000, bytes: 50_000_000 }))
        };
        assert_eq!(small(3).classes(), []);
        assert_eq!(small(6).first(), Some(Class::SyscallHeavy));
    }

    /// A process on one CPU, and its calls per second.
    fn calling(stacks: &[(&str, u64)], calls: &[(&str, u64)]) -> Scene {
        let scene = stacks.iter().fold(Scene::new(&[9.0]), |scene, (stack, weight)| scene.on(stack, *weight));
        let call = |(name, count): &(&str, u64)| {
            ((*name).to_owned(), SystemCall { count: count * 10, ..SystemCall::default() })
        };
        scene.with(|seen| seen.off_cpu.as_mut().unwrap().system_calls = calls.iter().map(call).collect())
    }

    /// Planted faults: looks that cost nothing (a share of 0), or seldom (0 a second).
    #[test]
    fn many_who_look_again_and_again_by_the_clock_spend_the_cpu_on_it() {
        let looks = |sleeps: u64, hundredths: u64| {
            let asleep = "run;clock_nanosleep;do_syscall_64_[k];hrtimer_nanosleep_[k]";
            let mut scene = Scene::new(&[1.0; 9]).on(asleep, hundredths).on("run;work", 100 - hundredths);
            for tid in 1..=9 {
                scene = scene.off(tid, WaitClass::Sleep, asleep, 8.0);
                scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = sleeps / 9;
            }
            scene.classes()
        };
        assert_eq!(looks(900_000, 70), [Class::SyscallHeavy]);
        assert_eq!(looks(900_000, 20), []);
        assert_eq!(looks(9_000, 70), []);
    }

    /// A sender of small writes whose bytes go out in large packets. Planted faults: a stream of one way has no pieces (`of_one_way`
    /// that is false), or each write that is a packet is one (`PIECES_MIN` of 0).
    #[test]
    fn a_stream_of_one_way_in_small_writes_is_held_against_its_packets() {
        let stack = [("main;write;do_syscall_64_[k];vfs_write_[k];tcp_sendmsg_[k]", 90), ("main;work", 10)];
        let sender = |packets: u64| {
            calling(&stack, &[("write", 300_000)]).with(|seen| {
                seen.process.writes = Some(Transfers { calls: 3_000_000, bytes: 192_000_000 });
                seen.packets =
                    Some(Packets { loopback_packets: packets, connections: 1, ..Packets::default() });
            })
        };
        assert_eq!(sender(10_000).first(), Some(Class::SyscallHeavy));
        assert_eq!(sender(3_000_000).classes(), []);
    }

    /// A server that receives a request byte by byte, of which the kernel counts no bytes. Planted faults: what is not read by read(2)
    /// moves nothing that is known (`at_sockets` of none); however many bytes there are (`PIECE_BYTES_MAX` of a megabyte).
    #[test]
    fn small_receives_are_known_by_the_bytes_of_their_connections() {
        let receives = |bytes_per_s: f64| {
            let network = [("main;recv;do_syscall_64_[k];tcp_recvmsg_[k]", 80), ("main;work", 20)];
            calling(&network, &[("recvfrom", 600_000), ("sendto", 10_000)]).with(|seen| {
                seen.packets = Some(Packets {
                    loopback_packets: 200_000,
                    connections: 4,
                    bytes_received_per_s: bytes_per_s,
                    ..Packets::default()
                });
            })
        };
        let said = receives(600_000.0).diagnosed();
        assert_eq!(said.findings[0].class, Class::SyscallHeavy);
        assert!(said.findings[0].summary.contains("read 1.0 bytes each"), "{}", said.findings[0].summary);
        assert_eq!(receives(6e9).classes(), []);
    }

    /// Planted faults: each of the lines at nought; a poll that sleeps looks through its list meanwhile.
    #[test]
    fn long_lists_of_descriptors_that_are_looked_through_take_the_cpu() {
        let polls = |hundredths: u64, per_s: u64, frame: &str| {
            let looks = format!("main;poll;do_sys_poll_[k];{frame}_[k]");
            calling(&[(looks.as_str(), hundredths), ("main;work", 100 - hundredths)], &[("poll", per_s)])
                .classes()
        };
        assert_eq!(polls(70, 2_000, "tcp_poll"), [Class::SyscallHeavy]);
        assert_eq!(polls(30, 2_000, "tcp_poll"), [], "most of it is work");
        assert_eq!(polls(70, 40_000, "tcp_poll"), [], "16 µs each");
        assert_eq!(polls(70, 2_000, "schedule"), [], "they sleep");
    }

    /// A folder of thousands that is read for each file looked for. Planted fault: only many calls are heavy.
    #[test]
    fn folders_that_are_read_again_and_again_take_the_cpu() {
        let lists = |hundredths: u64| {
            let list =
                "find;readdir;do_syscall_64_[k];__x64_sys_getdents64_[k];iterate_dir_[k];ext4_readdir_[k]";
            calling(&[(list, hundredths), ("main;work", 100 - hundredths)], &[("getdents64", 50_000)])
                .classes()
        };
        assert_eq!((lists(60), lists(40)), (vec![Class::SyscallHeavy], vec![]));
    }

    #[test]
    fn one_small_read_and_write_for_each_request_is_what_a_server_does() {
        let network = [
            ("main;read;do_syscall_64_[k];vfs_read_[k];tcp_recvmsg_[k]", 30),
            ("main;write;do_syscall_64_[k];vfs_write_[k];tcp_sendmsg_[k]", 50),
            ("main;read;do_syscall_64_[k]", 15),
            ("main;work", 20),
        ];
        let calls = [("read", 100_000), ("write", 100_000), ("epoll_wait", 30_000)];
        let server = calling(&network, &calls).with(|seen| {
            seen.process.reads = Some(Transfers { calls: 1_000_000, bytes: 40_000_000 });
            seen.process.writes = Some(Transfers { calls: 1_000_000, bytes: 5_000_000 });
            seen.packets =
                Some(Packets { loopback_packets: 2_000_000, connections: 4, ..Packets::default() });
        });
        assert_eq!(server.classes(), []);
        // A file that is opened, looked at and sent for each request.
        let calls = [
            ("recvfrom", 20_000),
            ("writev", 20_000),
            ("sendfile", 20_000),
            ("openat", 20_000),
            ("close", 20_000),
        ];
        let files = [network[0], network[1], ("main;open;do_syscall_64_[k];do_sys_openat2_[k]", 80)];
        let files = calling(&files, &calls).with(|seen| {
            seen.packets = Some(Packets { loopback_packets: 400_000, connections: 4, ..Packets::default() });
        });
        assert_eq!(files.classes(), []);
        // The same calls without a network copy a file in small pieces.
        let alone = files.with(|seen| seen.packets = None);
        assert_eq!(alone.first(), Some(Class::SyscallHeavy));
    }

    /// Three rows of a store for each answer. Planted faults: `questions` of nothing; however few calls write (no `min`).
    #[test]
    fn questions_to_other_servers_are_no_pieces_of_an_answer() {
        let stacks = [("main;write;do_syscall_64_[k];vfs_write_[k];tcp_sendmsg_[k]", 60), ("main;work", 40)];
        let calls = [("read", 4 * 10_000), ("write", 4 * 10_000), ("epoll_wait", 20 * 10_000)];
        let serves = |questions_per_s: f64| {
            let asked = Asked { sent_per_s: questions_per_s, ..Asked::default() };
            calling(&stacks, &calls).load(busy_load()).with(|seen| {
                let packets = Packets { asked: vec![asked], ..Packets::default() };
                (seen.packets, seen.host.own_ns) = (Some(packets), 9 * S);
            })
        };
        // 17 others are left: more than a request needs.
        let said = |questions_per_s| serves(questions_per_s).diagnosed().findings.remove(0).summary;
        assert!(
            said(30_000.0).starts_with(
                "28.0 system calls for each request: 1.0 that read, 1.0 that write, 17.0 others"
            )
        );
        assert!(said(0.0).contains("4.0 that write"));
        assert!(said(900_000.0).contains("1.0 that write, 17.0 others"), "a question of many segments");
    }

    #[test]
    fn calls_that_move_nothing_are_seen_whatever_they_are() {
        for (kernel, call) in [
            ("__x64_sys_getpid", "getpid"),
            ("__x64_sys_futex_[k];futex_wake", "futex"),
            ("__x64_sys_lseek", "lseek"),
        ] {
            let stack = format!("main;{call};entry_SYSCALL_64_[k];{kernel}_[k]");
            let storm = |rate| calling(&[(&stack, 92), ("main;work", 20)], &[(call, rate)]);
            assert_eq!(storm(3_000_000).first(), Some(Class::SyscallHeavy), "{call}");
            assert_eq!(storm(9_000).classes(), [], "{call}: each call is dear, there are few of them");
        }
    }

    /// du, and the same calls on files that it knows already. Planted faults: lists of folders are not asked for, or one is enough; reads
    /// of one byte belong to it as well.
    #[test]
    fn who_goes_through_folders_has_to_look_at_each_file() {
        let stack = "main;fstatat;entry_SYSCALL_64_[k];__do_sys_newfstatat_[k]";
        let walker = |lists: u64, reads: u64| {
            let calls = [("newfstatat", 300_000), ("openat", 10_000), ("getdents64", lists), ("read", reads)];
            calling(&[(stack, 70), ("main;work", 30)], &calls).classes()
        };
        assert_eq!(walker(20_000, 20_000), []);
        assert_eq!([walker(0, 0), walker(10, 0), walker(20_000, 300_000)], [[Class::SyscallHeavy]; 3]);
    }

    /// Datagrams by sendto beside words by write. Planted fault: how many calls were counted is not asked.
    #[test]
    fn bytes_of_other_calls_say_nothing_of_what_is_sent() {
        let stacks =
            [("main;send;do_syscall_64_[k];__x64_sys_sendto_[k];udp_sendmsg_[k]", 80), ("main;work", 20)];
        let sender = |writes: u64| {
            let calls = [("sendto", 150_000), ("write", writes), ("recvfrom", 500)];
            calling(&stacks, &calls).with(|seen| {
                seen.process.writes = Some(Transfers { calls: writes * 10, bytes: writes * 80 });
                seen.packets.as_mut().unwrap().connections = 1;
            })
        };
        assert_eq!((sender(10_000).classes(), sender(200_000).first()), (vec![], Some(Class::SyscallHeavy)));
    }

    #[test]
    fn calls_in_which_threads_sleep_or_wake_others_are_how_they_wait() {
        for way in ["futex_wait_[k];schedule_[k]", "futex_wake_[k];wake_up_q_[k];try_to_wake_up_[k]"] {
            let stack = format!("main;futex;entry_SYSCALL_64_[k];__x64_sys_futex_[k];{way}");
            let idle = calling(&[(&stack, 92), ("main;work", 20)], &[("futex", 3_000_000)]);
            assert_eq!(idle.classes(), [], "{way}");
        }
        // What the calls cost besides is told, without those that waited.
        let storm = "main;futex;entry_SYSCALL_64_[k];__x64_sys_futex_[k];futex_wake_[k]";
        let wakes = |waits: u64| {
            calling(&[(storm, 92), ("main;work", 20)], &[("futex", 300_000)])
                .off(1, WaitClass::Sleep, "main;futex;futex_wait_[k]", 0.5)
                .with(|seen| {
                    let stack = seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
                    stack.samples = waits;
                    stack.wait.as_mut().unwrap().system_call = Some("futex".to_owned());
                })
        };
        assert_eq!(wakes(10).first(), Some(Class::SyscallHeavy));
        assert_eq!(wakes(2_500_000).classes(), []);
    }

    #[test]
    fn an_answer_in_pieces_is_heavy_and_one_message_to_many_connections_is_not() {
        let stacks = [("main;write;do_syscall_64_[k];tcp_sendmsg_[k]", 80), ("main;work", 20)];
        let writes = |connections| {
            calling(&stacks, &[("recvfrom", 500), ("writev", 250_000)]).with(|seen| {
                seen.process.writes = Some(Transfers { calls: 2_500_000, bytes: 2_500_000 * 256 });
                seen.packets.as_mut().unwrap().connections = connections;
            })
        };
        assert_eq!(writes(4).first(), Some(Class::SyscallHeavy));
        assert_eq!(writes(1_000).classes(), []);
    }
}
