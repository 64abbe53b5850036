//! The call tree in words: who calls whom, how much lies under each call, and the source line that holds most of it.
//!
//! The views of profiles show it as a table. What is below a share is left out; the picture has it all.

use std::collections::{BTreeMap, HashMap};

use dyno_record::name;
use dyno_record::profile::{Frame, Profile};

/// Stacks deeper than this are cut: a recursion of thousands would be a column of one name.
const DEPTH_MAX: usize = 256;

/// A function where it was called from, with all that it was seen to do there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// Calls between it and the first fork of the tree.
    pub depth: usize,
    /// Its plain name.
    pub name: String,
    /// Time in it and in what it calls, ns or samples as the profile has them.
    pub total: u64,
    /// Time of its own.
    pub own: u64,
    /// The line of it that holds most of `total`.
    pub line: Option<Line>,
}

/// A line of a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The file's path, as the debug information has it.
    pub file: String,
    /// Its number.
    pub number: u32,
    /// The part of the call's time in this line and what it calls.
    pub total: u64,
}

#[derive(Default)]
struct Node<'p> {
    children: HashMap<&'p str, usize>,
    name: &'p str,
    total: u64,
    own: u64,
    lines: BTreeMap<(&'p str, u32), u64>,
}

/// Calls that hold at least `least` of the whole, the heaviest first, each before what it calls; from the first fork on,
/// because what all stacks share says nothing of where the time goes.
pub fn calls(profile: &Profile, least: f64) -> Vec<Call> {
    let names: Vec<String> =
        profile.frames.iter().map(|frame| name::plain(&name::of_frame(profile, frame))).collect();
    let nodes = grown(profile, &names);
    let least = (least * nodes[0].total as f64).max(1.0) as u64;
    let mut found = Vec::new();
    walk(&nodes, fork(&nodes), 0, least, &mut found);
    found
}

fn grown<'p>(profile: &'p Profile, names: &'p [String]) -> Vec<Node<'p>> {
    let mut nodes = vec![Node::default()];
    for stack in &profile.stacks {
        let (weight, mut at) = (stack.weight_ns, 0);
        nodes[0].total += weight;
        for frame in stack.frames.iter().take(DEPTH_MAX) {
            let (name, frame) = (names[*frame as usize].as_str(), &profile.frames[*frame as usize]);
            let fresh = nodes.len();
            let child = *nodes[at].children.entry(name).or_insert(fresh);
            if child == fresh {
                nodes.push(Node { name, ..Node::default() });
            }
            at = child;
            nodes[at].total += weight;
            if let Some(line) = line(frame) {
                *nodes[at].lines.entry(line).or_default() += weight;
            }
        }
        nodes[at].own += weight;
    }
    nodes
}

fn line(frame: &Frame) -> Option<(&str, u32)> {
    Some((frame.file.as_deref()?, frame.line.filter(|line| *line > 0)?))
}

/// The last node that holds all there is.
fn fork(nodes: &[Node<'_>]) -> usize {
    let mut at = 0;
    while let Some(&child) = nodes[at].children.values().find(|child| nodes[**child].total == nodes[0].total)
    {
        at = child;
    }
    at
}

fn walk(nodes: &[Node<'_>], at: usize, depth: usize, least: u64, found: &mut Vec<Call>) {
    let node = &nodes[at];
    // The root is no call; where nothing is shared by all, it is the fork.
    let below = if at == 0 { depth } else { depth + 1 };
    if at > 0 {
        found.push(call(node, depth));
    }
    let mut children: Vec<usize> =
        node.children.values().copied().filter(|child| nodes[*child].total >= least).collect();
    children.sort_by_key(|child| (std::cmp::Reverse(nodes[*child].total), nodes[*child].name));
    for child in children {
        walk(nodes, child, below, least, found);
    }
}

fn call(node: &Node<'_>, depth: usize) -> Call {
    let heaviest = node.lines.iter().max_by_key(|(place, total)| (**total, std::cmp::Reverse(**place)));
    let line = heaviest.map(|((file, number), total)| Line {
        file: (*file).to_owned(),
        number: *number,
        total: *total,
    });
    Call { depth, name: node.name.to_owned(), total: node.total, own: node.own, line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::{Origin, Stack};

    fn frame(name: &str, line: u32) -> Frame {
        let file = (line > 0).then(|| "src/work.c".to_owned());
        let line = (line > 0).then_some(line);
        Frame { name: name.to_owned(), file, line, origin: Origin::User, ..Frame::default() }
    }

    fn profile(stacks: &[(&[u32], u64)]) -> Profile {
        let frames = ["start", "main", "parse", "render", "copy"]
            .map(|name| frame(name, 0))
            .into_iter()
            .chain([frame("parse", 7), frame("parse", 9)]);
        let stack = |(frames, weight_ns): &(&[u32], u64)| Stack {
            frames: frames.to_vec(),
            weight_ns: *weight_ns,
            ..Stack::default()
        };
        Profile { frames: frames.collect(), stacks: stacks.iter().map(stack).collect(), ..Profile::default() }
    }

    fn told(calls: &[Call]) -> Vec<String> {
        calls
            .iter()
            .map(|call| format!("{}{} {}/{}", " ".repeat(call.depth), call.name, call.own, call.total))
            .collect()
    }

    #[test]
    fn the_tree_begins_at_its_fork_and_the_heaviest_call_comes_first() {
        let profile = profile(&[(&[0, 1, 2], 30), (&[0, 1, 3], 50), (&[0, 1, 3, 4], 20)]);
        let found = calls(&profile, 0.01);
        assert_eq!(told(&found), ["main 0/100", " render 50/70", "  copy 20/20", " parse 30/30"]);
    }

    #[test]
    fn what_is_below_the_share_is_left_out_with_all_that_it_calls() {
        let profile = profile(&[(&[0, 1, 2], 985), (&[0, 1, 3, 4], 15)]);
        assert_eq!(told(&calls(&profile, 0.02)), ["main 0/1000", " parse 985/985"]);
    }

    #[test]
    fn a_call_says_which_of_its_lines_holds_most() {
        let profile = profile(&[(&[0, 1, 5, 4], 40), (&[0, 1, 6], 60), (&[0, 1, 3], 1)]);
        let found = calls(&profile, 0.1);
        let parse = found.iter().find(|call| call.name == "parse").expect("it holds most");
        let line = parse.line.as_ref().expect("its lines are known");
        assert_eq!((parse.total, line.file.as_str(), line.number, line.total), (100, "src/work.c", 9, 60));
    }

    #[test]
    fn without_a_stack_there_is_no_call() {
        assert_eq!(calls(&profile(&[]), 0.01), []);
    }

    /// Planted fault: no limit, and the test's own stack overflows.
    #[test]
    fn a_recursion_of_a_hundred_thousand_calls_is_cut() {
        let deep: Vec<u32> = std::iter::once(0).chain(std::iter::repeat_n(2, 100_000)).collect();
        let found = calls(&profile(&[(&deep, 1), (&[0, 3], 1)]), 0.01);
        assert!(found.len() <= DEPTH_MAX + 1, "{}", found.len());
    }
}
