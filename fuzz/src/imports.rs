//! Recordings of other tools: reading one neither panics nor hangs, and what was read can be shown and written again.
#![no_main]

use dyno_profile::tree::{Threads, Tree};
use dyno_profile::{export, import, layout, top};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(profile) = import::read(data) else { return };
    assert!(profile.stacks.len() <= data.len(), "{} stacks of {} bytes", profile.stacks.len(), data.len());
    let tree = Tree::of(&profile, Threads::Apart);
    let _ = layout::layout(&tree, layout::Limits { share_min: 0.001, cells_max: 1_000 });
    let _ = (top::functions(&profile), export::folded::bytes(&profile), export::pprof::bytes(&profile));
    let _ = (export::firefox::bytes(&profile), export::speedscope::bytes(&profile));
});
