//! The view of a climb: what was gained, by which rungs, under which conditions, and what it does not mean.
//!
//! `dyno climb` shows it at its end, `dyno report` for any old record.

mod answer;
mod card;
mod conditions;
mod figures;
mod latency;
mod profiles;
mod rungs;
mod series;
mod standing;
mod widths;

use dyno_record::climb::Climb;

use super::block::{OnTerminal, View};
use super::words;

/// Columns of the labels: the longest is "cut short".
const LABEL_COLUMNS: usize = 10;

/// All that is said of a climb.
pub(crate) fn view(climb: &Climb) -> View {
    let cut_short = words::cut_short(climb.cut_short.as_ref()).into_iter().collect();
    let sections = [
        words::alerts("cut-short", OnTerminal::Above, cut_short),
        Some(answer::answer(climb)),
        Some(answer::limits(climb)),
        Some(answer::apply(climb)),
        words::alerts("warnings", OnTerminal::Last, words::warnings(&climb.warnings)),
        rungs::ladder(climb),
        card::section(climb),
        latency::section(climb),
        figures::section(climb),
        rungs::folded(climb),
        rungs::section(climb),
        Some(conditions::machine(climb)),
        Some(conditions::noise(climb)),
        Some(conditions::not_measured(climb)),
    ];
    View {
        title: answer::title(climb),
        kicker: format!(
            "dyno climb · plan {} · {}",
            climb.plan,
            words::when(climb.started_unix_s, climb.duration_s)
        ),
        sections: sections.into_iter().flatten().collect(),
        foot: format!(
            "dyno {} · seed {} · the record beside this page holds every block; dyno judge reaches the same verdicts from it.",
            climb.version, climb.seed
        ),
        label_columns: LABEL_COLUMNS,
    }
}
