//! Why two intervals of one climb have different widths, in a sentence: what looks like a contradiction rests on other starts of
//! the servers.

use dyno_record::climb::{Climb, Rung, RungVerdict};

/// An interval this many times as wide as what it stands beside wants a word; one that holds no gain at all does sooner.
const WIDER_MIN: f64 = 4.0;
const WIDER_AND_UNSURE_MIN: f64 = 1.5;
/// Below this nobody sees the difference: half a width, on the scale of logarithms.
const SEEN_MIN: f64 = 0.02;
/// Effects are called visible from about twice a half width on; this far above one it wants a word.
const VISIBLE_OVER_MIN: f64 = 3.0;

/// Why the total is less sure than the gains that it is made of; nothing where it is not.
pub(super) fn of_total(climb: &Climb) -> Option<String> {
    let total = climb.total.as_ref()?;
    let kept: Vec<&Rung> = climb
        .rungs
        .iter()
        .filter(|rung| rung.attempt.verdict == RungVerdict::Kept && !climb.own_load_only(&rung.attempt))
        .collect();
    let of_rung =
        |rung: &&Rung| Some(half(rung.leave_one_out?.interval_percent.map(|end| 1.0 + end / 100.0)));
    let halves: Vec<f64> = kept.iter().filter_map(of_rung).collect();
    let together = halves.iter().map(|half| half * half).sum::<f64>().sqrt();
    let own = half(total.gain.interval);
    let holds_none = total.gain.interval[0] <= 1.0 && total.gain.interval[1] >= 1.0;
    let least = if holds_none { WIDER_AND_UNSURE_MIN } else { WIDER_MIN };
    let is_wider = own > least * together && own - together > SEEN_MIN;
    if halves.is_empty() || halves.len() < kept.len() || !is_wider {
        return None;
    }
    let whose = if kept.len() == 1 { format!("{}'s", kept[0].id) } else { "the rungs' gains".to_owned() };
    let toggled = kept.iter().all(|rung| is_toggled(climb, rung.leave_one_out_trial.as_deref()));
    let they = match (toggled, kept.len()) {
        (true, 1) => "that was toggled within running servers",
        (true, _) => "those were toggled within running servers",
        (false, 1) => "that was measured in turns for as long as it took",
        (false, _) => "those were measured in turns for as long as it took",
    };
    let starts = if total.starts > 0 { format!("{} starts", total.starts) } else { "starts".to_owned() };
    let by = climb.noise.as_ref().and_then(|noise| noise.starts_percent);
    let by = by.map(|percent| format!(" by {percent:.1} %")).unwrap_or_default();
    Some(format!(
        "wider than {whose}: {they}, the total holds {starts} of whole servers against each other, and starts differ{by}"
    ))
}

/// Why steps see less than what is said to be visible; nothing where none does.
pub(super) fn of_noise(climb: &Climb) -> Option<&'static str> {
    let visible = climb.noise.as_ref()?.visible_percent;
    let finer: Vec<&Rung> = climb
        .rungs
        .iter()
        .filter(|rung| {
            let half = rung.attempt.interval_percent.map(|[low, high]| (high - low) / 2.0);
            half.is_some_and(|half| half * VISIBLE_OVER_MIN < visible)
        })
        .collect();
    if finer.is_empty() {
        return None;
    }
    match finer.iter().all(|rung| is_toggled(climb, rung.attempt.trial.as_deref())) {
        true => {
            Some("; of what is toggled within running servers smaller ones show, for no starts differ there")
        }
        false => Some("; a rung that is measured for longer shows smaller ones"),
    }
}

fn is_toggled(climb: &Climb, trial: Option<&str>) -> bool {
    trial.and_then(|id| climb.trial(id)).is_some_and(|compared| compared.toggles.is_some())
}

/// Half the width of an interval of ratios, on the scale of logarithms.
fn half([low, high]: [f64; 2]) -> f64 {
    (high.ln() - low.ln()) / 2.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::samples::climb::sample_climb;
    use dyno_record::climb::{Effect, Ratio};

    /// One rung kept, and a total that is sure to so much.
    fn climb(interval: [f64; 2]) -> Climb {
        let mut climb = sample_climb(3);
        let at = climb.rungs.iter().position(|rung| rung.attempt.verdict == RungVerdict::Kept).unwrap();
        let mut rung = climb.rungs.swap_remove(at);
        rung.leave_one_out =
            Some(Effect { effect_percent: -14.0, interval_percent: [-15.0, -13.0], pairs: 90 });
        climb.rungs = vec![rung];
        let total = climb.total.as_mut().unwrap();
        (total.gain, total.starts) = (Ratio { ratio: 1.1, interval }, 6);
        climb.noise.as_mut().unwrap().starts_percent = Some(4.0);
        climb
    }

    /// Planted fault: both stand there without a word, as if one of them were wrong.
    #[test]
    fn a_total_that_is_less_sure_than_its_only_rung_says_why() {
        let wide = climb([0.9, 1.3]);
        let said = of_total(&wide).unwrap();
        let id = &wide.rungs[0].id;
        assert!(said.starts_with(&format!("wider than {id}'s: that was")), "{said}");
        assert!(
            said.ends_with("6 starts of whole servers against each other, and starts differ by 4.0 %"),
            "{said}"
        );
        assert_eq!(of_total(&climb([1.09, 1.11])), None);
    }

    #[test]
    fn what_steps_see_below_what_is_visible_is_said() {
        let mut coarse = climb([1.09, 1.11]);
        coarse.rungs[0].attempt.interval_percent = Some([-15.0, -13.0]);
        coarse.noise.as_mut().unwrap().visible_percent = 8.0;
        assert!(of_noise(&coarse).unwrap().contains("smaller ones"));
        coarse.noise.as_mut().unwrap().visible_percent = 2.0;
        assert_eq!(of_noise(&coarse), None);
    }
}
