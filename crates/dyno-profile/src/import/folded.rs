//! Folded stacks: a line per stack, its frames parted by `;`, a blank, a number.
//!
//! Such a text does not say what its numbers count: they are taken for samples until the caller knows better
//! ([`as_time`]). Kernel frames are known by `_[k]`, inlined ones by `_[i]`, waits by our own last frame.

use dyno_record::profile::{Frame, Kind, Origin, Profile, Unit, Wait, WaitClass};

use super::gather::Gather;
use super::gather::error::ImportError;
use dyno_record::name;

/// Whether a text is one: its first lines all are.
pub(super) fn is_one(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(8).peekable();
    lines.peek().is_some() && lines.all(is_line)
}

pub(super) fn is_line(line: &str) -> bool {
    parsed(line).is_some_and(|(stack, _)| !stack.starts_with([' ', '\t']))
}

/// The stack and its number.
fn parsed(line: &str) -> Option<(&str, u64)> {
    let (stack, number) = line.trim_end().rsplit_once([' ', '\t'])?;
    let stack = stack.trim_end();
    (!stack.is_empty()).then_some((stack, whole(number)?))
}

/// A count; some write it with a fraction.
fn whole(number: &str) -> Option<u64> {
    let as_float = || number.parse::<f64>().ok().filter(|number| (0.0..1e18).contains(number));
    number.parse().ok().or_else(|| as_float().map(|number| number.round() as u64))
}

/// Whether every line ends in two whole numbers, as in [`crate::export::folded::diff_bytes`]. A last frame that ends in a
/// number stands in some lines of a profile, and hardly in all of them.
fn is_comparison(text: &str) -> bool {
    let stack = |line| parsed(line).map(|(stack, _)| stack);
    let number = |stack: &str| stack.rsplit_once([' ', '\t']).and_then(|(_, last)| last.parse::<u64>().ok());
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.all(|line| stack(line).and_then(number).is_some())
}

/// Reads the text.
///
/// # Errors
/// When a line is none of a stack, or the text holds a comparison.
pub fn read(text: &str) -> Result<Profile, ImportError> {
    if !text.trim().is_empty() && is_comparison(text) {
        return Err(ImportError::Comparison);
    }
    let mut gather = Gather::new();
    let thread = gather.thread(0, 0, "all threads");
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = ImportError::Line { line: at + 1, what: "it does not end in a number" };
        let (stack, number) = parsed(line).ok_or(wrong)?;
        let (stack, wait) = parted_wait(stack);
        let frames = stack.split(';').filter(|name| !name.is_empty()).map(frame);
        let frames: Vec<u32> = frames.map(|frame| gather.frame(frame)).collect();
        if wait.is_some() {
            gather.profile.kind = Kind::OffCpu;
        }
        gather.add(thread, frames, wait, number, number);
    }
    if gather.profile.stacks.is_empty() {
        return Err(ImportError::Empty);
    }
    gather.profile.unit = Unit::Samples;
    Ok(gather.profile)
}

/// Takes the numbers for time, each one standing for `ns`.
pub fn as_time(mut profile: Profile, ns: f64) -> Profile {
    // All of them together must fit into 64 bits.
    let mut left = u64::MAX;
    for stack in &mut profile.stacks {
        let time = (stack.weight_ns as f64 * ns).round() as u64;
        stack.weight_ns = time.min(left);
        left -= stack.weight_ns;
    }
    profile.unit = Unit::Nanoseconds;
    profile
}

fn parted_wait(stack: &str) -> (&str, Option<Wait>) {
    let (rest, last) = stack.rsplit_once(';').unwrap_or(("", stack));
    let named = last.strip_prefix("[waits: ").and_then(|last| last.strip_suffix(']'));
    let class = |name: &str| name::WAITS.into_iter().find(|class: &WaitClass| name::of_wait(*class) == name);
    match named.and_then(class) {
        Some(class) => (rest, Some(Wait { class, ..Wait::default() })),
        None => (stack, None),
    }
}

fn frame(name: &str) -> Frame {
    let (name, origin, inlined) = match name {
        name if name.ends_with("_[k]") => (&name[..name.len() - 4], Origin::Kernel, false),
        name if name.ends_with("_[i]") => (&name[..name.len() - 4], Origin::User, true),
        name if name.ends_with("_[j]") => (&name[..name.len() - 4], Origin::User, false),
        name => (name, Origin::User, false),
    };
    Frame { name: name.to_owned(), origin, inlined, ..Frame::default() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::export::folded::bytes;
    use crate::tree::tests::{small, waiting};

    #[test]
    fn what_was_written_is_read_back() {
        for profile in [small(), waiting()] {
            let written = String::from_utf8(bytes(&profile)).unwrap();
            let read = read(&written).unwrap();
            assert_eq!(read.kind, profile.kind);
            assert_eq!(String::from_utf8(bytes(&read)).unwrap(), written);
            assert_eq!(as_time(read, 1.0).total_ns(), profile.total_ns());
        }
    }

    #[test]
    fn names_may_hold_blanks_and_numbers_fractions() {
        let read = read("a b::c(int, long);d e 1.6\r\n").unwrap();
        let names: Vec<&str> = read.frames.iter().map(|frame| frame.name.as_str()).collect();
        assert_eq!((names, read.total_ns()), (vec!["a b::c(int, long)", "d e"], 2));
    }

    /// Planted fault: the number before is the end of the last function's name.
    #[test]
    fn a_comparison_is_not_read_as_a_profile() {
        let mut before = small();
        before.duration_s = 1.0;
        let mut after = before.clone();
        after.stacks[0].weight_ns *= 2;
        let diff = crate::diff::diff(&before, &after, crate::tree::Threads::Merged).unwrap();
        let written = String::from_utf8(crate::export::folded::diff_bytes(&diff)).unwrap();
        let error = read(&written).unwrap_err().to_string();
        assert!(error.starts_with("it is a comparison"), "{error}: {written}");
        let names = read("a;worker 1 30\na;b 20\n").unwrap().frames;
        assert_eq!(names.iter().map(|frame| frame.name.as_str()).collect::<Vec<_>>(), ["a", "worker 1", "b"]);
    }

    #[test]
    fn samples_become_time_only_when_told() {
        let counted = read("a 3\n").unwrap();
        assert_eq!((counted.unit, counted.total_ns()), (Unit::Samples, 3));
        let timed = as_time(counted, 1e9 / 99.0);
        assert_eq!(
            (timed.unit, timed.total_ns(), timed.stacks[0].samples),
            (Unit::Nanoseconds, 30_303_030, 3)
        );
    }

    #[test]
    fn a_torn_line_is_named() {
        let error = read("a;b 3\na;b\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: it does not end in a number");
        for cut in 0.."main;work 12\n".len() {
            let text = &"main;work 12\n"[..cut];
            assert!(read(text).is_err() || text.contains(" 1"), "{text:?}");
        }
    }
}
