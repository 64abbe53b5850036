//! Building the server: the steps of a plan's build are run once for each place where its build dials stand.
//!
//! A climb asks before it starts servers. A step is a command, or a training: the server runs under the plan's load for a
//! while and leaves a profile of it in the folder of the build. Nothing is built in the plan's folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dyno_climb::dial::Setting;
use dyno_climb::meter::{ArmSpec, Trouble};
use dyno_climb::plan::BuildStep;
use dyno_load::BlockSpec;
use dyno_sys::clock::mono_ns;

use super::arm::Arm;
use super::exits::FINE;
use super::server::{Run, TIMEOUT_NS, expect, filled};
use super::world::{STOP_GRACE_NS, World};

/// How long a trained server may take to write down what it learned before it is killed.
const TRAINED_GRACE_NS: u64 = 10_000_000_000;
/// Files of a build that are looked at to see whether a training left any: far more than a compiler leaves.
const FILES_MAX: usize = 10_000;
/// A training is loaded in pieces of this, so that Ctrl-C is heard between them. It is the longest block that a climb's own
/// limit allows (`BlockSpec::default`).
const HEARD_NS: u64 = 1_000_000_000;

impl World<'_> {
    /// The folder of what this setting's server was built into; built now where that is not yet so. `None` where the plan
    /// builds nothing.
    pub(crate) fn built(&mut self, setting: &Setting) -> Result<Option<PathBuf>, Trouble> {
        let steps = self.plan.build_of(setting);
        if self.plan.launch.build.is_empty() {
            return Ok(None);
        }
        if let Some((_, done)) = self.builds.done.iter().find(|(known, _)| *known == steps) {
            return done.clone().map(Some);
        }
        let began_ns = mono_ns();
        let made = self.make(&steps, setting);
        self.builds.took_ns += mono_ns() - began_ns;
        if let Err(trouble) = &made
            && trouble.ends_the_climb()
        {
            return Err(trouble.clone());
        }
        self.builds.done.push((steps, made.clone()));
        made.map(Some)
    }

    fn make(&mut self, steps: &[BuildStep], setting: &Setting) -> Result<PathBuf, Trouble> {
        let out = self.ground.scratch.join(format!("built-{}", self.builds.done.len() + 1));
        self.folder_with(&out, &[])?;
        for step in steps {
            self.check_interrupt()?;
            let made = if step.run.is_empty() {
                self.train(step, setting, &out)
            } else {
                self.command_of(step, &out)
            };
            made.map_err(|trouble| failed(step, trouble))?;
        }
        Ok(out)
    }

    /// A step that ends by itself. It may use every CPU: nothing is measured meanwhile.
    fn command_of(&mut self, step: &BuildStep, out: &Path) -> Result<(), Trouble> {
        let folders = self.folders(Some(out));
        let argv: Vec<String> = step.run.iter().map(|word| filled(word, &folders)).collect();
        let env: Vec<_> =
            step.env.iter().map(|(name, text)| (name.clone(), filled(text, &folders))).collect();
        let cwd = self.ground.plan_dir.clone();
        let ns_max = self.plan.launch.build_ms * 1_000_000;
        let (status, text) =
            self.run_to_end(&Run { argv: &argv, env: &env, cwd: &cwd, cpus: None }, ns_max)?;
        if status == FINE { Ok(()) } else { Err(fault(format!("{status}: {text}"))) }
    }

    /// A server that is loaded for a while, with the files and the environment of the start. What it was like must be there
    /// when it has ended, or the next step would optimise for nothing and nobody would hear of it.
    fn train(&mut self, step: &BuildStep, setting: &Setting, out: &Path) -> Result<(), Trouble> {
        let before = files_of(out, FILES_MAX);
        let plan = self.plan;
        let spec = ArmSpec { setting: setting.clone(), load: plan.load.clone() };
        let words = |filling: &super::server::Filling<'_>| {
            let argv = step.train.iter().map(|word| filling.fill(word)).collect();
            let own = step.env.iter().map(|(name, text)| (name.clone(), filling.fill(text)));
            (argv, filling.env().into_iter().chain(own).collect())
        };
        let mut arm = self.launch((&spec, &expect(&spec.load)), &plan.start(), Some(out), words)?;
        let loaded = self.load_for(&mut arm, step.for_ms * 1_000_000);
        self.stop_within(arm, if loaded.is_ok() { TRAINED_GRACE_NS } else { STOP_GRACE_NS });
        loaded?;
        if before.is_some() && files_of(out, FILES_MAX) == before {
            let why = "it left no file in {out} when it ended: most programs write a profile when they return from main, \
                       and not when SIGTERM kills them";
            return Err(fault(why.to_owned()));
        }
        Ok(())
    }

    /// Loads a server, and hears meanwhile that the user wants to stop.
    pub(super) fn load_for(&mut self, arm: &mut Arm, mut left_ns: u64) -> Result<(), Trouble> {
        while left_ns > 0 {
            self.check_interrupt()?;
            let measure_ns = left_ns.min(HEARD_NS);
            let block =
                BlockSpec { settle_ns: 0, measure_ns, drain_ns_max: TIMEOUT_NS, ..BlockSpec::default() };
            let report = arm.driver.block(&block, &mut |_| {});
            self.check(arm, &report, &block)?;
            // A slow server's block lasts longer than it was asked to.
            left_ns = left_ns.saturating_sub(report.wall_ns.max(measure_ns));
        }
        self.check_interrupt()
    }
}

/// Files in a folder and below it, by what a write changes; `None` where they are too many to be looked at.
fn files_of(folder: &Path, max: usize) -> Option<BTreeMap<PathBuf, (u64, i64, i64)>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(file) = entry.metadata() else { continue };
            if files.len() + folders.len() >= max {
                return None;
            }
            if file.is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path(), (file.len(), file.mtime(), file.mtime_nsec()));
            }
        }
    }
    Some(files)
}

fn fault(why: String) -> Trouble {
    Trouble::Build { step: String::new(), why }
}

/// The trouble as one of this step.
fn failed(step: &BuildStep, trouble: Trouble) -> Trouble {
    let why = match trouble {
        trouble if trouble.ends_the_climb() => return trouble,
        Trouble::Build { why, .. } | Trouble::Launch { why, .. } => why,
        trouble => trouble.to_string(),
    };
    Trouble::Build { step: step.argv().join(" "), why }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Planted fault: the files that were reached stand for all; then a profile behind them is not seen, and the build fails.
    #[test]
    fn a_folder_of_more_files_than_are_looked_at_says_nothing() {
        let folder = std::env::temp_dir().join(format!("dyno-files-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let write = |name: &str| fs::write(folder.join(name), name).unwrap();
        write("a");
        let before = files_of(&folder, 2);
        assert_eq!(before.as_ref().map(BTreeMap::len), Some(1));
        write("b");
        assert!(files_of(&folder, 3).is_some() && files_of(&folder, 3) != before);
        assert_eq!(files_of(&folder, 1), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
