//! The view of what works on a machine for a user: one screen.

use dyno_record::doctor::{Ability, Doctor, State};

use super::block::{Block, Fact, OnTerminal, View};
use super::show::Tone;
use super::table::{Cell, Column, Look, Row, Table, words};
use super::words::{counted, machine};

/// Columns of the labels: the longest is "missing".
const LABEL_COLUMNS: usize = 10;

const COLUMNS: [Column; 3] =
    [Column::words("what", 24), Column::words("for", 60).falls(1), Column::words("state", 9)];

/// All that is said of it.
pub(crate) fn view(doctor: &Doctor) -> View {
    let about = vec![
        Fact::new("host", machine(&doctor.machine)),
        Fact::new(
            "user",
            format!(
                "{}, {}",
                doctor.user,
                counted(doctor.capabilities.len(), "capability").replace("ys", "ies")
            ),
        ),
    ];
    let missing = doctor.abilities.iter().filter(|one| one.state != State::Works).count();
    let answer = match missing {
        0 => "all of it works".to_owned(),
        _ => format!(
            "{} of {} work; below the others stands what gets them",
            doctor.abilities.len() - missing,
            doctor.abilities.len()
        ),
    };
    let groups = vec![
        (OnTerminal::Above, Block::Facts(about)),
        (
            OnTerminal::Found,
            Block::Table(Table::new("abilities", &COLUMNS, doctor.abilities.iter().map(row).collect())),
        ),
        (OnTerminal::Answer, Block::Facts(vec![Fact::new("answer", answer)])),
    ];
    View::terminal(LABEL_COLUMNS, groups)
}

fn row(one: &Ability) -> Row {
    let (word, tone) = match one.state {
        State::Works => ("works", Tone::Good),
        State::Partly => ("partly", Tone::Doubt),
        State::Missing => ("missing", Tone::Bad),
    };
    let state = Cell { words: word.into(), look: Look::Toned(tone), ..Cell::default() };
    let why = if one.state == State::Works { String::new() } else { one.why.clone() };
    let get = (one.state != State::Works && !one.get.is_empty()).then(|| format!("get it: {}", one.get));
    Row {
        cells: vec![words(&one.name), words(&one.purpose), state],
        why,
        sentences: get.into_iter().collect(),
        ..Row::default()
    }
}
