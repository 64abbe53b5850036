//! The first screen of a profile's page: one large figure, what it rests on, and what changes how it is to be read.

use dyno_profile::{diff, top};
use dyno_record::profile::{Kind, Profile, Unit};

use super::measure::share;
use super::view::View;
use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::{fact, facts};

/// Lost samples above this share make the figures doubtful.
const LOST_MAX: f64 = 0.01;
/// Stacks that end too early above this share leave towers without their root.
const TRUNCATED_MAX: f64 = 0.02;

/// The head of a profile's page.
pub(super) fn of_profile(view: &View, profile: &Profile) -> Tag {
    let kind = if profile.kind == Kind::OnCpu { "on the CPU" } else { "off the CPU" };
    let (big, unit) = large(view, profile);
    head(&format!("Profile · time {kind} · {}", view.title), &big, &unit)
        .push_all(alerts(profile).into_iter().map(alert))
        .push(tag("div").class("about").push(about(profile)))
}

/// The head of a comparison's page.
pub(super) fn of_diff(view: &View, before: &Profile, after: &Profile) -> Tag {
    let total = view.tree.total();
    let percent = 100.0 * total.change() / total.before;
    let unit = view.measure.said.clone();
    let told =
        [("before", before, total.before), ("after", after, total.after)].map(|(name, profile, total)| {
            let title = number::visible(&super::view::target(profile));
            (name, fact(format!("{} {}: {title}", view.measure.figure(total), view.measure.said)))
        });
    head(&format!("Comparison · {}", view.title), &view.measure.change(total.change()), &unit)
        .push(tag("p").class("interval").text(format!("{} of all of it", number::percent(percent))))
        .push_all([before, after].into_iter().flat_map(alerts).map(alert))
        .push(tag("div").class("about").push(facts(told)))
}

fn head(kicker: &str, big: &str, unit: &str) -> Tag {
    let figure =
        tag("h1").push(tag("span").class("big").text(big)).push(tag("span").class("unit").text(unit));
    tag("header").push(tag("p").class("kicker").text(number::visible(kicker))).push(figure)
}

/// The largest figure and its unit.
fn large(view: &View, profile: &Profile) -> (String, String) {
    let total = profile.total_ns() as f64;
    let per_cpu = total / (profile.duration_s * 1e9);
    let known = profile.duration_s > 0.0 && profile.unit == Unit::Nanoseconds;
    match profile.kind {
        Kind::OnCpu if known && diff::requests(profile).is_none() => {
            let time = number::latency(total / 1e3);
            (share(per_cpu, 1.0), format!("of one CPU: {time} in {:.1} s", profile.duration_s))
        }
        _ => (view.measure.figure(total), view.measure.said.clone()),
    }
}

fn about(profile: &Profile) -> Tag {
    let (user, kernel) = top::user_and_kernel(profile);
    let whole = (user + kernel) as f64;
    let sides = match profile.kind {
        Kind::OnCpu => {
            let (user, kernel) = (share(user as f64, whole), share(kernel as f64, whole));
            fact(format!("{user} in the program, {kernel} in the kernel"))
        }
        Kind::OffCpu => tag("dd"),
    };
    let requests = match &profile.requests {
        Some(requests) => fact(format!(
            "{} (counted by {})",
            number::count(requests.count as f64),
            number::visible(&requests.source)
        )),
        None => tag("dd"),
    };
    facts([("where", sides), ("seen", fact(seen(profile))), ("requests", requests)])
}

fn seen(profile: &Profile) -> String {
    let sampling = &profile.sampling;
    let what = if profile.kind == Kind::OnCpu { "samples" } else { "waits" };
    let mut text = format!("{} {what}", number::count(sampling.samples as f64));
    if let Some(hz) = sampling.frequency_hz {
        text.push_str(&format!(" at {} Hz", number::count(hz)));
    }
    let threads = profile.threads.len();
    text.push_str(&format!(" of {threads} {}", if threads == 1 { "thread" } else { "threads" }));
    if sampling.lost > 0 {
        text.push_str(&format!(", {} lost", number::count(sampling.lost as f64)));
    }
    text
}

/// What changes how the figures are to be read.
fn alerts(profile: &Profile) -> Vec<(&'static str, String)> {
    let sampling = &profile.sampling;
    let mut found: Vec<(&'static str, String)> = Vec::new();
    found.extend(profile.cut_short.iter().map(|why| ("Cut short.", number::visible(why))));
    let seen = (sampling.samples + sampling.lost) as f64;
    if sampling.lost as f64 > LOST_MAX * seen {
        let text = format!(
            "{} of all samples were lost: what ran then is missing.",
            share(sampling.lost as f64, seen)
        );
        found.push(("Lost.", text));
    }
    if sampling.truncated as f64 > TRUNCATED_MAX * sampling.samples as f64 {
        let part = share(sampling.truncated as f64, sampling.samples as f64);
        found.push(("Cut stacks.", format!("{part} of the stacks end before main or the thread's start.")));
    }
    if profile.unit == Unit::Samples {
        found.push(("Samples.", "The input does not say how much time a sample stands for.".to_owned()));
    }
    found.extend(profile.warnings.iter().map(|warning| ("Warning.", number::visible(warning))));
    found
}

fn alert((word, text): (&'static str, String)) -> Tag {
    tag("p").class("alert").push(tag("strong").text(word)).text(format!(" {text}"))
}
