//! Folded stacks: a line per stack, `main;work;sys_read_[k] 300`, as flame-graph scripts read them.
//!
//! Numbers are nanoseconds (samples for a profile that counts those). Kernel frames end in `_[k]`, inlined ones in
//! `_[i]`; a wait is a last frame `[waits: lock]`. A `;` within a name becomes `:`, for it would part frames.

use std::collections::BTreeMap;
use std::fmt::Write;

use dyno_record::profile::{Frame, Origin, Profile};

use super::wait_mark;
use crate::diff::Diff;
use crate::tree::{Label, Role, Tree};
use dyno_record::name;

/// The file.
pub fn bytes(profile: &Profile) -> Vec<u8> {
    let names: Vec<String> = profile.frames.iter().map(|frame| frame_name(profile, frame)).collect();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &profile.stacks {
        let frames = stack.frames.iter().map(|&frame| names[frame as usize].clone());
        let frames: Vec<String> = frames.chain(wait_mark(stack)).collect();
        *lines.entry(frames.join(";")).or_default() += stack.weight_ns;
    }
    let mut out = String::new();
    for (stack, weight) in lines.iter().filter(|(stack, _)| !stack.is_empty()) {
        writeln!(out, "{stack} {weight}").expect("a String takes all");
    }
    out.into_bytes()
}

/// Two profiles, as scripts for differential graphs read them: the stack, its weight before, its weight after.
///
/// Weights are what the comparison made of them, in whole nanoseconds per thousand requests (or per thousand seconds):
/// such scripts read whole numbers, and one request seldom holds many.
pub fn diff_bytes(diff: &Diff) -> Vec<u8> {
    const THOUSAND: f64 = 1e3;
    let tree = &diff.tree;
    let mut out = String::new();
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        let [before, after] = [node.own.before, node.own.after].map(|own| (own * THOUSAND).round());
        if before + after > 0.0 {
            writeln!(out, "{} {before} {after}", path(tree, at)).expect("a String takes all");
        }
    }
    out.into_bytes()
}

fn path(tree: &Tree, mut at: usize) -> String {
    let mut names = Vec::new();
    while at != 0 {
        names.push(label_name(tree.label(at as u32)));
        at = tree.nodes[at].parent as usize;
    }
    names.reverse();
    names.join(";")
}

fn label_name(label: &Label) -> String {
    let kernel = matches!(label.role, Role::Frame(Origin::Kernel) | Role::WakerFrame(Origin::Kernel));
    format!("{}{}", clean(&label.name), if kernel { "_[k]" } else { "" })
}

fn frame_name(profile: &Profile, frame: &Frame) -> String {
    let mark = match frame.origin {
        Origin::Kernel => "_[k]",
        Origin::User if frame.inlined => "_[i]",
        Origin::User | Origin::Mark => "",
    };
    format!("{}{mark}", clean(&name::of_frame(profile, frame)))
}

/// A name that is one frame on one line.
fn clean(name: &str) -> String {
    let kept = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    name.chars().map(kept).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::diff::diff;
    use crate::tree::Threads;
    use crate::tree::tests::{small, waiting};

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_stack_is_a_line() {
        assert_eq!(text(bytes(&small())), "main;idle 100\nmain;work 600\nmain;work;sys_read_[k] 300\n");
    }

    #[test]
    fn a_wait_is_a_last_frame() {
        assert!(text(bytes(&waiting())).contains("main;work;[waits: lock] 600\n"));
    }

    #[test]
    fn no_name_can_part_frames_or_lines() {
        let mut profile = small();
        profile.frames[1].name = "a;b\nc\0".to_owned();
        assert!(text(bytes(&profile)).contains("main;a:b c  600\n"));
    }

    #[test]
    fn two_profiles_are_one_line_per_stack_with_both_weights() {
        let mut before = small();
        before.duration_s = 1.0;
        let mut after = before.clone();
        after.duration_s = 2.0;
        let lines = text(diff_bytes(&diff(&before, &after, Threads::Merged).unwrap()));
        assert!(lines.contains("main;work 600000 300000\n"), "{lines}");
        assert_eq!(lines.lines().count(), 3);
    }
}
