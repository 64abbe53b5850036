//! What records say of the run that made them: its command line, and a seed where none was given; and of which commit and
//! target this program is.
//!
//! Verbs and the command line ask; `build.rs` has looked up the commit.

/// Version, commit (`-dirty` where sources were not as committed) and target: what a report of a fault begins with.
pub(crate) const VERSION: &str = match cfg!(debug_assertions) {
    true => concat!(
        env!("CARGO_PKG_VERSION"),
        " (",
        env!("DYNO_COMMIT"),
        ", ",
        env!("DYNO_TARGET"),
        ", assertions on)"
    ),
    false => concat!(env!("CARGO_PKG_VERSION"), " (", env!("DYNO_COMMIT"), ", ", env!("DYNO_TARGET"), ")"),
};

/// This process's command line, for records; what is no text in it is replaced by U+FFFD.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A seed that differs from run to run; it stands in the record.
pub(crate) fn seed_of_the_day() -> u64 {
    dyno_measure::Prng::new(dyno_sys::clock::mono_ns() ^ u64::from(std::process::id()) << 32).next_u64() >> 12
}
