//! A bench's table on the terminal: a line per arm, with its ratio to a yardstick and its interval.

use dyno_measure::judge::Estimate;

use super::series::Series;

/// Lines for the arms, cheapest first; `yardsticks` are names to whose CPU each arm's is set in relation.
pub(crate) fn lines(all: &[Series], yardsticks: &[&str]) -> Vec<String> {
    let known: Vec<&Series> =
        yardsticks.iter().filter_map(|name| all.iter().find(|series| series.name == *name)).collect();
    let mut sorted: Vec<&Series> = all.iter().collect();
    sorted.sort_by(|a, b| a.cpu_us().total_cmp(&b.cpu_us()));
    let head = known.iter().map(|yardstick| format!("{:>22}", format!("÷ {}", yardstick.name)));
    let head = format!("{:<14} {:>11} {:>9}{}", "", "CPU µs/req", "kreq/s", head.collect::<String>());
    std::iter::once(head).chain(sorted.into_iter().map(|series| line(series, &known))).collect()
}

fn line(series: &Series, yardsticks: &[&Series]) -> String {
    let ratios = yardsticks.iter().map(|yardstick| match yardstick.name == series.name {
        true => format!("{:>22}", "1"),
        false => format!("{:>22}", ratio(series.against(yardstick))),
    });
    let (cpu, rate) = (series.cpu_us(), series.per_s() / 1e3);
    format!("{:<14} {cpu:>11.2} {rate:>9.1}{}", series.name, ratios.collect::<String>())
}

/// `1.05 [1.02, 1.08]`; without an interval there is no number either.
pub(crate) fn ratio(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else { return "too few cycles".to_owned() };
    let [low, high] = [-1.0, 1.0].map(|side| (estimate.log_ratio + side * estimate.half_width).exp());
    format!("{:.2} [{low:.2}, {high:.2}]", estimate.log_ratio.exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::Slice;

    fn series(name: &str, cpu_us: f64) -> Series {
        Series { name: name.to_owned(), slices: vec![Slice { cpu_us, per_s: 100_000.0 }; 6] }
    }

    #[test]
    fn arms_stand_cheapest_first_with_their_ratios() {
        let all = [series("go", 17.0), series("floor", 6.0), series("dyno", 6.12)];
        let lines = lines(&all, &["floor", "dyno"]);
        let expected = [
            "                CPU µs/req    kreq/s               ÷ floor                ÷ dyno",
            "floor                 6.00     100.0                     1     0.98 [0.98, 0.98]",
            "dyno                  6.12     100.0     1.02 [1.02, 1.02]                     1",
            "go                   17.00     100.0     2.83 [2.83, 2.83]     2.78 [2.78, 2.78]",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_yardstick_that_was_not_measured_is_left_out() {
        assert!(!lines(&[series("dyno", 6.0)], &["floor", "dyno"])[0].contains("floor"));
    }
}
