//! `cargo xtask install`: the release build with its completions, manual pages and the schemas of its records, below a
//! prefix; and away again.
//!
//! People call it, and who makes a package (`--prefix target/package`, which the Debian package takes its pages from). It
//! says what it wrote, keeps a list of it, and `--uninstall` removes what stands on that list and nothing else.

use std::path::{Path, PathBuf};

use crate::command::{command, find_program, output};
use crate::flags::{Flags, Given};
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

/// Where each shell looks for a program's completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/dyno"),
    ("zsh", "share/zsh/site-functions/_dyno"),
    ("fish", "share/fish/vendor_completions.d/dyno.fish"),
];

const BINARY: &str = "bin/dyno";

const PAGES: &str = "share/man/man1";

/// What each record's JSON looks like.
const SCHEMAS: &str = "share/dyno/schema";

/// What was written, a path in a line.
const LIST: &str = "share/dyno/installed";

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let prefix = flags.value("--prefix", |text| (!text.is_empty()).then(|| PathBuf::from(text)))?;
    let uninstall = flags.switch("--uninstall");
    flags.finish()?;
    let prefix = prefix.map_or_else(home, Ok)?;
    let prefix = std::path::absolute(&prefix).map_err(Trouble::cannot("know where this is"))?;
    match uninstall {
        Given::Yes => removed(&prefix),
        Given::No => install(repo, &prefix),
    }
}

/// `~/.local`, where systems look for what a user installed.
fn home() -> Result<PathBuf, Trouble> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or_else(|| Trouble::new("HOME is not set").remedy("cargo xtask install --prefix DIR"));
    Ok(PathBuf::from(home?).join(".local"))
}

fn install(repo: &Repo, prefix: &Path) -> Result<Outcome, Trouble> {
    let dyno = repo.release_dyno()?;
    let mut files = vec![(BINARY.to_owned(), program(repo, &dyno)?)];
    for (shell, place) in COMPLETIONS {
        let script = output(&mut command([dyno.to_string_lossy(), "completions".into(), shell.into()]))?;
        files.push((place.to_owned(), script.into_bytes()));
    }
    files.extend(pages(repo, &dyno)?);
    files.extend(of_folder(&repo.root().join("docs/schema"), SCHEMAS)?);
    let list: String = files.iter().map(|(place, _)| format!("{place}\n")).collect();
    // First the list: whatever is cut short can be removed.
    write(prefix, LIST, list.as_bytes(), Mode::Data)?;
    for (place, bytes) in &files {
        let mode = if place == BINARY { Mode::Program } else { Mode::Data };
        write(prefix, place, bytes, mode)?;
        println!("{}", prefix.join(place).display());
    }
    hints(prefix);
    Ok(Outcome::Done)
}

/// The program without its line tables, which are nine tenths of it and serve those who profile dyno itself; whole where
/// there is no `strip`.
fn program(repo: &Repo, dyno: &Path) -> Result<Vec<u8>, Trouble> {
    if find_program("strip").is_none() {
        return read(dyno);
    }
    let small = repo.scratch("install")?.join("dyno");
    output(command(["strip", "--strip-debug", "-o"]).args([small.as_path(), dyno]))?;
    read(&small)
}

fn pages(repo: &Repo, dyno: &Path) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
    let folder = repo.scratch("man")?;
    for old in entries(&folder)? {
        std::fs::remove_file(&old).map_err(Trouble::cannot(format!("remove {}", old.display())))?;
    }
    output(command([dyno.to_string_lossy(), "man".into(), "--all".into()]).arg(&folder))?;
    of_folder(&folder, PAGES)
}

/// Every file of a folder, with its place below the prefix.
fn of_folder(folder: &Path, place: &str) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
    let file = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((format!("{place}/{name}"), read(&path)?))
    };
    entries(folder)?.into_iter().map(file).collect()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Trouble> {
    let entries = std::fs::read_dir(folder).map_err(Trouble::cannot(format!("list {}", folder.display())))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    Ok(paths)
}

fn read(path: &Path) -> Result<Vec<u8>, Trouble> {
    std::fs::read(path).map_err(Trouble::cannot(format!("read {}", path.display())))
}

/// Who may do what with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Program,
    Data,
}

/// Beside its place first, then into it: a dyno that runs keeps the file that it was started from.
fn write(prefix: &Path, place: &str, bytes: &[u8], mode: Mode) -> Result<(), Trouble> {
    use std::os::unix::fs::PermissionsExt;
    let path = prefix.join(place);
    let cannot = || format!("write {}", path.display());
    let folder = path.parent().unwrap_or(prefix);
    std::fs::create_dir_all(folder).map_err(Trouble::cannot(cannot()))?;
    let beside = folder.join(format!(".dyno-{}", std::process::id()));
    let bits = if mode == Mode::Program { 0o755 } else { 0o644 };
    let written = std::fs::write(&beside, bytes)
        .and_then(|()| std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(bits)))
        .and_then(|()| std::fs::rename(&beside, &path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        Trouble::cannot(cannot())(error)
    })
}

/// What is still to be done, where something is.
fn hints(prefix: &Path) {
    let bin = prefix.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder == bin) {
        eprintln!("note: {} is not on your PATH", bin.display());
    }
    if !["/usr", "/usr/local"].map(Path::new).contains(&prefix) {
        let folder = prefix.join("share/zsh/site-functions");
        eprintln!("note: zsh looks there when ~/.zshrc has, before compinit: fpath+=({})", folder.display());
    }
}

/// Removes what the list names, and the list.
fn removed(prefix: &Path) -> Result<Outcome, Trouble> {
    let list = prefix.join(LIST);
    let text = std::fs::read_to_string(&list).map_err(|error| {
        Trouble::cannot(format!("read {}", list.display()))(error)
            .likely("dyno was not installed there by this command")
            .remedy("cargo xtask install --uninstall --prefix DIR")
    })?;
    for place in text.lines().filter(|place| is_ours(place)).chain([LIST]) {
        let path = prefix.join(place);
        match std::fs::remove_file(&path) {
            Ok(()) => println!("removed {}", path.display()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Trouble::cannot(format!("remove {}", path.display()))(error)),
        }
    }
    // Only when nothing else is in it.
    for folder in [SCHEMAS, "share/dyno"] {
        let _ = std::fs::remove_dir(prefix.join(folder));
    }
    Ok(Outcome::Done)
}

/// A list may have been edited: nothing is removed that this task would not write.
fn is_ours(place: &str) -> bool {
    let within = |folder: &str| {
        let name = place.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        name.filter(|name| !name.contains('/'))
    };
    let is_page = within(PAGES).is_some_and(|name| name.starts_with("dyno") && name.ends_with(".1"));
    let is_schema = within(SCHEMAS).is_some_and(|name| name.ends_with(".json"));
    place == BINARY || is_page || is_schema || COMPLETIONS.iter().any(|(_, known)| *known == place)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_written_is_removed_and_nothing_else() {
        let prefix = std::env::temp_dir().join(format!("dyno-install-{}", std::process::id()));
        write(&prefix, BINARY, b"x", Mode::Program).unwrap();
        write(&prefix, "share/man/man1/dyno-climb.1", b"x", Mode::Data).unwrap();
        write(&prefix, "share/man/man1/other.1", b"x", Mode::Data).unwrap();
        let list =
            format!("{BINARY}\n../../etc/passwd\nshare/man/man1/other.1\nshare/man/man1/dyno-climb.1\n");
        write(&prefix, LIST, list.as_bytes(), Mode::Data).unwrap();
        removed(&prefix).unwrap();
        assert!(prefix.join("share/man/man1/other.1").exists());
        for place in [BINARY, "share/man/man1/dyno-climb.1", LIST] {
            assert!(!prefix.join(place).exists(), "{place}");
        }
        assert!(removed(&prefix).unwrap_err().to_string().contains("was not installed there"));
        std::fs::remove_dir_all(prefix).unwrap();
    }

    /// Planted fault: records are described in the sources alone.
    #[test]
    fn schemas_are_installed_and_in_the_package_for_each_record() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let installed = of_folder(&root.join("docs/schema"), SCHEMAS).unwrap();
        assert!(
            installed.len() >= 20 && installed.iter().all(|(place, _)| is_ours(place)),
            "{}",
            installed.len()
        );
        let manifest = std::fs::read_to_string(root.join("crates/dyno/Cargo.toml")).unwrap();
        assert!(manifest.contains(r#"["../../docs/schema/*.json", "usr/share/dyno/schema/", "644"]"#));
    }

    #[test]
    fn a_list_names_only_what_is_installed() {
        assert!(is_ours(BINARY) && is_ours("share/man/man1/dyno-tune-apply.1"));
        assert!(is_ours("share/dyno/schema/climb.json"));
        for place in [
            "share/dyno/schema/../x.json",
            "share/dyno/other",
            "/bin/sh",
            "bin/sh",
            "share/man/man1/../dyno.1",
            "share/man/man1/ls.1",
            "",
        ] {
            assert!(!is_ours(place), "{place}");
        }
    }
}
