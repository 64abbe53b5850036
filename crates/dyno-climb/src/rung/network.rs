//! The rungs of the laboratory's network (`dyno climb --netns`), from what ordinary hosts carry upwards.
//!
//! The start has what the host of a server often has: rules, tracking, taps, a queue, packets handed between CPUs, filters of
//! system calls. Each rung takes one away, or puts something better in its place. A rung and its dial are one file each.

mod conntrack_none;
mod filters_none;
mod gro_off;
mod napi_thread;
mod notrack;
mod qdisc_none;
mod rps_off;
mod rules_none;
mod rules_set;
mod segments_whole;
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
    ];
    all.iter().map(|step| step(here)).collect()
}
