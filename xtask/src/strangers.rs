//! `cargo xtask strangers`: `dyno diagnose` on programs that nobody here wrote, with and without something wrong in them.
//!
//! Each line of `xtask/strangers/truths.tsv` is a program from a distribution or a run-time with a few lines of work, its
//! setting, and what is wrong with it: known because changing that setting changes its speed. It is started with its load,
//! diagnosed once, and ended; the first finding is compared with the truth. Not part of CI: it takes a quarter of an hour. With
//! `--causal` it is `dyno causal` that is held against programs' real changes.
//!
//! It writes below the target folder, and the page of evidence that it is told to write. Beyond that it installs what is missing
//! when it is allowed to; programs with a quota get a cgroup while they run; and those with twins that are built from modules
//! of Go or crates of Rust fetch these, which stay in the caches of both (`~/go`, `~/.cargo`).

mod causal;
mod guard;
mod limits;
mod needs;
mod page;
mod pairs;
mod predicted;
mod program;
mod row;
mod standing;
mod table;
mod truths;
mod twin_page;
mod twins;

use std::path::{Path, PathBuf};

use crate::command::output;
use crate::flags::{Flags, Given};
use crate::packages;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

use program::{Program, Start};
use row::{Found, Row, Verdict};
use truths::Truth;

/// How long each is watched: its waits for two seconds of it.
const WATCHED: &str = "6s";

/// Runs those that are asked for.
///
/// # Errors
/// When the table cannot be read, no dyno is built, or a package is missing.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let list = flags.switch("--list");
    let only: Option<String> = flags.parsed("--only")?;
    let dyno: Option<PathBuf> = flags.parsed("--dyno")?;
    let write: Option<PathBuf> = flags.parsed("--write")?;
    let keep: Option<PathBuf> = flags.parsed("--keep")?;
    let yes = flags.switch("--yes");
    let causal = flags.switch("--causal");
    flags.finish()?;
    let folder = repo.root().join("xtask/strangers");
    if causal == Given::Yes && list == Given::Yes {
        causal::list(&causal::chosen(&folder, only.as_deref())?);
        return Ok(Outcome::Done);
    }
    let mut truths = truths::read(&folder.join("truths.tsv"))?;
    truths.retain(|truth| only.as_deref().is_none_or(|only| truth.is_named(only)));
    if list == Given::Yes {
        truths
            .iter()
            .for_each(|truth| println!("{:<22} {:<24} {}", truth.name, truth.expected(), truth.from));
        return Ok(Outcome::Done);
    }
    let dyno = dyno.unwrap_or_else(|| repo.root().join("target/release/dyno"));
    if !dyno.is_file() {
        return Err(Trouble::new(format!("{} is not there", dyno.display()))
            .remedy("cargo build --release, or --dyno FILE"));
    }
    let scratch = repo.root().join("target/strangers");
    if causal == Given::Yes {
        packages::provide_these(&needs::OF_TWINS, yes)?;
        let twins = causal::chosen(&folder, only.as_deref())?;
        return causal::run(&causal::Places { scripts: folder, scratch, dyno, write }, twins);
    }
    if let Some(folder) = &keep {
        std::fs::create_dir_all(folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
    }
    packages::provide(yes)?;
    packages::provide_these(&needs::PACKAGES, yes)?;
    let mut rows = Vec::new();
    for truth in truths {
        let kept = keep.as_ref().map(|folder| folder.join(format!("{}.json", truth.name)));
        let row = meet((&folder, &scratch), &dyno, truth, kept.as_deref());
        println!("{}", page::line(&row));
        rows.push(row);
    }
    println!("\n{}", page::sum(&rows));
    if let Some(path) = write {
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(Trouble::cannot("make its folder"))?;
        std::fs::write(&path, page::page(&rows, WATCHED))
            .map_err(Trouble::cannot(format!("write {}", path.display())))?;
    }
    Ok(Outcome::done_if(|| rows.iter().all(|row| row.verdict() == Verdict::Right)))
}

/// Starts it, looks at it, and ends it; what was seen is kept where that is asked for.
fn meet((folder, scratch): (&Path, &Path), dyno: &Path, truth: Truth, keep: Option<&Path>) -> Row {
    let start = Start { name: &truth.name, script: &truth.script, variant: &truth.variant };
    let seen = Program::start(folder, scratch, &start).and_then(|program| {
        let said = diagnosis(dyno, program.pid(), keep);
        program.end();
        said
    });
    match seen {
        Ok(found) => Row { truth, found, trouble: None },
        Err(trouble) => Row { truth, found: Vec::new(), trouble: Some(trouble.to_string()) },
    }
}

fn diagnosis(dyno: &Path, pid: u32, keep: Option<&Path>) -> Result<Vec<Found>, Trouble> {
    let pid = pid.to_string();
    let words = ["diagnose", &pid, "--for", WATCHED, "--json", "--fail-on", "never"];
    let kept = keep.into_iter().flat_map(|path| ["-o".as_ref(), path.as_os_str()]);
    let text = output(limits::asking(dyno).args(words).args(kept))?;
    let record: serde_json::Value =
        serde_json::from_str(&text).map_err(Trouble::cannot("read a diagnosis"))?;
    let word = |finding: &serde_json::Value, field: &str| {
        finding.get(field).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let findings = record.get("findings").and_then(|findings| findings.as_array());
    let found = findings.into_iter().flatten().map(|finding| Found {
        class: word(finding, "class"),
        confidence: word(finding, "confidence"),
        summary: word(finding, "summary"),
    });
    Ok(found.collect())
}
