//! A specimen made ready: built, with a folder to run in and what runs it.

use super::builds::{Builds, Program, RunFolder};
use super::catalogue;
use super::measure::Measuring;
use super::neutral::Naming;
use super::runner::{Halt, Runner};
use crate::failure::Failure;
use dyno_record::alike::did_you_mean;
use dyno_record::specimen::Specimen;

/// The specimen of this name.
///
/// # Errors
/// When there is none; the error names the nearest one.
pub fn named(name: &str) -> Result<Specimen, Failure> {
    catalogue::find(name).ok_or_else(|| {
        let failure = Failure::usage(format!("there is no specimen \"{name}\""));
        failure.likely(nearest(name)).try_this("dyno specimen list")
    })
}

/// What a wrong name was perhaps meant to be.
fn nearest(name: &str) -> String {
    let all = catalogue::all();
    let question = did_you_mean(name, all.iter().map(|specimen| specimen.name.as_str()));
    question.unwrap_or_else(|| "its name is another one".to_owned())
}

/// A specimen that is built, and all that it takes to run it.
pub struct Ready {
    /// The specimen.
    pub specimen: Specimen,
    program: Program,
    // Dropped before the runner: what still runs holds nothing but open files in it.
    run_folder: RunFolder,
    /// What runs it.
    pub runner: Runner,
}

impl Ready {
    /// Builds it, while this process has one thread.
    ///
    /// # Errors
    /// When there is none of this name, or it cannot be built here.
    pub fn new(name: &str, naming: Naming) -> Result<Ready, Halt> {
        let specimen = named(name)?;
        let mut runner = Runner::new()?;
        let builds = Builds::open()?;
        let program = builds.build(&specimen, naming, &mut runner)?;
        let run_folder = builds.run_folder(&runner)?;
        Ok(Ready { specimen, program, run_folder, runner })
    }

    /// What measures it.
    pub fn measuring(&mut self) -> Measuring<'_> {
        let Ready { specimen, program, run_folder, runner } = self;
        Measuring { specimen, program, runner, folder: run_folder.path() }
    }
}
