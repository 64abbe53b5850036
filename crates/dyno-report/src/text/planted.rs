//! What `dyno specimen run planted-host` shows: audit, climb, rates and snapshot, each with its answer.

use dyno_record::climb::Rung;
use dyno_record::planted::{Found, PlantedHost, RECOVERED_MIN, Rates, Snapshot};

use super::lines::{lines, wrapped};
use crate::number;

/// Columns of the labels.
const LABEL: usize = 10;
const TEXT_WIDTH_MAX: usize = 100;
/// Differing values that are printed; the record has all.
const SHOWN_MAX: usize = 10;

/// The run in at most `width` columns.
#[must_use]
pub fn planted_host(host: &PlantedHost, width: usize) -> String {
    let width = width.clamp(40, TEXT_WIDTH_MAX);
    let mut out = labelled("audit", &audit(&host.audit), width);
    host.climb.rungs.iter().for_each(|rung| out.push_str(&labelled("rung", &of_rung(rung), width)));
    let rates = host.rates.as_ref().map_or_else(|| "not measured: the climb came to no end".into(), of_rates);
    out.push_str(&labelled("rates", &rates, width));
    out.push_str(&labelled("left", &snapshot(&host.snapshot), width));
    for differs in host.snapshot.differ.iter().take(SHOWN_MAX) {
        out.push_str(&labelled("", &number::visible(differs), width));
    }
    let warnings =
        host.climb.warnings.iter().map(|warning| labelled("warning", &number::visible(warning), width));
    out.extend(warnings);
    out.push_str(&labelled("answer", &answer(host), width));
    out
}

fn labelled(label: &str, text: &str, width: usize) -> String {
    let mut all = lines(text, width - LABEL).into_iter();
    let first = all.next().unwrap_or_default();
    let rest: String = all.map(|line| wrapped(&line, width, LABEL)).collect();
    format!("{label:<LABEL$}{first}\n{rest}")
}

fn audit(found: &Found) -> String {
    let added = found.added();
    if found.is_exact() {
        return format!(
            "{} findings more than on the clean host, exactly the plants: {}",
            added.len(),
            added.join(", ")
        );
    }
    let missing = found.expected.iter().filter(|id| !added.contains(id)).cloned();
    let stray = added.iter().filter(|id| !found.expected.contains(id)).cloned();
    let part = |what: &str, ids: Vec<String>| (!ids.is_empty()).then(|| format!("{what} {}", ids.join(", ")));
    let parts = [
        part("planted and not found", missing.collect()),
        part("found and not planted", stray.collect()),
        part("found on the clean host only", found.gone()),
    ];
    format!("not the plants alone: {}", parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

fn of_rung(rung: &Rung) -> String {
    let attempt = &rung.attempt;
    let effect = number::estimate(attempt.effect_percent, attempt.interval_percent);
    let effect = if effect.is_empty() { effect } else { format!("  {effect} time per request") };
    format!(
        "{}{effect}  {}: {}",
        number::visible(&rung.id),
        attempt.verdict.words(),
        number::visible(&attempt.why)
    )
}

fn of_rates(rates: &Rates) -> String {
    let against = |(percent, interval): (f64, [f64; 2])| number::effect(percent, interval);
    format!(
        "clean {:.0} requests/s · planted {:.0} ({}) · recovered {:.0} ({}), {} rounds beside each other",
        rates.clean,
        rates.planted,
        against(rates.planted_percent),
        rates.recovered,
        against(rates.recovered_percent),
        rates.rounds
    )
}

fn snapshot(snapshot: &Snapshot) -> String {
    match (snapshot.values, snapshot.differ.len()) {
        (0, _) => "not looked at".into(),
        (values, 0) => {
            format!("nothing: {values} settings are as they were; left out: {}", snapshot.left_out.join(" "))
        }
        (values, differ) => format!("{differ} of {values} settings are not as they were:"),
    }
}

fn answer(host: &PlantedHost) -> String {
    if host.is_passed() {
        return "passed".into();
    }
    let recovered = host.rates.as_ref().is_some_and(Rates::is_recovered);
    let of_clean = format!("less than {:.0} % of the clean rate came back", 100.0 * RECOVERED_MIN);
    let is_whole = host.snapshot.values > 0 && host.snapshot.differ.is_empty();
    let why = [
        (!host.audit.is_exact()).then_some("the audit did not name the plants and nothing else"),
        (!recovered).then_some(of_clean.as_str()),
        (!is_whole).then_some("the laboratory is not known to be as it was"),
    ];
    format!("not passed: {}", why.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(all: &[&str]) -> Vec<String> {
        all.iter().map(|id| (*id).to_owned()).collect()
    }

    fn host(after: &[&str], recovered: f64, differ: &[&str]) -> PlantedHost {
        let rates = Rates {
            rounds: 20,
            clean: 150_000.0,
            planted: 45_000.0,
            recovered: 1_500.0 * (100.0 + recovered),
            planted_percent: (-70.0, [-74.0, -66.0]),
            recovered_percent: (recovered, [recovered - 2.0, recovered + 2.0]),
        };
        PlantedHost {
            audit: Found { after: ids(after), expected: ids(&["nf.linear"]), ..Found::default() },
            rates: Some(rates),
            snapshot: Snapshot { values: 500, differ: ids(differ), left_out: ids(&["/statistics/"]) },
            ..PlantedHost::default()
        }
    }

    #[test]
    fn what_did_not_pass_is_named_and_what_did_is_short() {
        let passed = planted_host(&host(&["nf.linear"], -1.0, &[]), 100);
        assert!(passed.ends_with("answer    passed\n") && passed.contains("exactly the plants"), "{passed}");
        let not = planted_host(&host(&["net.rps"], -20.0, &["/proc/sys/net/a: 1 → 2"]), 100);
        for words in [
            "planted and not found nf.linear; found and not planted net.rps",
            "1 of 500 settings",
            "/proc/sys/net/a: 1 → 2",
            "less than 95 %",
        ] {
            assert!(not.replace('\n', " ").contains(words), "{words}: {not}");
        }
    }
}
