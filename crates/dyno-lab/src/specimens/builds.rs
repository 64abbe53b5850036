//! Where specimens are built and run: a folder below the user's cache, one folder for each version of each source.
//!
//! What is there was built by this user from the same bytes, so it is built once. Compilers are the machine's own; one
//! that is missing makes a specimen impossible here, and that is said.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use dyno_sys::clock::{mono_ns, sleep_ns};
use sha2::{Digest, Sha256};

use super::neutral::{self, Naming};
use super::runner::{Halt, Runner};
use crate::failure::Failure;
use crate::file::refused;
use crate::user::{caches, user_id};
use dyno_record::specimen::Specimen;

/// A build takes seconds; the first one of Go builds its library too, on a slow machine for minutes.
const BUILD_NS_MAX: u64 = 600_000_000_000;
/// Between two looks at another's build.
const LOOK_NS: u64 = 50_000_000;
/// Written last: a folder without it holds an unfinished build.
const BUILT: &str = ".built";
/// Whatever the user's settings say, a compiler is not fetched.
const ENV: [(&str, &str); 3] = [("GOTOOLCHAIN", "local"), ("GOWORK", "off"), ("CGO_ENABLED", "0")];
/// And nothing else is either, but for a specimen that says so.
const ENV_ALONE: [(&str, &str); 4] = [ENV[0], ENV[1], ENV[2], ("GOPROXY", "off")];

/// The folder below the cache.
pub struct Builds {
    root: PathBuf,
}

/// A specimen that can be started.
pub struct Program {
    /// The command without the side's name.
    pub argv: Vec<String>,
}

/// A folder that a specimen works in; it goes with this value.
pub struct RunFolder {
    path: PathBuf,
    /// The folder itself, locked: whoever can lock it knows that nobody works in it.
    _held: File,
}

impl Builds {
    /// Opens it.
    pub fn open() -> Result<Builds, Failure> {
        let root = root()?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&root);
        made.map_err(|error| refused(&format!("cannot make the folder {}", root.display()), &error))?;
        check_owner(&root)?;
        Ok(Builds { root })
    }

    /// Builds a specimen, unless it is there.
    pub fn build(&self, specimen: &Specimen, naming: Naming, runner: &mut Runner) -> Result<Program, Halt> {
        let files = neutral::files(specimen, naming);
        let folder = self.root.join(folder_name(specimen, naming, &files));
        let _lock = lock(&folder, runner)?;
        if !folder.join(BUILT).exists() {
            has_tools(specimen)?;
            lay_out(&folder, &files).map_err(|error| refused(&cannot_build(specimen), &error))?;
            compile(specimen, &folder, runner)?;
            fs::write(folder.join(BUILT), "").map_err(|error| refused(&cannot_build(specimen), &error))?;
        }
        has_program(&specimen.run[0], specimen)?;
        let dir = folder.display().to_string();
        Ok(Program { argv: specimen.run.iter().map(|word| word.replace("{dir}", &dir)).collect() })
    }

    /// A folder to work in, on the disk of the cache: /tmp may be memory, and a write to it no write. What runs that were
    /// killed left behind is cleared away.
    pub fn run_folder(&self, runner: &Runner) -> Result<RunFolder, Halt> {
        // Nobody clears away what is made and not yet held.
        let _alone = lock(&self.root.join("runs"), runner)?;
        clear_dead(&self.root);
        // In containers that share a cache the processes' numbers are the same.
        let path = self.root.join(format!("{RUN}{}-{}", std::process::id(), mono_ns()));
        let held = fs::create_dir(&path).and_then(|()| File::open(&path));
        let held = held.and_then(|folder| folder.lock().map(|()| folder));
        let held =
            held.map_err(|error| refused(&format!("cannot make the folder {}", path.display()), &error))?;
        Ok(RunFolder { path, _held: held })
    }
}

impl RunFolder {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// What folders of runs are called, before the number of the process and the time.
const RUN: &str = "run-";

/// Below this user's caches.
fn root() -> Result<PathBuf, Failure> {
    let cache = caches().ok_or_else(|| {
        Failure::error("there is no cache folder to build in")
            .likely("neither XDG_CACHE_HOME nor HOME is an absolute path")
            .try_this("XDG_CACHE_HOME=/var/tmp/my-cache dyno specimen run NAME")
    })?;
    Ok(cache.join("dyno/specimens"))
}

/// Programs are run from there: nobody else may have put them there.
fn check_owner(root: &Path) -> Result<(), Failure> {
    let what = format!("cannot use the folder {}", root.display());
    let folder = fs::symlink_metadata(root).map_err(|error| refused(&what, &error))?;
    let private = folder.is_dir() && folder.uid() == user_id() && folder.mode() & 0o022 == 0;
    if private {
        return Ok(());
    }
    let try_this = "XDG_CACHE_HOME=FOLDER dyno specimen run NAME, with a folder of your own";
    Err(Failure::error(what).likely("others own it or may write to it").try_this(try_this))
}

fn clear_dead(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_free = || File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
        if entry.file_name().to_string_lossy().starts_with(RUN) && is_free() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The folder of a build; a neutral one does not say its name.
fn folder_name(specimen: &Specimen, naming: Naming, files: &[(String, String)]) -> String {
    let mut hash = Sha256::new();
    for word in &specimen.build {
        hash.update(word.as_bytes());
        hash.update([0]);
    }
    for (name, text) in files {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let key: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    match naming {
        Naming::Own => format!("{}-{key}", specimen.name),
        Naming::Neutral => key,
    }
}

/// Held while a folder is looked at and filled: two runs at once build once. Another's build may take minutes, and the
/// user may not want to wait for it.
fn lock(folder: &Path, runner: &Runner) -> Result<File, Halt> {
    let path = folder.with_extension("lock");
    let cannot = |error: &io::Error| refused(&format!("cannot lock {}", path.display()), error);
    let file = File::create(&path).map_err(|error| cannot(&error))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(cannot(&error).into()),
            Err(TryLockError::WouldBlock) if runner.interrupted() => return Err(Halt::Interrupted),
            Err(TryLockError::WouldBlock) => sleep_ns(LOOK_NS),
        }
    }
}

fn lay_out(folder: &Path, files: &[(String, String)]) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir(folder)?,
    }
    files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
}

fn compile(specimen: &Specimen, folder: &Path, runner: &mut Runner) -> Result<(), Halt> {
    let env: &[_] = if specimen.fetches.is_some() { &ENV } else { &ENV_ALONE };
    let compiler = runner.start(&specimen.build, env, folder)?;
    match runner.end_of(&compiler, BUILD_NS_MAX)? {
        (how, _) if how == "exit status 0" => Ok(()),
        (how, _) => Err(compiler.trouble(&format!("failed ({how})")).into()),
    }
}

/// Whether what builds and runs it is on this machine.
fn has_tools(specimen: &Specimen) -> Result<(), Failure> {
    has_program(&specimen.build[0], specimen)?;
    has_program(&specimen.run[0], specimen)
}

fn has_program(program: &str, specimen: &Specimen) -> Result<(), Failure> {
    // What is built by the specimen itself is not looked up.
    if program.contains('/') || is_in_path(program) {
        return Ok(());
    }
    let needs = format!("{} is written in {} and needs {program}", specimen.name, specimen.language.name());
    Err(Failure::error(format!("not possible here: no {program}"))
        .likely(format!("{needs}, which is in no folder of PATH"))
        .try_this(specimen.language.install()))
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn cannot_build(specimen: &Specimen) -> String {
    format!("cannot build {}", specimen.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::catalogue::find;
    use super::*;

    #[test]
    fn a_folder_changes_with_the_source_and_a_neutral_one_has_no_name() {
        let specimen = find("sync-log").unwrap();
        let own = neutral::files(&specimen, Naming::Own);
        let name = folder_name(&specimen, Naming::Own, &own);
        assert!(name.starts_with("sync-log-") && name.len() == "sync-log-".len() + 16, "{name}");
        let mut changed = own.clone();
        changed[0].1.push('\n');
        assert_ne!(name, folder_name(&specimen, Naming::Own, &changed));
        let neutral = neutral::files(&specimen, Naming::Neutral);
        assert!(!folder_name(&specimen, Naming::Neutral, &neutral).contains("log"));
    }

    #[test]
    fn a_missing_compiler_is_named_with_what_installs_it() {
        let specimen = find("pool-of-100").unwrap();
        let lines = has_program("no-such-compiler", &specimen).unwrap_err().lines();
        assert!(lines.starts_with("error: not possible here: no no-such-compiler\n"), "{lines}");
        assert!(lines.contains("pool-of-100 is written in Go") && lines.contains("golang-go"), "{lines}");
        assert_eq!(has_program("sh", &specimen), Ok(()));
    }
}
