//! What came of the strangers, for a terminal and for the page of evidence.

use std::fmt::Write;

use super::row::{Found, Row, Verdict};

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Wrong => "WRONG",
            Verdict::Silent => "SILENT",
            Verdict::Accused => "ACCUSED",
            Verdict::Broken => "did not run",
        }
    }
}

/// One program on one line.
pub(crate) fn line(row: &Row) -> String {
    let first = row.of_the_program().next();
    let said = match (&row.trouble, first) {
        (Some(trouble), _) => trouble.replace('\n', " "),
        (None, Some(found)) => format!("{} ({}): {}", found.class, found.confidence, found.summary),
        (None, None) => "nothing found".to_owned(),
    };
    format!("{:<11} {:<22} {:<38} {said}", row.verdict().word(), row.truth.name, row.truth.expected())
}

/// How many of each.
pub(crate) fn sum(rows: &[Row]) -> String {
    let (healthy, wrong): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.truth.is_healthy());
    let count = |rows: &[&Row], verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    format!(
        "of {} with something wrong: right first {}, wrong {}, silent {}; of {} healthy: accused {}; did not run: {}",
        wrong.len(),
        count(&wrong, Verdict::Right),
        count(&wrong, Verdict::Wrong),
        count(&wrong, Verdict::Silent),
        healthy.len(),
        count(&healthy, Verdict::Accused),
        count(&wrong, Verdict::Broken) + count(&healthy, Verdict::Broken),
    )
}

/// The page of evidence.
pub(crate) fn page(rows: &[Row], watched: &str) -> String {
    let mut text = String::from("# Diagnosis of programs from elsewhere\n\n");
    let _ = write!(
        text,
        "`cargo xtask strangers`, {}. Each program is watched once, for {}.\n\
         Others on the machine (`noisy_neighbor`) count only where they are the truth.\n\n{}.\n\n\
         | program | from | truth | known by | answer | all findings |\n|---|---|---|---|---|---|\n",
        machine(),
        watched,
        sum(rows),
    );
    for row in rows {
        let all: Vec<String> = row.found.iter().map(short).collect();
        let (truth, all) = (&row.truth, if all.is_empty() { "none".to_owned() } else { all.join(", ") });
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {all} |",
            truth.name,
            truth.from,
            truth.expected(),
            truth.known_by,
            row.verdict().word(),
        );
    }
    text
}

/// The day and the machine, for a page.
pub(crate) fn machine() -> String {
    let release = first_line("/proc/sys/kernel/osrelease");
    format!(
        "{}, Linux {}, {}, {} CPUs",
        today(),
        release.split('-').next().unwrap_or_default(),
        cpu_model(),
        std::thread::available_parallelism().map_or(0, usize::from),
    )
}

fn short(found: &Found) -> String {
    format!("{} ({})", found.class, found.confidence)
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("an unnamed CPU".to_owned(), |(_, name)| name.trim().to_owned())
}

fn today() -> String {
    crate::command::output(&mut crate::command::command(["date", "-u", "+%F"]))
        .map_or_else(|_| "some day".to_owned(), |text| text.trim().to_owned())
}
