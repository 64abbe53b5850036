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

use super::server::{FINE, Run, filled};
use super::world::World;

/// How long a trained server may take to write down what it learned before it is killed.
const TRAINED_GRACE_NS: u64 = 10_000_000_000;
/// Files of a build that are looked at to see whether a training left any: far more than a compiler leaves.
const FILES_MAX: usize = 10_000;

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
        let before = files_of(out);
        let plan = self.plan;
        let spec = ArmSpec { setting: setting.clone(), load: plan.load.clone() };
        let words = |filling: &super::server::Filling<'_>| {
            let argv = step.train.iter().map(|word| filling.fill(word)).collect();
            let own = step.env.iter().map(|(name, text)| (name.clone(), filling.fill(text)));
            (argv, filling.env().into_iter().chain(own).collect())
        };
        let mut arm = self.launch(&spec, &plan.start(), Some(out), words)?;
        let measure_ns = step.for_ms * 1_000_000;
        let block = BlockSpec {
            settle_ns: 0,
            measure_ns,
            ns_max: measure_ns.max(BlockSpec::default().ns_max),
            ..BlockSpec::default()
        };
        let report = arm.driver.block(&block, &mut |_| {});
        let checked = self.check(&arm, &report, &block);
        self.stop_within(arm, TRAINED_GRACE_NS);
        checked?;
        if files_of(out) == before {
            let why = "it left no file in {out} when it ended: most programs write a profile when they return from main, \
                       and not when SIGTERM kills them";
            return Err(fault(why.to_owned()));
        }
        Ok(())
    }
}

/// Files in a folder and below it, by what a write changes.
fn files_of(folder: &Path) -> BTreeMap<PathBuf, (u64, i64, i64)> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(file) = entry.metadata() else { continue };
            if files.len() + folders.len() >= FILES_MAX {
                return files;
            }
            if file.is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path(), (file.len(), file.mtime(), file.mtime_nsec()));
            }
        }
    }
    files
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
