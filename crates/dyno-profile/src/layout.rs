//! Where each box of a flame graph stands: shares of the width from left to right, levels from the root.
//!
//! Drawing turns levels upwards (flame) or downwards (icicle) and shares into pixels. What would be too narrow to see is
//! not laid out: narrow neighbours become one box together, and the layout says how many nodes have no box of their own.

use crate::tree::Tree;

/// What a layout leaves out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Boxes narrower than this share of the whole are folded.
    pub share_min: f64,
    /// Boxes at most; where there are more the narrowest are folded.
    pub cells_max: usize,
}

/// A box with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What it shows.
    pub what: What,
    /// Boxes between it and the root.
    pub depth: u32,
    /// Its left edge, from 0 to 1.
    pub from: f64,
    /// Its width, from 0 to 1.
    pub width: f64,
}

/// What a box shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A node of the tree.
    Node(u32),
    /// So many neighbours that are too narrow alone, on this node.
    Narrow {
        /// The node they stand on.
        parent: u32,
        /// How many.
        many: u32,
    },
}

/// All boxes, each after the one it stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The boxes.
    pub cells: Vec<Cell>,
    /// Levels, the root's included.
    pub levels: u32,
    /// Nodes of the tree that have no box of their own.
    pub folded: usize,
    /// The narrowest share that has a box of its own.
    pub share_min: f64,
    /// What the whole width stands for, in the tree's unit.
    pub whole: f64,
}

/// Lays a tree out.
pub fn layout(tree: &Tree, limits: Limits) -> Layout {
    let widths = widths(tree);
    let whole = widths[0];
    let share_min = least_share(&widths, limits);
    let mut laying = Laying { tree, widths: &widths, least: share_min * whole, cells: Vec::new(), seen: 0 };
    if whole > 0.0 {
        laying.lay();
    }
    let Laying { cells, seen, .. } = laying;
    let levels = cells.iter().map(|cell| cell.depth + 1).max().unwrap_or(0);
    Layout { cells, levels, folded: tree.nodes.len() - seen, share_min, whole }
}

/// What each node's width stands for: the larger side of its own weight, and all that stands on it.
///
/// With one side that is its total. With two nothing is hidden: what vanished is as wide as it was.
pub fn widths(tree: &Tree) -> Vec<f64> {
    let mut widths: Vec<f64> = tree.nodes.iter().map(|node| node.own.larger()).collect();
    for at in (1..tree.nodes.len()).rev() {
        let width = widths[at];
        widths[tree.nodes[at].parent as usize] += width;
    }
    widths
}

/// The least share, raised until no more nodes than allowed reach it.
fn least_share(widths: &[f64], limits: Limits) -> f64 {
    let whole = widths[0].max(f64::MIN_POSITIVE);
    let mut shares: Vec<f64> = widths.iter().map(|width| width / whole).collect();
    shares.retain(|share| *share >= limits.share_min);
    if shares.len() <= limits.cells_max {
        return limits.share_min;
    }
    let cells_max = limits.cells_max.max(1);
    let (_, narrowest, _) = shares.select_nth_unstable_by(cells_max - 1, |a, b| b.total_cmp(a));
    // Just above the widest that would be one too many; equal ones go together.
    *narrowest * (1.0 + 1e-9)
}

struct Laying<'t> {
    tree: &'t Tree,
    widths: &'t [f64],
    least: f64,
    cells: Vec<Cell>,
    seen: usize,
}

impl Laying<'_> {
    /// Parents before children, left before right; without recursion, since stacks may be deep.
    fn lay(&mut self) {
        let mut open = vec![Cell { what: What::Node(0), depth: 0, from: 0.0, width: 1.0 }];
        while let Some(cell) = open.pop() {
            if let What::Node(node) = cell.what {
                self.seen += 1;
                let first = open.len();
                self.open_children(node, &cell, &mut open);
                open[first..].reverse();
            }
            self.cells.push(cell);
        }
    }

    fn open_children(&self, node: u32, under: &Cell, open: &mut Vec<Cell>) {
        let (mut from, mut narrow, mut many) = (under.from, 0.0, 0);
        let whole = self.widths[0];
        for &child in &self.tree.nodes[node as usize].children {
            let width = self.widths[child as usize];
            if width < self.least || width <= 0.0 {
                (narrow, many) = (narrow + width, many + 1);
                continue;
            }
            let share = width / whole;
            open.push(Cell { what: What::Node(child), depth: under.depth + 1, from, width: share });
            from += share;
        }
        if narrow >= self.least && narrow > 0.0 {
            let what = What::Narrow { parent: node, many };
            open.push(Cell { what, depth: under.depth + 1, from, width: narrow / whole });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::{frame, small, stack};
    use crate::tree::{Threads, Tree};
    use dyno_measure::Prng;
    use dyno_record::profile::{Origin, Profile};

    const ALL: Limits = Limits { share_min: 0.0, cells_max: usize::MAX };

    fn named(tree: &Tree, layout: &Layout) -> Vec<(String, u32, f64, f64)> {
        let name = |cell: &Cell| match cell.what {
            What::Node(node) => tree.label(node).name.clone(),
            What::Narrow { many, .. } => format!("{many} narrow"),
        };
        let round = |value: f64| (value * 1e6).round() / 1e6;
        layout
            .cells
            .iter()
            .map(|cell| (name(cell), cell.depth, round(cell.from), round(cell.width)))
            .collect()
    }

    #[test]
    fn a_box_is_as_wide_as_its_share_and_stands_within_its_parent() {
        let tree = Tree::of(&small(), Threads::Merged);
        let laid = layout(&tree, ALL);
        let wanted = [
            ("all", 0, 0.0, 1.0),
            ("main", 1, 0.0, 1.0),
            ("idle", 2, 0.0, 0.1),
            ("work", 2, 0.1, 0.9),
            ("sys_read", 3, 0.1, 0.3),
        ];
        let wanted: Vec<_> = wanted.map(|(n, d, f, w)| (n.to_owned(), d, f, w)).into();
        assert_eq!(named(&tree, &laid), wanted);
        assert_eq!((laid.levels, laid.folded, laid.whole), (4, 0, 1_000.0));
    }

    /// Many stacks over few names, from a seed.
    fn random(stacks: usize, seed: u64) -> Profile {
        let mut chance = Prng::new(seed);
        let mut profile = Profile {
            frames: (0..60).map(|k| frame(&format!("f{k}"), Origin::User)).collect(),
            threads: small().threads,
            ..Profile::default()
        };
        for _ in 0..stacks {
            let depth = 1 + chance.below(30);
            let frames: Vec<u32> = (0..depth).map(|_| chance.below(60) as u32).collect();
            profile.stacks.push(stack(&frames, 1 + chance.below(1_000)));
        }
        profile
    }

    #[test]
    fn boxes_of_any_profile_nest_and_never_overlap() {
        for seed in 1..20 {
            let tree = Tree::of(&random(300, seed), Threads::Merged);
            let laid = layout(&tree, Limits { share_min: 1e-3, cells_max: 200 });
            assert!(laid.cells.len() <= 2 * 200, "seed {seed}: {} cells", laid.cells.len());
            let mut edges = vec![0.0; laid.levels as usize + 1];
            for cell in &laid.cells {
                assert!(cell.from >= edges[cell.depth as usize] - 1e-9, "seed {seed}: {cell:?}");
                edges[cell.depth as usize] = cell.from + cell.width;
                let under = cell.depth.checked_sub(1).map_or(1.0, |under| edges[under as usize]);
                assert!(cell.from + cell.width <= under + 1e-9, "seed {seed}: {cell:?}");
            }
        }
    }

    #[test]
    fn what_is_too_narrow_is_folded_and_counted() {
        let mut profile = small();
        profile.stacks = vec![stack(&[0, 1], 980), stack(&[0, 2], 10), stack(&[0, 3], 10)];
        let tree = Tree::of(&profile, Threads::Merged);
        let laid = layout(&tree, Limits { share_min: 0.015, cells_max: 100 });
        assert_eq!(laid.folded, 2);
        let last = named(&tree, &laid).pop();
        assert_eq!(last, Some(("2 narrow".to_owned(), 2, 0.98, 0.02)));
    }

    #[test]
    fn no_more_boxes_are_laid_out_than_asked_for() {
        let tree = Tree::of(&random(2_000, 7), Threads::Merged);
        let laid = layout(&tree, Limits { share_min: 0.0, cells_max: 500 });
        let own = laid.cells.iter().filter(|cell| matches!(cell.what, What::Node(_))).count();
        assert!(own <= 500 && own > 300, "{own}");
        assert_eq!(laid.folded, tree.nodes.len() - own);
    }

    #[test]
    fn nothing_has_no_boxes() {
        let laid = layout(&Tree::of(&Profile::default(), Threads::Merged), ALL);
        assert!(laid.cells.is_empty() && laid.levels == 0);
    }
}
