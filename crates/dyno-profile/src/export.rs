//! A profile in the formats of others. Every function is pure: a profile in, the bytes of a file out.

pub mod firefox;
pub mod folded;
pub mod pprof;
pub mod speedscope;

use dyno_record::profile::{Profile, Stack};

use crate::name;

/// What a wait is called where a format has only frames; the folded reader knows it again.
fn wait_mark(stack: &Stack) -> Option<String> {
    stack.wait.as_ref().map(|wait| format!("[waits: {}]", name::of_wait(wait.class)))
}

/// A line that names what was watched.
fn title(profile: &Profile) -> String {
    profile.target.in_words().unwrap_or_else(|| "profile".to_owned())
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
