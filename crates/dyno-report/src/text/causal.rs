//! `dyno causal` on the terminal: where it stands while it runs, and at the end what each site would bring.

use dyno_record::causal::{Causal, Standing};

use super::draw;
use super::line::fitted;
use crate::color::Color;
use crate::number::{percent, visible};
use crate::view;

/// Where the experiments stand, in one line of at most `width` columns; parts fall away from the right, the time left
/// last.
pub fn standing(standing: &Standing<'_>, width: usize) -> String {
    let Standing { site, round, effect, done: (done, sites), left } = *standing;
    let estimate =
        effect.map(|(level, value, half)| format!("{level} % faster saves {} ±{half:.1}", percent(value)));
    let done = (sites > 1).then(|| format!("{done} of {sites} done"));
    let head = [visible(site), format!("round {round}")];
    fitted(head.into_iter().chain(estimate).chain(done), left, width)
}

/// Everything, in at most `width` columns.
pub fn causal(record: &Causal, width: usize, color: Color) -> String {
    draw::view(&view::causal::view(record), width, color)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::samples::causal::sample;

    const STANDING: Standing<'static> = Standing {
        site: "render::page",
        round: 7,
        effect: Some((25, 8.1, 0.9)),
        done: (2, 8),
        left: Duration::from_secs(31),
    };

    #[test]
    fn progress_is_one_line_that_says_where_how_far_and_how_long() {
        assert_eq!(
            standing(&STANDING, 80),
            "render::page  round 7  25 % faster saves +8.1 % ±0.9  2 of 8 done  (0:31 left)"
        );
        for width in 0..80 {
            assert!(standing(&STANDING, width).chars().count() <= width);
        }
    }

    #[test]
    fn each_site_has_its_effect_its_interval_its_verdict_and_its_reason() {
        let text = causal(&sample(1), 120, Color::Plain);
        let line =
            text.lines().find(|line| line.trim_start().starts_with("render::page")).unwrap_or_default();
        for owed in ["48.2", "0.41 ±0.02", "+20.5 % ±0.9 at 50 %", "helps"] {
            assert!(line.contains(owed), "{owed}: {text}");
        }
        for owed in [
            "hurts: contention",
            "less than five pauses",
            "10 % faster saves +4.1 % ±0.9",
            "attached without delays: +1.8 % ±1.4",
            "of all CPUs: samples 0.24 %",
            "11.8 % of the time was inserted",
            "the target is the limit",
            "parse_head: below 2 % of the samples",
        ] {
            let found = text.split_whitespace().collect::<Vec<_>>().join(" ").contains(owed);
            assert!(found, "{owed}: {text}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_escapes_are_shown() {
        let mut record = sample(2);
        record.sites[0].name = "evil\u{1b}[2J".into();
        for width in [40, 60, 100] {
            let text = causal(&record, width, Color::Plain);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(!text.contains('\u{1b}'), "{text}");
        }
    }

    #[test]
    fn a_record_without_anything_still_has_its_lines() {
        assert!(causal(&Causal::default(), 80, Color::Ansi).contains("0 sites"));
    }
}
