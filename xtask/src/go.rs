//! Go as new as the specimens want it, where the distribution's own is older.
//!
//! `packages` calls this after it has installed what is missing. The go command that is there fetches the newer one as a
//! module, from wherever its settings let it fetch modules, checks it by its sums and keeps it in its module cache, as Go
//! does by itself since 1.21. From then on every program that a task starts finds it first. Nothing is installed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{command, find_first_in, find_program, output};
use crate::trouble::Trouble;

/// What the specimens' go.mod asks for: 1.24.
const WANTED: Version = (1, 24);

/// What is fetched: the last of that series.
const FETCHED: &str = "1.24.13";

/// What its files add up to. Go's own settings may switch its check off; this one stays.
const SUM: &str = "h1:5sgfUhn9QCgVl4UYj32GrIYFHI3bi2UX55tNfupXwxc=";

/// The machine that it is for: the project's own, and the only one that has a sum here.
const MACHINE: &str = "linux-amd64";

/// Series of a release: 1.24 of go1.24.13.
type Version = (u32, u32);

/// Sees to it that `go` is new enough for everything that is started from now on.
///
/// # Errors
/// When it is not there, or a newer one cannot be fetched.
pub(crate) fn provide() -> Result<(), Trouble> {
    let found = find_program("go").ok_or_else(|| Trouble::new("there is no go here"))?;
    let version = version_of(&found)?;
    if version >= WANTED {
        return Ok(());
    }
    eprintln!("go {}.{} is older than {}.{}: fetching go{FETCHED}", version.0, version.1, WANTED.0, WANTED.1);
    let programs = fetch(&found)?.join("bin");
    if version_of(&programs.join("go"))? < WANTED {
        return Err(Trouble::new(format!("{} is not go{FETCHED}", programs.display())));
    }
    find_first_in(programs);
    Ok(())
}

fn version_of(go: &Path) -> Result<Version, Trouble> {
    // A newer go would otherwise fetch what a go.mod nearby asks for.
    let mut asked = command([go.to_string_lossy().as_ref(), "version"]);
    let text = output(asked.env("GOTOOLCHAIN", "local").current_dir("/"))?;
    series(&text).ok_or_else(|| Trouble::new(format!("cannot read go's version in \"{}\"", text.trim())))
}

/// Of "go version go1.24.13 linux/amd64", and of one between releases.
fn series(text: &str) -> Option<Version> {
    let release = text.split_whitespace().find_map(|word| word.strip_prefix("go1."))?;
    let digits = release.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((1, digits.parse().ok()?))
}

/// Fetches it with the go that is here, or finds it fetched; the folder that it is in.
fn fetch(go: &Path) -> Result<PathBuf, Trouble> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Trouble::new("go is too old, and no newer one is known for this processor")
            .remedy("install go 1.24 by hand, first on the PATH"));
    }
    let module = format!("golang.org/toolchain@v0.0.1-go{FETCHED}.{MACHINE}");
    let mut download = command([go.to_string_lossy().as_ref(), "mod", "download", "-json", &module]);
    let told = output(download.env("GOTOOLCHAIN", "local").current_dir("/"))?;
    let folder = folder_of(&told)?;
    make_executable(&folder)?;
    Ok(folder)
}

/// Where it lies, by what `go mod download -json` tells, if it is what it should be.
fn folder_of(told: &str) -> Result<PathBuf, Trouble> {
    let told: Value = serde_json::from_str(told).map_err(Trouble::cannot("read what go fetched"))?;
    let (folder, sum) = (told["Dir"].as_str(), told["Sum"].as_str().unwrap_or_default());
    if sum != SUM {
        return Err(Trouble::new(format!("what was fetched is not go{FETCHED}: its sum is {sum}")));
    }
    folder.map(PathBuf::from).ok_or_else(|| Trouble::new("go does not say where it put the newer go"))
}

/// Modules hold no programs: their files come without the right to run, and Go gives it afterwards, as this does.
fn make_executable(folder: &Path) -> Result<(), Trouble> {
    let tools = folder.join("pkg/tool").join(MACHINE.replace('-', "_"));
    for programs in [folder.join("bin"), tools] {
        let listed = std::fs::read_dir(&programs);
        let listed = listed.map_err(Trouble::cannot(format!("list {}", programs.display())))?;
        for entry in listed.flatten() {
            let mut rights = entry.metadata().map_err(Trouble::cannot("see a tool of go"))?.permissions();
            rights.set_mode(rights.mode() | 0o111);
            std::fs::set_permissions(entry.path(), rights)
                .map_err(Trouble::cannot(format!("let {} run", entry.path().display())))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_version_is_read_from_gos_words() {
        assert_eq!(series("go version go1.19.8 linux/amd64\n"), Some((1, 19)));
        assert_eq!(series("go version go1.24 linux/arm64"), Some((1, 24)));
        assert_eq!(series("go version devel go1.27-3f2a Mon linux/amd64"), Some((1, 27)));
        assert_eq!(series("go version go1.24rc1 linux/amd64"), Some((1, 24)));
        assert_eq!(series("gccgo 12"), None);
        assert!(series("go version go1.19.8 linux/amd64") < Some(WANTED));
    }

    #[test]
    fn what_adds_up_to_something_else_is_refused() {
        let told = |sum: &str| format!(r#"{{ "Dir": "/cache/go", "Sum": "{sum}" }}"#);
        assert_eq!(folder_of(&told(SUM)).unwrap(), Path::new("/cache/go"));
        assert!(folder_of(&told("h1:another=")).is_err());
        assert!(folder_of("{}").is_err());
    }

    #[test]
    fn what_is_fetched_is_what_is_wanted() {
        assert!(series(&format!("go{FETCHED}")) >= Some(WANTED));
    }

    #[test]
    fn the_specimens_want_no_newer_go_than_is_fetched() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for file in ["specimens/http2-writer/go.mod", "examples/go/go.mod", "bench/peers/go/go.mod"] {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
            assert!(series(&format!("go{line}")) <= Some(WANTED), "{file} wants {line}");
        }
    }
}
