//! What every part of a picture needs to know.

use dyno_profile::diff::Basis;
use dyno_profile::layout::{Cell, What, widths};
use dyno_profile::name;
use dyno_profile::tree::{Role, Tree};
use dyno_record::profile::{Kind, Profile};

use super::colour;
use super::look::Orientation;
use super::measure::{Measure, share};
use crate::number;

/// A tree and how to speak of it.
pub(super) struct View {
    /// What was watched.
    pub(super) title: String,
    pub(super) tree: Tree,
    pub(super) measure: Measure,
    pub(super) kind: Kind,
    pub(super) orientation: Orientation,
    /// What both sides were divided by; none for one profile.
    pub(super) basis: Option<Basis>,
}

impl View {
    /// What stands on a box: the name, or that there are many.
    pub(super) fn name(&self, what: What) -> String {
        match what {
            What::Node(node) => number::visible(&self.tree.label(node).name),
            What::Narrow { many, .. } => format!("{many} too narrow to be drawn alone"),
        }
    }

    /// A box in words, for those who point at it or cannot see it.
    pub(super) fn sentence(&self, cell: &Cell) -> String {
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

    /// The class of a box.
    pub(super) fn class(&self, what: What) -> String {
        let What::Node(at) = what else { return "mark".to_owned() };
        let node = &self.tree.nodes[at as usize];
        match self.basis {
            Some(_) => colour::of_change(node.total, self.tree.total().larger()),
            None => colour::of_box(self.kind, self.tree.label(at), node),
        }
    }

    /// The picture in a sentence: how much in all, and the three functions with most time of their own.
    pub(super) fn summary(&self) -> String {
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
            .map(|(name, own): (&str, f64)| (number::visible(name::short(name)), own))
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
    pub(super) fn whole(&self) -> f64 {
        widths(&self.tree)[0]
    }

    /// How wide boxes are, in a sentence.
    pub(super) fn width_words(&self) -> String {
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
pub(super) fn target(profile: &Profile) -> String {
    let target = &profile.target;
    match (target.name.as_str(), target.pid) {
        ("", None) => "profile".to_owned(),
        ("", Some(pid)) => format!("process {pid}"),
        (name, None) => name.to_owned(),
        (name, Some(pid)) => format!("{name} ({pid})"),
    }
}
