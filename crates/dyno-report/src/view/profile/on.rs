//! Time on the CPU: what was watched, on which side of the kernel's door, and what watching cost.

use dyno_profile::top;
use dyno_record::profile::Profile;

use super::parts::{own_cost, requests, watched};
use crate::number::{count, micros};
use crate::view::block::{Block, Fact, OnPage, OnTerminal, Section};
use crate::view::measure::Measure;
use crate::view::show::On;

/// What stands above, and what was found beside the functions.
pub(super) fn sections(profile: &Profile, _: &Measure) -> (Section, Vec<Section>) {
    let facts = vec![
        Fact::new("watched", seen(profile)),
        Fact::new("cpu", cpu(profile)),
        Fact::new("own cost", cost(profile)),
        Fact::new("threads", count(profile.threads.len() as f64)).on(On::Page),
        requests(profile),
    ];
    let about = Section::new("about", "", (OnPage::Head, OnTerminal::Above), vec![Block::Facts(facts)]);
    (about, Vec::new())
}

fn seen(profile: &Profile) -> String {
    let sampling = &profile.sampling;
    let frequency = sampling.frequency_hz.map(|hz| format!(" at {hz:.0} Hz")).unwrap_or_default();
    format!(
        "{}, {} · {:.1} s · {}{frequency} · {} samples, {} lost",
        watched(profile),
        scope(&profile.target.scope),
        profile.duration_s,
        sampling.event,
        count(sampling.samples as f64),
        count(sampling.lost as f64),
    )
}

fn scope(word: &str) -> &str {
    match word {
        "process" => "with its threads and children",
        "thread" => "one thread",
        "machine" => "all CPUs",
        other => other,
    }
}

/// CPU time in all, and its two sides.
fn cpu(profile: &Profile) -> String {
    let (user, kernel) = top::user_and_kernel(profile);
    let unseen: u64 =
        profile.stacks.iter().filter(|stack| stack.samples == 0).map(|stack| stack.weight_ns).sum();
    let [user, kernel, unseen] = [user.saturating_sub(unseen), kernel, unseen].map(|ns| ns as f64);
    let total = user + kernel + unseen;
    let of_one_cpu = 100.0 * total / (profile.duration_s.max(1e-9) * 1e9);
    let share = |part: f64| 100.0 * part / total.max(1.0);
    let requests = dyno_profile::diff::requests(profile);
    let per_request = requests.map(|requests| {
        let us = |ns: f64| micros(ns / 1e3 / requests as f64);
        format!(" · {} µs per request (user {}, kernel {})", us(total), us(user), us(kernel))
    });
    format!(
        "{of_one_cpu:.1} % of one CPU: user {:.1} %, kernel {:.1} %{}{}",
        share(user),
        share(kernel),
        if unseen > 0.0 { format!(", too short for a sample {:.1} %", share(unseen)) } else { String::new() },
        per_request.unwrap_or_default()
    )
}

fn cost(profile: &Profile) -> String {
    let own = own_cost(profile);
    let sampling = &profile.sampling;
    if sampling.samples == 0 {
        return own;
    }
    let whole = sampling.samples.saturating_sub(sampling.truncated);
    format!("{own} · {:.1} % of the stacks are whole", 100.0 * whole as f64 / sampling.samples as f64)
}
