//! `dyno judge`: two lists of numbers, two records, or a climb's record again. The judge itself is `dyno_measure::judge`.
//!
//! It knows nothing of what was measured. Exit code 1 is reserved for worse, for a record whose verdicts are not reached
//! again, and for a condition that is not met.

mod again;
mod numbers;
mod records;
mod side;
mod within;
mod written;

use crate::out;
use std::path::Path;
use std::process::ExitCode;

use dyno_measure::dependence::{Dependence, Told, series_paired, series_unpaired};
use dyno_measure::drift::Drift;
use dyno_measure::judge::{Estimate, PAIRS_MIN, Verdict};
use dyno_measure::means::{Means, means_paired, means_unpaired};
use dyno_measure::stretches::Stretches;
use dyno_record::figure::Better;
use dyno_record::judged::{self, NUMBERS_SCHEMA};
use dyno_report::export::Subject;

use super::{exit, gate};
use crate::cli::{self, Format};
use dyno_lab::Failure;
use dyno_report::number;
use numbers::{Numbers, Source};
use side::Input;
use written::{exported, json};

/// Runs the verb.
pub(crate) fn run(args: &cli::Judge) -> Result<ExitCode, Failure> {
    let conditions = gate::Conditions::read(&args.gate)?;
    let Some(b) = &args.b else {
        only_for_two_records(args)?;
        return again::run(args, &conditions);
    };
    let [a, b] = both(args, b)?;
    match (records::schema(&a.text), records::schema(&b.text)) {
        (Some(_), Some(_)) => records::run(args, &conditions, [&a, &b]),
        (None, None) => {
            only_for_two_records(args)?;
            of_numbers(args, &conditions, &a, &b)
        }
        (of_a, _) => Err(mixed(if of_a.is_some() { [&a, &b] } else { [&b, &a] })),
    }
}

fn mixed([record, other]: [&Input; 2]) -> Failure {
    if other.text.trim_start().starts_with(['{', '\u{feff}']) {
        let what = match serde_json::from_str::<serde_json::Value>(&other.text) {
            Err(error) => format!("{}: {error}", other.name),
            Ok(_) => format!("{} names no schema of a record", other.name),
        };
        return Failure::error(what)
            .likely("it was cut short or damaged, or another program wrote it")
            .try_this("write it anew: dyno climb -o FILE, or dyno load URL -o FILE");
    }
    Failure::usage(format!("{} is a record, {} is none", record.name, other.name))
        .likely("a record is compared with a record of its kind, numbers with numbers")
        .try_this("dyno judge --help")
}

fn only_for_two_records(args: &cli::Judge) -> Result<(), Failure> {
    match args.html {
        None => Ok(()),
        Some(_) => Err(Failure::usage("--html draws two records, and there are not two")
            .likely("a list of numbers has no page, and a climb's record has its own")
            .try_this("dyno report RECORD")),
    }
}

fn of_numbers(
    args: &cli::Judge,
    conditions: &gate::Conditions,
    a: &Input,
    b: &Input,
) -> Result<ExitCode, Failure> {
    let a = Numbers::parse(a.name.clone(), &a.text, args.name.first())?;
    let b = Numbers::parse(b.name.clone(), &b.text, args.name.last())?;
    let judged = judge(args, &a, &b)?;
    let warnings = warnings(&judged, &a, &b);
    warnings.iter().for_each(|warning| out::say(&format!("warning: {warning}\n")));
    let record = record(&judged, &a, &b);
    let mut sheet = record.sheet(if args.higher { Better::Higher } else { Better::Lower });
    sheet.warnings = warnings;
    let held = conditions.hold(&sheet)?;
    let answer = sentence(&judged, &a, &b, args);
    out::print(&match args.format.wanted(cli::Json::of(args.json)) {
        Format::Json => json(&record)?,
        Format::Table => answer,
        other => exported(other, Subject::Numbers(&sheet, answer.trim_end()), &held),
    })?;
    let met = gate::told(&held);
    Ok(if judged.verdict == Verdict::Worse || !met { ExitCode::from(exit::NO) } else { exit::DONE })
}

/// What is said beside the answer, a line each.
fn warnings(judged: &Judged, a: &Numbers, b: &Numbers) -> Vec<String> {
    let dependence = judged.dependence.filter(|_| judged.tells && !judged.by_movement);
    let few = match judged.starts {
        Some(starts) => within::few_starts(starts),
        None => warning(a, b),
    };
    let is_hyperfine = judged.starts.is_none() && [a, b].iter().any(|list| list.source == Source::Hyperfine);
    let means = judged.means.as_ref().filter(|_| !judged.contradicts).map(beside_typical);
    let one_start = || {
        let is_flat = judged.starts.is_none() && judged.why_not().is_none();
        let told = (judged.verdict, &judged.estimate);
        is_flat.then(|| within::one_start(told, judged.by_movement, [a, b])).flatten()
    };
    let of_runs = is_hyperfine.then_some(IN_SEQUENCE).or_else(one_start).map(str::to_owned);
    let differ = judged.verdict != Verdict::NoDifference;
    let in_step = judged.drift.filter(|drift| differ && !drift.is_joined).map(in_step);
    let may_be_the_moments = differ && within::may_be_a_start(judged.verdict, &judged.estimate);
    let in_turns =
        (may_be_the_moments && judged.starts.is_some() && !is_hyperfine).then(|| STARTS_IN_TURNS.to_owned());
    let failed = (a.failed > 0 && b.failed > 0).then(|| within::all_failed([a, b]));
    let of_order = in_step.into_iter().chain(in_turns);
    few.into_iter()
        .chain(dependence.map(depends))
        .chain(means)
        .chain(of_runs)
        .chain(of_order)
        .chain(failed)
        .collect()
}

struct Judged {
    verdict: Verdict,
    /// Of typical numbers; of means where they alone tell a difference.
    estimate: Estimate,
    /// What the means say, where that is another thing.
    means: Option<Means>,
    /// Whether the figures are those of the means.
    by_means: bool,
    /// Whether typical numbers tell a difference, and the means another one.
    contradicts: bool,
    /// How the numbers depend on their neighbours, where they do.
    dependence: Option<Dependence>,
    /// Whether they tell anything.
    tells: bool,
    /// Whether the interval is what both lists move by.
    by_movement: bool,
    /// Where numbers at the other side's level stand together, which is why nothing can be told.
    stretches: Option<Stretches>,
    /// What both lists drift by, where pairs may not take it away.
    drift: Option<Drift>,
    /// Starts of A and of B, where these are what is compared.
    starts: Option<[usize; 2]>,
    alpha: f64,
}

impl Judged {
    /// Why nothing can be told.
    fn why_not(&self) -> Option<String> {
        match (self.tells, self.estimate.has_spread(), &self.means) {
            (false, ..) => Some(match (self.stretches, self.drift) {
                (Some(stretches), _) => two_levels(stretches),
                (None, Some(drift)) if drift.is_joined => joined(drift),
                (None, _) => ALL_ALIKE.to_owned(),
            }),
            (true, false, _) if !self.by_movement => Some(NO_SPREAD.to_owned()),
            (true, _, Some(means)) if self.contradicts => Some(two_answers(means)),
            (true, ..) => None,
        }
    }

    /// Typical numbers and means, which may be two answers. Where those tell a difference it stands, unless the means tell the
    /// opposite, or lie on the other side by more than one number; where they tell none and the means do, these are the answer.
    fn of(told: Told, means: Option<Means>, alpha: f64) -> Judged {
        let Told { estimate, dependence, tells, by_movement, stretches, drift } = told;
        let typical = told.verdict();
        let means = means.filter(|_| tells);
        let by_typical = Judged {
            verdict: typical,
            estimate,
            means,
            by_means: false,
            contradicts: false,
            dependence,
            tells,
            by_movement,
            stretches,
            drift,
            starts: None,
            alpha,
        };
        // Means that lie outside of the interval by what both sides have alike are told, and decide nothing.
        let leaning = means.filter(|means| means.lean);
        let Some(Means { estimate: of_means, beyond, .. }) = leaning else { return by_typical };
        // One run that was disturbed says nothing of the program.
        let are_many =
            beyond.into_iter().any(|many| many > 1) || Verdict::of(&of_means) != Verdict::NoDifference;
        let is_other_way = of_means.log_ratio * estimate.log_ratio < 0.0 && are_many;
        match (typical, Verdict::of(&of_means)) {
            (Verdict::NoDifference, Verdict::NoDifference) => by_typical,
            (Verdict::NoDifference, verdict) => {
                Judged { verdict, estimate: of_means, by_means: true, ..by_typical }
            }
            _ if is_other_way => Judged { verdict: Verdict::NoDifference, contradicts: true, ..by_typical },
            _ => by_typical,
        }
    }
}

fn both(args: &cli::Judge, b: &Path) -> Result<[Input; 2], Failure> {
    if args.a.as_os_str() == "-" && b.as_os_str() == "-" {
        let failure = Failure::usage("both sides cannot come from standard input");
        return Err(failure.likely("- is given twice").try_this("name a file for one of them"));
    }
    if args.name.len() > 2 {
        let what = format!("--name is given {} times", args.name.len());
        return Err(Failure::usage(what).likely("there are two sides").try_this("dyno judge --help"));
    }
    Ok([Input::read(&args.a)?, Input::read(b)?])
}

fn judge(args: &cli::Judge, a: &Numbers, b: &Numbers) -> Result<Judged, Failure> {
    for side in [a, b] {
        if side.values.len() < PAIRS_MIN {
            return Err(too_few(side));
        }
    }
    if let Some(failure) = within::too_far_apart(a, b).or_else(|| within::one_failed(a, b)) {
        return Err(failure);
    }
    let judged = match within::by_starts(a, b, args.unpaired, args.alpha) {
        Some((told, means)) => {
            Judged { starts: Some(within::counts(a, b)), ..Judged::of(told, means, args.alpha) }
        }
        None => of_lists(args, a, b)?,
    };
    let verdict = match (judged.verdict, args.higher) {
        (Verdict::Better, true) => Verdict::Worse,
        (Verdict::Worse, true) => Verdict::Better,
        (verdict, _) => verdict,
    };
    Ok(Judged { verdict, ..judged })
}

fn of_lists(args: &cli::Judge, a: &Numbers, b: &Numbers) -> Result<Judged, Failure> {
    let (a_values, b_values, alpha) = (&a.values, &b.values, args.alpha);
    let told = match args.unpaired {
        true => series_unpaired(a_values, b_values, alpha),
        false => series_paired(a_values, b_values, alpha),
    };
    let told = told.ok_or_else(|| unequal(a, b))?.rounded(within::rounding(a, b));
    let means = match args.unpaired {
        true => means_unpaired(a_values, b_values, &told.estimate, alpha),
        false => means_paired(a_values, b_values, &told.estimate, alpha),
    };
    Ok(Judged::of(told, means, alpha))
}

/// Below this an interval leans on the noise being well-behaved, and is wide.
const VALUES_ENOUGH: usize = 20;

fn warning(a: &Numbers, b: &Numbers) -> Option<String> {
    let least = a.values.len().min(b.values.len());
    (least < VALUES_ENOUGH).then(|| {
        format!(
            "{least} numbers on a side are few: {VALUES_ENOUGH} or more tell smaller differences, and whether each resembles the one before; \
             where it may, only A and B in turns can be compared by so few"
        )
    })
}

/// What was done about numbers that resemble their neighbours, and what would have told more.
fn depends(dependence: Dependence) -> String {
    format!(
        "the numbers resemble their neighbours (lag-1 correlation {:.2}): they are worth {:.0} independent ones, and the interval knows that; \
         A and B in turns (A B B A …, line k beside line k) would tell more than longer runs of each, and of a few starts of a program more starts \
         (a line \"# start\" before each)",
        dependence.lag_1, dependence.effective
    )
}

/// Numbers in the order in which a program wrote them that measures one thing to its end, and then the next.
const IN_SEQUENCE: &str = "hyperfine measures one thing to its end before the next: what differs between the two \
     moments is in the answer, and in no interval; where a few percent matter take turns (A B B A …, line k beside line k)";

/// What is taken for granted of starts.
const STARTS_IN_TURNS: &str = "the interval is right of starts that were made in turns (A B B A …): of one side's after the other's, what differs \
     between the two moments is in the answer, and in no interval";

/// Which way lists drift, and by how much.
fn drifts(drift: Drift) -> String {
    let way = if drift.log > 0.0 { "rise" } else { "fall" };
    let by = dyno_measure::units::percent_of_log(drift.log).abs();
    format!("the numbers of both sides {way} by {by:.1} % from beginning to end")
}

/// Why nothing can be told of lists that were measured one after the other on a machine that drifts.
fn joined(drift: Drift) -> String {
    format!(
        "{}, and B goes on about where A ended: if one was measured after the other, that alone makes them differ; measure A and B in turns \
         (A B B A …, line k beside line k), when the machine has warmed up",
        drifts(drift)
    )
}

/// What pairs take for granted of lists that drift alike.
fn in_step(drift: Drift) -> String {
    format!(
        "{}: the answer is right only if line k of one was measured beside line k of the other, in turns; else the drift is in it",
        drifts(drift)
    )
}

/// How many numbers make the means another thing than typical numbers.
fn of_how_many(means: &Means) -> String {
    if means.beyond == [0; 2] {
        return "some numbers lie far from the typical ones".to_owned();
    }
    let [up, down] = means.beyond;
    let (many, of) = (up.max(down), means.of);
    let verb = if many == 1 { "lies" } else { "lie" };
    format!("{many} of {of} {verb} far beyond the others")
}

/// What the means say beside typical numbers.
fn beside_typical(means: &Means) -> String {
    let [low, high] = means.estimate.interval_percent().map(number::percent);
    let why = if means.beyond == [0; 2] { String::new() } else { format!(": {}", of_how_many(means)) };
    format!(
        "that is of typical numbers (means without the lowest and the highest fifth); plain means differ by {} ({low} to {high}){why}",
        number::percent(means.estimate.percent())
    )
}

/// Why nothing can be told where typical numbers and means contradict each other.
fn two_answers(means: &Means) -> String {
    let [low, high] = means.estimate.interval_percent().map(number::percent);
    format!(
        "that is of typical numbers: their means differ by {} ({low} to {high}), because {}; if that is the machine's doing leave \
         these out, if it is the program's measure more",
        number::percent(means.estimate.percent()),
        of_how_many(means)
    )
}

/// Why nothing can be told of series that change as slowly as they last.
const ALL_ALIKE: &str = "the numbers change too slowly: they are worth too few independent ones for any interval; measure A and B in \
     turns (A B B A …, line k beside line k), and if these are a few starts of a program, give more starts, each after a line \"# start\": \
     longer ones do not help";

/// Why nothing can be told of numbers that change their level by themselves.
fn two_levels(Stretches { numbers, of, stretches }: Stretches) -> String {
    let together = if stretches == 1 { "together".to_owned() } else { format!("in {stretches} stretches") };
    format!(
        "{numbers} of {of} numbers lie nearer the other side's level, and stand {together}: the level changes by itself by as much as the \
         sides differ; measure A and B in turns (A B B A …, line k beside line k), or give several starts a side, in turns, each after a line \"# start\""
    )
}

/// Why nothing can be told of numbers that are all alike after trimming.
const NO_SPREAD: &str = "after trimming all values are alike, and without a spread no difference can be told from noise; \
     give more numbers, or finer ones";

fn too_few(side: &Numbers) -> Failure {
    let count = side.values.len();
    let noun = if count == 1 { "number" } else { "numbers" };
    Failure::error(format!("{} has {count} {noun}", side.name))
        .likely(format!("of fewer than {PAIRS_MIN} no spread can be told"))
        .try_this("measure again, 20 times or more on each side, in turns")
}

/// Only their lengths can keep two long enough lists from being compared in pairs.
fn unequal(a: &Numbers, b: &Numbers) -> Failure {
    let what = format!("{} has {} numbers, {} has {}", a.name, a.values.len(), b.name, b.values.len());
    Failure::error(what)
        .likely("line k of one file is paired with line k of the other")
        .try_this("--unpaired, when the numbers have no common order")
}

/// The published shape of an answer (docs/records.md).
fn record(judged: &Judged, a: &Numbers, b: &Numbers) -> judged::Numbers {
    let Judged { verdict, estimate, dependence, alpha, means, .. } = *judged;
    judged::Numbers {
        schema: NUMBERS_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        a: a.name.clone(),
        b: b.name.clone(),
        verdict,
        effect_percent: estimate.percent(),
        interval_percent: judged.why_not().is_none().then(|| estimate.interval_percent()),
        pairs: estimate.n,
        alpha,
        lag_1: dependence.map(|dependence| dependence.lag_1),
        effective_numbers: dependence.map(|dependence| dependence.effective),
        mean_effect_percent: means.map(|means| means.estimate.percent()),
        starts: judged.starts,
        why: judged.why_not(),
    }
}

fn sentence(judged: &Judged, a: &Numbers, b: &Numbers, args: &cli::Judge) -> String {
    let Judged { verdict, estimate, dependence, alpha, .. } = judged;
    let effect = number::percent(estimate.percent());
    if let Some(why) = judged.why_not() {
        let (a, b) = (&a.name, &b.name);
        let equal = judged.tells && !judged.contradicts && effect == number::percent(0.0);
        let head = if equal { "no difference seen" } else { "cannot be told" };
        return format!("{head}: {b} is {effect} against {a}, but {why}\n");
    }
    let [low, high] = estimate.interval_percent().map(number::percent);
    let word = match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference seen",
    };
    let level = 100.0 * (1.0 - alpha);
    let counted = match (judged.starts, args.unpaired) {
        (Some(starts), is_unpaired) => within::counted(starts, is_unpaired),
        (None, true) => format!("{} against {} numbers", b.values.len(), a.values.len()),
        (None, false) => format!("{} pairs", estimate.n),
    };
    let counted = if judged.by_means { format!("{counted} by their means") } else { counted };
    let direction = if args.higher { "higher is better" } else { "lower is better" };
    let (a, b) = (&a.name, &b.name);
    if judged.by_movement && low == high {
        let where_alike = if args.unpaired { "all numbers of each being alike" } else { "in every pair" };
        return format!("{word}: {b} is {effect} against {a}, {where_alike}; {counted}, {direction}\n");
    }
    let worth = match dependence {
        _ if judged.by_movement => ", much farther apart than either moves".to_owned(),
        Some(dependence) if !judged.by_means => {
            format!(", worth {:.0} independent ones", dependence.effective)
        }
        _ => String::new(),
    };
    let counted = counted + &worth;
    let at_most = match verdict {
        Verdict::NoDifference => {
            format!("; typical numbers differ by at most {:.1} %", estimate.at_most_percent())
        }
        _ => String::new(),
    };
    format!(
        "{word}: {b} is {effect} ({low} to {high}) against {a}{at_most}; {counted}, {level} % interval, {direction}\n"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;
    use dyno_measure::Prng;

    fn args(words: &[&str]) -> cli::Judge {
        let line = ["dyno", "judge", "a", "b"];
        let Some(Verb::Judge(args)) = Cli::try_parse_from(line.iter().chain(words)).unwrap().verb else {
            panic!("judge was asked for")
        };
        args
    }

    fn list(name: &str, values: Vec<f64>) -> Numbers {
        let starts = vec![values.len()];
        Numbers { name: name.to_owned(), starts, values, source: Source::List, step: None, failed: 0 }
    }

    /// Numbers around 100 with 2 % of noise, times a factor.
    fn noisy(name: &str, count: usize, factor: f64, seed: u64) -> Numbers {
        let mut rng = Prng::new(seed);
        let values = (0..count).map(|_| factor * (100.0 + 2.0 * rng.normal())).collect();
        list(name, values)
    }

    #[test]
    fn five_percent_more_is_worse_unless_higher_is_better() {
        let (a, b) = (noisy("a", 40, 1.0, 1), noisy("b", 40, 1.05, 2));
        for (words, wanted) in [
            (&[][..], Verdict::Worse),
            (&["--higher"], Verdict::Better),
            (&["--unpaired"], Verdict::Worse),
            (&["--alpha", "1e-6"], Verdict::Worse),
        ] {
            assert_eq!(judge(&args(words), &a, &b).unwrap().verdict, wanted, "{words:?}");
        }
        assert_eq!(judge(&args(&[]), &b, &a).unwrap().verdict, Verdict::Better);
    }

    #[test]
    fn the_same_noise_is_no_difference_and_says_how_small_it_must_be() {
        let (a, b) = (noisy("a.txt", 40, 1.0, 11), noisy("b.txt", 40, 1.0, 12));
        let judged = judge(&args(&[]), &a, &b).unwrap();
        assert_eq!(judged.verdict, Verdict::NoDifference);
        let text = sentence(&judged, &a, &b, &args(&[]));
        assert!(
            text.starts_with("no difference seen: b.txt is ")
                && text.contains("against a.txt; typical numbers differ by at most "),
            "{text}"
        );
        assert!(
            text.contains("; 40 pairs") && text.ends_with(", 99 % interval, lower is better\n"),
            "{text}"
        );
    }

    /// Planted fault: typical numbers alone are asked; then B, which costs nearly twice as much, is better.
    #[test]
    fn typical_numbers_and_means_that_contradict_each_other_tell_nothing_and_both_are_told() {
        let (a, mut b) = (noisy("a", 100, 1.0, 21), noisy("b", 100, 0.97, 22));
        b.values.iter_mut().step_by(10).for_each(|value| *value = 1_000.0);
        for words in [&[][..], &["--unpaired"], &["--higher"]] {
            let args = args(words);
            let judged = judge(&args, &a, &b).unwrap();
            assert_eq!(judged.verdict, Verdict::NoDifference, "{words:?}");
            let text = sentence(&judged, &a, &b, &args);
            assert!(text.starts_with("cannot be told: b is −2."), "{text}");
            assert!(
                text.contains("means differ by +87") && text.contains(" lie far beyond the others"),
                "{text}"
            );
            let record = record(&judged, &a, &b);
            assert!(record.interval_percent.is_none() && record.why.is_some());
            assert!(record.mean_effect_percent.is_some_and(|percent| (85.0..90.0).contains(&percent)));
        }
    }

    /// One slow run of twenty. Planted fault: any other mean is a contradiction, and a clear answer is none.
    #[test]
    fn one_run_that_was_disturbed_takes_no_clear_answer_away() {
        for level in [0.7, 0.9] {
            let (a, mut b) = (noisy("a", 20, 1.0, 25), noisy("b", 20, level, 26));
            b.values[7] *= 4.0;
            let judged = judge(&args(&[]), &a, &b).unwrap();
            assert_eq!((judged.verdict, judged.why_not()), (Verdict::Better, None), "{level}");
            assert!(judged.means.is_some() && !judged.contradicts);
        }
        let (a, mut b) = (noisy("a", 40, 1.0, 11), noisy("b", 40, 1.0, 12));
        b.values[7] *= 8.0;
        let judged = judge(&args(&[]), &a, &b).unwrap();
        let text = sentence(&judged, &a, &b, &args(&[]));
        assert!(text.starts_with("no difference seen: ") && judged.means.is_some(), "{text}");
    }

    /// Planted fault: what typical numbers cannot tell is told of by nobody.
    #[test]
    fn means_alone_may_tell_a_difference_and_with_typical_numbers_they_tell_one() {
        let (a, mut b) = (noisy("a", 100, 1.0, 23), noisy("b", 100, 1.0, 24));
        b.values.iter_mut().step_by(5).for_each(|value| *value *= 4.0);
        let by_means = judge(&args(&[]), &a, &b).unwrap();
        assert_eq!((by_means.verdict, by_means.by_means), (Verdict::Worse, true));
        assert!(by_means.estimate.percent() > 50.0, "{:?}", by_means.estimate);
        let text = sentence(&by_means, &a, &b, &args(&[]));
        assert!(text.starts_with("worse: b is +6") && text.contains("100 pairs by their means"), "{text}");
        assert_eq!(judge(&args(&["--higher"]), &a, &b).unwrap().verdict, Verdict::Better);
        b.values.iter_mut().for_each(|value| *value *= 1.1);
        let both = judge(&args(&[]), &a, &b).unwrap();
        assert_eq!((both.verdict, both.by_means), (Verdict::Worse, false));
        assert!((9.0..12.0).contains(&both.estimate.percent()), "{:?}", both.estimate);
        let warning = beside_typical(&both.means.unwrap());
        assert!(warning.contains("of typical numbers") && warning.contains("20 of 100 lie"), "{warning}");
    }

    #[test]
    fn lengths_that_differ_need_to_be_unpaired() {
        let (a, b) = (noisy("a", 40, 1.0, 5), noisy("b", 30, 1.0, 6));
        let lines = judge(&args(&[]), &a, &b).err().unwrap().lines();
        assert!(
            lines.starts_with("error: a has 40 numbers, b has 30\n") && lines.contains("--unpaired"),
            "{lines}"
        );
        assert!(judge(&args(&["--unpaired"]), &a, &b).is_ok());
    }

    #[test]
    fn numbers_without_a_spread_are_not_infinitely_sure() {
        let list = |name: &str, values: &[f64]| list(name, values.to_vec());
        let (a, b) = (list("a", &[100.0; 5]), list("b", &[99.0, 99.0, 99.0, 99.0, 120.0]));
        let judged = judge(&args(&[]), &a, &b).unwrap();
        assert_eq!(judged.verdict, Verdict::NoDifference);
        let text = sentence(&judged, &a, &b, &args(&[]));
        assert!(text.starts_with("cannot be told: b is −1.0 % against a, but after trimming"), "{text}");
        let value: serde_json::Value = serde_json::to_value(record(&judged, &a, &b)).unwrap();
        assert!(value["interval_percent"].is_null() && value["why"].is_string(), "{value}");
    }

    #[test]
    fn numbers_that_resemble_their_neighbours_are_told_for_what_they_are_worth() {
        let unpaired = args(&["--unpaired"]);
        let list = |name: &str, value: &mut dyn FnMut(f64) -> f64| {
            let values = (0..120).map(|at| value(f64::from(at))).collect();
            super::tests::list(name, values)
        };
        let mut rng = Prng::new(5);
        let mut waving = |at: f64| 100.0 + 3.0 * (at / 13.0 * std::f64::consts::TAU).sin() + rng.normal();
        let (a, b) = (list("a", &mut waving), list("b", &mut waving));
        let judged = judge(&unpaired, &a, &b).unwrap();
        let dependence = judged.dependence.unwrap();
        assert!(dependence.effective < 80.0 && judged.tells, "{dependence:?}");
        let text = sentence(&judged, &a, &b, &unpaired);
        assert!(
            depends(dependence).contains("in turns") && text.contains(" independent ones, 99 %"),
            "{text}"
        );
        let (a, b) = (list("a", &mut |at| 100.0 + at), list("b", &mut |at| 200.0 + at));
        let judged = judge(&unpaired, &a, &b).unwrap();
        let text = sentence(&judged, &a, &b, &unpaired);
        assert!(text.starts_with("cannot be told: b is ") && text.contains("in turns"), "{text}");
        let value: serde_json::Value = serde_json::to_value(record(&judged, &a, &b)).unwrap();
        assert!(value["interval_percent"].is_null() && value["lag_1"].as_f64() > Some(0.8), "{value}");
        assert_eq!(judged.verdict, Verdict::NoDifference);
    }

    /// Planted fault: the reason is that of numbers that change slowly (`ALL_ALIKE`).
    #[test]
    fn numbers_that_lie_at_the_other_sides_level_in_one_stretch_take_the_answer_away() {
        let mut rng = Prng::new(6);
        let mut near = |level: f64| level * (1.0 + 0.002 * rng.normal());
        let a = list("a", (0..20).map(|_| near(100.0)).collect());
        let levels = |at: usize| if at < 3 { 100.0 } else { 103.0 };
        let b = list("b", (0..20).map(|at| near(levels(at))).collect());
        for words in [&[][..], &["--unpaired"]] {
            let args = args(words);
            let judged = judge(&args, &a, &b).unwrap();
            let text = sentence(&judged, &a, &b, &args);
            let of = if words.is_empty() { "3 of 20" } else { "3 of 40" };
            let wanted = format!("but {of} numbers lie nearer the other side's level, and stand together");
            assert!(text.starts_with("cannot be told: b is ") && text.contains(&wanted), "{text}");
            assert_eq!(judged.verdict, Verdict::NoDifference);
        }
        // The same numbers here and there are outliers.
        let mut scattered = list("b", b.values);
        scattered.values.swap(0, 7);
        scattered.values.swap(2, 15);
        let judged = judge(&args(&[]), &a, &scattered).unwrap();
        assert_eq!((judged.verdict, judged.stretches), (Verdict::Worse, None));
    }

    /// The first two runs of either side take 200 ms more. Planted fault: whatever lies nearer the other level, or beyond it, lies at it; then
    /// a halving is not told.
    #[test]
    fn the_first_runs_of_a_cold_program_are_no_second_speed_of_the_machine() {
        let mut rng = Prng::new(27);
        let mut cold = |name: &str, level: f64| {
            let value =
                |at: usize, noise: f64| level * (1.0 + 0.003 * noise) + if at < 2 { 200.0 } else { 0.0 };
            list(name, (0..20).map(|at| value(at, rng.normal())).collect())
        };
        let (a, b) = (cold("a", 100.0), cold("b", 50.0));
        for words in [&[][..], &["--unpaired"]] {
            let judged = judge(&args(words), &a, &b).unwrap();
            assert_eq!((judged.verdict, judged.stretches), (Verdict::Better, None), "{words:?}");
        }
    }

    /// Ninety numbers of a hundred are alike on both sides, and ten of B's are fifty times as large. Planted fault: where most are alike
    /// nothing lies beyond.
    #[test]
    fn numbers_that_are_mostly_alike_are_judged_by_their_means() {
        let a = list("a", vec![1.0; 100]);
        let b = list("b", (0..100).map(|at| if at % 10 == 7 { 50.0 } else { 1.0 }).collect());
        for words in [&[][..], &["--unpaired"]] {
            let judged = judge(&args(words), &a, &b).unwrap();
            assert_eq!((judged.verdict, judged.by_means), (Verdict::Worse, true), "{words:?}");
        }
    }

    /// Nine numbers of ten are 3 % less in each start of B, the tenth ten times as large. Planted fault: means decide nothing of starts.
    #[test]
    fn means_of_starts_contradict_typical_numbers_as_those_of_lists_do() {
        let mut rng = Prng::new(28);
        let mut side = |name: &str, level: f64, tenth: f64| {
            let value =
                |at: usize, noise: f64| level * (1.0 + 0.01 * noise) * if at % 10 == 9 { tenth } else { 1.0 };
            let values = (0..60).map(|at| value(at, rng.normal())).collect();
            Numbers { starts: vec![10; 6], ..list(name, values) }
        };
        let (a, b) = (side("a", 100.0, 1.0), side("b", 97.0, 10.0));
        let judged = judge(&args(&[]), &a, &b).unwrap();
        assert_eq!((judged.verdict, judged.contradicts), (Verdict::NoDifference, true));
        let text = sentence(&judged, &a, &b, &args(&[]));
        assert!(
            text.starts_with("cannot be told: b is −3.") && text.contains("some numbers lie far"),
            "{text}"
        );
    }

    /// Planted faults: rounded times are exact, or counts are not.
    #[test]
    fn times_that_were_rounded_may_be_nearly_the_same_and_counts_are_not() {
        let of = |text: &str| Numbers::parse("x".to_owned(), &text.repeat(10), None).unwrap();
        for (a, b, wanted) in [
            ("0.01\n", "0.02\n", Verdict::NoDifference),
            ("0.010\n", "0.020\n", Verdict::Worse),
            ("1\n", "2\n", Verdict::Worse),
        ] {
            assert_eq!(judge(&args(&[]), &of(a), &of(b)).unwrap().verdict, wanted, "{a} {b}");
        }
    }

    /// Planted fault: what crashes at once is the faster one.
    #[test]
    fn runs_that_failed_on_one_side_are_not_compared() {
        let of = |failed: usize| Numbers { failed, ..noisy("x.json", 20, 1.0, 29) };
        let lines = judge(&args(&[]), &of(0), &of(20)).err().unwrap().lines();
        assert!(lines.starts_with("error: 20 of 20 runs of x.json failed, and none of x.json\n"), "{lines}");
        let judged = judge(&args(&[]), &of(1), &of(20)).unwrap();
        let warnings = warnings(&judged, &of(1), &of(20));
        assert!(warnings.iter().any(|line| line.contains("another status than 0")), "{warnings:?}");
    }

    /// One file and then the other while the machine warms up. Planted fault: +10 %, and sure of it.
    #[test]
    fn what_only_goes_on_from_one_file_to_the_next_is_no_difference() {
        let rising = |name: &str, from: f64| {
            list(name, (0..40).map(|at| from * (1.0 + 0.1 * (f64::from(at) + 0.5) / 40.0)).collect())
        };
        let (a, b) = (rising("a", 100.0), rising("b", 110.0));
        let judged = judge(&args(&[]), &a, &b).unwrap();
        let text = sentence(&judged, &a, &b, &args(&[]));
        assert!(
            text.starts_with("cannot be told: b is +10.") && text.contains("B goes on about where A"),
            "{text}"
        );
        let far = rising("b", 150.0);
        let judged = judge(&args(&[]), &a, &far).unwrap();
        let warnings = warnings(&judged, &a, &far);
        assert_eq!(judged.verdict, Verdict::Worse);
        assert!(warnings.iter().any(|line| line.contains("measured beside line k")), "{warnings:?}");
    }

    #[test]
    fn fewer_than_twenty_numbers_are_warned_of() {
        let of = |count: usize| noisy("x", count, 1.0, 1);
        let text = warning(&of(19), &of(40)).unwrap();
        // What so few hide: of equal series with a lag-1 correlation of 0.85, twelve numbers each, one in eight is called different.
        assert!(text.starts_with("19 numbers") && text.contains("resembles the one before"), "{text}");
        assert_eq!(warning(&of(20), &of(20)), None);
    }

    #[test]
    fn four_numbers_are_too_few() {
        let (a, b) = (noisy("a", 40, 1.0, 5), noisy("b", 4, 1.0, 6));
        let lines = judge(&args(&["--unpaired"]), &a, &b).err().unwrap().lines();
        assert!(lines.starts_with("error: b has 4 numbers\n"), "{lines}");
    }

    #[test]
    fn the_object_has_the_published_fields() {
        let (a, b) = (noisy("a", 40, 1.0, 1), noisy("b", 40, 1.05, 2));
        let judged = judge(&args(&[]), &a, &b).unwrap();
        let value = serde_json::to_value(record(&judged, &a, &b)).unwrap();
        assert_eq!(
            (&value["verdict"], &value["pairs"], &value["alpha"]),
            (&"worse".into(), &40.into(), &0.01.into())
        );
        let effect = value["effect_percent"].as_f64().unwrap();
        let [low, high] = [0, 1].map(|end| value["interval_percent"][end].as_f64().unwrap());
        assert!(low < effect && effect < high && low > 0.0, "{value}");
        assert_eq!(value.as_object().unwrap().len(), 9);
    }
}
