//! Which colour a box has, as the name of a class; the style says what the class looks like in either theme.

use dyno_profile::layout::What;
use dyno_profile::tree::{Both, Label, Node, Role};
use dyno_record::profile::{Kind, Origin, WaitClass};

use crate::view::boxes::Boxes;

/// Shades of each family: as many as can be told apart side by side.
const HUES: u64 = 8;

/// Changes smaller than this share of the whole have no colour; each next one is four times as large.
const CHANGES: [f64; 5] = [0.001, 0.004, 0.016, 0.064, 0.256];

/// The class of a box.
pub(super) fn of(boxes: &Boxes, what: What) -> String {
    let What::Node(at) = what else { return "mark".to_owned() };
    let node = &boxes.tree.nodes[at as usize];
    match boxes.basis {
        Some(_) => of_change(node.total, boxes.tree.total().larger()),
        None => of_box(boxes.kind, boxes.tree.label(at), node),
    }
}

/// The class of a box on a picture of one profile.
fn of_box(kind: Kind, label: &Label, node: &Node) -> String {
    match (label.role, node.wait) {
        (Role::All | Role::Thread, _) => "mark".to_owned(),
        (Role::Wait(class), _) => format!("W{}", class as usize),
        (Role::Waker, _) => "waker".to_owned(),
        (Role::WakerFrame(_), _) => "woke".to_owned(),
        (_, Some(class)) if kind == Kind::OffCpu => format!("w{}", class as usize),
        (Role::Frame(Origin::Mark), _) => "mark".to_owned(),
        (Role::Frame(Origin::User), _) => format!("u{}", hue(&label.name)),
        (Role::Frame(Origin::Kernel), _) => format!("k{}", hue(&label.name)),
    }
}

/// The class of a box on a comparison: red grew, blue shrank, darker by how much of the whole.
fn of_change(total: Both, whole: f64) -> String {
    let share = total.change().abs() / whole;
    let step = CHANGES.iter().filter(|least| share >= **least).count();
    match step {
        0 => "same".to_owned(),
        step if total.change() > 0.0 => format!("grew{step}"),
        step => format!("shrank{step}"),
    }
}

/// The class of a kind of wait in keys and timelines.
pub(super) fn of_wait(class: WaitClass) -> &'static str {
    ["W0", "W1", "W2", "W3", "W4", "W5", "W6"][class as usize]
}

/// A number that depends on nothing but the name (FNV-1a), so that a function looks the same everywhere and always.
fn hue(name: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    // The low bits of this hash alone follow the last letter too closely.
    (hash ^ (hash >> 32)) % HUES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_hue_for_ever() {
        assert_eq!(
            [hue("main"), hue("malloc"), hue("epoll_wait")],
            [hue("main"), hue("malloc"), hue("epoll_wait")]
        );
        let used: std::collections::BTreeSet<u64> = (0..64).map(|k| hue(&format!("function_{k}"))).collect();
        assert_eq!(used.len() as u64, HUES, "names spread over all shades");
    }

    #[test]
    fn what_grew_is_red_and_what_shrank_blue() {
        let of = |before, after| of_change(Both { before, after }, 100.0);
        assert_eq!(of(10.0, 20.0), "grew4");
        assert_eq!(of(50.0, 0.0), "shrank5");
        assert_eq!(of(10.0, 10.05), "same");
    }
}
