//! Proofs: how to see in the running server that a change took effect.
//!
//! A change counts only after proof. A proof names something that can be read from outside (procfs, a duplicated socket,
//! the system calls that serve fifty requests) or, for what has no outside, a counter that the server keeps at the very
//! place where the work is done. The same proof is read on both sides: it must hold with the change and fail without it.

use dyno_record::lab::Count;
use serde::{Deserialize, Serialize};

/// What to read, and what must be read when the change is in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Proof {
    /// System calls per request, of these names together, while the server answers at least fifty.
    Syscalls {
        /// Kernel names, e.g. `write`, `sendto`.
        names: Vec<String>,
        /// The bound.
        per_request: Bound,
    },
    /// A counter of the server itself, per request, read over the control socket.
    Counter {
        /// Its name.
        name: String,
        /// The bound.
        per_request: Bound,
    },
    /// Tasks (threads of all its processes).
    Threads {
        /// The bound.
        count: Bound,
    },
    /// Filters that system calls of its tasks pass (seccomp), those that its surroundings put there included.
    Filters {
        /// The bound on their number, over all tasks.
        count: Bound,
    },
    /// How all of its tasks are scheduled: one that is scheduled otherwise may be the one that serves.
    Scheduled {
        /// The kernel's class: `other`, `batch`, `idle`, `fifo`, `rr`.
        class: String,
        /// How nice every one of them is, −20 to 19, where that matters too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nice: Option<i32>,
    },
    /// How late the kernel may wake each of its tasks, to wake several at once: the timer slack of every task.
    TimerSlack {
        /// In ns.
        ns: u64,
    },
    /// Regular files that it has open in a way that makes calls wait.
    OpenFiles {
        /// Part of the file's path.
        contains: String,
        /// The way.
        flag: FileFlag,
        /// The bound on their number.
        count: Bound,
    },
    /// What listens is the program that the plan built for this setting, and its code is another than the other side's.
    Built {
        /// The file in the build's folder: the program itself, or a library that it maps.
        file: String,
    },
    /// Memory of all its processes that stands in huge pages: what is allowed and not used counts nothing.
    HugePages {
        /// The bound, in MB.
        mb: Bound,
    },
    /// Tasks that may run on one CPU only, each on its own.
    Cpus {
        /// The bound on such tasks.
        pinned: Bound,
    },
    /// Share of accepted connections whose packets arrive on the CPU that their worker is pinned to.
    Local {
        /// The bound, in percent.
        percent: Bound,
    },
    /// A socket option of an accepted connection, read from a duplicate of its descriptor.
    Sockopt {
        /// Its name, e.g. `congestion`.
        option: String,
        /// What must be read.
        expect: String,
    },
    /// Whether accepted connections are watched edge-triggered.
    EpollFlags {
        /// Edge, or level.
        edge: bool,
    },
    /// A file is mapped by the server: a library is really there.
    Maps {
        /// Part of the file's path.
        contains: String,
    },
    /// Processes that listen on the server's port; a process of somebody else among them fails the proof.
    Listeners {
        /// The bound.
        count: Bound,
    },
    /// What the laboratory's network counted, per request (`dyno climb --netns`): at the place where the work is done, so that
    /// what is set and not in force counts nothing.
    Network {
        /// What.
        count: Count,
        /// The bound.
        per_request: Bound,
    },
    /// Share of accepted connections whose packets come by polling (they have a NAPI id): a device may have polling on, and
    /// its packets pass it by.
    Polled {
        /// The bound, in percent.
        percent: Bound,
    },
    /// The answer to another request on the same server contains a text.
    Answer {
        /// Path of the request.
        path: String,
        /// What its body must contain.
        contains: String,
    },
    /// A command's output contains a text; `{pid}`, `{port}` and `{dir}` are filled in. No shell.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// What its output must contain.
        expect: String,
    },
}

/// A bound on a number, absolute or against the other side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Lower than without the change by at least this.
    Drops(f64),
    /// Higher than without the change by at least this.
    Rises(f64),
}

/// How a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileFlag {
    /// A write returns when its data are on the disk; so does it with [`FileFlag::Sync`].
    #[serde(rename = "O_DSYNC")]
    Dsync,
    /// And what else is known of the file.
    #[serde(rename = "O_SYNC")]
    Sync,
    /// Past the page cache.
    #[serde(rename = "O_DIRECT")]
    Direct,
}

impl FileFlag {
    /// The kernel's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dsync => "O_DSYNC",
            Self::Sync => "O_SYNC",
            Self::Direct => "O_DIRECT",
        }
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// A number, to be held against a bound.
    Number(f64),
    /// A fact that holds or does not.
    Fact {
        /// What was read, in words.
        text: String,
        /// Whether it is as the proof says.
        holds: bool,
    },
    /// A program that runs.
    Program {
        /// What tells its code from another's.
        code: String,
        /// Whether it is the one that was built for the setting.
        own: bool,
        /// What was read, in words.
        text: String,
    },
    /// It is not known, and why.
    CannotTell(String),
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(n) if n.fract() == 0.0 => write!(f, "{}", *n as i64),
            Self::Number(n) => write!(f, "{n:.2}"),
            Self::Fact { text, .. } | Self::Program { text, .. } => f.write_str(text),
            Self::CannotTell(why) => write!(f, "cannot tell: {why}"),
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(n) => write!(f, "at most {n}"),
            Self::AtLeast(n) => write!(f, "at least {n}"),
            Self::Drops(n) => write!(f, "at least {n} lower than without"),
            Self::Rises(n) => write!(f, "at least {n} higher than without"),
        }
    }
}

impl std::fmt::Display for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syscalls { names, per_request } => {
                write!(f, "{} per request: {per_request}", names.join(" + "))
            }
            Self::Counter { name, per_request } => write!(f, "{name} per request: {per_request}"),
            Self::Threads { count } => write!(f, "threads: {count}"),
            Self::Filters { count } => write!(f, "filters on system calls, over all threads: {count}"),
            Self::HugePages { mb } => write!(f, "memory in huge pages, MB: {mb}"),
            Self::Scheduled { class, nice: None } => write!(f, "class of every thread: {class}"),
            Self::Scheduled { class, nice: Some(nice) } => {
                write!(f, "class of every thread: {class} nice {nice}")
            }
            Self::TimerSlack { ns } => write!(f, "timer slack of every thread: {ns} ns"),
            Self::OpenFiles { contains, flag, count } => {
                write!(f, "files {contains} open with {}: {count}", flag.name())
            }
            Self::Built { file } => write!(f, "the program that was built: {file}, with code of its own"),
            Self::Cpus { pinned } => write!(f, "threads pinned to one CPU: {pinned}"),
            Self::Local { percent } => write!(f, "connections on their worker's CPU, percent: {percent}"),
            Self::Sockopt { option, expect } => write!(f, "{option} of a connection: {expect}"),
            Self::EpollFlags { edge: true } => f.write_str("epoll events of a connection: edge"),
            Self::EpollFlags { edge: false } => f.write_str("epoll events of a connection: level"),
            Self::Maps { contains } => write!(f, "mapped files: {contains}"),
            Self::Listeners { count } => write!(f, "listening processes: {count}, no stranger"),
            Self::Network { count, per_request } => write!(f, "{} per request: {per_request}", count.words()),
            Self::Polled { percent } => {
                write!(f, "connections whose packets are polled for, percent: {percent}")
            }
            Self::Answer { path, contains } => write!(f, "answer to {path}: contains \"{contains}\""),
            Self::Command { argv, expect } => write!(f, "{}: prints \"{expect}\"", argv.join(" ")),
        }
    }
}

impl Proof {
    fn bound(&self) -> Option<Bound> {
        match self {
            Self::Syscalls { per_request: bound, .. }
            | Self::Counter { per_request: bound, .. }
            | Self::Threads { count: bound }
            | Self::Filters { count: bound }
            | Self::HugePages { mb: bound }
            | Self::Cpus { pinned: bound }
            | Self::Local { percent: bound }
            | Self::Network { per_request: bound, .. }
            | Self::Polled { percent: bound }
            | Self::OpenFiles { count: bound, .. }
            | Self::Listeners { count: bound } => Some(*bound),
            _ => None,
        }
    }

    /// Whether it is held against what is read without the change.
    pub(crate) fn is_relative(&self) -> bool {
        matches!(self.bound(), Some(Bound::Drops(_) | Bound::Rises(_)))
    }

    /// Whether the proof holds on each side, A (without) then B (with); the reason when that is not known.
    ///
    /// # Errors
    /// The reason in words, when a side cannot be read.
    pub fn holds(&self, without: &Reading, with: &Reading) -> Result<[bool; 2], String> {
        match (self.bound(), without, with) {
            (_, Reading::CannotTell(why), _) | (_, _, Reading::CannotTell(why)) => Err(why.clone()),
            (Some(bound), Reading::Number(a), Reading::Number(b)) => {
                Ok([bound.holds(*a, *a), bound.holds(*a, *b)])
            }
            (_, a @ Reading::Program { .. }, b @ Reading::Program { .. }) => programs(a, b),
            (_, a, b) => Ok([fact(a), fact(b)]),
        }
    }
}

/// Each side must run what was built for it; then the change holds where the code is another than without it. The same code on
/// both sides is no change, whatever else of the files differs (a time stamp, a path).
fn programs(without: &Reading, with: &Reading) -> Result<[bool; 2], String> {
    let (Reading::Program { code: a, own: own_a, text }, Reading::Program { code: b, own: own_b, .. }) =
        (without, with)
    else {
        return Err("only one side has a program".to_owned());
    };
    match (own_a, own_b) {
        (_, false) => Ok([false, false]),
        (false, true) => Err(format!("without the change: {text}")),
        (true, true) => Ok([a == b, true]),
    }
}

fn fact(reading: &Reading) -> bool {
    matches!(reading, Reading::Fact { holds: true, .. })
}

impl Bound {
    fn holds(self, without: f64, read: f64) -> bool {
        match self {
            Self::AtMost(n) => read <= n,
            Self::AtLeast(n) => read >= n,
            Self::Drops(n) => read <= without - n,
            Self::Rises(n) => read >= without + n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(per_request: Bound) -> Proof {
        Proof::Syscalls { names: vec!["write".into(), "sendto".into()], per_request }
    }

    #[test]
    fn a_proof_that_holds_on_both_sides_says_so() {
        let proof = calls(Bound::AtMost(1.2));
        assert_eq!(proof.holds(&Reading::Number(1.0), &Reading::Number(1.0)), Ok([true, true]));
        assert_eq!(proof.holds(&Reading::Number(2.0), &Reading::Number(1.0)), Ok([false, true]));
    }

    #[test]
    fn a_relative_bound_never_holds_without_the_change() {
        let proof = calls(Bound::Drops(0.8));
        assert_eq!(proof.holds(&Reading::Number(3.0), &Reading::Number(2.0)), Ok([false, true]));
        assert_eq!(proof.holds(&Reading::Number(3.0), &Reading::Number(3.0)), Ok([false, false]));
    }

    #[test]
    fn what_cannot_be_read_is_a_reason_not_a_verdict() {
        let proof = Proof::Maps { contains: "libmimalloc".into() };
        let unknown = Reading::CannotTell("gone".into());
        assert_eq!(proof.holds(&unknown, &unknown), Err("gone".into()));
    }

    /// Planted fault: a build command that writes the same program for both sides.
    #[test]
    fn a_build_holds_where_each_side_runs_its_own_and_the_code_differs() {
        let proof = Proof::Built { file: "server".into() };
        let program =
            |code: &str, own| Reading::Program { code: code.into(), own, text: format!("runs {code}") };
        let holds = |a: (&str, bool), b: (&str, bool)| proof.holds(&program(a.0, a.1), &program(b.0, b.1));
        assert_eq!(holds(("O2", true), ("O3", true)), Ok([false, true]));
        assert_eq!(holds(("O2", true), ("O2", true)), Ok([true, true]), "the same code twice");
        assert_eq!(holds(("O2", true), ("O3", false)), Ok([false, false]), "another program runs");
        assert_eq!(holds(("old", false), ("O3", true)), Err("without the change: runs old".into()));
    }

    #[test]
    fn proofs_are_written_in_plans_as_tables() {
        #[derive(Deserialize)]
        struct Plan {
            proof: Vec<Proof>,
        }
        let text = r#"proof = [{ kind = "syscalls", names = ["write"], per_request = { drops = 0.8 } },
                               { kind = "maps", contains = "libjemalloc" }]"#;
        let plan: Plan = toml::from_str(text).expect("a plan's proofs");
        assert_eq!(plan.proof[1], Proof::Maps { contains: "libjemalloc".into() });
        assert_eq!(plan.proof[0].to_string(), "write per request: at least 0.8 lower than without");
        assert!(toml::from_str::<Plan>(r#"proof = [{ kind = "mapz", contains = "x" }]"#).is_err());
        let text = r#"proof = [{ kind = "open_files", contains = "log", flag = "O_DSYNC", count = { drops = 1 } },
                               { kind = "scheduled", class = "other", nice = -5 }, { kind = "timer_slack", ns = 1 }]"#;
        let told: Vec<String> =
            toml::from_str::<Plan>(text).expect("proofs").proof.iter().map(Proof::to_string).collect();
        assert_eq!(
            told,
            [
                "files log open with O_DSYNC: at least 1 lower than without",
                "class of every thread: other nice -5",
                "timer slack of every thread: 1 ns"
            ]
        );
        assert!(toml::from_str::<Plan>(&text.replace("O_DSYNC", "O_SLOW")).is_err());
    }
}
