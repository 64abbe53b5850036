//! Conditions on a record's figures: `total>=1.5x, rung.one-send<=-5%`; read, checked against names, and held.
//!
//! ```text
//! conditions  condition, condition and condition
//! condition   figure op limit
//! figure      NAME, low(NAME) or high(NAME): an end of its interval
//! op          >= > <= <
//! limit       a number with a unit of the figure: 1.5x, -5%, 300us 5ms 1s, 10000 or 10k
//! ```
//!
//! A figure that is a ratio in one record and a change in percent of two needs its unit: `total>=1.5` would be half more in a
//! climb and 1.5 % more in a comparison. Both units hold of both: 1.5x is +50 %.
//!
//! A name without `low` or `high` is the figure as it is quoted; where its interval crosses the limit that is said. The
//! verbs call this for `--fail-under`. Nothing here prints.

mod read;

use crate::figure::{Figure, Sheet, Unit};

pub use read::read;

/// Which value of a figure is held against the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The estimate.
    Estimate,
    /// The lower end of its interval.
    Low,
    /// The upper end.
    High,
}

/// How it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `>=`
    AtLeast,
    /// `>`
    Above,
    /// `<=`
    AtMost,
    /// `<`
    Below,
}

impl Op {
    /// As it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Op::AtLeast => ">=",
            Op::Above => ">",
            Op::AtMost => "<=",
            Op::Below => "<",
        }
    }

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Op::AtLeast => value >= limit,
            Op::Above => value > limit,
            Op::AtMost => value <= limit,
            Op::Below => value < limit,
        }
    }
}

/// A place in the text that somebody wrote, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// First character.
    pub from: usize,
    /// One behind the last.
    pub to: usize,
}

/// One condition, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Its own text.
    pub text: String,
    /// The figure's name.
    pub name: String,
    /// Which of its values.
    pub end: End,
    /// How it is held.
    pub op: Op,
    /// The limit's number.
    pub limit: f64,
    /// What stands behind it.
    pub unit: String,
    /// Where the name stands.
    pub name_at: Place,
    /// Where the unit stands, or the number where there is none.
    pub unit_at: Place,
}

/// Conditions that cannot be read, or that ask for what is not there.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{what}")]
pub struct ConditionError {
    /// What is wrong.
    pub what: String,
    /// What is likely, or could have been written.
    pub hint: String,
    /// Where.
    pub at: Place,
}

impl ConditionError {
    /// The text with a mark under the place, in two lines.
    #[must_use]
    pub fn picture(&self, text: &str) -> [String; 2] {
        let marks = (self.at.to.max(self.at.from + 1)) - self.at.from;
        [text.to_owned(), format!("{}{}", " ".repeat(self.at.from), "^".repeat(marks))]
    }
}

/// What may be asked for: a figure's name and what it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The name.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// What it counts in a record by itself.
    pub alone: Unit,
}

impl Known {
    /// Every figure of a sheet.
    #[must_use]
    pub fn of(sheet: &Sheet) -> Vec<Known> {
        let known =
            |figure: &Figure| Known { name: figure.name.clone(), unit: figure.unit, alone: figure.alone };
        sheet.figures.iter().map(known).collect()
    }
}

/// A condition that was held against a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The condition's own text.
    pub text: String,
    /// Whether it is met.
    pub met: bool,
    /// Whether the figure's interval holds the limit: another run may end otherwise.
    pub crosses: bool,
    /// What was found; none where there is no such value.
    pub found: Option<f64>,
    /// The figure.
    pub figure: Figure,
    /// Which of its values was asked for.
    pub end: End,
    /// How it was to stand to the limit.
    pub op: Op,
    /// The limit in the figure's unit.
    pub limit: f64,
}

impl Condition {
    /// Whether it asks for what there is, in a unit that it has.
    ///
    /// # Errors
    /// Says which name or unit is not known, and what would be.
    pub fn check(&self, known: &[Known]) -> Result<(), ConditionError> {
        match known.iter().find(|one| one.name == self.name) {
            None => Err(self.unknown(known)),
            Some(one) => self.limit(one.unit, one.alone).map(|_| ()),
        }
    }

    fn unknown(&self, known: &[Known]) -> ConditionError {
        let what = format!("there is no figure \"{}\"", self.name);
        let near = known.iter().map(|one| one.name.as_str()).min_by_key(|name| distance(name, &self.name));
        let near = near.filter(|name| distance(name, &self.name) <= 1 + self.name.chars().count() / 3);
        let hint = match near {
            Some(name) => format!("\"{name}\" is meant"),
            None => format!("there are {}", names(known)),
        };
        ConditionError { what, hint, at: self.name_at }
    }

    /// The limit in the figure's unit.
    fn limit(&self, unit: Unit, alone: Unit) -> Result<f64, ConditionError> {
        let change = unit == Unit::Percent && !matches!(alone, Unit::Percent | Unit::Share);
        match (self.unit.as_str(), unit) {
            ("", Unit::Ratio) => return Err(self.ambiguous()),
            ("", Unit::Percent) if change => return Err(self.ambiguous()),
            ("%", Unit::Ratio) => return Ok(1.0 + self.limit / 100.0),
            ("x" | "×", Unit::Percent) if change => return Ok(100.0 * (self.limit - 1.0)),
            _ => {}
        }
        let table: &[(&str, f64)] = match unit {
            Unit::Ratio => &[("x", 1.0), ("×", 1.0)],
            Unit::Percent | Unit::Share => &[("", 1.0), ("%", 1.0)],
            Unit::Us => &[("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)],
            Unit::PerSecond => &[("", 1.0), ("/s", 1.0), ("k", 1e3), ("k/s", 1e3), ("M", 1e6), ("M/s", 1e6)],
            Unit::Count => &[("", 1.0), ("k", 1e3), ("M", 1e6)],
        };
        if let Some((_, factor)) = table.iter().find(|(name, _)| *name == self.unit) {
            return Ok(self.limit * factor);
        }
        let shown: Vec<String> = match (unit, change) {
            (Unit::Ratio, _) | (_, true) => ["x", "%"].map(|name| format!("{}{name}", self.limit)).into(),
            _ => table.iter().map(|(name, _)| format!("{}{name}", self.limit)).collect(),
        };
        let what = match self.unit.as_str() {
            "" => format!("{} is {} and needs a unit", self.name, unit.words()),
            other => format!("{} is {}, which has no unit \"{other}\"", self.name, unit.words()),
        };
        Err(ConditionError { what, hint: format!("write {}", shown.join(" or ")), at: self.unit_at })
    }

    /// A bare number is a factor to one reader and a change in percent to the other.
    fn ambiguous(&self) -> ConditionError {
        let (limit, text) = (self.limit, &self.text);
        let what = format!("{limit} may be a factor or a change in percent here");
        ConditionError { what, hint: format!("write {text}x or {text}%"), at: self.unit_at }
    }

    /// Holds it against a sheet.
    ///
    /// # Errors
    /// As [`Condition::check`].
    pub fn hold(&self, sheet: &Sheet) -> Result<Held, ConditionError> {
        let figure = sheet.figure(&self.name).ok_or_else(|| self.unknown(&Known::of(sheet)))?;
        let limit = self.limit(figure.unit, figure.alone)?;
        let found = match self.end {
            End::Estimate => figure.value,
            End::Low => figure.interval.map(|[low, _]| low),
            End::High => figure.interval.map(|[_, high]| high),
        };
        let crosses = self.end == End::Estimate
            && figure
                .interval
                .is_some_and(|[low, high]| self.op.holds(low, limit) != self.op.holds(high, limit));
        Ok(Held {
            text: self.text.clone(),
            met: found.is_some_and(|found| self.op.holds(found, limit)),
            crosses,
            found,
            figure: figure.clone(),
            end: self.end,
            op: self.op,
            limit,
        })
    }
}

/// Names that a message has room for.
const NAMES_MAX: usize = 12;

fn names(known: &[Known]) -> String {
    let shown: Vec<&str> = known.iter().take(NAMES_MAX).map(|one| one.name.as_str()).collect();
    let more = known.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Letters that differ (Levenshtein); names are short.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for k in 0..b.len() {
            let replaced = before + usize::from(letter != b[k]);
            before = row[k + 1];
            row[k + 1] = replaced.min(before + 1).min(row[k] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::figure::Better;

    fn sheet() -> Sheet {
        let total =
            Figure::new("total", "gain", (Unit::Ratio, Better::Higher), Some(1.6)).within(Some([1.4, 1.8]));
        let p99 = Figure::new("p99", "tail", (Unit::Us, Better::Lower), Some(4_200.0));
        let rung = Figure::new("rung.one-send", "gain", (Unit::Percent, Better::Lower), Some(-8.0));
        let odd = Figure::new("rung.a b", "gain", (Unit::Percent, Better::Lower), None).basis("not possible");
        Sheet { figures: vec![total, p99, rung, odd], ..Sheet::default() }
    }

    fn held(text: &str) -> Vec<Held> {
        read(text).unwrap().iter().map(|one| one.hold(&sheet()).unwrap()).collect()
    }

    fn met(text: &str) -> Vec<bool> {
        held(text).iter().map(|one| one.met).collect()
    }

    #[test]
    fn conditions_are_held_in_the_figures_own_unit() {
        assert_eq!(met("total>=1.5x, p99<=5ms and rung.one-send <= -5%"), [true; 3]);
        assert_eq!(met("p99<4200us"), [false]);
        assert_eq!(met("p99<=4200us,p99>1ms,p99<0.1s"), [true; 3]);
        assert_eq!(met("total>1.6x"), [false]);
    }

    /// Planted fault: a bare number is the figure's own unit, another one in a climb than in a comparison.
    #[test]
    fn a_factor_and_a_change_in_percent_are_told_apart_in_one_record_and_in_two() {
        let mut two = sheet();
        for figure in &mut two.figures {
            figure.unit = Unit::Percent;
        }
        two.figures[0].value = Some(3.0);
        let one = |text: &str| read(text).unwrap()[0].clone();
        for text in ["total>=1.5", "total<2", "low(total)>=1"] {
            for sheet in [&sheet(), &two] {
                let error = one(text).hold(sheet).unwrap_err();
                assert_eq!(error.hint, format!("write {text}x or {text}%"), "{error}");
            }
        }
        let limit = |text: &str, sheet: &Sheet| one(text).hold(sheet).unwrap().limit;
        assert_eq!((limit("total>=1.5x", &sheet()), limit("total>=50%", &sheet())), (1.5, 1.5));
        assert_eq!((limit("total>=1.5x", &two), limit("total>=50%", &two)), (50.0, 50.0));
        assert_eq!((limit("rung.one-send<=-5", &sheet()), limit("rung.one-send<=-5", &two)), (-5.0, -5.0));
        assert!(one("p99<=5ms").hold(&two).is_err() && one("p99<=5").hold(&two).is_err());
        assert!(one("p99<=5%").hold(&two).is_ok() && one("p99<=1.05x").hold(&two).is_ok());
    }

    #[test]
    fn an_end_of_the_interval_can_be_asked_for_and_crossing_is_told() {
        assert_eq!(met("low(total)>=1.5x, high(total)<=1.8x"), [false, true]);
        let crossing = &held("total>=1.5x")[0];
        assert!(crossing.met && crossing.crosses);
        assert!(!held("total>=1.3x")[0].crosses && !held("low(total)>=1.5x")[0].crosses);
    }

    #[test]
    fn what_was_not_measured_or_has_no_interval_is_not_met() {
        let one = &held("rung.\"a b\"<=0")[0];
        assert!(!one.met && one.found.is_none() && one.figure.basis == "not possible");
        assert_eq!(met("high(p99)<=9s"), [false]);
    }

    #[test]
    fn a_name_or_a_unit_that_is_not_there_is_shown_in_its_place() {
        for (text, marked, hint) in [
            ("totl>=1", "totl", "\"total\" is meant"),
            ("total>=1ms", "ms", "write 1x or 1%"),
            ("total>=1.5", "1.5", "write total>=1.5x or total>=1.5%"),
            ("low( total )>=1.5", "1.5", "write low( total )>=1.5x or low( total )>=1.5%"),
            ("p99<=5", "5", "write 5us or 5µs or 5ms or 5s"),
            ("total>=1x, qqqqqqqqq<3", "qqqqqqqqq", "there are total, p99, rung.one-send, rung.a b"),
        ] {
            let all = read(text).unwrap();
            let error = all.iter().find_map(|one| one.hold(&sheet()).err()).unwrap();
            let [shown, mark] = error.picture(text);
            let place: String =
                shown.chars().zip(mark.chars()).filter(|(_, m)| *m == '^').map(|(c, _)| c).collect();
            assert_eq!((place.as_str(), error.hint.as_str()), (marked, hint), "{text}: {error}");
        }
    }
}
