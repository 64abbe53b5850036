//! How an answer of the causal profiler stands to what the twin really saves. The strangers' task fills it, the page shows it.

use super::pairs::Actual;
use super::predicted::{Predicted, Told};
use super::twins::{Expected, Twin};

/// What came of one program.
pub(crate) struct Met {
    pub(crate) twin: Twin,
    pub(crate) predicted: Option<Predicted>,
    pub(crate) actual: Option<Actual>,
    /// Why one of them is missing.
    pub(crate) trouble: Option<String>,
}

/// How they stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The real saving lies inside what was predicted.
    Inside,
    /// It lies outside, and both intervals meet.
    Agrees,
    /// They do not meet, and the figure is drawn hollow: no verdict rests on it.
    Hollow,
    /// Told with a verdict, and not so.
    Wrong,
    /// No answer, for the reason that the table expects.
    RightlyRefused,
    /// No answer where there is one.
    Refused,
    /// Nothing to compare.
    Broken,
}

impl Met {
    pub(crate) fn standing(&self) -> Standing {
        match (&self.predicted, &self.actual) {
            (Some(Predicted::Refused(why)), Some(_)) => refused(&self.twin.expected, why),
            (Some(Predicted::Told(told)), Some(actual)) => compare(told, actual),
            _ => Standing::Broken,
        }
    }

    /// How far the prediction is from the real saving, in points; none where a verdict does not rest on it.
    pub(crate) fn error(&self) -> Option<f64> {
        match (&self.predicted, &self.actual) {
            (Some(Predicted::Told(told)), Some(actual)) if !told.hollow => {
                Some((told.saved - actual.saved).abs())
            }
            _ => None,
        }
    }
}

/// Whether nothing is wrong and nothing is missing: where all that should have a figure are refused one, nothing was held
/// against anything.
pub(crate) fn holds(all: &[Met]) -> bool {
    let is_bad = |met: &Met| matches!(met.standing(), Standing::Wrong | Standing::Broken);
    let mut with_figure = all.iter().filter(|met| met.twin.expected == Expected::Figure).peekable();
    let is_told = |met: &Met| matches!(met.predicted, Some(Predicted::Told(_)));
    !all.iter().any(is_bad) && (with_figure.peek().is_none() || with_figure.any(is_told))
}

fn refused(expected: &Expected, why: &str) -> Standing {
    match expected {
        Expected::Reason(word) if why.contains(word) => Standing::RightlyRefused,
        _ => Standing::Refused,
    }
}

fn compare(told: &Told, actual: &Actual) -> Standing {
    let holds = |interval: [f64; 2], value: f64| interval[0] <= value && value <= interval[1];
    let meet = told.interval[0] <= actual.interval[1] && actual.interval[0] <= told.interval[1];
    // Where nothing is won a claim that something is cannot be nearly right.
    let claims_nothing_as_something = told.verdict != "no effect" && holds(actual.interval, 0.0);
    if holds(told.interval, actual.saved) {
        Standing::Inside
    } else if meet && (told.hollow || !claims_nothing_as_something) {
        Standing::Agrees
    } else if told.hollow {
        Standing::Hollow
    } else {
        Standing::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::super::twins;
    use super::*;

    fn told(verdict: &str, saved: f64, half: f64) -> Told {
        Told { verdict: verdict.to_owned(), saved, interval: [saved - half, saved + half], hollow: false }
    }

    fn standing(told: Told, saved: f64, half: f64) -> Standing {
        met(Predicted::Told(told), "figure", saved, half).standing()
    }

    fn met(predicted: Predicted, expected: &str, saved: f64, half: f64) -> Met {
        let line = format!("x\tsteady\tx.sh\ta\tb\tdefault\tf\t50\t{expected}\t1.5\tDebian\thalf");
        let actual = Actual { saved, interval: [saved - half, saved + half], pairs: 8, per_s: 100.0 };
        let twin = twins::parse(&line).unwrap_or_default();
        Met { twin, predicted: Some(predicted), actual: Some(actual), trouble: None }
    }

    #[test]
    fn an_answer_is_wrong_where_its_interval_and_the_real_one_do_not_meet() {
        assert_eq!(standing(told("helps", 20.0, 2.0), 21.0, 0.5), Standing::Inside);
        assert_eq!(standing(told("helps", 20.0, 2.0), 23.0, 1.5), Standing::Agrees);
        assert_eq!(standing(told("helps", 20.0, 2.0), 24.0, 1.5), Standing::Wrong);
        assert_eq!(standing(told("no effect", 0.5, 1.0), 10.0, 1.0), Standing::Wrong);
        let hollow = Told { hollow: true, ..told("helps", 20.0, 2.0) };
        assert_eq!(standing(hollow.clone(), 30.0, 1.0), Standing::Hollow);
        assert_eq!(standing(hollow, 23.0, 1.5), Standing::Agrees);
    }

    #[test]
    fn a_gain_that_is_told_where_nothing_is_won_is_wrong_even_where_the_intervals_touch() {
        assert_eq!(standing(told("helps", 2.0, 1.5), 0.0, 1.0), Standing::Wrong);
        assert_eq!(standing(told("hurts", -2.0, 1.5), 0.0, 1.0), Standing::Wrong);
        assert_eq!(standing(told("no effect", 0.9, 0.8), 0.0, 0.5), Standing::Agrees);
    }

    #[test]
    fn no_figure_at_all_of_those_that_should_have_one_is_a_failure_and_none_of_one_of_them_is_not() {
        let refused = |expected| met(Predicted::Refused("paced from outside".to_owned()), expected, 0.0, 1.0);
        let right = || met(Predicted::Told(told("helps", 20.0, 2.0)), "figure", 19.0, 1.0);
        let wrong = || met(Predicted::Told(told("helps", 20.0, 2.0)), "figure", 9.0, 1.0);
        assert!(!holds(&[refused("figure"), refused("figure"), refused("paced")]));
        assert!(holds(&[refused("figure"), right()]));
        assert!(holds(&[refused("paced")]));
        assert!(!holds(&[right(), wrong()]));
    }

    #[test]
    fn a_refusal_is_right_for_the_reason_that_is_expected_alone() {
        let refused = |why: &str, expected| met(Predicted::Refused(why.to_owned()), expected, 0.0, 1.0);
        assert_eq!(refused("paced from outside", "paced").standing(), Standing::RightlyRefused);
        assert_eq!(refused("too few rounds", "paced").standing(), Standing::Refused);
        assert_eq!(refused("paced from outside", "figure").standing(), Standing::Refused);
        assert_eq!(refused("paced from outside", "figure").error(), None);
        assert_eq!(met(Predicted::Told(told("helps", 20.0, 2.0)), "figure", 19.0, 1.0).error(), Some(1.0));
    }
}
