//! speedscope's own JSON (its file-format-schema): shared frames, and a sampled profile per thread.

use dyno_record::profile::{Frame, Profile, Stack, Unit};
use serde_json::{Value, json};

use super::{by_thread, stretches, title, wait_mark};
use dyno_record::name;

/// The file.
pub fn bytes(profile: &Profile) -> Vec<u8> {
    let mut frames: Vec<Value> = profile.frames.iter().map(|frame| frame_json(profile, frame)).collect();
    let profiles: Vec<Value> = by_thread(profile)
        .into_iter()
        .map(|(thread, stacks)| thread_json(profile, thread, &stacks, &mut frames))
        .collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "version": "0.0.1",
        "name": title(profile),
        "exporter": format!("dyno {}", profile.version),
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    file.to_string().into_bytes()
}

fn frame_json(profile: &Profile, frame: &Frame) -> Value {
    let mut value = json!({ "name": name::of_frame(profile, frame) });
    let module = frame.module.and_then(|at| profile.modules.get(at as usize)).map(|module| &module.path);
    if let Some(file) = frame.file.as_ref().or(module) {
        value["file"] = json!(file);
    }
    if let (Some(line), true) = (frame.line, frame.file.is_some()) {
        value["line"] = json!(line);
    }
    value
}

fn thread_json(profile: &Profile, thread: u32, stacks: &[&Stack], frames: &mut Vec<Value>) -> Value {
    let of = &profile.threads[thread as usize];
    let rows: Vec<Vec<usize>> = stacks.iter().map(|stack| sample(stack, frames)).collect();
    // The format has no moments, only what follows what: time between two samples is one without frames.
    let (mut samples, mut weights, mut end): (Vec<&[usize]>, Vec<u64>, u64) = (Vec::new(), Vec::new(), 0);
    for stretch in stretches(profile, stacks, 1.0) {
        let (from, to) = (stretch.from.round() as u64, (stretch.from + stretch.weight).round() as u64);
        if from > end {
            samples.push(&[]);
            weights.push(from - end);
        }
        samples.push(&rows[stretch.stack]);
        weights.push(to - from);
        end = to;
    }
    json!({
        "type": "sampled",
        "name": format!("{} ({})", of.name, of.tid),
        "unit": match profile.unit { Unit::Nanoseconds => "nanoseconds", Unit::Samples => "none" },
        "startValue": 0,
        "endValue": end,
        "samples": samples,
        "weights": weights,
    })
}

/// Indices into the shared frames, from the root; a wait is a frame of its own.
fn sample(stack: &Stack, frames: &mut Vec<Value>) -> Vec<usize> {
    let mut sample: Vec<usize> = stack.frames.iter().map(|&frame| frame as usize).collect();
    if let Some(mark) = wait_mark(stack) {
        let named = |frame: &Value| frame["name"] == mark.as_str();
        // Marks are few and stand last: the search is short.
        let known = frames.iter().rposition(named).unwrap_or_else(|| {
            frames.push(json!({ "name": mark }));
            frames.len() - 1
        });
        sample.push(known);
    }
    sample
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree::tests::{small, timed, waiting};

    fn read(profile: &Profile) -> Value {
        serde_json::from_slice(&bytes(profile)).unwrap()
    }

    #[test]
    fn every_sample_has_its_weight_and_points_at_frames() {
        let file = read(&small());
        let thread = &file["profiles"][0];
        assert_eq!(thread["samples"].as_array().unwrap().len(), thread["weights"].as_array().unwrap().len());
        assert_eq!((&thread["unit"], &thread["endValue"]), (&json!("nanoseconds"), &json!(1_000)));
        let name = |at: &Value| file["shared"]["frames"][at.as_u64().unwrap() as usize]["name"].clone();
        let names: Vec<Value> = thread["samples"][1].as_array().unwrap().iter().map(name).collect();
        assert_eq!(names, ["main", "work", "sys_read"]);
    }

    #[test]
    fn time_without_a_sample_has_no_frames() {
        let file = read(&timed());
        let thread = &file["profiles"][0];
        assert_eq!((&thread["weights"], &thread["endValue"]), (&json!([50, 50, 100, 50]), &json!(250)));
        assert_eq!((&thread["samples"][2], &thread["samples"][3]), (&json!([]), &thread["samples"][0]));
    }

    #[test]
    fn a_wait_is_one_frame_however_often_it_is_met() {
        let mut profile = waiting();
        let again = profile.stacks[0].clone();
        profile.stacks.push(again);
        let frames = read(&profile)["shared"]["frames"].as_array().unwrap().clone();
        assert_eq!(frames.iter().filter(|frame| frame["name"] == "[waits: lock]").count(), 1);
        assert_eq!(read(&profile)["profiles"][0]["samples"][0].as_array().unwrap().len(), 3);
    }
}
