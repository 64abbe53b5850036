//! Which program runs: whether a server is what its plan has built for it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dyno_climb::proof::Reading;
use dyno_sys::{Pid, proc};

use super::code::code_of;
use crate::launch::{Arm, World};

impl World<'_> {
    /// Whether every process that listens for this server runs, or maps, the file that was built for its setting.
    pub(super) fn runs_its_build(&mut self, arm: &Arm, file: &str) -> Reading {
        let folder = match self.built(&arm.spec.setting) {
            Ok(Some(folder)) => folder,
            Ok(None) => return Reading::CannotTell("the plan builds nothing".into()),
            Err(trouble) => return Reading::CannotTell(trouble.to_string()),
        };
        let all = arm.processes();
        let listening: Vec<Pid> =
            proc::listeners(&arm.addr).into_iter().filter(|pid| all.contains(pid)).collect();
        if listening.is_empty() {
            return Reading::CannotTell("no process of the server listens".into());
        }
        program(&listening, &folder.join(file))
    }
}

/// Whether all of these processes run or map the file, and what tells its code from another's.
fn program(pids: &[Pid], file: &Path) -> Reading {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let not_own = |text: String| Reading::Program { code: String::new(), own: false, text };
    let (code, bytes) = match code_of(file) {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return not_own(format!("the build left no file {name} in {{out}}"));
        }
        Err(error) => return Reading::CannotTell(format!("{name} cannot be read: {error}")),
    };
    match pids.iter().find(|pid| !(runs(**pid, file) || maps(**pid, file))) {
        None => {
            Reading::Program { text: format!("runs {name}, {bytes} bytes of code {code}"), code, own: true }
        }
        Some(pid) => {
            let exe = fs::read_link(format!("/proc/{pid}/exe"));
            let exe = exe.map_or_else(|error| error.to_string(), |path| path.display().to_string());
            not_own(format!("process {pid} runs {exe}, not the {name} that was built"))
        }
    }
}

/// The same file, or one with the same bytes: a server may be installed by a copy.
fn runs(pid: Pid, file: &Path) -> bool {
    let exe = format!("/proc/{pid}/exe");
    let (Ok(running), Ok(built)) = (fs::metadata(&exe), fs::metadata(file)) else { return false };
    let is_same = (running.dev(), running.ino()) == (built.dev(), built.ino());
    is_same || running.len() == built.len() && same_bytes(Path::new(&exe), file).unwrap_or(false)
}

fn maps(pid: Pid, file: &Path) -> bool {
    // The kernel names files without links: TMPDIR may lead through one.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    // What was replaced since is mapped as "PATH (deleted)".
    proc::maps(pid).is_ok_and(|mapped| mapped.iter().any(|path| Path::new(path) == file))
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let open = |path: &Path| fs::File::open(path).map(|file| io::BufReader::new(file).bytes());
    let (mut one, mut other) = (open(one)?, open(other)?);
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (a, b) if a != b => return Ok(false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::child;

    fn own(reading: &Reading) -> bool {
        match reading {
            Reading::Program { own, .. } => *own,
            other => panic!("a program is read: {other:?}"),
        }
    }

    /// Planted fault: what was built is there, and another program runs.
    #[test]
    fn a_build_that_nobody_runs_is_not_in_force() {
        let folder = std::env::temp_dir().join(format!("dyno-program-{}", child::this()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let exe = fs::read_link("/proc/self/exe").unwrap();
        let copy = folder.join("server");
        fs::copy(&exe, &copy).unwrap();
        let me = [child::this()];
        assert!(own(&program(&me, &exe)), "the file itself");
        assert!(own(&program(&me, &copy)), "a copy of it");
        fs::copy("/bin/true", &copy).unwrap();
        assert!(!own(&program(&me, &copy)));
        assert!(program(&me, &copy).to_string().contains("not the server that was built"));
        assert!(program(&me, &folder.join("gone")).to_string().contains("left no file gone"));
        let library = proc::maps(me[0]).unwrap().into_iter().find(|path| path.contains("libc")).unwrap();
        assert!(own(&program(&me, Path::new(&library))), "a library that is mapped");
        let (library, link) = (Path::new(&library), folder.join("link"));
        std::os::unix::fs::symlink(library.parent().unwrap(), &link).unwrap();
        assert!(own(&program(&me, &link.join(library.file_name().unwrap()))), "the same by way of a link");
        fs::remove_dir_all(folder).unwrap();
    }
}
