//! The boxes as numbers for the page's script, which draws them again for every zoom and search.

use std::collections::HashMap;

use dyno_profile::layout::{Cell, Layout, Limits, What, layout};
use dyno_profile::tree::{Both, Label, Role};
use dyno_record::name;
use serde_json::json;

use super::colour;
use crate::number;
use crate::page::html::{Tag, tag};
use crate::view::Orientation;
use crate::view::boxes::Boxes;

/// Zooming shows what is a twentieth of a pixel at first; twenty thousand boxes are half a megabyte.
const LIMITS: Limits = Limits { share_min: 0.000_05, cells_max: 20_000 };
/// Weights of a comparison are fractions: they are sent in thousandths.
const THOUSANDTHS: f64 = 1e3;

/// The boxes that the script can reach, and what of the tree is not among them.
pub(super) fn laid(boxes: &Boxes) -> Layout {
    layout(&boxes.tree, LIMITS)
}

/// The data.
pub(in crate::page) fn island(boxes: &Boxes) -> Tag {
    let text = numbers(boxes, &laid(boxes));
    tag("script").attr("type", "application/json").attr("id", "flame-data").json(&text)
}

/// Columns of all boxes in the order of the layout: each after the one it stands on, so that depths are enough to find
/// who stands on whom.
fn numbers(boxes: &Boxes, laid: &Layout) -> String {
    let scale = if boxes.basis.is_some() { THOUSANDTHS } else { 1.0 };
    let (mut names, mut classes) = (Table::default(), Table::default());
    let name: Vec<usize> = laid.cells.iter().map(|cell| names.at(boxes.name(cell.what))).collect();
    let class: Vec<usize> = laid.cells.iter().map(|cell| classes.at(colour::of(boxes, cell.what))).collect();
    let whole = boxes.whole();
    let weight = |of: &dyn Fn(&Cell) -> f64| -> Vec<u64> {
        laid.cells.iter().map(|cell| (of(cell) * scale).round() as u64).collect()
    };
    let node = |cell: &Cell| match cell.what {
        What::Node(node) => Some(&boxes.tree.nodes[node as usize]),
        What::Narrow { .. } => None,
    };
    let totals = totals(boxes, laid, scale, &mut names);
    let plain: Vec<String> = names.all.iter().map(|full| name::plain(full)).collect();
    let data = json!({
        "unit": boxes.measure.said,
        "divisor": boxes.measure.divisor * scale,
        "diff": boxes.basis.is_some(),
        "icicle": boxes.orientation == Orientation::Icicle,
        "names": names.all.iter().zip(&plain).map(|(full, plain)| [full.as_str(), plain.as_str()]).collect::<Vec<_>>(),
        "classes": classes.all,
        "totals": totals,
        "depth": laid.cells.iter().map(|cell| cell.depth).collect::<Vec<_>>(),
        "name": name,
        "class": class,
        "width": weight(&|cell| cell.width * whole),
        "own": weight(&|cell| node(cell).map_or(0.0, |node| node.own.after)),
        "before": if boxes.basis.is_some() { weight(&|cell| node(cell).map_or(0.0, |node| node.total.before)) } else { Vec::new() },
        "after": if boxes.basis.is_some() { weight(&|cell| node(cell).map_or(0.0, |node| node.total.after)) } else { Vec::new() },
    });
    data.to_string()
}

/// What functions took in all, where boxes were folded away: a search then knows what is not drawn. Name, before, after.
fn totals(boxes: &Boxes, laid: &Layout, scale: f64, names: &mut Table) -> Vec<[u64; 3]> {
    /// Functions below this share, and beyond so many, are not worth their bytes.
    const SHARE_MIN: f64 = 0.000_5;
    const FUNCTIONS_MAX: usize = 1_000;
    if laid.folded == 0 {
        return Vec::new();
    }
    let is_function = |label: &Label| matches!(label.role, Role::Frame(_));
    let all = boxes.tree.label_totals();
    let mut kept: Vec<(&Label, Both)> = boxes.tree.labels.iter().zip(all).collect();
    kept.retain(|(label, total)| is_function(label) && total.larger() >= SHARE_MIN * laid.whole);
    kept.sort_by(|a, b| b.1.larger().total_cmp(&a.1.larger()));
    kept.truncate(FUNCTIONS_MAX);
    let sent = |weight: f64| (weight * scale).round() as u64;
    let row = |(label, total): (&Label, Both)| {
        [names.at(number::visible(&label.name)) as u64, sent(total.before), sent(total.after)]
    };
    kept.into_iter().map(row).collect()
}

/// Words that occur often, each once.
#[derive(Default)]
struct Table {
    at: HashMap<String, usize>,
    all: Vec<String>,
}

impl Table {
    fn at(&mut self, word: String) -> usize {
        let next = self.all.len();
        let all = &mut self.all;
        *self.at.entry(word).or_insert_with_key(|word| {
            all.push(word.clone());
            next
        })
    }
}
