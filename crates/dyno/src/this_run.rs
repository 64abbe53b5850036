//! What records say of the run that made them: its command line, and a seed where none was given.

/// This process's command line, for records; what is no text in it is replaced by U+FFFD.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A seed that differs from run to run; it stands in the record.
pub(crate) fn seed_of_the_day() -> u64 {
    dyno_measure::Prng::new(dyno_sys::clock::mono_ns() ^ u64::from(std::process::id()) << 32).next_u64() >> 12
}
