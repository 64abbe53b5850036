//! The program that takes over on SIGUSR2: as it was found at the start, looked at again before root starts it.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A program, its words and its environment, as the server itself was started.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file, without symbolic links in the way. What stands there when it is needed is started.
    pub path: PathBuf,
    /// Its own name first.
    pub words: Vec<OsString>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Bits of a file's permissions that let others than its owner write.
const OTHERS_WRITE: u32 = 0o022;

impl Program {
    /// Whether root may start it: it and every folder on the way to it are root's, and nobody else may write to them.
    ///
    /// # Errors
    /// `PermissionDenied` with the name of the first that is not so.
    pub(super) fn check(&self, uid: u32) -> io::Result<()> {
        if uid != 0 {
            return Ok(());
        }
        for path in self.path.ancestors() {
            let facts = std::fs::symlink_metadata(path)?;
            if facts.uid() != 0 || facts.mode() & OTHERS_WRITE != 0 || facts.is_symlink() {
                let why = format!("{} is not root's alone", path.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
        }
        Ok(())
    }

    pub(super) fn words(&self) -> io::Result<Vec<CString>> {
        self.words.iter().map(|word| c_string(word.as_bytes().to_vec())).collect()
    }

    /// The environment with some variables set, and others left out.
    pub(super) fn environment(&self, set: &[(&str, String)], unset: &[&str]) -> io::Result<Vec<CString>> {
        let is_ours = |name: &OsString| {
            let name = name.to_str().unwrap_or_default();
            unset.contains(&name) || set.iter().any(|(set, _)| *set == name)
        };
        let inherited = self.environment.iter().filter(|(name, _)| !is_ours(name));
        let inherited = inherited.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
        let added = set.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
        inherited.chain(added).map(c_string).collect()
    }
}

pub(super) fn path(path: &Path) -> io::Result<CString> {
    c_string(path.to_owned().into_os_string().into_vec())
}

fn c_string(bytes: Vec<u8>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn program(path: &str) -> Program {
        let environment = vec![("A".into(), "1".into()), ("B".into(), "2".into()), ("C".into(), "3".into())];
        Program { path: path.into(), words: vec!["x".into()], environment }
    }

    #[test]
    fn root_starts_only_what_nobody_else_could_have_put_there() {
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        program(shell.to_str().unwrap()).check(0).unwrap();
        let path = std::env::temp_dir().join(format!("dyno-program-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let mine = program(path.to_str().unwrap());
        let why = mine.check(0).unwrap_err().to_string();
        assert!(why.ends_with("is not root's alone"), "anybody may write to a temporary folder: {why}");
        mine.check(1_000).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mine.check(0).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_environment_is_what_it_was_but_for_what_concerns_us() {
        let seen = program("/x").environment(&[("B", "9".into())], &["C", "D"]).unwrap();
        let seen: Vec<&str> = seen.iter().map(|line| line.to_str().unwrap()).collect();
        assert_eq!(seen, ["A=1", "B=9"]);
    }
}
