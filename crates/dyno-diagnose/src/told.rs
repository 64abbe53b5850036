//! All that is said of made-up programs, one or more for each rule, word for word: findings with their evidence, notes, what came
//! nearest.
//!
//! It is written down in `tests/data/told.txt`; a change that is meant is written with `GOLDEN=write cargo test`. What else was ruled
//! out is told once, of a program with which nothing is wrong.
#![allow(clippy::unwrap_used)]

mod cpu_scenes;
mod pool_scenes;
mod wait_scenes;

use std::fmt::Write;

use dyno_record::finding::Finding;

use super::Diagnosed;
use super::golden::assert_golden;
use super::scene::Scene;

/// What hardly any scene has.
const SELDOM_SEEN: [&str; 2] = ["generator_limited", "throttled"];

/// A scene and what it shows.
type Told = (&'static str, Scene);

fn of_finding(out: &mut String, one: &Finding) {
    let sure = format!("{:?}", one.confidence).to_lowercase();
    writeln!(out, "  {} {:.4} {sure}: {}", one.class, one.weight, one.summary).unwrap();
    for fact in &one.evidence {
        let figure = fact.value.map_or_else(String::new, |value| format!(" [{value:.4} {}]", fact.unit));
        writeln!(out, "    - {}{figure}", fact.text).unwrap();
    }
    one.ruled_out.iter().for_each(|not| writeln!(out, "    not: {} {}", not.class, not.by).unwrap());
    for next in &one.next {
        let parts = [&next.rung, &next.code, &next.specimen].map(|part| part.as_deref().unwrap_or("-"));
        writeln!(out, "    > {} [{}]", next.text, parts.join(", ")).unwrap();
    }
}

fn of_program(out: &mut String, name: &str, said: &Diagnosed) {
    writeln!(out, "# {name}").unwrap();
    said.findings.iter().for_each(|one| of_finding(out, one));
    for one in &said.notes {
        writeln!(out, " noted").unwrap();
        of_finding(out, one);
    }
    said.nearest.iter().for_each(|near| writeln!(out, "  near: {} {}", near.class, near.by).unwrap());
    let unseen = said.not_looked_at.iter().filter(|one| !SELDOM_SEEN.contains(&one.what.as_str()));
    unseen.for_each(|one| writeln!(out, "  unseen: {}, {}", one.what, one.why).unwrap());
}

fn all() -> String {
    let mut out = String::new();
    let healthy = Scene::new(&[6.0, 6.0]).on("run;work", 80).on("run;send;tcp_sendmsg_[k]", 20).diagnosed();
    of_program(&mut out, "nothing is wrong", &healthy);
    healthy.ruled_out.iter().for_each(|one| writeln!(out, "  {}: {}", one.class, one.by).unwrap());
    for (name, scene) in [wait_scenes::all(), pool_scenes::all(), cpu_scenes::all()].into_iter().flatten() {
        of_program(&mut out, name, &scene.diagnosed());
    }
    out
}

/// Planted faults: a mean over all threads in place of one; a share told of the wrong whole; a finding one step surer.
#[test]
fn each_kind_of_program_is_told_with_its_figures() {
    assert_golden("told.txt", &all());
}
