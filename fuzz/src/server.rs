//! The server's core on a simulated network: who sends these bytes in these pieces is answered as the model of HTTP says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

// Handlers of the simulation panic on purpose, and the server goes on: only what leaves the simulation is a finding.
fuzz_target!(|data: &[u8]| {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    if catch_unwind(AssertUnwindSafe(|| dyno_engine::simulate(data))).is_err() {
        // Once more, for what it says.
        std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
        let _ = catch_unwind(AssertUnwindSafe(|| dyno_engine::simulate(data)));
        std::process::abort();
    }
});
