//! A bench's table on the terminal: a line per arm, with its ratio to a yardstick and its interval.

use dyno_measure::judge::Estimate;

use super::series::{Part, Series};

/// Lines for one part of the arms' CPU, the arm that is cheapest in all first; `yardsticks` are names to whose CPU each
/// arm's is set in relation.
pub(crate) fn lines(all: &[Series], yardsticks: &[&str], part: Part) -> Vec<String> {
    let known: Vec<&Series> =
        yardsticks.iter().filter_map(|name| all.iter().find(|series| series.name == *name)).collect();
    let mut sorted: Vec<&Series> = all.iter().collect();
    sorted.sort_by(|a, b| a.cpu_us(Part::Total).total_cmp(&b.cpu_us(Part::Total)));
    let head = known.iter().map(|yardstick| format!("{:>22}", format!("÷ {}", yardstick.name)));
    let head =
        format!("{:<14} {:>11} {:>9}{}", part.name(), "CPU µs/req", "kreq/s", head.collect::<String>());
    std::iter::once(head).chain(sorted.into_iter().map(|series| line(series, &known, part))).collect()
}

fn line(series: &Series, yardsticks: &[&Series], part: Part) -> String {
    let ratios = yardsticks.iter().map(|yardstick| match yardstick.name == series.name {
        true => format!("{:>22}", "1"),
        false => format!("{:>22}", ratio(series.against(yardstick, part))),
    });
    let (cpu, rate) = (series.cpu_us(part), series.per_s() / 1e3);
    format!("{:<14} {cpu:>11.3} {rate:>9.1}{}", series.name, ratios.collect::<String>())
}

/// `1.052 [1.021, 1.084]`: with hundreds of cycles an interval is some tenths of a percent. Without one there is no
/// number either, and the reason in its place.
fn ratio(estimate: Result<Estimate, &str>) -> String {
    let estimate = match estimate {
        Ok(estimate) => estimate,
        Err(why) => return why.to_owned(),
    };
    let [low, high] = [-1.0, 1.0].map(|side| (estimate.log_ratio + side * estimate.half_width).exp());
    format!("{:.3} [{low:.3}, {high:.3}]", estimate.log_ratio.exp())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::bench::series::Slice;

    fn series(name: &str, cpu_us: f64) -> Series {
        Series {
            name: name.to_owned(),
            slices: vec![Slice { cpu_us, user_us: Some(cpu_us / 4.0), per_s: 100_000.0 }; 6],
        }
    }

    #[test]
    fn arms_stand_cheapest_first_with_their_ratios() {
        let all = [series("go", 17.0), series("floor", 6.0), series("dyno", 6.12)];
        let lines = lines(&all, &["floor", "dyno"], Part::Total);
        let expected = [
            "total           CPU µs/req    kreq/s               ÷ floor                ÷ dyno",
            "floor                6.000     100.0                     1  0.980 [0.980, 0.980]",
            "dyno                 6.120     100.0  1.020 [1.020, 1.020]                     1",
            "go                  17.000     100.0  2.833 [2.833, 2.833]  2.778 [2.778, 2.778]",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_part_has_its_own_numbers_or_the_reason_why_not() {
        let mut all = [series("dyno", 8.0), series("floor", 6.0)];
        let last = |all: &[Series]| lines(all, &["floor"], Part::System).pop().unwrap();
        assert_eq!(last(&all), "dyno                 6.000     100.0  1.333 [1.333, 1.333]");
        all[1].slices.iter_mut().for_each(|slice| slice.user_us = None);
        assert_eq!(last(&all), "dyno                 6.000     100.0         too few ticks");
    }

    #[test]
    fn a_yardstick_that_was_not_measured_is_left_out() {
        assert!(!lines(&[series("dyno", 6.0)], &["floor", "dyno"], Part::Total)[0].contains("floor"));
    }
}
