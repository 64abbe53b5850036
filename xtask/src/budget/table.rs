//! The table of budgets: read from a page of prose, compared, and written back with the rest of the page untouched.
//!
//! `| name | unit | budget | measured |`; rows of other shapes belong to other tables and are passed over.

use std::fmt;

use crate::trouble::Trouble;

/// One thing measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    /// As in the table.
    pub(crate) name: String,
    /// Per request.
    pub(crate) value: f64,
}

const HEAD: [&str; 4] = ["name", "unit", "budget", "measured"];

/// A budget.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    name: String,
    unit: String,
    budget: f64,
}

/// The budgets of a page.
///
/// # Errors
/// When the page has no such table, or a budget is no number.
pub(crate) fn rows(page: &str) -> Result<Vec<Row>, Trouble> {
    let (start, end) = span(page).ok_or_else(|| {
        Trouble::new(format!("there is no table | {} |", HEAD.join(" | "))).likely("the page was rewritten")
    })?;
    page.lines().skip(start).take(end - start).map(row).collect()
}

fn row(line: &str) -> Result<Row, Trouble> {
    let [name, unit, budget, _] = cells(line).unwrap_or_default();
    let number = budget.replace(',', "").parse();
    let budget = number.map_err(Trouble::cannot(format!("read the budget \"{budget}\" of \"{name}\"")))?;
    Ok(Row { name: bare(name).to_owned(), unit: unit.to_owned(), budget })
}

/// The lines of the table's body.
fn span(page: &str) -> Option<(usize, usize)> {
    let head = page.lines().position(|line| cells(line) == Some(HEAD))?;
    let body = page.lines().skip(head + 2).take_while(|line| cells(line).is_some()).count();
    Some((head + 2, head + 2 + body))
}

fn cells(line: &str) -> Option<[&str; 4]> {
    let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inside.split('|').map(str::trim).collect();
    cells.try_into().ok()
}

/// A name may stand in backticks.
fn bare(name: &str) -> &str {
    name.trim_matches('`')
}

/// The page with what was measured in the last column.
pub(crate) fn written(page: &str, measured: &[Measured]) -> String {
    let (start, end) = span(page).unwrap_or_default();
    let lines = page.lines().enumerate().map(|(number, line)| {
        let in_body = (start..end).contains(&number);
        in_body.then(|| updated(line, measured)).flatten().unwrap_or_else(|| line.to_owned())
    });
    lines.map(|line| line + "\n").collect()
}

fn updated(line: &str, measured: &[Measured]) -> Option<String> {
    let [name, unit, budget, _] = cells(line)?;
    let value = measured.iter().find(|one| one.name == bare(name))?.value;
    Some(format!("| {name} | {unit} | {budget} | {} |", shown(value)))
}

/// A budget beside what was measured.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Within {
        row: Row,
        value: f64,
    },
    Over {
        row: Row,
        value: f64,
    },
    /// Nothing measures it: the name is misspelt, or what measured it is gone.
    NotMeasured {
        row: Row,
    },
    /// It is measured, and may cost anything.
    NoBudget {
        name: String,
        value: f64,
    },
}

impl Verdict {
    pub(crate) fn holds(&self) -> bool {
        matches!(self, Verdict::Within { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Within { row, value } | Verdict::Over { row, value } => {
                let word = if self.holds() { "within" } else { "OVER" };
                let (value, budget) = (shown(*value), shown(row.budget));
                write!(f, "{:<28} {value:>10} of {budget:>8} {:<26} {word}", row.name, row.unit)
            }
            Verdict::NotMeasured { row } => write!(f, "{:<28} is not measured by anything", row.name),
            Verdict::NoBudget { name, value } => {
                write!(f, "{name:<28} {:>10} has no budget: add a row", shown(*value))
            }
        }
    }
}

/// Each budget, then what has none.
pub(crate) fn verdicts(rows: &[Row], measured: &[Measured]) -> Vec<Verdict> {
    let of_row = rows.iter().cloned().map(|row| {
        match measured.iter().find(|one| one.name == row.name).map(|one| one.value) {
            Some(value) if rounded(value) <= row.budget => Verdict::Within { row, value },
            Some(value) => Verdict::Over { row, value },
            None => Verdict::NotMeasured { row },
        }
    });
    let unknown = measured.iter().filter(|one| rows.iter().all(|row| row.name != one.name));
    let unknown = unknown.map(|one| Verdict::NoBudget { name: one.name.clone(), value: one.value });
    of_row.chain(unknown).collect()
}

/// To the hundredth that is shown: a timer's tick among thousands of requests is not a request's cost.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn shown(value: f64) -> String {
    let value = rounded(value) + 0.0;
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PAGE: &str = "# Budgets\n\nProse | with a bar.\n\n| name | unit | budget | measured |\n|---|---|--:|--:|\n\
                        | `json-instructions` | instructions / request | 1,500 | 9 |\n\
                        | json-allocations | allocations / request | 0 |  |\n\nMore prose.\n";

    fn measured(name: &str, value: f64) -> Measured {
        Measured { name: name.to_owned(), value }
    }

    #[test]
    fn a_page_gives_its_rows() {
        let rows = rows(PAGE).unwrap();
        let read: Vec<(&str, f64)> = rows.iter().map(|row| (row.name.as_str(), row.budget)).collect();
        assert_eq!(read, [("json-instructions", 1_500.0), ("json-allocations", 0.0)]);
    }

    #[test]
    fn a_page_without_the_table_or_with_a_wordy_budget_is_trouble() {
        assert!(rows("# Budgets\n").is_err());
        assert!(rows(&PAGE.replace("1,500", "few")).is_err());
    }

    #[test]
    fn over_budget_unmeasured_and_unbudgeted_all_fail() {
        let rows = rows(PAGE).unwrap();
        let holds = |all: &[Measured]| verdicts(&rows, all).iter().map(Verdict::holds).collect::<Vec<_>>();
        let (fits, none) = (measured("json-instructions", 1_500.0), measured("json-allocations", 0.004));
        assert_eq!(holds(&[fits.clone(), none.clone()]), [true, true]);
        assert_eq!(holds(&[measured("json-instructions", 1_500.01), none.clone()]), [false, true]);
        assert_eq!(holds(std::slice::from_ref(&fits)), [true, false]);
        assert_eq!(holds(&[fits, none, measured("new", 1.0)]), [true, true, false]);
    }

    #[test]
    fn writing_changes_the_last_column_and_nothing_else() {
        let page =
            written(PAGE, &[measured("json-instructions", 1_234.4), measured("json-allocations", -0.0)]);
        let expected = PAGE.replace("1,500 | 9 |", "1,500 | 1234 |").replace("| 0 |  |", "| 0 | 0.00 |");
        assert_eq!(page, expected);
    }
}
