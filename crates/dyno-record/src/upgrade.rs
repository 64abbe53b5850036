//! Older climb records as this program's own: the one place that knows how they were written.
//!
//! [`crate::climb::Climb::from_json`] calls it, so that judge, report and table know the present shape only. It works on JSON
//! and on nothing else of the record.

use serde_json::{Value, json};

/// The shape before this one. There the ending of a trial's id said how it was measured, and its rule was not written down.
pub(crate) const FIRST_SCHEMA: &str = "dyno.climb/1";

/// What the id of a trial of long blocks ended in.
const BURSTY: &str = ":bursty";
/// What the id of a trial of instances one after another ended in.
const IN_TURN: &str = ":in-turn";

/// Pairs of a last look at least, by the rules of that time.
const LAST_LOOK_MIN: u64 = 20;
/// The same where instances were measured one after another.
const INSTANCES_LOOK_MIN: u64 = 12;

/// What a trial's id said.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    stage: &'static str,
    attempt: u64,
    rung: Option<String>,
    schedule: &'static str,
}

/// Turns a record of [`FIRST_SCHEMA`] into the shape after it. What is not where it should be is left alone: reading the
/// record then fails and names it.
pub(crate) fn from_first(record: &mut Value, schema: &str) {
    if !record.is_object() {
        return;
    }
    let rungs: Vec<String> = entries(record, "rungs").filter_map(|rung| text(rung, "id")).collect();
    let clocks: Vec<(String, String)> = entries(record, "rungs").flat_map(clocks_of).collect();
    let trials = record.pointer_mut("/series/trials").and_then(Value::as_array_mut);
    for trial in trials.into_iter().flatten() {
        describe(trial, &rungs, &clocks);
    }
    name_deciding(record);
    let arms = record.pointer_mut("/total/arms").and_then(Value::as_array_mut);
    arms.into_iter().flatten().for_each(give_role);
    record["schema"] = json!(schema);
}

/// Trials that a rung's attempts name, with the clock that the attempt names.
fn clocks_of(rung: &Value) -> impl Iterator<Item = (String, String)> {
    let attempts = [Some(rung), rung.get("first_attempt")];
    attempts
        .into_iter()
        .flatten()
        .filter_map(|attempt| Some((text(attempt, "trial")?, text(attempt, "clock")?)))
}

fn describe(trial: &mut Value, rungs: &[String], clocks: &[(String, String)]) {
    let Some(id) = text(trial, "id") else { return };
    let meaning = meaning_of(&id, rungs);
    let pairs = trial.get("pairs").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let clock = clocks.iter().find(|(of, _)| *of == id).map_or("", |(_, clock)| clock.as_str());
    let Some(fields) = trial.as_object_mut() else { return };
    fields.insert("rule".into(), rule(&meaning, pairs));
    fields.insert("clock".into(), json!(clock));
    fields.insert("toggles".into(), Value::Null);
    fields.insert("stage".into(), json!(meaning.stage));
    fields.insert("attempt".into(), json!(meaning.attempt));
    fields.insert("rung".into(), json!(meaning.rung));
    fields.insert("schedule".into(), json!(meaning.schedule));
}

/// Reads an id: `noise`, `noise:2`, `step:RUNG`, `second:RUNG` or `leave-one-out:RUNG`, then an ending. A rung's own id may
/// end in the same letters: where the rest is a rung's id as it stands there is no ending.
fn meaning_of(id: &str, rungs: &[String]) -> Meaning {
    let (stage, rest) = id.split_once(':').unwrap_or((id, ""));
    let (stage, attempt) = match stage {
        "noise" => return of_noise(rest),
        "leave-one-out" => ("leave_one_out", 1),
        "second" => ("step", 2),
        _ => ("step", 1),
    };
    let whole = rungs.iter().any(|rung| rung == rest);
    let (rung, schedule) = if whole { (rest, "live_pairs") } else { without_ending(rest) };
    Meaning { stage, attempt, rung: Some(rung.to_owned()).filter(|rung| !rung.is_empty()), schedule }
}

fn of_noise(rest: &str) -> Meaning {
    let in_turn = rest.split(':').any(|part| part == &IN_TURN[1..]);
    let attempt = rest.split(':').find_map(|part| part.parse().ok()).unwrap_or(1);
    Meaning { stage: "noise", attempt, rung: None, schedule: if in_turn { "in_turn" } else { "live_pairs" } }
}

fn without_ending(rest: &str) -> (&str, &'static str) {
    match (rest.strip_suffix(BURSTY), rest.strip_suffix(IN_TURN)) {
        (Some(rung), _) => (rung, "long_pairs"),
        (_, Some(rung)) => (rung, "in_turn"),
        _ => (rest, "live_pairs"),
    }
}

/// The rules of that time. They stay as they were whatever rules come after: an old verdict is judged by its own.
fn rule(meaning: &Meaning, pairs: u64) -> Value {
    let rule = |z: f64, first: u64, step: u64, last: u64, basis: &str| json!({"z": z, "first": first, "step": step, "last": last, "worthwhile_percent": 1.0, "basis": basis});
    let basis = match meaning.schedule {
        "long_pairs" => "totals",
        "in_turn" => "instances",
        _ => "pairs",
    };
    let least = if meaning.schedule == "in_turn" { INSTANCES_LOOK_MIN } else { LAST_LOOK_MIN };
    let once = |z: f64| rule(z, pairs.max(least), 1, pairs.max(least), basis);
    match (meaning.stage, meaning.schedule) {
        ("noise", _) => once(3.06),
        ("leave_one_out", _) => once(2.5),
        (_, "long_pairs") => rule(3.06, 20, 20, 120, basis),
        (_, "in_turn") => rule(3.06, INSTANCES_LOOK_MIN, 8, 68, basis),
        (_, _) => rule(3.06, 30, 30, 240, basis),
    }
}

/// Writes down which trial a noise and a confirmation were read from: where a stage was measured in another way once more,
/// that one decided.
fn name_deciding(record: &mut Value) {
    let trials: Vec<Value> = record
        .pointer("/series/trials")
        .and_then(Value::as_array)
        .map_or(Vec::new(), |all| all.iter().map(heading).collect());
    let deciding = |stage: &str, attempt: u64, rung: Option<&str>| -> Value {
        let of = |trial: &&Value, schedule: &str| {
            trial["stage"] == stage
                && trial["attempt"] == attempt
                && trial["rung"] == json!(rung)
                && trial["schedule"] == schedule
        };
        let order = ["in_turn", "long_pairs", "live_pairs"];
        let found = order.iter().find_map(|schedule| trials.iter().find(|trial| of(trial, schedule)));
        found.map_or(Value::Null, |trial| trial["id"].clone())
    };
    if let Some(noise) = record.get_mut("noise").and_then(Value::as_object_mut) {
        let tries = noise.get("tries").and_then(Value::as_u64).unwrap_or(1);
        noise.insert("trial".into(), deciding("noise", tries, None));
    }
    let rungs = record.get_mut("rungs").and_then(Value::as_array_mut);
    for rung in rungs.into_iter().flatten() {
        let Some(id) = text(rung, "id") else { continue };
        let confirmed = rung.get("leave_one_out").is_some_and(Value::is_object);
        let trial = if confirmed { deciding("leave_one_out", 1, Some(&id)) } else { Value::Null };
        rung["leave_one_out_trial"] = trial;
    }
}

/// An arm's name said what it stood for.
fn give_role(arm: &mut Value) {
    let role = match text(arm, "name").as_deref() {
        Some("final") => "final",
        Some("floor") => "floor",
        Some("naive") => "naive",
        Some(_) => "naive_with_headline",
        None => return,
    };
    arm["role"] = json!(role);
}

/// A trial without its pairs.
fn heading(trial: &Value) -> Value {
    let fields = ["id", "stage", "attempt", "rung", "schedule"];
    fields
        .into_iter()
        .map(|name| (name.to_owned(), trial[name].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn entries<'v>(record: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    record.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(id: &str, rungs: &[&str]) -> Meaning {
        meaning_of(id, &rungs.iter().map(|rung| (*rung).to_owned()).collect::<Vec<_>>())
    }

    fn step(attempt: u64, rung: &str, schedule: &'static str) -> Meaning {
        Meaning { stage: "step", attempt, rung: Some(rung.to_owned()), schedule }
    }

    #[test]
    fn an_old_id_says_stage_rung_and_schedule() {
        let rungs = ["edge"];
        assert_eq!(read("step:edge", &rungs), step(1, "edge", "live_pairs"));
        assert_eq!(read("second:edge:bursty", &rungs), step(2, "edge", "long_pairs"));
        assert_eq!(read("step:edge:in-turn", &rungs), step(1, "edge", "in_turn"));
        let noise = |attempt, schedule| Meaning { stage: "noise", attempt, rung: None, schedule };
        assert_eq!(read("noise", &rungs), noise(1, "live_pairs"));
        assert_eq!(read("noise:2:in-turn", &rungs), noise(2, "in_turn"));
    }

    #[test]
    fn a_rung_that_ends_in_the_old_letters_keeps_them() {
        for ending in [BURSTY, IN_TURN] {
            let rung = format!("x{ending}");
            let rungs = [rung.as_str()];
            assert_eq!(read(&format!("step:{rung}"), &rungs), step(1, &rung, "live_pairs"));
            assert_eq!(read(&format!("step:{rung}:bursty"), &rungs), step(1, &rung, "long_pairs"));
            assert_eq!(read(&format!("step:{rung}:in-turn"), &rungs), step(1, &rung, "in_turn"));
        }
    }

    #[test]
    fn a_record_as_it_was_written_says_of_each_trial_how_it_was_measured() {
        let text = include_str!("../../dyno/tests/golden/climb-1.json");
        let mut record: Value = serde_json::from_str(text).unwrap();
        from_first(&mut record, "next");
        let of = |trial: &Value| {
            let words = ["id", "stage", "schedule"].map(|name| trial[name].as_str().unwrap());
            let [first, last] = ["first", "last"].map(|look| trial["rule"][look].as_u64().unwrap());
            format!("{} {} {first} {last}", words.join(" "), trial["rule"]["basis"].as_str().unwrap())
        };
        let trials: Vec<String> = entries(&record["series"], "trials").map(of).collect();
        let expected = [
            "noise noise live_pairs pairs 240 240",
            "step:bursty=on step live_pairs pairs 30 240",
            "step:bursty=on:bursty step long_pairs totals 20 120",
            "step:live=on step live_pairs pairs 30 240",
            "step:burn=on step live_pairs pairs 30 240",
            "step:burn=on:in-turn step in_turn instances 12 68",
            "step:null=on:in-turn step in_turn instances 12 68",
            "leave-one-out:burn=on:in-turn leave_one_out in_turn instances 12 12",
            "leave-one-out:live=on:in-turn leave_one_out in_turn instances 12 12",
        ];
        assert_eq!(trials, expected);
        let roles: Vec<&Value> = entries(&record["total"], "arms").map(|arm| &arm["role"]).collect();
        assert_eq!(roles, ["naive", "final", "floor"]);
    }

    #[test]
    fn a_confirmation_was_read_from_the_last_way_of_measuring() {
        let trial = |id: &str| json!({"id": id, "pairs": []});
        let mut record = json!({
            "noise": {"tries": 2},
            "rungs": [{"id": "x", "leave_one_out": {}}, {"id": "y", "leave_one_out": null}],
            "series": {"trials": [
                trial("noise"), trial("noise:2"), trial("leave-one-out:x"), trial("leave-one-out:x:bursty"),
            ]},
        });
        from_first(&mut record, "next");
        assert_eq!(record["noise"]["trial"], "noise:2");
        assert_eq!(record["rungs"][0]["leave_one_out_trial"], "leave-one-out:x:bursty");
        assert_eq!(record["rungs"][1]["leave_one_out_trial"], Value::Null);
        assert_eq!(record["schema"], "next");
        assert_eq!(record["series"]["trials"][3]["rule"]["basis"], "totals");
    }

    #[test]
    fn what_is_no_record_is_left_to_whoever_reads_it() {
        for mut broken in
            [json!({}), json!({"rungs": 7, "series": []}), json!({"series": {"trials": [1, {}]}})]
        {
            from_first(&mut broken, "next");
            assert_eq!(broken["schema"], "next");
        }
        let mut list = json!(["dyno.climb/1"]);
        from_first(&mut list, "next");
        assert_eq!(list, json!(["dyno.climb/1"]));
    }
}
