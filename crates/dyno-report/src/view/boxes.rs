//! A tree of boxes, as a flame graph draws it, and how to speak of it.
//!
//! The views of profiles and of climbs make it, the page draws it in its own way. Colours are the page's business.

use dyno_profile::diff::{Basis, Diff, DiffError, diff};
use dyno_profile::layout::{Cell, What, widths};
use dyno_profile::tree::{Role, Tree};
use dyno_record::name;
use dyno_record::profile::{Kind, Profile};

use super::look::{Look, Orientation};
use super::measure::{Measure, share};
use crate::number;

/// A tree and how to speak of it.
#[derive(Debug, Clone)]
pub(crate) struct Boxes {
    /// What was watched.
    pub(crate) title: String,
    pub(crate) tree: Tree,
    pub(crate) measure: Measure,
    pub(crate) kind: Kind,
    pub(crate) orientation: Orientation,
    /// What both sides were divided by; none for one profile.
    pub(crate) basis: Option<Basis>,
}

impl Boxes {
    /// The boxes of one profile.
    pub(crate) fn of(profile: &Profile, look: Look) -> Self {
        Self {
            title: target(profile),
            tree: Tree::of(profile, look.threads),
            measure: Measure::of(profile),
            kind: profile.kind,
            orientation: look.orientation,
            basis: None,
        }
    }

    /// What changed between two profiles.
    ///
    /// # Errors
    /// When nothing makes the two comparable.
    pub(crate) fn of_change(before: &Profile, after: &Profile, look: Look) -> Result<Self, DiffError> {
        Ok(Self::of_diff(before, after, diff(before, after, look.threads)?, look))
    }

    /// The same, where the difference is known already.
    pub(crate) fn of_diff(before: &Profile, after: &Profile, diff: Diff, look: Look) -> Self {
        let (from, to) = (target(before), target(after));
        Self {
            title: if from == to { to } else { format!("{from} → {to}") },
            measure: Measure::of_diff(after, diff.basis),
            tree: diff.tree,
            kind: after.kind,
            orientation: look.orientation,
            basis: Some(diff.basis),
        }
    }

    /// What stands on a box: the name, or that there are many.
    pub(crate) fn name(&self, what: What) -> String {
        match what {
            What::Node(node) => number::visible(&self.tree.label(node).name),
            What::Narrow { many, .. } => format!("{many} too narrow to be drawn alone"),
        }
    }

    /// A box in words, for those who point at it or cannot see it.
    pub(crate) fn sentence(&self, cell: &Cell) -> String {
        let whole = self.tree.total();
        match cell.what {
            What::Narrow { .. } => format!("{}: {:.1} %", self.name(cell.what), 100.0 * cell.width),
            What::Node(node) if self.basis.is_some() => {
                let (name, total) = (self.name(cell.what), self.tree.nodes[node as usize].total);
                let [before, after] = [total.before, total.after].map(|side| self.measure.figure(side));
                let change = self.measure.change(total.change());
                format!("{name}: {before} → {after} {} ({change})", self.measure.said)
            }
            What::Node(node) => {
                let (name, box_) = (self.name(cell.what), &self.tree.nodes[node as usize]);
                let (total, own) = (box_.total.after, box_.own.after);
                let itself = share(own, whole.after);
                let words = self.measure.words(total);
                format!("{name}: {words}, {}; itself {itself}", share(total, whole.after))
            }
        }
    }

    /// The picture in a sentence: how much in all, and the three functions with most time of their own.
    pub(crate) fn summary(&self) -> String {
        let total = self.tree.total();
        let head = match self.basis {
            Some(_) => {
                let [before, after] = [total.before, total.after].map(|side| self.measure.figure(side));
                format!("{before} → {after} {}", self.measure.said)
            }
            None => self.measure.words(total.after),
        };
        let heaviest: Vec<String> = self
            .heaviest(3)
            .into_iter()
            .map(|(name, own)| format!("{name} {}", share(own, total.larger())))
            .collect();
        let most = if self.basis.is_some() { "Largest changes" } else { "Most time of their own" };
        format!("{}: {head}. {most}: {}.", number::visible(&self.title), heaviest.join(", "))
    }

    /// Functions by time of their own, or by how much that changed.
    fn heaviest(&self, count: usize) -> Vec<(String, f64)> {
        let mut sums = std::collections::BTreeMap::new();
        for (at, node) in self.tree.nodes.iter().enumerate().skip(1) {
            let label = self.tree.label(at as u32);
            if matches!(label.role, Role::Frame(_)) {
                // What stands on a function and is no function is time that it waits.
                let above = node.children.iter().filter(|&&child| self.is_wait(child));
                let waits: f64 = above.map(|&child| self.signed(child)).sum();
                let own = if self.basis.is_some() { node.own.change() } else { node.own.after };
                *sums.entry(label.name.as_str()).or_insert(0.0) += own + waits;
            }
        }
        let mut sums: Vec<(String, f64)> = sums
            .into_iter()
            .map(|(name, own): (&str, f64)| (number::visible(name::short(&name::plain(name))), own))
            .collect();
        sums.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        sums.truncate(count);
        sums
    }

    fn is_wait(&self, node: u32) -> bool {
        matches!(self.tree.label(node).role, Role::Wait(_))
    }

    fn signed(&self, node: u32) -> f64 {
        let total = self.tree.nodes[node as usize].total;
        if self.basis.is_some() { total.change() } else { total.after }
    }

    /// What the width of the picture stands for, in the tree's unit.
    pub(crate) fn whole(&self) -> f64 {
        widths(&self.tree)[0]
    }

    /// How wide boxes are, in a sentence.
    pub(crate) fn width_words(&self) -> String {
        match self.basis {
            None => {
                format!("Width: {}; the whole is {}.", self.measure.said, self.measure.figure(self.whole()))
            }
            Some(basis) => {
                let by = match basis {
                    Basis::Requests([before, after]) => format!(
                        "Both sides are divided by the requests they answered ({} and {})",
                        number::count(before as f64),
                        number::count(after as f64)
                    ),
                    Basis::Seconds([before, after]) => format!(
                        "Requests are not known on both sides: both are divided by the time they were watched ({before:.1} s and {after:.1} s)"
                    ),
                };
                format!("{by}. A box is as wide as the larger side, so that what vanished is still there.")
            }
        }
    }
}

/// What was watched, in a few words.
pub(crate) fn target(profile: &Profile) -> String {
    profile.target.in_words().unwrap_or_else(|| "profile".to_owned())
}
