//! What LLVM's fuzzer says of a run, read from its standard error.

/// A run's figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    runs: u64,
    runs_per_s: u64,
    /// Edges of the code that were reached.
    edges: u64,
    memory_mb: u64,
    /// The file that makes it fail.
    pub(super) finding: Option<String>,
    /// What was said of the finding.
    pub(super) why: String,
}

impl Told {
    pub(super) const HEAD: &'static str = "target            runs    runs/s   edges  peak MB  finding";

    /// None if it does not end as a run of the fuzzer does.
    pub(super) fn read(text: &str, ended_well: bool) -> Option<Told> {
        let number = |name: &str| {
            let line = text.lines().rev().find(|line| line.starts_with(name))?;
            line.rsplit(' ').next()?.parse().ok()
        };
        let finding =
            text.lines().find_map(|line| Some(line.split_once("Test unit written to ")?.1.to_owned()));
        if finding.is_none() && !ended_well {
            return None;
        }
        Some(Told {
            runs: number("stat::number_of_executed_units:").unwrap_or_default(),
            runs_per_s: number("stat::average_exec_per_sec:").unwrap_or_default(),
            edges: edges(text),
            memory_mb: number("stat::peak_rss_mb:").unwrap_or_default(),
            why: if finding.is_some() { why(text) } else { String::new() },
            finding,
        })
    }

    pub(super) fn row(&self, name: &str) -> String {
        let Told { runs, runs_per_s, edges, memory_mb, finding, .. } = self;
        let finding = finding.as_deref().unwrap_or("none");
        format!("{name:<10}{runs:>12}{runs_per_s:>10}{edges:>8}{memory_mb:>9}  {finding}")
    }
}

/// From the last line with `cov: N`.
fn edges(text: &str) -> u64 {
    let last = text.lines().rev().find_map(|line| line.split_once(" cov: "));
    last.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or_default()
}

/// The panic's words if there was one, or the fuzzer's.
fn why(text: &str) -> String {
    let mut lines = text.lines();
    let panicked = lines.find(|line| line.contains("panicked at"));
    match (panicked, lines.next()) {
        (Some(place), Some(words)) => format!("{place} {words}"),
        _ => text.lines().find(|line| line.contains("ERROR: libFuzzer")).unwrap_or("it failed").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: &str = "INFO: Seed: 1\n#2\tINITED cov: 11 ft: 12 corp: 1/1b\n#4096\tpulse  cov: 120 ft: 300\n\
        Done 90 runs in 3 second(s)\nstat::number_of_executed_units: 90\nstat::average_exec_per_sec:     30\n\
        stat::peak_rss_mb:               41\n";

    #[test]
    fn figures_are_read_from_what_it_says_at_the_end() {
        let told = Told::read(WELL, true);
        let figures = told.as_ref().map(|told| (told.runs, told.runs_per_s, told.edges, told.memory_mb));
        assert_eq!(figures, Some((90, 30, 120, 41)));
        assert!(told.is_some_and(|told| told.finding.is_none() && told.row("plan").ends_with("41  none")));
    }

    #[test]
    fn a_finding_has_its_file_and_what_the_panic_said() {
        let text = "thread '<unnamed>' (9) panicked at src/chunked.rs:15:5:\nbyte by byte\n==9== ERROR: libFuzzer: deadly \
            signal\nartifact_prefix='/f/'; Test unit written to /f/crash-1\n";
        let told = Told::read(text, false);
        let finding = told.as_ref().and_then(|told| told.finding.as_deref());
        assert_eq!(finding, Some("/f/crash-1"));
        assert!(told.is_some_and(|told| told.why.ends_with("src/chunked.rs:15:5: byte by byte")));
    }

    #[test]
    fn a_program_that_dies_without_a_finding_is_not_taken_for_a_run() {
        assert_eq!(Told::read("Segmentation fault", false), None);
    }
}
