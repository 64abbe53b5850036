//! Profiles from the files of others, and our own: what kind of file it is, is seen from its bytes.
//!
//! A reader says what it could not read in the profile's warnings, and refuses what it would have to guess. Files come
//! from strangers: every length is checked before it is used.

pub mod folded;
mod gather;
pub mod perf_data;
pub mod perf_script;

use std::borrow::Cow;

use dyno_record::profile::{Profile, ProfileError};
use serde_json::json;

pub use gather::error::ImportError;

/// Reads any profile.
///
/// # Errors
/// When it is none, or a damaged one.
pub fn read(bytes: &[u8]) -> Result<Profile, ImportError> {
    if perf_data::is_one(bytes) {
        return possible(perf_data::read(bytes)?);
    }
    // Names of threads are bytes to the kernel, which cuts them where it likes: one letter less spoils nothing.
    let lossy = String::from_utf8_lossy(bytes);
    let text = lossy.as_ref();
    let start = text.trim_start_matches('\u{feff}').trim_start();
    match () {
        () if start.is_empty() => Err(ImportError::Empty),
        () if start.starts_with(['{', '[']) && !folded::is_one(text) => Ok(Profile::from_json(start)?),
        () if perf_script::is_one(text) => possible(perf_script::read(text)?),
        () if folded::is_one(text) => folded::read(text),
        () if matches!(lossy, Cow::Owned(_)) => Err(ImportError::NotText),
        () => Err(unknown(text)),
    }
}

/// Reads any profile; functions that a perf.data does not name get their names from this machine, where its files are
/// still the ones that were recorded.
///
/// # Errors
/// When it is none, or a damaged one.
pub fn read_here(bytes: &[u8]) -> Result<Profile, ImportError> {
    if !perf_data::is_one(bytes) {
        return read(bytes);
    }
    let mut names = perf_data::OnDisk::default();
    possible(perf_data::read_named(bytes, |place| names.name(place))?)
}

/// A profile whose figures can be: what could not be read again is not written.
fn possible(profile: Profile) -> Result<Profile, ImportError> {
    let figures = json!({ "duration_s": profile.duration_s, "frequency_hz": profile.sampling.frequency_hz });
    dyno_record::sane::check(&figures).map_err(ProfileError::Impossible)?;
    Ok(profile)
}

/// The first line that is of neither kind, as far as it is fit to be shown.
fn unknown(text: &str) -> ImportError {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (at, line) = lines.into_iter().find(|(_, line)| !folded::is_line(line)).unwrap_or((0, ""));
    ImportError::UnknownText { line: at + 1, text: line.trim().chars().take(60).collect() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::export;
    use crate::tree::tests::small;
    use dyno_record::profile::PROFILE_SCHEMA;

    #[test]
    fn the_kind_of_a_file_is_seen_from_its_bytes() {
        let mut ours = small();
        ours.schema = PROFILE_SCHEMA.to_owned();
        assert_eq!(read(&serde_json::to_vec(&ours).unwrap()).unwrap(), ours);
        assert_eq!(read(&export::folded::bytes(&ours)).unwrap().total_ns(), 1_000);
        assert_eq!(read(b"a;b 7\n").unwrap().total_ns(), 7);
        assert_eq!(read(b"[unknown];b 7\n").unwrap().total_ns(), 7);
    }

    /// Fault: `read` that wants every byte to be of a letter.
    #[test]
    fn a_name_that_was_cut_within_a_letter_is_read_as_far_as_it_goes() {
        let script = b"caf\xc3 7/8 1.000001: 250000 cpu-clock:\n\t1145 hot+0xc (/srv/w)\n\n";
        let profile = read(script).unwrap();
        assert_eq!((profile.threads[0].name.as_str(), profile.total_ns()), ("caf\u{fffd}", 250_000));
    }

    #[test]
    fn what_is_no_profile_is_refused_with_the_place() {
        let text = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert_eq!(text(b""), "it has no stack");
        assert_eq!(text(b"\n\n"), "it has no stack");
        assert_eq!(text(b"\xff\xfe\x00"), "it is neither text nor perf.data");
        assert_eq!(
            text(b"\nDear all,\n"),
            "line 2 is neither of folded stacks nor of perf script: \"Dear all,\""
        );
        assert!(text(br#"{"schema":"dyno.climb/1"}"#).contains("dyno.climb/1"));
        assert!(text(b"{").contains("not a profile record"));
    }
}
