//! The example plans run on this machine, end to end.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use dyno_record::climb::{Climb, RungVerdict};

/// Whoever judges what was measured has the machine to itself.
static ALONE: Mutex<()> = Mutex::new(());

fn climbed(plan: &str, time: &str) -> Climb {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = std::env::temp_dir().join(format!("dyno-example-{plan}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("a folder for the test");
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(plan);
    let output = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args(["climb", &plan.display().to_string(), "--time", time])
        .current_dir(&folder)
        .output()
        .expect("dyno runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let json = std::fs::read_to_string(folder.join("climb.json")).expect("the record");
    let _ = std::fs::remove_dir_all(&folder);
    Climb::from_json(&json).expect("a whole record")
}

/// Every rung ends with a verdict that a person can check: measured, or not possible here and why.
fn assert_checkable(climb: &Climb) {
    for rung in &climb.rungs {
        let attempt = &rung.attempt;
        let fine = !matches!(attempt.verdict, RungVerdict::Failed | RungVerdict::NotApplied);
        assert!(fine, "{}: {} ({})", rung.id, attempt.verdict.words(), attempt.why);
    }
    assert!(climb.rungs.iter().any(|rung| rung.attempt.effect_percent.is_some()), "nothing was measured");
}

#[test]
fn nginx_is_climbed() {
    assert_checkable(&climbed("nginx.toml", "20s"));
}

#[test]
fn go_is_built_and_climbed() {
    assert_checkable(&climbed("go.toml", "30s"));
}
