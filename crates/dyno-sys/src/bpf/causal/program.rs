//! The causal probe's programs: the object fitted to this kernel, and which program looks at what.
//!
//! The probe loads and attaches what this file names; nothing here calls the kernel.

use super::tried::Pausing;
use crate::bpf::BpfError;
use crate::bpf::types::Types;

/// Built by `cargo xtask gen bpf`; the source lies beside it.
pub(super) static OBJECT: &[u8] = include_bytes!("../../../bpf/causal.bpf.o");

/// Longest single pause, ns. On the way back to user mode it is preemptible; inside the sample's program nothing else
/// runs on that core meanwhile.
pub(super) const TASK_WORK_NS_MAX: u64 = 20_000_000;
pub(super) const SPIN_NS_MAX: u64 = 1_000_000;

/// The call of the kernel's function that schedules a pause: `call` of a kernel function with a mark for its number.
const MARKED_CALL: [u8; 8] = [0x85, 0x20, 0, 0, 0xef, 0xbe, 0xad, 0x7e];
/// That function's names, the one with the argument that the call gives first.
const SCHEDULE: [&str; 2] = ["bpf_task_work_schedule_resume_impl", "bpf_task_work_schedule_resume"];

/// Programs that see forks and exits: attached from the beginning to the end.
pub(super) const LIFE: [(&str, &str); 3] =
    [("on_fork", "sched_process_fork"), ("on_exec", "sched_process_exec"), ("on_exit", "sched_process_exit")];

/// The probe's programs by what they look at.
pub(super) const HOOKS: [(&str, &[&str]); 5] = [
    ("samples", &["sample_later", "sample_now"]),
    ("switches", &["on_switch"]),
    ("wake-ups", &["on_waking"]),
    ("progress", &["on_visit", "on_begin", "on_end", "on_return", "on_trace"]),
    ("forks and exits", &["on_fork", "on_exec", "on_exit"]),
];

pub(super) fn sampler(pausing: Pausing) -> &'static str {
    match pausing {
        Pausing::TaskWork => "sample_later",
        Pausing::SpinInSample => "sample_now",
    }
}

/// The object with the number of the kernel's function in its place, and whether the kernel has that function.
pub(super) fn patched(types: &Types) -> (Vec<u8>, bool) {
    let mut bytes = OBJECT.to_vec();
    let Some(number) = SCHEDULE.iter().find_map(|name| types.function(name)) else { return (bytes, false) };
    let calls: Vec<usize> = (0..bytes.len().saturating_sub(MARKED_CALL.len()))
        .filter(|at| bytes[*at..].starts_with(&MARKED_CALL))
        .collect();
    for at in &calls {
        bytes[at + 4..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    (bytes, !calls.is_empty())
}

/// From a CPU's run queue to its count of reasons not to be preempted.
pub(super) fn preempt_count_at(types: &Types) -> Result<u64, BpfError> {
    // Linux 6.2 to 6.14 keep it in `struct pcpu_hot`, after a pointer.
    let count = types.of_each_cpu("__preempt_count").or_else(|| Some(types.of_each_cpu("pcpu_hot")? + 8));
    let both = count.zip(types.of_each_cpu("runqueues"));
    let missing = || BpfError::Missing { what: "variable of each CPU", name: "__preempt_count".to_owned() };
    both.map(|(count, queue)| count.wrapping_sub(queue)).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_one_place_for_the_kernels_function() {
        let places = OBJECT.windows(MARKED_CALL.len()).filter(|bytes| *bytes == MARKED_CALL).count();
        assert_eq!(places, 1);
    }
}
