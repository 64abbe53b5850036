//! Plans, changes and outcomes in words. Nothing in them is for a terminal to obey.

use dyno_host::recovery::Now;
use dyno_host::tune::rollback::{Open, Outcome};
use dyno_host::tune::session::Made;
use dyno_record::audit::{Gain, Prices};
use dyno_record::commands::quoted;
use dyno_record::tune::{ByHand, Effect, Plan, Planned, Step};
use dyno_record::visible::visible;

/// Values are shown in one line up to here.
const VALUE_CHARS_MAX: usize = 120;

/// A whole plan.
pub(super) fn plan(plan: &Plan) -> String {
    let changes: usize = plan.steps.iter().map(|step| step.changes.len()).sum();
    let mut text = format!("plan {}: {}\n", plan.hash, counted(changes, "change"));
    plan.steps.iter().for_each(|one| text.push_str(&step(one)));
    for id in &plan.nothing_to_do {
        text.push_str(&format!("\n{}: nothing to do\n", visible(id)));
    }
    for hand in &plan.by_hand {
        text.push_str(&by_hand(hand));
    }
    text
}

/// What a person has to do, and to undo.
fn by_hand(hand: &ByHand) -> String {
    let mut text = format!("\n{}  {}\n", name(&hand.id, &hand.object), visible(&hand.title));
    text.push_str("  by hand");
    text.push_str(&if hand.why.is_empty() { ":".to_owned() } else { format!(": {}", visible(&hand.why)) });
    text.push('\n');
    for (lead, commands) in [("do:  ", &hand.apply), ("undo:", &hand.revert)] {
        for line in commands {
            text.push_str(&format!("    {lead} {}\n", visible(line)));
        }
    }
    text
}

fn step(step: &Step) -> String {
    let mut text = format!("\n{}  {}\n", name(&step.id, &step.object), visible(&step.title));
    if let Some(why) = &step.cannot {
        return text + &format!("  cannot be done: {}\n", visible(why));
    }
    if step.changes.is_empty() {
        return text + "  nothing to do: it stands so already\n";
    }
    text.push_str(&format!(
        "  gain   {}\n  risk   {}{}\n",
        gain(&step.gain),
        step.risk.name(),
        prices(&step.prices)
    ));
    if step.lowers_defence() {
        text.push_str(&format!("         needs --accept-risk {}\n", step.id));
    }
    step.changes.iter().for_each(|change| text.push_str(&planned(change)));
    text
}

fn planned(change: &Planned) -> String {
    let mut text = format!(
        "  change {}\n         {} → {}\n         do:   {}\n         undo: {}\n",
        visible(&change.spec.what.to_string()),
        value(&change.was),
        value(&change.spec.wanted),
        visible(&change.set),
        visible(&change.undo)
    );
    if let Some(cuts) = &change.cuts {
        text.push_str(&format!("         needs --confirm-within 60s: {cuts}\n"));
    }
    text
}

fn name(id: &str, object: &str) -> String {
    match object {
        "" => visible(id),
        object => format!("{}:{}", visible(id), visible(object)),
    }
}

fn gain(gain: &Gain) -> String {
    match gain.percent {
        Some([least, most]) if least < most => format!("{least} to {most} % ({})", gain.source.name()),
        Some([_, most]) => format!("{most} % ({})", gain.source.name()),
        None => "not known".to_owned(),
    }
}

fn prices(prices: &Prices) -> String {
    let all = [&prices.security, &prices.durability, &prices.cpu, &prices.operability];
    let words: Vec<String> =
        all.iter().filter(|price| !price.is_empty()).map(|price| visible(price)).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) }
}

/// A value as it would be typed, cut where it is long.
pub(super) fn value(text: &str) -> String {
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let shown = visible(&quoted(text));
    match shown.chars().count() > VALUE_CHARS_MAX {
        true => shown.chars().take(VALUE_CHARS_MAX).collect::<String>() + "…",
        false => shown,
    }
}

/// A change that was made.
pub(super) fn made(made: &Made<'_>) -> String {
    let planned = made.planned;
    format!(
        "{}  {}  {} → {}\n",
        visible(made.id),
        visible(&planned.spec.what.to_string()),
        value(&planned.was),
        value(&made.reads)
    )
}

/// Changes with whether each does what it is for.
pub(super) fn with_effects(lines: &[String], effects: &[Effect]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        text.push_str(line);
        text.push_str(&effects.get(at).map_or_else(String::new, effect));
    }
    text
}

/// Whether a change does what it is for. Names of devices and programs are in it.
pub(super) fn effect(effect: &Effect) -> String {
    format!("  {}\n", visible(&effect.to_string()))
}

/// What became of a change.
pub(super) fn outcome(open: &Open, outcome: &Outcome) -> String {
    let (what, old) = (visible(&open.left.what.to_string()), value(&open.left.old));
    match outcome {
        Outcome::PutBack(now) => format!("{what}  {} → {old}", value(now)),
        Outcome::WasBack => format!("{what}  is {old} already"),
        Outcome::Foreign(now) => {
            format!("{what}  reads {}, which somebody else has set: left alone (it was {old})", value(now))
        }
        Outcome::Gone(why) => format!("{what}  is gone: {}", visible(why)),
        Outcome::GoneWithBoot => format!("{what}  is gone with the boot (it was {old})"),
        Outcome::Failed(why) => format!("{what}  could not be put back to {old}: {}", visible(why)),
    }
}

/// Where a change stands, in one word and with what it reads.
pub(super) fn now(now: &Now) -> (&'static str, String) {
    match now {
        Now::Back => ("back", String::new()),
        Now::Ours(reads) => ("written", reads.clone()),
        Now::Foreign(reads) => ("changed by somebody else", reads.clone()),
        Now::Gone(why) => ("gone", why.clone()),
        Now::GoneWithBoot => ("gone with the boot", String::new()),
    }
}

/// `1 change`, `2 changes`.
pub(super) fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::audit::Risk;
    use dyno_record::change::{ChangeSpec, Device, What};

    fn hostile() -> Plan {
        let device = Device { name: "<img src=x>\u{1b}[2J".into(), ..Device::default() };
        let spec = ChangeSpec { what: What::Qdisc { device }, wanted: "default".into(), why: "w".into() };
        let planned = Planned {
            spec,
            was: "\u{1b}]0;x\u{7}".into(),
            set: "do\u{202e}it".into(),
            undo: "undo".into(),
            cuts: Some("it sends nothing".into()),
        };
        let step = Step {
            id: "net.qdisc".into(),
            object: "<img src=x>".into(),
            title: "a title\nof two lines".into(),
            risk: Risk::Security,
            changes: vec![planned],
            ..Step::default()
        };
        Plan {
            hash: "12ab".into(),
            steps: vec![step],
            nothing_to_do: vec!["net.rps".into()],
            ..Plan::default()
        }
    }

    #[test]
    fn a_plan_shows_what_is_and_will_be_and_what_it_asks_for() {
        let text = plan(&hostile());
        for part in [
            "plan 12ab: 1 change",
            "→ default",
            "--accept-risk net.qdisc",
            "--confirm-within 60s",
            "net.rps: nothing to do",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_takes_a_person_says_why_and_how_it_is_done_and_undone() {
        let hand = ByHand {
            id: "nf.legacy".into(),
            title: "a title".into(),
            why: "a table is replaced whole\u{1b}".into(),
            apply: vec!["do this".into()],
            revert: vec!["undo it".into()],
            ..ByHand::default()
        };
        let text = by_hand(&hand);
        assert!(
            text.contains("  by hand: a table is replaced whole") && !text.contains('\u{1b}'),
            "{text:?}"
        );
        assert!(text.contains("    do:   do this\n    undo: undo it\n"), "{text}");
    }

    /// Planted fault: a value is printed as it is; then the terminal obeys it.
    #[test]
    fn hostile_names_and_values_are_shown_and_not_obeyed() {
        let text = plan(&hostile());
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}') && !text.contains('\u{202e}'),
            "{text:?}"
        );
        assert!(text.contains("<img src=x>"));
    }
}
