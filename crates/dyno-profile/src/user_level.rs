//! Run-times whose tasks wait without a thread, and whose memory is not read: that their waits are not seen is to be told, so
//! that nobody takes silence about locks and pools for a "no".
//!
//! Only what is certain counts, by names that a run-time gives its own threads, files and functions. It says nothing about
//! whether tasks wait. Diagnosis calls it.

use std::collections::BTreeSet;

use dyno_sys::{Pid, proc};

use crate::image::elf::Elf;
use crate::image::spaces::program;

/// Processes of a target that are looked at: a master and its workers run the same.
const PROCESSES_MAX: usize = 16;
/// Tables of names larger than this are not searched.
const NAMES_BYTES_MAX: u64 = 256 << 20;
/// How Rust's compiler writes `tokio::runtime` within a name, in both of its ways.
const TOKIO_SYMBOL: &[u8] = b"5tokio7runtime";
/// What tokio calls its workers where the program does not, as far as the kernel keeps it: 15 bytes.
const TOKIO_THREADS: [&str; 2] = ["tokio-runtime-w", "tokio-rt-worker"];
/// What the JDK calls threads that exist for virtual threads alone. Their carriers are called as a program's own first pool is.
const VIRTUAL_THREADS: [&str; 3] = ["VirtualThread-u", "MasterPoller", "Read-Poller"];

/// What is known of a process.
#[derive(Debug, Default)]
struct Shown {
    /// Its program's file and those that it has mapped, without their folders.
    program: String,
    files: BTreeSet<String>,
    threads: BTreeSet<String>,
    /// Whether the program has functions of tokio's run-time.
    has_tokio: bool,
}

/// What waits in these processes without being seen, for people.
#[must_use]
pub fn unseen(pids: &[Pid]) -> Vec<&'static str> {
    let all: BTreeSet<&str> = pids.iter().take(PROCESSES_MAX).flat_map(|pid| kinds(&shown(*pid))).collect();
    all.into_iter().collect()
}

fn kinds(shown: &Shown) -> Vec<&'static str> {
    let has_thread = |names: &[&str]| names.iter().any(|name| shown.threads.contains(*name));
    let has_file = |begin: &str| shown.files.iter().any(|file| file.starts_with(begin));
    let known = [
        ("what tasks of tokio wait for", shown.has_tokio || has_thread(&TOKIO_THREADS)),
        ("what virtual threads of Java wait for", has_file("libjvm.so") && has_thread(&VIRTUAL_THREADS)),
        ("what tasks of asyncio wait for, if it has such", has_file("_asyncio.")),
        ("what processes of Erlang wait for", shown.program.starts_with("beam.")),
    ];
    known.into_iter().filter(|(_, is_one)| *is_one).map(|(what, _)| what).collect()
}

fn shown(pid: Pid) -> Shown {
    let path = std::fs::read_link(format!("{}/exe", proc::folder(pid))).unwrap_or_default();
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mappings = proc::mappings(pid).unwrap_or_default();
    let threads = proc::tasks(pid).into_iter().filter_map(|tid| proc::name(tid).ok());
    Shown {
        program: last(&path.to_string_lossy()),
        files: mappings.iter().filter(|one| one.executable).map(|one| last(&one.path)).collect(),
        threads: threads.collect(),
        has_tokio: program(pid).is_some_and(|(elf, _)| is_named(&elf, TOKIO_SYMBOL)),
    }
}

/// Whether this stands within the name of any symbol.
fn is_named(elf: &Elf, part: &[u8]) -> bool {
    let names =
        elf.header(".symtab").and_then(|header| elf.contents(elf.linked(header)?, NAMES_BYTES_MAX).ok());
    names.is_some_and(|names| names.windows(part.len()).any(|window| window == part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_sys::child;

    fn of(program: &str, files: &[&str], threads: &[&str]) -> Vec<&'static str> {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (program, files, threads) = (program.to_owned(), all(files), all(threads));
        kinds(&Shown { program, files, threads, has_tokio: false })
    }

    /// Planted faults: a worker of any pool of Java is a virtual thread's carrier; Python is enough.
    #[test]
    fn only_what_a_run_time_names_itself_shows_that_its_tasks_are_not_seen() {
        let java = ["libjvm.so", "libc.so.6"];
        assert_eq!(of("java", &java, &["ForkJoinPool-1-", "C2 CompilerThre"]), [""; 0]);
        assert_eq!(of("java", &java, &["VirtualThread-u"]), ["what virtual threads of Java wait for"]);
        assert_eq!(of("server", &[], &["Read-Poller", "worker"]), [""; 0], "no Java");
        assert_eq!(of("server", &[], &["tokio-runtime-w"]), ["what tasks of tokio wait for"]);
        assert_eq!(of("python3.11", &["libpython3.11.so.1.0"], &["python3"]), [""; 0]);
        let asyncio = ["_asyncio.cpython-311-x86_64-linux-gnu.so"];
        assert_eq!(
            of("python3.11", &asyncio, &["python3"]),
            ["what tasks of asyncio wait for, if it has such"]
        );
        assert_eq!(of("beam.smp", &[], &["erts_sched_1"]), ["what processes of Erlang wait for"]);
    }

    #[test]
    fn this_program_has_threads_alone() {
        assert_eq!(unseen(&[child::this()]), [""; 0]);
    }
}
