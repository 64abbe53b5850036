//! `dyno serve` under callgrind: instructions in user space, system calls, and calls of the allocator.
//!
//! All processes of the server are counted: a worker is forked from its supervisor, and valgrind goes with it. Each
//! writes a profile at its end, whose events and calls are summed here.

use std::net::TcpStream;
use std::path::Path;

use crate::client::drive;
use crate::command::{command, find_program};
use crate::server::{Server, free_addr};
use crate::shapes::Shape;
use crate::trouble::Trouble;

/// What a program calls to get memory; `free` belongs to one of them.
const ALLOCATORS: [&str; 7] =
    ["malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign", "memalign"];

/// Sums over a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    pub(crate) system_calls: u64,
    pub(crate) allocations: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.instructions += other.instructions;
        self.system_calls += other.system_calls;
        self.allocations += other.allocations;
    }
}

/// Runs a server, has it answer `requests`, ends it, and counts.
pub(crate) fn serve(demo: &Path, folder: &Path, shape: &Shape, requests: u64) -> Result<Counts, Trouble> {
    if find_program("valgrind").is_none() {
        return Err(Trouble::new("valgrind is not installed").remedy("cargo xtask test"));
    }
    clear(folder)?;
    let addr = free_addr()?;
    let profiles = format!("--callgrind-out-file={}/profile.%p", folder.display());
    // Nanoseconds is the one word that both old and new versions take; only the count of calls is read.
    let mut program =
        command(["valgrind", "--tool=callgrind", "--collect-systime=nsec", "--quiet", profiles.as_str()]);
    program.arg(demo).arg(addr.to_string());
    let server = Server::start(program, addr, &folder.join("said"))?;
    let mut stream = TcpStream::connect(addr).map_err(Trouble::cannot("connect to the server"))?;
    drive(&mut stream, shape, requests)?;
    drop(stream);
    server.stop()?;
    sum(folder)
}

/// Profiles of a run before must not be counted again.
fn clear(folder: &Path) -> Result<(), Trouble> {
    for path in profiles(folder)? {
        std::fs::remove_file(&path).map_err(Trouble::cannot(format!("remove {}", path.display())))?;
    }
    Ok(())
}

fn profiles(folder: &Path) -> Result<Vec<std::path::PathBuf>, Trouble> {
    let entries = std::fs::read_dir(folder).map_err(Trouble::cannot(format!("list {}", folder.display())))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_profile = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("profile.");
    Ok(paths.filter(|path| path.file_name().is_some_and(is_profile)).collect())
}

fn sum(folder: &Path) -> Result<Counts, Trouble> {
    let mut all = Counts::default();
    for path in profiles(folder)? {
        let text =
            std::fs::read_to_string(&path).map_err(Trouble::cannot(format!("read {}", path.display())))?;
        all += counts(&text).ok_or_else(|| {
            Trouble::new(format!("{} is no profile of callgrind", path.display()))
                .likely("the server was killed before it could write it")
        })?;
    }
    match all.instructions {
        0 => Err(Trouble::new("callgrind wrote no profile").likely("see target/xtask/budget/*/said")),
        _ => Ok(all),
    }
}

/// Reads a profile (valgrind manual, "Callgrind Format Specification"); `None` when it is none.
fn counts(text: &str) -> Option<Counts> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let events: Vec<&str> = field("events:")?.split_whitespace().collect();
    let totals: Vec<u64> =
        field("totals:")?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // Trailing zeros may be left out.
    let total =
        |event: &str| Some(totals.get(events.iter().position(|name| *name == event)?).copied().unwrap_or(0));
    Some(Counts {
        instructions: total("Ir")?,
        system_calls: total("sysCount")?,
        allocations: allocations(text),
    })
}

/// Calls of the allocator: `cfn=(id) name` names who is called, the `calls=` line after it how often.
fn allocations(text: &str) -> u64 {
    let mut names = std::collections::BTreeMap::new();
    let (mut is_allocator, mut calls) = (false, 0);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("cfn=") {
            is_allocator = ALLOCATORS.contains(&full_name(function, &mut names));
        } else if let Some(function) = line.strip_prefix("fn=") {
            full_name(function, &mut names);
        } else if let Some(count) = line.strip_prefix("calls=").filter(|_| is_allocator) {
            calls += count.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    calls
}

/// A name is written once as `(id) name`; later its id alone stands for it.
fn full_name<'t>(function: &'t str, names: &mut std::collections::BTreeMap<&'t str, &'t str>) -> &'t str {
    match function.split_once(' ') {
        Some((id, name)) => {
            names.insert(id, name);
            name
        }
        None => names.get(function).copied().unwrap_or(function),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PROFILE: &str = "# callgrind format\nversion: 1\npid: 7\nevents: Ir sysCount sysTime sysCpuTime\n\n\
        fn=(1) main\n16 400\ncfn=(2) malloc\ncalls=3 0 \n16 90\ncfn=(3) free\ncalls=9 0 \n16 10\n\n\
        fn=(4) other\ncfn=(2)\ncalls=2 0 \n1 1\n\nfn=(5) realloc\n0 5\n\nfn=(6) last\ncfn=(5)\ncalls=1 0\n* 4\n\n\
        totals: 500 12 3456 0\n";

    #[test]
    fn a_profile_gives_its_instructions_calls_and_allocations() {
        let expected = Counts { instructions: 500, system_calls: 12, allocations: 6 };
        assert_eq!(counts(PROFILE).unwrap(), expected);
    }

    #[test]
    fn totals_that_end_early_are_zeros() {
        let short = PROFILE.replace("totals: 500 12 3456 0", "totals: 500");
        assert_eq!(counts(&short).unwrap().system_calls, 0);
    }

    #[test]
    fn a_cut_profile_is_none() {
        assert_eq!(counts(&PROFILE[..200]), None);
        assert_eq!(counts(""), None);
    }
}
