//! The rungs of the laboratory's network (`dyno climb --netns`), from what ordinary hosts carry upwards.
//!
//! The start has what the host of a server often has: rules, tracking, taps, a queue, packets handed between CPUs, filters of
//! system calls. Each rung takes one away, or puts something better in its place. A rung and its dial are one file each. The last
//! are told and not tried: what they would change is decided at boot, or is not a cable's.

mod audit_never;
mod busy_poll;
mod class_batch;
mod class_fifo;
mod clock_tsc;
mod conntrack_none;
mod defer;
mod filters_none;
mod flows_local;
mod gro_off;
mod interrupts_fewer;
mod interrupts_local;
mod mitigations_off;
mod napi_thread;
mod notrack;
mod pages_huge;
mod qdisc_none;
mod rps_off;
mod rules_none;
mod rules_set;
mod segments_whole;
mod sending_local;
mod taps_none;

use super::shape::{NetworkHere, Step};

/// In the order in which they are climbed.
pub(super) fn steps(here: &NetworkHere) -> Vec<Step> {
    let all: &[fn(&NetworkHere) -> Step] = &[
        rules_set::step,
        rps_off::step,
        taps_none::step,
        notrack::step,
        rules_none::step,
        conntrack_none::step,
        qdisc_none::step,
        filters_none::step,
        napi_thread::step,
        gro_off::step,
        segments_whole::step,
        busy_poll::step,
        defer::step,
        class_batch::step,
        class_fifo::step,
        mitigations_off::step,
        audit_never::step,
        interrupts_local::step,
        interrupts_fewer::step,
        sending_local::step,
        flows_local::step,
        pages_huge::step,
        clock_tsc::step,
    ];
    all.iter().map(|step| step(here)).collect()
}
