//! A profile in the formats of others. Every function is pure: a profile in, the bytes of a file out.

pub mod firefox;
pub mod folded;
pub mod pprof;
pub mod speedscope;

use dyno_record::profile::{Profile, Stack, Unit};

use dyno_record::name;

/// What a wait is called where a format has only frames; the folded reader knows it again.
fn wait_mark(stack: &Stack) -> Option<String> {
    stack.wait.as_ref().map(|wait| format!("[waits: {}]", name::of_wait(wait.class)))
}

/// A line that names what was watched.
fn title(profile: &Profile) -> String {
    profile.target.in_words().unwrap_or_else(|| "profile".to_owned())
}

/// A stretch of one stack on the axis of an export: the stack's place among its thread's, where it begins, and its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    stack: usize,
    from: f64,
    weight: f64,
}

/// One thread's stacks on an axis, in units of `unit_ns`, or of one sample: where their moments are known, each slice's
/// samples follow one another from where it begins; else all stand side by side.
fn stretches(profile: &Profile, stacks: &[&Stack], unit_ns: f64) -> Vec<Stretch> {
    let unit = if profile.unit == Unit::Nanoseconds { unit_ns } else { 1.0 };
    let slice = profile.slice_ns.filter(|_| has_moments(profile, stacks)).map(|ns| ns as f64 / unit);
    let mut pieces: Vec<(u32, usize, f64)> = Vec::new();
    for (at, stack) in stacks.iter().enumerate() {
        let weight = stack.weight_ns as f64 / unit;
        let known = || stack.slices.iter().map(|(slice, n)| (*slice, f64::from(*n) / stack.samples as f64));
        match slice {
            Some(_) => pieces.extend(known().map(|(slice, part)| (slice, at, weight * part))),
            None => pieces.push((0, at, weight)),
        }
    }
    pieces.sort_by_key(|piece| (piece.0, piece.1));
    let mut free = 0.0;
    let place = |(number, stack, weight): (u32, usize, f64)| {
        // A slice that is fuller than it is long pushes the next one.
        let from = f64::max(free, slice.map_or(0.0, |slice| f64::from(number) * slice));
        free = from + weight;
        Stretch { stack, from, weight }
    };
    pieces.into_iter().map(place).collect()
}

/// Whether it is known of every sample of a thread when it fell, and weights are time.
fn has_moments(profile: &Profile, stacks: &[&Stack]) -> bool {
    let whole = |stack: &&Stack| {
        stack.samples > 0
            && stack.slices.iter().map(|(_, samples)| u64::from(*samples)).sum::<u64>() == stack.samples
    };
    profile.unit == Unit::Nanoseconds && profile.slice_ns.is_some() && stacks.iter().all(whole)
}

/// Stacks of each thread that has any.
fn by_thread(profile: &Profile) -> Vec<(u32, Vec<&Stack>)> {
    let mut found = vec![Vec::new(); profile.threads.len()];
    for stack in &profile.stacks {
        if let Some(stacks) = found.get_mut(stack.thread as usize) {
            stacks.push(stack);
        }
    }
    let numbered = (0_u32..).zip(found);
    numbered.filter(|(_, stacks)| !stacks.is_empty()).collect()
}
