//! Time on the CPU: what was watched, on which side of the kernel's door, and what watching cost.

use dyno_profile::top;
use dyno_record::profile::Profile;

use super::parts::{own_cost, requests, watched};
use crate::number::{count, micros, visible};
use crate::view::block::{Block, Fact, OnPage, OnTerminal, Section};
use crate::view::measure::{Measure, share};
use crate::view::show::On;

/// What the profile says in a figure: how much of it is the kernel's and below which call, or the program's own most
/// expensive function.
pub(super) fn headline(profile: &Profile) -> (String, String) {
    let total = profile.total_ns() as f64;
    let (_, kernel) = top::user_and_kernel(profile);
    let most = top::own(profile).into_iter().next();
    match most {
        Some((name, ns)) if kernel as f64 <= 0.5 * total => {
            (share(ns as f64, total), format!("of its CPU time is in {} itself", visible(&name)))
        }
        _ if kernel > 0 => {
            let door = top::doors(profile).into_iter().next();
            let below =
                door.map(|(name, ns)| format!("; {} below {}", share(ns as f64, total), visible(&name)));
            (
                share(kernel as f64, total),
                format!("of its CPU time is in the kernel{}", below.unwrap_or_default()),
            )
        }
        _ => (share(total / (profile.duration_s.max(1e-9) * 1e9), 1.0), "of one CPU".to_owned()),
    }
}

/// Below which of the program's functions the kernel's time lies, and which take most themselves.
fn most(profile: &Profile) -> String {
    const TOLD: usize = 2;
    let total = profile.total_ns() as f64;
    let told = |times: Vec<(String, u64)>, word: &str, end: &str| {
        let part =
            |(name, ns): (String, u64)| format!("{} {word} {}{end}", share(ns as f64, total), visible(&name));
        times.into_iter().take(TOLD).map(part).collect::<Vec<_>>().join(", ")
    };
    let parts = [told(top::doors(profile), "below", ""), told(top::own(profile), "in", " itself")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// What stands above, and what was found beside the functions.
pub(super) fn sections(profile: &Profile, _: &Measure) -> (Section, Vec<Section>) {
    let facts = vec![
        Fact::new("watched", seen(profile)),
        Fact::new("cpu", cpu(profile)),
        Fact::new("most", most(profile)),
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
    let percent = |part: f64| 100.0 * part / total.max(1.0);
    let requests = dyno_profile::diff::requests(profile);
    let per_request = requests.map(|requests| {
        let us = |ns: f64| micros(ns / 1e3 / requests as f64);
        format!(" · {} µs per request (user {}, kernel {})", us(total), us(user), us(kernel))
    });
    format!(
        "{of_one_cpu:.1} % of one CPU: user {:.1} %, kernel {:.1} %{}{}",
        percent(user),
        percent(kernel),
        if unseen > 0.0 {
            format!(", too short for a sample {:.1} %", percent(unseen))
        } else {
            String::new()
        },
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
