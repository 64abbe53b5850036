//! `cargo xtask pictures`: the pictures of the README, photographed from pages that the program itself draws.
//!
//! People call it when a page looks different from its picture. Records that are not given are measured first: a climb, which
//! takes four minutes, and a profile of `dyno serve` under load. Needs Chromium; it is no part of `ci`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{command, find_program, output, run as run_command};
use crate::flags::Flags;
use crate::repo::Repo;
use crate::server::Server;
use crate::trouble::{Outcome, Trouble};

const FOLDER: &str = "docs/pictures";
/// A laptop's window; the page's first screen.
const WINDOW: &str = "--window-size=1280,800";
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 8097);

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let climb: Option<PathBuf> = flags.parsed("--climb")?;
    let profile: Option<PathBuf> = flags.parsed("--profile")?;
    flags.finish()?;
    let browser = find_program("chromium").ok_or_else(|| {
        Trouble::new("there is no chromium, which takes the pictures").remedy("apt-get install chromium")
    })?;
    let studio = Studio { dyno: repo.release_dyno()?, browser, scratch: repo.scratch("pictures")? };
    let folder = repo.path(FOLDER);
    std::fs::create_dir_all(&folder).map_err(Trouble::cannot(format!("make {FOLDER}")))?;
    let climb = climb.map_or_else(|| studio.climb(), Ok)?;
    studio.picture(&["report"], &climb, &folder.join("climb.png"))?;
    let profile = profile.map_or_else(|| studio.profile(), Ok)?;
    studio.picture(&["flame"], &profile, &folder.join("flame.png"))?;
    eprintln!("pictures: wrote {FOLDER}");
    Ok(Outcome::Done)
}

/// What takes the pictures.
struct Studio {
    dyno: PathBuf,
    browser: PathBuf,
    scratch: PathBuf,
}

impl Studio {
    fn dyno(&self, words: &[&str]) -> Command {
        let mut dyno = command([self.dyno.to_string_lossy()]);
        dyno.args(words).current_dir(&self.scratch);
        dyno
    }

    /// A climb of our own server, as the README's first command makes it.
    fn climb(&self) -> Result<PathBuf, Trouble> {
        done(run_command(&mut self.dyno(&["climb", "-o", "climb.json"]))?, "the climb")?;
        Ok(self.scratch.join("climb.json"))
    }

    /// Three seconds of our own server under load.
    fn profile(&self) -> Result<PathBuf, Trouble> {
        let address = ADDRESS.into();
        let serve = self.dyno(&["serve", "--listen", &format!("{address}"), "--workers", "1"]);
        let server = Server::start(serve, address, &self.scratch.join("serve.txt"))?;
        let url = format!("http://{address}/json");
        let mut load = self.dyno(&["load", "-t1", "-c64", "-d8s", &url]);
        let mut load = crate::command::run_in_background(&mut load)?;
        let pid = server.pid().to_string();
        let words = ["profile", "--for", "3s", "-o", "profile.json", "-p", &pid];
        let profiled = run_command(&mut self.dyno(&words));
        load.wait().map_err(Trouble::cannot("wait for the load"))?;
        server.stop()?;
        done(profiled?, "the profile")?;
        Ok(self.scratch.join("profile.json"))
    }

    /// Draws a record's page and photographs its first screen.
    fn picture(&self, verb: &[&str], record: &Path, into: &Path) -> Result<(), Trouble> {
        let record = record.canonicalize().map_err(Trouble::cannot(format!("find {}", record.display())))?;
        let page = self.scratch.join("page.html");
        let mut draw = self.dyno(verb);
        draw.arg(record).arg("-o").arg(&page);
        output(&mut draw)?;
        let mut photograph = command([self.browser.to_string_lossy()]);
        photograph.args(["--headless", "--disable-gpu", "--hide-scrollbars", "--no-sandbox", WINDOW]);
        photograph.arg(format!("--screenshot={}", into.display())).arg(format!("file://{}", page.display()));
        output(&mut photograph).map(drop)
    }
}

fn done(outcome: Outcome, what: &str) -> Result<(), Trouble> {
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::No => Err(Trouble::new(format!("{what} did not end well"))),
    }
}
