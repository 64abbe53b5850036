//! Where things stand: the repository's root, cargo's target folder, the packages, the source files.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::{cargo, output};
use crate::trouble::Trouble;

/// Folders deep in the tree: far below this, and a loop of links ends here.
const DEPTH_MAX: usize = 16;

/// The repository.
pub(crate) struct Repo {
    root: PathBuf,
    metadata: Value,
}

impl Repo {
    /// Finds the repository that this program was started from.
    pub(crate) fn find() -> Result<Repo, Trouble> {
        // Cargo sets it for what it runs; without cargo the place of compilation is as good.
        let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&own).parent().ok_or_else(|| Trouble::new("the task runner has no folder"))?;
        let mut asked = cargo(["metadata", "--format-version", "1", "--no-deps"]);
        let text = output(asked.current_dir(root))?;
        let metadata = serde_json::from_str(&text).map_err(Trouble::cannot("read cargo's metadata"))?;
        Ok(Repo { root: root.to_owned(), metadata })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// What `cargo metadata` says.
    pub(crate) fn metadata(&self) -> &Value {
        &self.metadata
    }

    /// Where cargo builds.
    pub(crate) fn target(&self) -> PathBuf {
        self.metadata["target_directory"].as_str().map_or_else(|| self.path("target"), PathBuf::from)
    }

    /// A folder below the target folder for what a task makes, there afterwards.
    pub(crate) fn scratch(&self, name: &str) -> Result<PathBuf, Trouble> {
        let folder = self.target().join("xtask").join(name);
        std::fs::create_dir_all(&folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
        Ok(folder)
    }

    /// The product, built for release.
    pub(crate) fn release_dyno(&self) -> Result<PathBuf, Trouble> {
        self.built(self.release_build(&["--package", "dyno", "--bin", "dyno"]), "dyno")
    }

    /// The engine's demo alone, built for release: its requests are those of `dyno serve`, and it is built with a fifth of the CPU time.
    pub(crate) fn release_demo(&self) -> Result<PathBuf, Trouble> {
        self.built(self.demo_build(), "examples/demo")
    }

    /// The command that builds it.
    pub(crate) fn demo_build(&self) -> Command {
        self.release_build(&["--package", "dyno-engine", "--example", "demo"])
    }

    fn release_build(&self, what: &[&str]) -> Command {
        let mut build = cargo([&["build", "--release"], what].concat());
        build.current_dir(&self.root);
        build
    }

    fn built(&self, mut build: Command, program: &str) -> Result<PathBuf, Trouble> {
        match crate::command::run(&mut build)? {
            crate::trouble::Outcome::Done => Ok(self.target().join("release").join(program)),
            crate::trouble::Outcome::No => Err(Trouble::new(format!("{program} does not build"))),
        }
    }

    /// All files whose name ends with one of `endings`, by path from the root; not what is built or hidden.
    pub(crate) fn files(&self, endings: &[&str]) -> Result<Vec<String>, Trouble> {
        let mut found = Vec::new();
        self.walk(Path::new(""), 0, endings, &mut found)?;
        found.sort_unstable();
        Ok(found)
    }

    fn walk(
        &self,
        below: &Path,
        depth: usize,
        endings: &[&str],
        found: &mut Vec<String>,
    ) -> Result<(), Trouble> {
        let folder = self.root.join(below);
        let entries =
            std::fs::read_dir(&folder).map_err(Trouble::cannot(format!("list {}", folder.display())))?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = below.join(&name);
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && depth < DEPTH_MAX && !name.starts_with('.') && name != "target" {
                self.walk(&path, depth + 1, endings, found)?;
            } else if !is_folder && endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
        Ok(())
    }

    /// The text of a file.
    pub(crate) fn read(&self, below: &str) -> Result<String, Trouble> {
        std::fs::read_to_string(self.path(below)).map_err(Trouble::cannot(format!("read {below}")))
    }
}

/// Whether a machine started us: it cannot answer questions, and nothing may be passed over.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
