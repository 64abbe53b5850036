//! `dyno causal`: experiments on a process or a command, then the record, its page, and the table.
//!
//! The library experiments; here are the target, the load beside it, what is shown meanwhile, and the files.

mod target;
mod watch;

use crate::out;
use crate::this_run;
use dyno_host::machine::machine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

use dyno_profile::causal::{Children, Choice, Reach};
use dyno_record::causal::{Causal, Site, Verdict};

use dyno_lab::Failure;
use dyno_lab::file;
use dyno_lab::look::causal::{Asked, can_be_counted, experiment};

use super::recording::whole;
use super::stop;
use crate::cli;
use dyno_report::number::visible;
use dyno_report::page::causal as page;
use dyno_report::text;

pub(crate) use watch::Watch;

/// Runs the verb.
pub(crate) fn run(args: &cli::Causal) -> Result<ExitCode, Failure> {
    let files = Files::of(args)?;
    // Before anything is started: a misspelt name must not cost a server's start.
    args.progress.as_deref().map_or(Ok(()), can_be_counted)?;
    let target = target::open(args)?;
    let mut watch = Watch::new(Some(args.time));
    let measured = experiment(&asked(args, &target), &mut |event| watch.show(event), &stop::STOP);
    watch.clear();
    let mut record = measured.map_err(|failure| target.explained(failure))?;
    record.command = this_run::command_line();
    record.machine = machine();
    files.write(&record)?;
    out::print(&match args.json {
        true => json(&record)? + "\n",
        false => shown(args, &files, &record),
    })?;
    match nothing_measured(&record) {
        Some(failure) if !stop::STOP.load(Relaxed) => Err(failure),
        _ => Ok(stop::exit_code()),
    }
}

/// What may be lowered while a run is under way; its error names it.
const SAMPLE_LIMIT: &str = "kernel.perf_event_max_sample_rate";

/// Experiments that reached their end and have no answer, with the reason of the site that had the most time.
fn nothing_measured(record: &Causal) -> Option<Failure> {
    if record.sites.iter().any(|site| site.verdict != Verdict::NotMeasurable) {
        return None;
    }
    let failure = Failure::no("nothing was measured");
    let first = record.sites.iter().max_by(|a, b| a.spent_s.total_cmp(&b.spent_s));
    Some(match (first, &record.cut_short) {
        (_, Some(why)) if why.contains(SAMPLE_LIMIT) => {
            failure.likely(visible(why)).try_this(format!("sudo sysctl {SAMPLE_LIMIT}=100000"))
        }
        (_, Some(why)) => failure.likely(visible(why)).try_this("a target that lives longer than the run"),
        (Some(site), None) => {
            let failure = failure.likely(format!("{}: {}", visible(&site.name), visible(&site.reason)));
            match remedy(site, record.options.budget_s) {
                Some(what) => failure.try_this(what),
                None => failure,
            }
        }
        (None, None) => failure.likely("no site was tried").try_this("dyno causal PID --site FUNCTION"),
    })
}

/// Share of the CPUs that others had, percent, from which on they are what to do something about.
const OTHERS_PERCENT: f64 = 5.0;
/// The smallest level that is tried where nothing is said, percent.
const LEVEL_PERCENT_SMALL: u32 = 10;
/// So many times as long is worth a try.
const LONGER: f64 = 3.0;

/// What may help, of what can be done from here.
fn remedy(site: &Site, budget_s: f64) -> Option<String> {
    let seen = &site.credibility;
    let all_biased = !site.points.is_empty() && site.points.iter().all(|point| point.biased);
    let least = site.points.iter().map(|point| point.speedup_percent).min().unwrap_or(0);
    if all_biased {
        return (least > LEVEL_PERCENT_SMALL)
            .then(|| "--levels 10,25,50: a smaller level has shorter pauses".to_owned());
    }
    if seen.foreign_percent >= OTHERS_PERCENT {
        return Some("the same while nothing else runs here".to_owned());
    }
    if seen.load_bound == Some(false) {
        return Some(
            "more load: more connections at once, or --participant with the PID of a client on this machine"
                .to_owned(),
        );
    }
    // Reasons that time helps against say so.
    site.reason.contains("give it").then(|| format!("--for {:.0}s", (LONGER * budget_s).max(60.0)))
}

fn asked(args: &cli::Causal, target: &target::Opened) -> Asked {
    let reach = if args.inclusive { Reach::Inclusive } else { Reach::Own };
    Asked {
        pid: target.pid,
        point: target.point(args),
        children: if args.children { Children::Followed } else { Children::Strangers },
        participants: args.participant.iter().map(|pid| whole(*pid)).chain(target.load_pid()).collect(),
        sites: args.site.clone(),
        choice: Choice::new(reach),
        reach,
        levels: args.levels.0.clone(),
        budget: args.time,
        seed: args.seed.unwrap_or_else(this_run::seed_of_the_day),
    }
}

fn shown(args: &cli::Causal, files: &Files, record: &Causal) -> String {
    let table = text::causal::causal(record, out::terminal_width(), args.color.on_stdout());
    format!("{table}\nrecord      {}\n", files.names().join("      "))
}

fn json(record: &Causal) -> Result<String, Failure> {
    let text = serde_json::to_string(record);
    text.map_err(|error| Failure::error("the record cannot be written as JSON").because(&error))
}

/// Where the record, its page and Coz's form of it go.
struct Files {
    record: Option<(PathBuf, PathBuf)>,
    coz: Option<PathBuf>,
}

impl Files {
    /// Whether they can be written is known before anything is tried.
    fn of(args: &cli::Causal) -> Result<Files, Failure> {
        let named = args.output.clone().or_else(|| (!args.json).then(|| PathBuf::from("causal.json")));
        let files = Files { record: named.map(beside).transpose()?, coz: args.coz.clone() };
        files.paths().try_for_each(file::can_be_written)?;
        Ok(files)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let record = self.record.iter().flat_map(|(record, page)| [record.as_path(), page.as_path()]);
        record.chain(self.coz.as_deref())
    }

    fn names(&self) -> Vec<String> {
        self.paths().map(|path| path.display().to_string()).collect()
    }

    fn write(&self, record: &Causal) -> Result<(), Failure> {
        let owner = dyno_lab::user::caller();
        if let Some((path, html)) = &self.record {
            file::write_file(path, json(record)?.as_bytes(), owner)?;
            file::write_file(html, page::render(record).as_bytes(), owner)?;
        }
        match &self.coz {
            Some(path) => file::write_file(path, page::coz::text(record).as_bytes(), owner),
            None => Ok(()),
        }
    }
}

/// The record and the page beside it.
fn beside(record: PathBuf) -> Result<(PathBuf, PathBuf), Failure> {
    let page = record.with_extension("html");
    if page == record {
        return Err(Failure::usage(format!(
            "the page would be written over its record {}",
            record.display()
        ))
        .likely("-o names the record; its page gets the same name with .html")
        .try_this("dyno causal PID -o causal.json"));
    }
    Ok((record, page))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::causal::{Credibility, Point};

    /// Planted fault: more time and fewer sites, whatever it was.
    #[test]
    fn what_to_try_is_what_helps_against_the_reason_or_nothing() {
        let site = |reason: &str| Site { reason: reason.into(), ..Site::default() };
        let told = |site: Site| remedy(&site, 44.0).unwrap_or_default();
        let seen = |foreign_percent, load_bound| Credibility {
            foreign_percent,
            load_bound,
            ..Credibility::default()
        };
        let biased = |speedup_percent| Point { speedup_percent, biased: true, ..Point::default() };
        assert_eq!(told(site("after 9 rounds ...: give it more time")), "--for 132s");
        assert_eq!(told(site("works off a backlog")), "");
        assert!(
            told(Site { credibility: seen(31.0, None), ..site("give it") }).contains("nothing else runs")
        );
        assert!(
            told(Site { credibility: seen(0.0, Some(false)), ..site("not load-bound") })
                .contains("more load")
        );
        let points = |least| Site { points: vec![biased(least), biased(50)], ..site("threads hand on") };
        assert!(told(points(25)).contains("--levels 10,25,50"));
        assert_eq!(told(points(10)), "");
    }

    /// Planted fault: sites without an answer end like sites without an effect.
    #[test]
    fn a_run_in_which_no_site_could_be_answered_is_a_no() {
        let site = |verdict, reason: &str| Site {
            name: "work".into(),
            verdict,
            reason: reason.into(),
            ..Site::default()
        };
        let of = |sites| nothing_measured(&Causal { sites, ..Causal::default() });
        let lines =
            of(vec![site(Verdict::NotMeasurable, "other processes used 48 % of the CPUs")]).unwrap().lines();
        assert!(
            lines.starts_with("error: nothing was measured\n  likely: work: other processes used 48 %"),
            "{lines}"
        );
        assert!(of(vec![site(Verdict::NotMeasurable, "x"), site(Verdict::NoEffect, "y")]).is_none());
        assert!(of(Vec::new()).unwrap().lines().contains("no site was tried"));
    }

    #[test]
    fn the_page_lies_beside_its_record_and_never_over_it() {
        let (record, page) = beside(PathBuf::from("a/b.json")).unwrap();
        assert_eq!((record.to_str(), page.to_str()), (Some("a/b.json"), Some("a/b.html")));
        assert_eq!(beside(PathBuf::from("b.html")).unwrap_err().lines().lines().count(), 3);
    }
}
