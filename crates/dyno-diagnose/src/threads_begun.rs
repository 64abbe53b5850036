//! Threads that are begun for each piece of work and end with it. The rule for system calls asks.
//!
//! A thread costs some twenty microseconds to begin and to end, most of it in the kernel, by ten calls each of which looks harmless.
//! Processes are told by their memory, which is made anew for each (`children`).

use dyno_record::finding::{Class, Confidence};
use dyno_record::profile::{Frame, Origin};

use super::draft::{Draft, percent};
use super::facts::Facts;
use super::names;

/// A quarter of the CPU, as for other work that could be left out.
const SHARE_MIN: f64 = 0.25;
/// Threads begun in a second; a pool that grows begins fewer.
const BEGUN_PER_S_MIN: f64 = 1_000.0;
/// Of what is begun, what may be processes: who waits for their end, or begins a program.
const PROCESSES_MAX: f64 = 0.5;

/// The kernel begins a thread, or ends one.
const BEGINS: &[&str] = &[
    "kernel_clone",
    "copy_process",
    "__do_sys_clone*",
    "__x64_sys_clone*",
    "wake_up_new_task",
    "ret_from_fork*",
    "do_exit",
    "__x64_sys_exit",
];

pub(super) fn again_and_again(facts: &Facts<'_>) -> Option<Draft> {
    let (on, off) = (facts.on_both_sides()?, facts.off.as_ref()?);
    let (begun, processes) =
        (off.calls_per_s(&["clone", "clone3"]), off.calls_per_s(&["wait4", "waitid", "execve*"]));
    if begun < BEGUN_PER_S_MIN || processes > PROCESSES_MAX * begun {
        return None;
    }
    let kernel = |frames: &[&Frame], table: names::Table| {
        frames.iter().any(|frame| frame.origin == Origin::Kernel && names::is(&frame.name, table))
    };
    let share = on.share_where(|frames| kernel(frames, BEGINS) && !kernel(frames, names::FORK));
    (share >= SHARE_MIN).then(|| {
        let summary = format!("{} of the CPU begins and ends threads, {begun:.0} a second", percent(share));
        Draft::new(Class::SyscallHeavy, share, summary)
            .sure(Confidence::High)
            .fact(format!("{begun:.0} threads begin in a second"), begun, "threads/s")
            .next("threads that live and take the work from a queue: a pool (an executor, rayon, std::async with one behind it)")
            .at(on.place_with(BEGINS))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::profile::SystemCall;

    use crate::scene::Scene;

    /// A program that begins so many threads in ten seconds, and waits for so many processes.
    fn begins(hundredths: u64, begun: u64, processes: u64) -> Option<String> {
        let begin = "main;serve;pthread_create;clone3;do_syscall_64_[k];__x64_sys_clone3_[k];kernel_clone_[k];copy_process_[k]";
        let end = "start_thread;do_syscall_64_[k];__x64_sys_exit_[k];do_exit_[k]";
        let scene = Scene::new(&[6.0, 4.0]).on("main;serve;work", 100 - hundredths);
        let scene = scene.on(begin, hundredths * 3 / 5).on(end, hundredths * 2 / 5).with(|seen| {
            let calls = &mut seen.off_cpu.as_mut().unwrap().system_calls;
            for (name, count) in [("clone3", begun), ("wait4", processes)] {
                calls.insert(name.into(), SystemCall { count, ..SystemCall::default() });
            }
        });
        let found = scene.diagnosed().findings.into_iter().find(|one| one.class == Class::SyscallHeavy)?;
        Some(format!("{} at {:?}", found.summary, found.next[0].code))
    }

    /// `std::thread` for each request. Planted faults: whatever begins; a pool that grows; processes are threads.
    #[test]
    fn a_thread_for_each_piece_of_work_is_told() {
        let said = begins(30, 200_000, 0).unwrap();
        assert!(said.starts_with("30 % of the CPU begins and ends threads, 20000 a second"), "{said}");
        assert!(said.contains("serve"), "{said}");
        assert_eq!(begins(20, 200_000, 0), None);
        assert_eq!(begins(30, 9_000, 0), None, "a pool grows");
        assert_eq!(begins(30, 200_000, 150_000), None, "processes");
    }
}
