//! Plans of climbs, as users write them: whatever stands there, it is a plan or an error that can be shown.
#![no_main]

use dyno_climb::plan::Plan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = Plan::from_toml(text) {
        assert!(!error.to_string().is_empty());
    }
});
