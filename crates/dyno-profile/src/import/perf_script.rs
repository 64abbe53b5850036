//! The text of `perf script`: a line per sample, its frames from the leaf on lines of their own, an empty line.
//!
//! A sample of a clock weighs its period, which is time; of any other event only the samples are counted, since what a
//! sample stands for is not known. Of several events the one whose sample comes first is read. How long was watched is the
//! time between the first sample and the last.

use std::collections::BTreeMap;

use dyno_record::profile::{Frame, Origin, Profile, Unit};

use super::gather::error::ImportError;
use super::gather::{Gather, left_out};

/// A sample's first line.
#[derive(Debug, PartialEq)]
struct Head<'t> {
    name: &'t str,
    pid: u32,
    tid: u32,
    time_s: f64,
    period: Option<u64>,
    event: &'t str,
    /// What stands behind it on its line.
    rest: &'t str,
}

/// Whether a text is one: its first line that is no comment heads a sample.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().find(|line| !is_blank(line)).is_some_and(|line| head(line).is_some())
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// Reads the text.
///
/// # Errors
/// When a line is neither a sample's first nor a frame, or there is no stack.
pub fn read(text: &str) -> Result<Profile, ImportError> {
    let mut reading = Reading::new();
    for (at, line) in text.lines().enumerate() {
        reading.line(line).map_err(|what| ImportError::Line { line: at + 1, what })?;
    }
    reading.end_sample();
    reading.finish()
}

/// What the periods of all samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weighing {
    /// Nothing was read yet.
    Open,
    /// Nanoseconds.
    Time,
    /// Something else.
    Count,
}

/// What frames that come belong to.
enum Reached {
    /// Nothing.
    None,
    /// A sample of another event.
    Other,
    /// A sample that is read.
    Sample(Open),
}

/// The sample whose frames are being read.
struct Open {
    thread: u32,
    weight: u64,
    time_s: f64,
    /// From the leaf.
    frames: Vec<u32>,
}

struct Reading {
    gather: Gather,
    reached: Reached,
    weighing: Weighing,
    /// Samples of other events, by their names.
    others: BTreeMap<String, u64>,
    times: [f64; 2],
    bare_samples: u64,
}

impl Reading {
    fn new() -> Reading {
        let times = [f64::INFINITY, f64::NEG_INFINITY];
        Reading {
            gather: Gather::new(),
            reached: Reached::None,
            weighing: Weighing::Open,
            others: BTreeMap::new(),
            times,
            bare_samples: 0,
        }
    }

    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if line.starts_with('#') {
            return Ok(());
        }
        if line.trim().is_empty() {
            self.end_sample();
            return Ok(());
        }
        // First: a thread's name may be made of the letters of an address, and a frame has no time.
        let Some(head) = head(line) else {
            let frame = frame_line(line).ok_or("it is neither a sample's first line nor a frame")?;
            return self.frame(&frame);
        };
        self.end_sample();
        self.begin_sample(&head);
        // Without call chains the one frame stands on the same line.
        match frame_line(head.rest) {
            Some(frame) => {
                self.bare_samples += 1;
                self.frame(&frame)
            }
            None => Ok(()),
        }
    }

    fn begin_sample(&mut self, head: &Head<'_>) {
        let event = clean_event(head.event);
        let read = &mut self.gather.profile.sampling.event;
        if read.is_empty() {
            event.clone_into(read);
        }
        if read != event {
            *self.others.entry(event.to_owned()).or_default() += 1;
            self.reached = Reached::Other;
            return;
        }
        let clock = matches!(event, "cpu-clock" | "task-clock");
        let (weighing, weight) = match head.period.filter(|_| clock) {
            Some(period) => (Weighing::Time, period),
            None => (Weighing::Count, 1),
        };
        // Samples that weigh differently cannot be one sum: then samples are what is counted.
        self.weighing = if matches!(self.weighing, Weighing::Open) || self.weighing == weighing {
            weighing
        } else {
            Weighing::Count
        };
        self.times = [self.times[0].min(head.time_s), self.times[1].max(head.time_s)];
        let thread = self.gather.thread(head.pid, head.tid, head.name);
        self.reached = Reached::Sample(Open { thread, weight, time_s: head.time_s, frames: Vec::new() });
    }

    fn frame(&mut self, frame: &FrameLine<'_>) -> Result<(), &'static str> {
        let open = match &mut self.reached {
            Reached::Sample(open) => open,
            Reached::Other => return Ok(()),
            Reached::None => return Err("a frame without a sample"),
        };
        let inlined = frame.module == "inlined";
        let module = (!frame.module.is_empty() && !inlined).then(|| self.gather.module(frame.module, None));
        let origin = if is_kernel(frame) { Origin::Kernel } else { Origin::User };
        let name =
            if frame.name == "[unknown]" { format!("0x{:x}", frame.address) } else { frame.name.to_owned() };
        // An address per sample would make a frame per sample: here a function is one frame.
        let address = if frame.name == "[unknown]" { frame.address } else { 0 };
        open.frames.push(self.gather.frame(Frame {
            name,
            module,
            origin,
            inlined,
            address,
            ..Frame::default()
        }));
        Ok(())
    }

    fn end_sample(&mut self) {
        let reached = std::mem::replace(&mut self.reached, Reached::None);
        if let Reached::Sample(Open { thread, weight, time_s, mut frames }) = reached {
            frames.reverse();
            self.gather.add_sample(thread, frames, weight, (time_s * 1e9) as u64);
        }
    }

    fn finish(mut self) -> Result<Profile, ImportError> {
        if self.gather.profile.stacks.is_empty() {
            return Err(ImportError::Empty);
        }
        self.gather.name_target();
        let profile = &mut self.gather.profile;
        profile.warnings.extend(left_out(&profile.sampling.event, &self.others));
        if self.bare_samples > 0 {
            let text = format!("{} samples have no call chain: perf record -g records it", self.bare_samples);
            profile.warnings.push(text);
        }
        profile.duration_s = (self.times[1] - self.times[0]).max(0.0);
        if self.weighing == Weighing::Count {
            profile.unit = Unit::Samples;
            profile.stacks.iter_mut().for_each(|stack| stack.weight_ns = stack.samples);
        }
        Ok(self.gather.profile)
    }
}

/// An event without who counts it and where: `cpu-clock` of `cpu-clock:uhH`, `cycles` of `cpu_atom/cycles/P`. What is
/// traced has two parts, `sched:sched_switch`.
fn clean_event(event: &str) -> &str {
    if let Some((_, inner)) = event.split_once('/') {
        return inner.split('/').next().filter(|inner| !inner.is_empty()).unwrap_or(event);
    }
    let is_modifier = |letter| "ukhGHpPSDWIeb".contains(letter);
    match event.rsplit_once(':') {
        Some((name, modifiers)) if !name.is_empty() && modifiers.chars().all(is_modifier) => name,
        _ => event,
    }
}

/// `name pid/tid [cpu] seconds: period event:`, where pid, cpu and period may be missing and a name may hold blanks.
fn head(line: &str) -> Option<Head<'_>> {
    let (before, time_s, after) = parted_time(line)?;
    let before = before.trim_end();
    let before = match before.rsplit_once(char::is_whitespace) {
        Some((rest, cpu)) if cpu.starts_with('[') && cpu.ends_with(']') => rest.trim_end(),
        _ => before,
    };
    let (name, ids) = before.rsplit_once(char::is_whitespace)?;
    let (pid, tid) = ids.split_once('/').unwrap_or((ids, ids));
    let (pid, tid) = (pid.parse().ok()?, tid.parse().ok()?);
    let mut words = after.split_whitespace();
    let first = words.next()?;
    let (period, event) = match first.parse() {
        Ok(period) => (Some(period), words.next()?),
        Err(_) => (None, first),
    };
    let end = event.as_ptr() as usize - after.as_ptr() as usize + event.len();
    let (event, rest) = (event.strip_suffix(':')?, &after[end..]);
    Some(Head { rest, name: name.trim(), pid, tid, time_s, period, event })
}

/// The line around its time, `13362.661185:`.
fn parted_time(line: &str) -> Option<(&str, f64, &str)> {
    let is_time = |word: &str| {
        let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (digits(seconds) && digits(fraction)).then(|| word[..word.len() - 1].parse().ok()).flatten()
    };
    let start = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
    let (word, time) = line.split_whitespace().find_map(|word| Some((word, is_time(word)?)))?;
    Some((&line[..start(word)], time, &line[start(word) + word.len()..]))
}

/// A frame's line: `    1145 hot+0xc (/usr/bin/w)`.
struct FrameLine<'t> {
    address: u64,
    name: &'t str,
    module: &'t str,
}

fn frame_line(line: &str) -> Option<FrameLine<'_>> {
    if !line.starts_with([' ', '\t']) {
        return None;
    }
    let (address, rest) = line.trim().split_once(char::is_whitespace)?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    // The file stands in the last pair of parentheses, with ` (deleted)` behind it where it was; names may hold others.
    let open = rest.strip_suffix(')').map(|open| open.strip_suffix(" (deleted)").unwrap_or(open));
    let parted = open.and_then(|open| match open.rsplit_once(" (") {
        None => open.strip_prefix('(').map(|module| ("[unknown]", module)),
        parted => parted,
    });
    let (name, module) = parted.unwrap_or((rest, ""));
    Some(FrameLine { address, name: without_offset(name), module })
}

/// `hot` of `hot+0xc`.
fn without_offset(name: &str) -> &str {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name.rsplit_once("+0x") {
        Some((function, offset)) if is_hex(offset) => function,
        _ => name,
    }
}

fn is_kernel(frame: &FrameLine<'_>) -> bool {
    // Modules of the kernel stand in brackets or end in .ko; its half of the address space has the highest bit set.
    let bracketed = frame.module.starts_with("[kernel") || frame.module.starts_with("[guest.kernel");
    let high = frame.address >> 63 == 1 && !frame.module.starts_with("[vsyscall");
    let is_module = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"].iter().any(|end| frame.module.ends_with(end));
    bracketed || high || is_module || frame.module.ends_with("/vmlinux")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TEXT: &str = "# a comment
w 24868 13362.661185:    2004008 cpu-clock:
\t            1145 hot+0xc (/srv/w)
\t           2724a __libc_start_call_main+0x7a (/usr/lib/libc.so.6)

http worker 24868/24870 [001] 13362.663184:    2000000 cpu-clock:uhH:
\tffffffff81a0b2c4 do_syscall_64+0x64 ([kernel.kallsyms])
\t            1148 std::vec<a (int)>::push(int)+0xf (/srv/w)
\t              22 [unknown] (/srv/w)

w 24868 13363.161185:    2004008 cpu-clock:
\t            1149 hot+0x10 (/srv/w)
\t           2724a __libc_start_call_main+0x7a (/usr/lib/libc.so.6)
";

    #[test]
    fn a_sample_without_a_call_chain_has_the_frame_on_its_own_line() {
        let text = "w 11/12 [000] 13362.661185:     250000 cpu-clock:u:      55d1145 hot+0xc (/srv/w)\n\
                    w 11/12 [000] 13362.661435:     250000 cpu-clock:u:  ffffffff81 do_syscall_64+0x5 ([kernel.kallsyms])\n";
        let profile = read(text).unwrap();
        let names: Vec<&str> = profile.frames.iter().map(|frame| frame.name.as_str()).collect();
        assert_eq!((names, profile.stacks.len()), (vec!["hot", "do_syscall_64"], 2));
        assert!(profile.warnings[0].contains("2 samples have no call chain"), "{:?}", profile.warnings);
    }

    /// perf sets names to the right. Planted fault: `ab` is taken for an address, its line for a frame.
    #[test]
    fn a_thread_whose_name_reads_as_an_address_is_a_thread() {
        let text = "  ab 11/12 [000] 13362.661185:     250000 cpu-clock:u:      55d1145 hot+0xc (/srv/w)\n\
                    \x20 ed    13 [000] 13362.661435:     250000 cpu-clock:u:      55d1145 hot+0xc (/srv/w)\n";
        let profile = read(text).unwrap();
        assert_eq!((profile.frames.len(), profile.frames[0].name.as_str()), (1, "hot"));
        let threads: Vec<_> =
            profile.threads.iter().map(|thread| (thread.tid, thread.name.as_str())).collect();
        assert_eq!((threads, profile.stacks.len()), (vec![(12, "ab"), (13, "ed")], 2));
    }

    fn names(profile: &Profile, stack: usize) -> Vec<(&str, Origin)> {
        let frames = profile.stacks[stack].frames.iter().map(|&frame| &profile.frames[frame as usize]);
        frames.map(|frame| (frame.name.as_str(), frame.origin)).collect()
    }

    #[test]
    fn samples_of_one_stack_are_one_with_all_their_time() {
        let profile = read(TEXT).unwrap();
        assert_eq!(profile.stacks.len(), 2);
        assert_eq!((profile.stacks[0].samples, profile.stacks[0].weight_ns), (2, 4_008_016));
        assert_eq!(names(&profile, 0), [("__libc_start_call_main", Origin::User), ("hot", Origin::User)]);
        assert_eq!((profile.unit, profile.sampling.event.as_str()), (Unit::Nanoseconds, "cpu-clock"));
        assert!((profile.duration_s - 0.5).abs() < 1e-6, "{}", profile.duration_s);
    }

    #[test]
    fn names_with_blanks_parentheses_and_none_at_all_are_read() {
        let profile = read(TEXT).unwrap();
        let wanted = [
            ("0x22", Origin::User),
            ("std::vec<a (int)>::push(int)", Origin::User),
            ("do_syscall_64", Origin::Kernel),
        ];
        assert_eq!(names(&profile, 1), wanted);
        let thread = &profile.threads[profile.stacks[1].thread as usize];
        assert_eq!((thread.pid, thread.tid, thread.name.as_str()), (24_868, 24_870, "http worker"));
        assert_eq!((profile.target.pid, profile.target.name.as_str()), (Some(24_868), "w"));
    }

    #[test]
    fn cycles_are_no_time_and_samples_are_counted() {
        let profile = read(&TEXT.replace("cpu-clock", "cycles")).unwrap();
        assert_eq!((profile.unit, profile.total_ns()), (Unit::Samples, 3));
    }

    /// Fault: `begin_sample` that adds all events up under the last one's name.
    #[test]
    fn of_several_events_the_first_is_read_and_the_others_are_told() {
        let other = "w 24868 13364.1: 31 cache-misses:u:\n\t 1145 cold+0x1 (/srv/w)\n\n";
        let profile = read(&format!("{TEXT}\n{other}{other}")).unwrap();
        assert_eq!((profile.unit, profile.sampling.event.as_str()), (Unit::Nanoseconds, "cpu-clock"));
        assert_eq!((profile.stacks.len(), profile.total_ns()), (2, 6_008_016));
        assert!(profile.frames.iter().all(|frame| frame.name != "cold"));
        let told = "only samples of cpu-clock are read: 2 of cache-misses are left out";
        assert!(profile.warnings.iter().any(|warning| warning == told), "{:?}", profile.warnings);
        assert!((profile.duration_s - 0.5).abs() < 1e-6, "nor is their time in it: {}", profile.duration_s);
    }

    #[test]
    fn an_event_is_known_by_its_name_whoever_counts_it() {
        for (event, name) in [
            ("cpu-clock:uhH", "cpu-clock"),
            ("cycles:P", "cycles"),
            ("cpu_atom/cycles/P", "cycles"),
            ("cpu/event=0x3c/", "event=0x3c"),
            ("sched:sched_switch", "sched:sched_switch"),
            ("cycles", "cycles"),
            ("//", "//"),
        ] {
            assert_eq!(clean_event(event), name, "{event}");
        }
    }

    /// Faults: a name that ends behind the bracket of its file; `.ko` looked for anywhere in a path.
    #[test]
    fn files_that_were_deleted_and_folders_that_look_like_modules_are_the_users() {
        let at = |line: &str| {
            let frame = frame_line(line).unwrap();
            (frame.name.to_owned(), frame.module.to_owned(), is_kernel(&frame))
        };
        let wanted = |name: &str, module: &str, is_kernel| (name.to_owned(), module.to_owned(), is_kernel);
        assert_eq!(at("\t 1145 hot+0xc (/srv/w (deleted))"), wanted("hot", "/srv/w", false));
        assert_eq!(at("\t 1145 f(int)+0xc (/srv/w (deleted))"), wanted("f(int)", "/srv/w", false));
        assert_eq!(at("\t 1145 hot (/home/j.kowalski/w)"), wanted("hot", "/home/j.kowalski/w", false));
        for module in ["/lib/modules/6/wheel.ko", "/lib/modules/6/wheel.ko.xz", "/usr/lib/debug/vmlinux"] {
            assert_eq!(at(&format!("\t 1145 turn ({module})")), wanted("turn", module, true));
        }
    }

    #[test]
    fn a_text_cut_anywhere_is_read_as_far_as_it_goes_or_refused_by_line() {
        let whole = read(TEXT).unwrap().total_ns();
        for cut in (0..TEXT.len()).filter(|cut| TEXT.is_char_boundary(*cut)) {
            match read(&TEXT[..cut]) {
                Ok(profile) => assert!(profile.total_ns() <= whole, "cut at {cut}"),
                Err(ImportError::Line { .. } | ImportError::Empty) => {}
                Err(other) => panic!("cut at {cut}: {other}"),
            }
        }
    }

    #[test]
    fn a_line_of_something_else_is_refused_by_number() {
        let error = read(&TEXT.replace("# a comment", "Dear all,")).unwrap_err();
        assert_eq!(error.to_string(), "line 1: it is neither a sample's first line nor a frame");
        assert!(!is_one("a;b 7\n") && is_one(TEXT));
    }
}
