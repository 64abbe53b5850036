//! Where each rule begins to speak: programs of one figure, which falls just short of a line or reaches it.
#![allow(clippy::unwrap_used)]

mod cpu;
mod pools;
mod waits;

use dyno_record::finding::Class;

use super::scene::Scene;

/// A class, a program of one figure, the figure at which it is not found yet, and the one at which it is.
type Line = (Class, &'static str, fn(f64) -> Scene, f64, f64);

fn is_found(class: Class, scene: &Scene) -> bool {
    scene.classes().contains(&class)
}

/// Planted faults: `>` in place of `>=` at any of these lines; a line drawn elsewhere by a hundredth.
#[test]
fn every_rule_is_silent_just_short_of_its_line_and_speaks_at_it() {
    let mut wrong = Vec::new();
    for (class, what, program, silent, speaks) in [waits::LINES, pools::LINES, cpu::LINES].concat() {
        for (figure, wanted) in [(silent, false), (speaks, true)] {
            if is_found(class, &program(figure)) != wanted {
                wrong.push(format!("{class}, {what}, {figure}: found is not {wanted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
