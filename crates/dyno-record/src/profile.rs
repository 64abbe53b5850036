//! The published record of a profile: which code ran, or waited, and for how long.
//!
//! `dyno profile` and `dyno offcpu` write it, pictures and exports are drawn from it, diagnosis reads it. One shape for
//! both: a weight is time in nanoseconds, on the CPU or off it. The shapes are described for readers in docs/records.md.

use std::collections::BTreeMap;

mod join;
pub mod slices;
mod threads;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::visible::visible;

/// Name and number of the profile record's shape.
pub const PROFILE_SCHEMA: &str = "dyno.profile/1";

/// What stands under a stack whose root was not found.
pub const CUT: &str = "[stack ends here]";

/// A record that could not be read, or a part of it that is not there.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Not JSON, or not of this shape.
    #[error("this is not a profile record")]
    Shape(#[source] serde_json::Error),
    /// A figure that no measurement gives.
    #[error(transparent)]
    Impossible(#[from] crate::sane::Impossible),
    /// A record of another shape than this program knows.
    #[error("the record's schema is \"{found}\", this program reads \"{PROFILE_SCHEMA}\"")]
    Schema {
        /// What the file says.
        found: String,
    },
    /// A number that points outside its table.
    #[error("{table}[{row}] points at {points_at}, and there are {rows}")]
    Dangling {
        /// The table that holds the pointer.
        table: &'static str,
        /// Its row.
        row: usize,
        /// Where it points.
        points_at: u32,
        /// Rows of the table it points into.
        rows: usize,
    },
    /// Moments of samples that cannot be.
    #[error("stacks[{row}] has slices out of order, or with more samples than it has")]
    Slices {
        /// The stack.
        row: usize,
    },
    /// A part by time of a profile whose samples have none.
    #[error("this profile does not know when its samples fell: {}", kind.no_moments())]
    NoMoments {
        /// What it holds.
        kind: Kind,
    },
    /// A part by threads of what does not tell them apart.
    #[error("this profile does not tell threads apart: it holds stacks alone")]
    NoThreads,
    /// A part by threads of which there is none.
    #[error("no thread is called \"{}\"; there are {}", visible(word), visible(threads))]
    NoThread {
        /// What was asked for.
        word: String,
        /// Those that there are.
        threads: String,
    },
    /// A part by time in which nothing fell.
    #[error("no sample fell from {from_s} to {to_s} s; the profile is {duration_s:.1} s long")]
    Nothing {
        /// From here,
        from_s: f64,
        /// to here,
        to_s: f64,
        /// of so much.
        duration_s: f64,
    },
    /// Weights or samples that no sum of 64 bits holds.
    #[error("the {what} of all stacks together do not fit into 64 bits")]
    TooMuch {
        /// Which.
        what: &'static str,
    },
}

/// One profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`PROFILE_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long the target was watched.
    pub duration_s: f64,
    /// The command line.
    pub command: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// What the weights are.
    pub kind: Kind,
    /// What the weights count. Records are written in nanoseconds; only texts of others count samples.
    #[serde(default)]
    pub unit: Unit,
    /// What was watched.
    pub target: Target,
    /// How it was watched.
    pub sampling: Sampling,
    /// What watching cost.
    pub overhead: Overhead,
    /// Requests that the target answered meanwhile, where they were counted: what weights may be divided by.
    pub requests: Option<Requests>,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// What changes how the figures are to be read.
    pub warnings: Vec<String>,
    /// Threads that were seen.
    pub threads: Vec<Thread>,
    /// Files that frames lie in.
    pub modules: Vec<Module>,
    /// Every function (and line of it) that was seen; stacks point here.
    pub frames: Vec<Frame>,
    /// Every stack that was seen, once per thread, cause and waker.
    pub stacks: Vec<Stack>,
    /// How long one slice of `Stack::slices` is, where the moments of samples are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// Stacks of those who ended a wait; `Stack::waker` points here. Empty on the CPU.
    pub wakers: Vec<Waker>,
    /// What each thread did when, where that was recorded: spans in time order per thread.
    pub timeline: Vec<Span>,
    /// Where the whole time of each thread went, where that was counted.
    #[serde(default)]
    pub thread_times: Vec<ThreadTime>,
    /// System calls of the target by name, where they were counted.
    pub system_calls: BTreeMap<String, SystemCall>,
}

/// What the weights of a profile are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Time on a CPU.
    #[default]
    OnCpu,
    /// Time not on a CPU: waiting, or runnable without one.
    OffCpu,
}

impl Kind {
    /// Why such a profile may not know when its samples fell.
    fn no_moments(self) -> &'static str {
        match self {
            Kind::OnCpu => "folded stacks keep no times, and records of earlier versions do not",
            Kind::OffCpu => "waits are added up by place",
        }
    }
}

/// What a weight counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Time.
    #[default]
    Nanoseconds,
    /// Samples whose time is unknown: `weight_ns` is then a number of samples.
    Samples,
}

/// What was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The process, or none for the whole machine.
    pub pid: Option<u32>,
    /// Its name (`comm`), or `machine`.
    pub name: String,
    /// Its command line.
    pub argv: Vec<String>,
    /// `thread`, `process` (with the children it starts) or `machine`.
    pub scope: String,
    /// Others that were named beside it and watched with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Process>,
}

/// A process that was watched beside the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its command line.
    pub argv: Vec<String>,
}

impl Target {
    /// All that was watched: `server (7), db (9)`; none where nothing is known of it.
    pub fn in_words(&self) -> Option<String> {
        let first = match (self.name.as_str(), self.pid) {
            ("", None) => return None,
            ("", Some(pid)) => format!("process {pid}"),
            (name, None) => name.to_owned(),
            (name, Some(pid)) => format!("{name} ({pid})"),
        };
        let others = self.also.iter().map(|other| format!(", {} ({})", other.name, other.pid));
        Some(others.fold(first, |words, other| words + &other))
    }
}

/// How it was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// `cpu-clock`, `cycles`, `sched_switch` …
    pub event: String,
    /// Samples per second and CPU that were asked for; none where every event counts.
    pub frequency_hz: Option<f64>,
    /// How stacks were read: `dwarf`, `fp`, or both by module.
    pub call_graph: String,
    /// Samples, or switches, in this record.
    pub samples: u64,
    /// Samples that the kernel could not deliver.
    pub lost: u64,
    /// Waits that were put together with others for want of room: their time is whole, but who ended them, what they were
    /// for, or their user stack is missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub coarse: u64,
    /// Stacks that end before main or the thread's start.
    pub truncated: u64,
    /// Why they do, in words, each with its stacks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub truncated_by: BTreeMap<String, u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What watching cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// CPU that the profiler itself used while it watched, in percent of one CPU.
    pub profiler_percent: f64,
    /// Time inside the programs that the profiler has in the kernel, in percent of one CPU; none where there are none, or
    /// the kernel does not tell. The way to them is not in it.
    pub hook_percent: Option<f64>,
}

/// Requests answered while the target was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// Who counted: `load` (our own generator) or the count given on the command line.
    pub source: String,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
}

/// A file whose code was seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// Its path as the target sees it; `[kernel]`, `[vdso]`, `[jit]` for what is no file.
    pub path: String,
    /// Its build-id in hex.
    pub build_id: Option<String>,
    /// How its frames were unwound: `dwarf`, `fp`, or empty.
    pub unwound_by: String,
    /// Whether it has symbols.
    pub symbols: bool,
}

/// Whether a frame is the kernel's or the program's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The program and its libraries.
    #[default]
    User,
    /// The kernel.
    Kernel,
    /// No code: a mark such as `[stack ends here]`.
    Mark,
}

/// A function, or one line of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function's name, demangled; `0x…` where there is no symbol.
    pub name: String,
    /// Where it lies, as an index into `modules`.
    pub module: Option<u32>,
    /// User or kernel.
    pub origin: Origin,
    /// Source file, where it is known.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Whether the compiler folded it into its caller.
    pub inlined: bool,
    /// Address within the module's file; for kernels and JITs the address itself.
    pub address: u64,
}

/// A stack and the time spent in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// Indices into `frames`, from the root to the leaf.
    pub frames: Vec<u32>,
    /// Index into `threads`.
    pub thread: u32,
    /// Samples, or waits.
    pub samples: u64,
    /// Time in it.
    pub weight_ns: u64,
    /// What it waited for; none on the CPU.
    pub wait: Option<Wait>,
    /// Who ended the wait, as an index into `wakers`.
    pub waker: Option<u32>,
    /// When its samples fell, as far as it is known: numbers of slices in rising order, each with its samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<InSlice>,
}

/// The samples of one stack that fell into one slice: the slice's number, from the beginning of the profile, and how many.
pub type InSlice = (u32, u32);

/// What a wait was for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitClass {
    /// Runnable, but no CPU was free.
    RunQueue,
    /// A lock, a condition, a join: a futex, or a lock of the kernel.
    Lock,
    /// A disk or a file system.
    Disk,
    /// A socket, a pipe, epoll: something that another process or host sends.
    Network,
    /// A time that it asked for.
    Sleep,
    /// A page that had to be made or read.
    PageFault,
    /// None of these.
    #[default]
    Other,
}

/// What a wait was for, and which one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wait {
    /// The kind.
    pub class: WaitClass,
    /// The system call it waited in, if any.
    pub system_call: Option<String>,
    /// Which lock (its address), file (its path) or peer, where that is known.
    pub object: Option<String>,
}

/// Who ended a wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Waker {
    /// Its process and thread; zero for an interrupt.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Its name; `[interrupt]` for an interrupt.
    pub name: String,
    /// Indices into `frames`, from the root to the leaf.
    pub frames: Vec<u32>,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// On a CPU.
    Running,
    /// Runnable, without a CPU.
    Runnable,
    /// Waiting.
    Waiting,
}

/// A stretch of one thread's time in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Index into `threads`.
    pub thread: u32,
    /// Since the profile began.
    pub from_ns: u64,
    /// Since the profile began.
    pub to_ns: u64,
    /// What the thread did.
    pub state: ThreadState,
    /// What it waited for.
    pub class: Option<WaitClass>,
}

/// Where the whole time of a thread went while it was watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// Index into `threads`.
    pub thread: u32,
    /// On a CPU.
    pub running_ns: u64,
    /// Runnable, without a CPU.
    pub runnable_ns: u64,
    /// Waiting.
    pub waiting_ns: u64,
}

/// One system call, over all threads of the target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemCall {
    /// How often it returned.
    pub count: u64,
    /// How often with an error.
    pub errors: u64,
    /// Time from entry to exit, waiting included.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How often by length: entry `i` counts those of less than 2^i ns that no smaller entry counts.
    pub log2_ns: Vec<u64>,
}

impl Profile {
    /// Reads a record and checks that every index points at something.
    ///
    /// # Errors
    /// When it is not JSON, not a profile, of another schema, an index points outside its table, or its weights cannot be
    /// added up.
    pub fn from_json(text: &str) -> Result<Profile, ProfileError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(text).map_err(ProfileError::Shape)?;
        if head.schema != PROFILE_SCHEMA {
            return Err(ProfileError::Schema { found: head.schema });
        }
        crate::sane::check(&serde_json::from_str(text).map_err(ProfileError::Shape)?)?;
        let profile: Profile = serde_json::from_str(text).map_err(ProfileError::Shape)?;
        profile.check()?;
        Ok(profile)
    }

    /// All the time in it.
    pub fn total_ns(&self) -> u64 {
        self.stacks.iter().fold(0, |sum, stack| sum.saturating_add(stack.weight_ns))
    }

    /// Whether every number that points into a table points at a row of it, and sums fit.
    ///
    /// # Errors
    /// What points where, or does not fit.
    pub fn check(&self) -> Result<(), ProfileError> {
        let fits = |what, of: fn(&Stack) -> u64| {
            let sum = self.stacks.iter().try_fold(0_u64, |sum, stack| sum.checked_add(of(stack)));
            sum.map(drop).ok_or(ProfileError::TooMuch { what })
        };
        fits("weights", |stack| stack.weight_ns)?;
        fits("samples", |stack| stack.samples)?;
        let inside = |table: &'static str, row: usize, points_at: u32, rows: usize| {
            if (points_at as usize) < rows {
                return Ok(());
            }
            Err(ProfileError::Dangling { table, row, points_at, rows })
        };
        for (row, frame) in self.frames.iter().enumerate() {
            frame.module.map_or(Ok(()), |module| inside("frames", row, module, self.modules.len()))?;
        }
        for (row, stack) in self.stacks.iter().enumerate() {
            inside("stacks", row, stack.thread, self.threads.len())?;
            stack.waker.map_or(Ok(()), |waker| inside("stacks", row, waker, self.wakers.len()))?;
            stack.frames.iter().try_for_each(|&at| inside("stacks", row, at, self.frames.len()))?;
            if !stack.has_sound_slices() {
                return Err(ProfileError::Slices { row });
            }
        }
        for (row, waker) in self.wakers.iter().enumerate() {
            waker.frames.iter().try_for_each(|&at| inside("wakers", row, at, self.frames.len()))?;
        }
        for (row, span) in self.timeline.iter().enumerate() {
            inside("timeline", row, span.thread, self.threads.len())?;
        }
        for (row, times) in self.thread_times.iter().enumerate() {
            inside("thread_times", row, times.thread, self.threads.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn small() -> Profile {
        Profile {
            schema: PROFILE_SCHEMA.to_owned(),
            threads: vec![Thread { pid: 1, tid: 1, name: "main".to_owned() }],
            frames: vec![Frame { name: "main".to_owned(), ..Frame::default() }],
            stacks: vec![Stack { frames: vec![0], samples: 2, weight_ns: 20, ..Stack::default() }],
            ..Profile::default()
        }
    }

    #[test]
    fn a_profile_survives_being_written_and_read() {
        let text = serde_json::to_string(&small()).unwrap();
        assert_eq!(Profile::from_json(&text).unwrap(), small());
        assert_eq!(small().total_ns(), 20);
    }

    #[test]
    fn a_profile_that_points_nowhere_is_refused_with_the_place() {
        let mut torn = small();
        torn.stacks[0].frames.push(7);
        let error = Profile::from_json(&serde_json::to_string(&torn).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "stacks[0] points at 7, and there are 1");
    }

    #[test]
    fn all_processes_that_were_watched_are_named_and_one_alone_needs_no_list() {
        let one = Target { pid: Some(7), name: "server".to_owned(), ..Target::default() };
        assert_eq!(one.in_words().as_deref(), Some("server (7)"));
        assert!(!serde_json::to_string(&one).unwrap().contains("also"));
        let other = Process { pid: 9, name: "db".to_owned(), argv: Vec::new() };
        let two = Target { also: vec![other], ..one };
        assert_eq!(two.in_words().as_deref(), Some("server (7), db (9)"));
        let read: Target = serde_json::from_str(&serde_json::to_string(&two).unwrap()).unwrap();
        assert_eq!(read, two);
    }

    #[test]
    fn another_schema_is_named() {
        let error = Profile::from_json(r#"{"schema":"dyno.climb/1"}"#).unwrap_err();
        assert!(error.to_string().contains("dyno.climb/1"), "{error}");
        assert!(Profile::from_json("[]").is_err());
    }
}
