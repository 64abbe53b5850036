//! Stacks folded into a tree: every way from the root is drawn once, with all the time that was spent on it.
//!
//! The layout and the comparison are made from it. A tree has two sides, before and after; a single profile fills the
//! second. Weights are sums of what the profile holds, times a scale that the caller chooses.

use std::collections::HashMap;
use std::ops::AddAssign;

use dyno_record::profile::{Origin, Profile, Stack, WaitClass, Waker};

use dyno_record::name;

/// Frames of one stack that are kept: the kernel's own limit is 127, and a picture of more cannot be read.
pub const DEPTH_MAX: usize = 512;

/// What a box stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Everything.
    All,
    /// A thread, where threads stand apart.
    Thread,
    /// A function.
    Frame(Origin),
    /// What the function under it waited for.
    Wait(WaitClass),
    /// Who ended that wait.
    Waker,
    /// A function of that thread; its innermost stands lowest.
    WakerFrame(Origin),
}

/// A name and what it names; boxes of one parent with equal labels are one box.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// What is written on the box.
    pub name: String,
    /// What it is.
    pub role: Role,
}

/// A weight on both sides of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Both {
    /// Before; zero where only one profile is shown.
    pub before: f64,
    /// After, or the only one.
    pub after: f64,
}

impl Both {
    /// After less before.
    pub fn change(self) -> f64 {
        self.after - self.before
    }

    /// The larger one.
    pub fn larger(self) -> f64 {
        self.before.max(self.after)
    }
}

impl AddAssign for Both {
    fn add_assign(&mut self, other: Both) {
        self.before += other.before;
        self.after += other.after;
    }
}

/// Which side of the tree a profile is put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What was.
    Before,
    /// What is, or all there is.
    After,
}

/// Whether threads stand apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threads {
    /// Stacks of all threads are one tree.
    #[default]
    Merged,
    /// Every thread's name stands under its stacks; threads of one name are one.
    Apart,
}

/// A box.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Index into [`Tree::labels`].
    pub label: u32,
    /// The box under it; the root's is itself.
    pub parent: u32,
    /// Boxes under it.
    pub depth: u32,
    /// The boxes on it, by name.
    pub children: Vec<u32>,
    /// Time in it and in what stands on it.
    pub total: Both,
    /// Time in itself.
    pub own: Both,
    /// The kind of wait that most of its time went into; none on the CPU and for wakers.
    pub wait: Option<WaitClass>,
}

/// The tree; its first node is the root, and a parent stands before its children.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// What boxes are called.
    pub labels: Vec<Label>,
    /// The boxes.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// The tree of one profile, in the profile's own unit.
    pub fn of(profile: &Profile, threads: Threads) -> Tree {
        let mut growing = Growing::new();
        growing.add(profile, Side::After, 1.0, threads);
        growing.finish()
    }

    /// The tree of two, each times its scale.
    pub fn of_two(before: (&Profile, f64), after: (&Profile, f64), threads: Threads) -> Tree {
        let mut growing = Growing::new();
        growing.add(before.0, Side::Before, before.1, threads);
        growing.add(after.0, Side::After, after.1, threads);
        growing.finish()
    }

    /// The label of a node.
    pub fn label(&self, node: u32) -> &Label {
        &self.labels[self.nodes[node as usize].label as usize]
    }

    /// All time of each label, by its index; what stands on itself counts once.
    pub fn label_totals(&self) -> Vec<Both> {
        let mut totals = vec![Both::default(); self.labels.len()];
        let mut open = vec![0_u32; self.labels.len()];
        // Each node is met twice: on the way up its label opens, on the way down it closes.
        let mut way = vec![(0_u32, Way::Up)];
        while let Some((at, direction)) = way.pop() {
            let node = &self.nodes[at as usize];
            let label = node.label as usize;
            if direction == Way::Down {
                open[label] -= 1;
                continue;
            }
            if open[label] == 0 {
                totals[label] += node.total;
            }
            open[label] += 1;
            way.push((at, Way::Down));
            way.extend(node.children.iter().map(|&child| (child, Way::Up)));
        }
        totals
    }

    /// Everything in it.
    pub fn total(&self) -> Both {
        self.nodes[0].total
    }
}

/// A step of a walk over all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// A tree and what finds places in it while it grows.
struct Growing {
    tree: Tree,
    labels: HashMap<Label, u32>,
    places: HashMap<(u32, u32), u32>,
}

impl Growing {
    fn new() -> Growing {
        let mut growing = Growing {
            tree: Tree { labels: Vec::new(), nodes: Vec::new() },
            labels: HashMap::new(),
            places: HashMap::new(),
        };
        let label = growing.label("all".to_owned(), Role::All);
        growing.tree.nodes.push(node(label, 0, 0));
        growing
    }

    fn label(&mut self, name: String, role: Role) -> u32 {
        let next = self.tree.labels.len() as u32;
        let label = Label { name, role };
        *self.labels.entry(label).or_insert_with_key(|label| {
            self.tree.labels.push(label.clone());
            next
        })
    }

    fn add(&mut self, profile: &Profile, side: Side, scale: f64, threads: Threads) {
        let words = Words::of(self, profile, threads);
        let mut path = Vec::new();
        for stack in &profile.stacks {
            words.path(stack, &mut path);
            self.insert(&path, weighed(stack.weight_ns as f64 * scale, side));
        }
    }

    fn insert(&mut self, path: &[u32], weight: Both) {
        let mut at = 0;
        self.tree.nodes[0].total += weight;
        for &label in path {
            at = self.child(at, label);
            self.tree.nodes[at as usize].total += weight;
        }
        self.tree.nodes[at as usize].own += weight;
    }

    fn child(&mut self, parent: u32, label: u32) -> u32 {
        let nodes = &mut self.tree.nodes;
        *self.places.entry((parent, label)).or_insert_with(|| {
            let next = nodes.len() as u32;
            let depth = nodes[parent as usize].depth + 1;
            nodes[parent as usize].children.push(next);
            nodes.push(node(label, parent, depth));
            next
        })
    }

    fn finish(mut self) -> Tree {
        self.find_waits();
        let Tree { labels, nodes } = &mut self.tree;
        let name: Vec<u32> = nodes.iter().map(|node| node.label).collect();
        for node in nodes {
            // By name, not by weight: a function then stands at the same place in two pictures.
            node.children.sort_by_key(|&child| &labels[name[child as usize] as usize]);
        }
        self.tree
    }

    /// Gives every box under a wait the kind that most of its time went into.
    fn find_waits(&mut self) {
        let nodes = &mut self.tree.nodes;
        let mut sums = vec![[0.0; name::WAITS.len()]; nodes.len()];
        let labels = &self.tree.labels;
        for at in (1..nodes.len()).rev() {
            if let Role::Wait(class) = labels[nodes[at].label as usize].role {
                sums[at][class as usize] += nodes[at].total.larger();
            }
            let (under, above) = sums.split_at_mut(at);
            let parent = &mut under[nodes[at].parent as usize];
            parent.iter_mut().zip(above[0]).for_each(|(sum, own)| *sum += own);
        }
        for (node, sums) in nodes.iter_mut().zip(&sums) {
            node.wait = heaviest(sums);
        }
    }
}

/// What a profile's stacks are called, looked up once.
struct Words<'p> {
    profile: &'p Profile,
    frames: Vec<u32>,
    threads: Option<Vec<u32>>,
    waits: HashMap<(WaitClass, Option<&'p str>), u32>,
    /// Each waker's own label and those of its frames.
    wakers: Vec<Vec<u32>>,
    deeper: u32,
}

impl<'p> Words<'p> {
    fn of(growing: &mut Growing, profile: &'p Profile, threads: Threads) -> Words<'p> {
        let named = |frame| (name::of_frame(profile, frame), frame.origin);
        let names: Vec<_> = profile.frames.iter().map(named).collect();
        let frames = names.iter().map(|(name, origin)| growing.label(name.clone(), Role::Frame(*origin)));
        let frames = frames.collect();
        let apart = |growing: &mut Growing| {
            let names = profile.threads.iter().map(|thread| thread.name.clone());
            names.map(|name| growing.label(name, Role::Thread)).collect()
        };
        let threads = (threads == Threads::Apart).then(|| apart(growing));
        let wakers = profile.wakers.iter().map(|waker| waker_path(growing, waker, &names)).collect();
        let waits = waits(growing, profile);
        let deeper = growing.label("[deeper frames]".to_owned(), Role::Frame(Origin::Mark));
        Words { profile, frames, threads, waits, wakers, deeper }
    }

    /// The labels of a stack, from the root: the thread, its functions, its wait, and who ended it.
    fn path(&self, stack: &Stack, path: &mut Vec<u32>) {
        path.clear();
        path.extend(self.threads.as_ref().and_then(|threads| threads.get(stack.thread as usize)));
        path.extend(stack.frames.iter().take(DEPTH_MAX).map(|&frame| self.frames[frame as usize]));
        if stack.frames.len() > DEPTH_MAX {
            path.push(self.deeper);
        }
        if let Some(wait) = &stack.wait {
            path.extend(self.waits.get(&(wait.class, wait.object.as_deref())));
        }
        if let Some(waker) = stack.waker.filter(|&waker| (waker as usize) < self.profile.wakers.len()) {
            path.extend(&self.wakers[waker as usize]);
        }
    }
}

/// A waker, and its stack from the leaf: the function that woke stands on what it woke.
fn waker_path(growing: &mut Growing, waker: &Waker, names: &[(String, Origin)]) -> Vec<u32> {
    let mut path = vec![growing.label(format!("woken by {}", waker.name), Role::Waker)];
    for &frame in waker.frames.iter().rev().take(DEPTH_MAX) {
        let (name, origin) = &names[frame as usize];
        path.push(growing.label(name.clone(), Role::WakerFrame(*origin)));
    }
    path
}

fn waits<'p>(growing: &mut Growing, profile: &'p Profile) -> HashMap<(WaitClass, Option<&'p str>), u32> {
    let mut waits = HashMap::new();
    for wait in profile.stacks.iter().filter_map(|stack| stack.wait.as_ref()) {
        let object = wait.object.as_deref();
        waits.entry((wait.class, object)).or_insert_with(|| {
            let of = object.map(|object| format!(" {object}")).unwrap_or_default();
            growing.label(format!("waits: {}{of}", name::of_wait(wait.class)), Role::Wait(wait.class))
        });
    }
    waits
}

fn node(label: u32, parent: u32, depth: u32) -> Node {
    Node {
        label,
        parent,
        depth,
        children: Vec::new(),
        total: Both::default(),
        own: Both::default(),
        wait: None,
    }
}

fn weighed(weight: f64, side: Side) -> Both {
    match side {
        Side::Before => Both { before: weight, after: 0.0 },
        Side::After => Both { before: 0.0, after: weight },
    }
}

fn heaviest(sums: &[f64; name::WAITS.len()]) -> Option<WaitClass> {
    let heavier = |a: &WaitClass, b: &WaitClass| sums[*a as usize].total_cmp(&sums[*b as usize]);
    name::WAITS.into_iter().max_by(heavier).filter(|class| sums[*class as usize] > 0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use dyno_record::profile::{Frame, Kind, Thread, Wait};

    pub(crate) fn frame(name: &str, origin: Origin) -> Frame {
        Frame { name: name.to_owned(), origin, ..Frame::default() }
    }

    pub(crate) fn stack(frames: &[u32], weight_ns: u64) -> Stack {
        Stack { frames: frames.to_vec(), samples: weight_ns / 10, weight_ns, ..Stack::default() }
    }

    /// main calls work and idle; work enters the kernel.
    pub(crate) fn small() -> Profile {
        let user = ["main", "work", "idle"].map(|name| frame(name, Origin::User));
        let kernel = [frame("sys_read", Origin::Kernel)];
        Profile {
            threads: vec![Thread { pid: 1, tid: 1, name: "one".to_owned() }],
            frames: user.into_iter().chain(kernel).collect(),
            stacks: vec![stack(&[0, 1], 600), stack(&[0, 1, 3], 300), stack(&[0, 2], 100)],
            ..Profile::default()
        }
    }

    /// Small, with the moments of its samples: it works in the first and the third tenth of a microsecond, and is idle in
    /// the second.
    pub(crate) fn timed() -> Profile {
        let mut profile = small();
        profile.slice_ns = Some(100);
        profile.stacks.truncate(2);
        profile.stacks[0] = Stack { samples: 10, slices: vec![(0, 5), (2, 5)], ..stack(&[0, 1], 100) };
        profile.stacks[1] = Stack { samples: 5, slices: vec![(0, 5)], ..stack(&[0, 1, 3], 50) };
        profile
    }

    pub(crate) fn waiting() -> Profile {
        let mut profile = small();
        profile.kind = Kind::OffCpu;
        profile.wakers = vec![Waker { pid: 1, tid: 2, name: "two".to_owned(), frames: vec![0, 2] }];
        let wait =
            |class, object: &str| Some(Wait { class, system_call: None, object: Some(object.to_owned()) });
        profile.stacks[0].wait = wait(WaitClass::Lock, "0x7f");
        profile.stacks[0].waker = Some(0);
        profile.stacks[1].wait = wait(WaitClass::Disk, "log");
        profile
    }

    /// Each node as its path and its totals.
    fn lines(tree: &Tree) -> Vec<String> {
        let path = |mut at: usize| {
            let mut names = vec![tree.label(at as u32).name.clone()];
            while at != 0 {
                at = tree.nodes[at].parent as usize;
                names.push(tree.label(at as u32).name.clone());
            }
            names.reverse();
            names.join(";")
        };
        let line =
            |at: usize| format!("{} {} {}", path(at), tree.nodes[at].total.after, tree.nodes[at].own.after);
        (0..tree.nodes.len()).map(line).collect()
    }

    #[test]
    fn stacks_with_a_common_beginning_share_its_boxes() {
        let tree = Tree::of(&small(), Threads::Merged);
        assert_eq!(
            lines(&tree),
            [
                "all 1000 0",
                "all;main 1000 0",
                "all;main;work 900 600",
                "all;main;work;sys_read 300 300",
                "all;main;idle 100 100"
            ]
        );
        let main = &tree.nodes[1];
        let names: Vec<&str> = main.children.iter().map(|&at| tree.label(at).name.as_str()).collect();
        assert_eq!(names, ["idle", "work"], "siblings stand by name");
    }

    #[test]
    fn a_waker_stands_on_the_wait_it_ended_with_its_leaf_below() {
        let tree = Tree::of(&waiting(), Threads::Apart);
        let lines = lines(&tree);
        let wanted = "all;one;main;work;waits: lock 0x7f;woken by two;idle;main 600 600";
        assert!(lines.iter().any(|line| line == wanted), "{lines:#?}");
        let work = tree.nodes.iter().position(|node| tree.labels[node.label as usize].name == "work");
        assert_eq!(work.map(|at| tree.nodes[at].wait), Some(Some(WaitClass::Lock)));
        let last = tree.nodes.iter().filter(|node| node.children.is_empty());
        assert!(last.clone().any(|node| node.wait == Some(WaitClass::Disk)));
    }

    #[test]
    fn a_tower_without_end_is_cut_and_says_so() {
        let mut profile = small();
        profile.stacks = vec![stack(&vec![0; DEPTH_MAX + 7], 10)];
        let tree = Tree::of(&profile, Threads::Merged);
        assert_eq!(tree.nodes.len(), DEPTH_MAX + 2);
        assert_eq!(tree.label(DEPTH_MAX as u32 + 1).name, "[deeper frames]");
    }

    #[test]
    fn a_label_that_stands_on_itself_is_counted_once() {
        let mut profile = small();
        profile.stacks = vec![stack(&[0, 1, 0, 1], 10), stack(&[0, 1], 20), stack(&[1], 40)];
        let tree = Tree::of(&profile, Threads::Merged);
        let total = |name: &str| {
            let at = tree.labels.iter().position(|label| label.name == name);
            at.map(|at| tree.label_totals()[at].after)
        };
        assert_eq!((total("main"), total("work"), total("all")), (Some(30.0), Some(70.0), Some(70.0)));
    }

    #[test]
    fn kernel_and_user_functions_of_one_name_are_two() {
        let mut profile = small();
        profile.frames[3].name = "work".to_owned();
        profile.stacks = vec![stack(&[0, 1], 10), stack(&[0, 3], 20)];
        assert_eq!(Tree::of(&profile, Threads::Merged).nodes[1].children.len(), 2);
    }
}
