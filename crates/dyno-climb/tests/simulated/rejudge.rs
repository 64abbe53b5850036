//! The record holds all that its verdicts were made from: judged again, every trial says the same.

use dyno_measure::judge::{Judgement, Verdict, cut_short};
use dyno_record::climb::{Attempt, Climb, Rung, RungVerdict};
use dyno_record::ratios::Ratios;
use dyno_record::trial::Compared;

pub(crate) fn says_the_same(record: &Climb) {
    if let Some(noise) = &record.noise {
        let trial = record.trial(noise.trial.as_ref().expect("named")).expect("the noise's trial");
        let again = again(record, trial).expect("enough pairs");
        assert_same(again.estimate.interval_percent(), noise.interval_percent, "noise");
    }
    assert_ne!(Ratios::follow(record), Some(false), "seed {}: {:?}", record.seed, record.total);
    for rung in &record.rungs {
        rung.first_attempt.iter().for_each(|attempt| step_says_the_same(record, rung, attempt));
        step_says_the_same(record, rung, &rung.attempt);
        confirmation_says_the_same(record, rung);
    }
}

fn again(record: &Climb, compared: &Compared) -> Option<Judgement> {
    cut_short(&compared.trial, &compared.rule, record.seed)
}

fn step_says_the_same(record: &Climb, rung: &Rung, attempt: &Attempt) {
    let (Some(id), Some(interval)) = (&attempt.trial, attempt.interval_percent) else { return };
    let again = again(record, record.trial(id).expect("its trial")).expect("it was judged");
    assert_same(again.estimate.interval_percent(), interval, &rung.id);
    let verdict = match (again.verdict, again.veto) {
        (Verdict::Better, None) if record.is_worth(&rung.risk, again.estimate.percent()) => RungVerdict::Kept,
        (Verdict::Better, None) => RungVerdict::NotWorthwhile,
        (Verdict::Better, Some(_)) | (Verdict::Worse, _) => RungVerdict::Reverted,
        (Verdict::NoDifference, _) => RungVerdict::NoDifference,
    };
    let stored = match attempt.verdict {
        RungVerdict::Unconfirmed => RungVerdict::Kept,
        // Worth it in its step, and not when it was turned back.
        RungVerdict::NotWorthwhile if rung.leave_one_out.is_some() => RungVerdict::Kept,
        // The proof failed after measuring: its trial decided nothing.
        RungVerdict::NotApplied => return,
        other => other,
    };
    assert_eq!(verdict, stored, "seed {}: {}: {}", record.seed, rung.id, attempt.why);
}

fn confirmation_says_the_same(record: &Climb, rung: &Rung) {
    let Some(stored) = &rung.leave_one_out else { return };
    let id = rung.leave_one_out_trial.as_ref().expect("its trial is named");
    let trial = record.trial(id).expect("its trial");
    let again = again(record, trial).expect("it was judged");
    assert_same(again.estimate.interval_percent(), stored.interval_percent, id);
    let confirmed = again.verdict == Verdict::Better && again.veto.is_none();
    let worth = record.is_worth(&rung.risk, again.estimate.percent());
    let stored = rung.attempt.verdict;
    assert_eq!(confirmed && worth, stored == RungVerdict::Kept, "seed {}: {}", record.seed, rung.id);
    assert_eq!(
        confirmed && !worth,
        stored == RungVerdict::NotWorthwhile,
        "seed {}: {}",
        record.seed,
        rung.id
    );
}

/// Decimal text may cost a number its last bit.
fn assert_same(again: [f64; 2], stored: [f64; 2], of: &str) {
    let apart = again.iter().zip(stored).map(|(again, stored)| (again - stored).abs());
    assert!(apart.fold(0.0, f64::max) < 1e-9, "{of}: {stored:?}, judged again {again:?}");
}
