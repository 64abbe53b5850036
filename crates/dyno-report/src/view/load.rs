//! The view of a load: the rate, what was asked, every figure, and what limits them.

use dyno_record::figure::Sheet;
use dyno_record::load::LoadRun;
use dyno_record::sheet::of_load;

use super::block::{Block, Fact, Headline, OnPage, OnTerminal, Section, View};
use super::sheet::table;
use super::words::{alerts, date, machine, warnings};
use crate::number;

const LABEL_COLUMNS: usize = 10;

/// All that is said of a load.
pub(crate) fn view(run: &LoadRun) -> View {
    let sheet = of_load(run);
    let both = (OnPage::Head, OnTerminal::Answer);
    let sections = [
        Some(Section::new(
            "answer",
            "",
            both,
            vec![Block::Headline(headline(run, &sheet)), Block::Facts(facts(run))],
        )),
        alerts("warnings", OnTerminal::Last, warnings(&sheet.warnings)),
        Some(Section::new(
            "figures",
            "Figures",
            (OnPage::Body, OnTerminal::Found),
            vec![Block::Table(table(&sheet))],
        )),
    ];
    View {
        title: "dyno load".to_owned(),
        kicker: format!("dyno load · {}", date(run.started_unix_s)),
        sections: sections.into_iter().flatten().collect(),
        foot: format!("dyno {}", run.version),
        label_columns: LABEL_COLUMNS,
    }
}

fn headline(run: &LoadRun, sheet: &Sheet) -> Headline {
    let interval = sheet.figure("rps").and_then(|figure| figure.interval);
    let ends = interval.map(|ends| ends.map(number::count));
    Headline {
        big: number::count(run.requests_per_second),
        unit: "right answers per second".to_owned(),
        interval: ends.map(|[low, high]| format!("99 % interval {low} … {high}")).unwrap_or_default(),
        ..Headline::default()
    }
}

fn facts(run: &LoadRun) -> Vec<Fact> {
    let plural = if run.connections == 1 { "" } else { "s" };
    let load = format!(
        "{} connection{plural}, pipelined ×{}, {} threads",
        run.connections, run.pipeline, run.threads
    );
    let taken = format!("{} in {:.1} s", number::count(run.requests as f64), run.duration_s);
    vec![
        Fact::code("request", &run.request),
        Fact::new("load", load),
        Fact::new("answers", format!("{taken}, {} errors", number::count(run.errors.total() as f64))),
        Fact::new("machine", machine(&run.machine)),
    ]
}
