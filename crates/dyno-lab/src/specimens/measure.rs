//! Measuring a specimen: short runs of both sides in random order, a new process for each.
//!
//! A program that works by itself counts its own work. A server is loaded by our generator, whose count of right answers is
//! the work; its CPU is its own figure in both cases.

use std::path::Path;

use dyno_load::{BlockSpec, Expect, Session, SessionPlan, Target};
use dyno_measure::Prng;

use super::builds::Program;
use super::runner::{Halt, Runner, Running};
use crate::failure::Failure;
use dyno_record::comparison::{Figures, Record, Round};
use dyno_record::specimen::{Load, Side, Specimen};

/// Preparations take seconds at most: the largest table has 1.25 GiB.
const READY_NS_MAX: u64 = 60_000_000_000;
/// Beyond its time: what a run's last unit takes, and Java's end.
pub const END_NS_MAX: u64 = 20_000_000_000;
/// An answer that takes longer is an error: the slowest specimen answers within a second.
const ANSWER_NS_MAX: u64 = 10_000_000_000;
/// The first answers of a new server: connections, first touches of memory.
const SETTLE_NS: u64 = 20_000_000;
/// A load goes on for so long without a look whether the user wants to stop.
const PIECE_NS: u64 = 1_000_000_000;

/// What is measured, with what, where.
pub struct Measuring<'m> {
    /// What is measured.
    pub specimen: &'m Specimen,
    /// Its build.
    pub program: &'m Program,
    /// What runs it.
    pub runner: &'m mut Runner,
    /// Where it works.
    pub folder: &'m Path,
}

impl Measuring<'_> {
    /// Adds rounds to the record until there are as many, or somebody wants to stop; `after_round` is called after each.
    pub fn rounds(
        &mut self,
        record: &mut Record,
        rounds: u32,
        after_round: &mut dyn FnMut(usize),
    ) -> Result<(), Halt> {
        let mut coin = Prng::new(record.seed);
        for _ in 0..rounds {
            let first = if coin.coin() { Side::Defect } else { Side::Repaired };
            record.rounds.push(self.round(first, record.run_ns)?);
            after_round(record.rounds.len());
        }
        record.also = match &self.specimen.also {
            Some(also) => Some(self.one_by_itself(std::slice::from_ref(&also.word), record.run_ns)?),
            None => None,
        };
        Ok(())
    }

    fn round(&mut self, first: Side, ns: u64) -> Result<Round, Halt> {
        let mut of = |side: Side| self.one(side, ns);
        let (defect, repaired) = match first {
            Side::Defect => {
                let defect = of(Side::Defect)?;
                (defect, of(Side::Repaired)?)
            }
            Side::Repaired => {
                let repaired = of(Side::Repaired)?;
                (of(Side::Defect)?, repaired)
            }
        };
        Ok(Round { first, defect, repaired })
    }

    /// One run of one side.
    fn one(&mut self, side: Side, ns: u64) -> Result<Figures, Halt> {
        self.one_variant(&[side.word().to_owned()], ns)
    }

    /// One run of a side, parts of it shortened.
    pub fn one_variant(&mut self, words: &[String], ns: u64) -> Result<Figures, Halt> {
        match &self.specimen.load {
            None => self.one_by_itself(words, ns),
            Some(load) => self.one_loaded(words, load, ns),
        }
    }

    fn one_by_itself(&mut self, words: &[String], ns: u64) -> Result<Figures, Halt> {
        let running = self.start(words, Some(ns))?;
        let (how, text) = self.runner.end_of(&running, READY_NS_MAX + ns + END_NS_MAX)?;
        match Figures::from_output(&text) {
            Some(figures) if how == "exit status 0" && figures.units > 0 => Ok(figures),
            Some(_) if how == "exit status 0" => Err(no_unit(&running, ns).into()),
            _ => Err(running.trouble(&format!("ended without its figures ({how})")).into()),
        }
    }

    fn one_loaded(&mut self, words: &[String], load: &Load, ns: u64) -> Result<Figures, Halt> {
        let running = self.start(words, None)?;
        let url = self.place_of(&running)?;
        let (replies, wall_ns) = self.load(&running, &url, load, ns)?;
        let text = self.runner.stop(&running)?;
        let own = Figures::from_output(&text).ok_or_else(|| running.trouble("ended without its figures"))?;
        // Its CPU covers the few answers before and after the block too: per unit it is the same.
        let per_unit = own.cpu_ns as f64 / own.units.max(1) as f64;
        let cpu_ns = (per_unit * replies as f64) as u64;
        Ok(Figures { units: replies, elapsed_ns: wall_ns, cpu_ns, notes: own.notes })
    }

    /// Right answers and the time that they took. In pieces: signals are looked for between them.
    fn load(&mut self, running: &Running, url: &str, load: &Load, ns: u64) -> Result<(u64, u64), Halt> {
        let failed = |error: &dyn std::error::Error| running.trouble("was not answered").because(error);
        let target = Target::get(url).map_err(|error| failed(&error))?;
        let plan = SessionPlan {
            target,
            expect: Expect::same_body(),
            connections: load.connections,
            pipeline: 1,
            timeout_ns: ANSWER_NS_MAX,
        };
        let mut session = Session::open(&plan).map_err(|error| failed(&error))?;
        let pieces = ns.div_ceil(PIECE_NS).max(1);
        let spec = BlockSpec {
            settle_ns: SETTLE_NS,
            measure_ns: ns / pieces,
            replies_min: 1,
            ns_max: ns.max(ANSWER_NS_MAX),
            drain_ns_max: ANSWER_NS_MAX,
            drain_slow_ns_max: 0,
        };
        let (mut replies, mut wall_ns) = (0, 0);
        for _ in 0..pieces {
            let report = session.block(&spec, &mut |_edge| {});
            match (&report.first_error, report.errors.total()) {
                _ if self.runner.interrupted() => return Err(Halt::Interrupted),
                (_, 0) if report.drained && report.replies > 0 => {
                    replies += report.replies;
                    wall_ns += report.wall_ns;
                }
                (Some(why), _) => return Err(running.trouble(&format!("answered wrongly: {why}")).into()),
                _ => return Err(running.trouble("did not answer every request rightly").into()),
            }
        }
        Ok((replies, wall_ns))
    }

    /// Starts a side, with what shortens parts of it; without a time it runs until it is stopped.
    pub fn start(&mut self, words: &[String], ns: Option<u64>) -> Result<Running, Failure> {
        let time = ns.map(|ns| vec!["--for".to_owned(), format!("{:.3}", ns as f64 / 1e9)]);
        let words = words.iter().cloned().chain(time.into_iter().flatten());
        let argv: Vec<String> = self.program.argv.iter().cloned().chain(words).collect();
        self.runner.start(&argv, &[], self.folder)
    }

    /// Waits until preparations are over.
    pub fn ready(&mut self, running: &Running) -> Result<String, Halt> {
        self.runner.wait_for_line(running, "ready", READY_NS_MAX)
    }

    /// Where a server listens.
    pub fn place_of(&mut self, running: &Running) -> Result<String, Halt> {
        let line = self.ready(running)?;
        let place = line.strip_prefix("ready ").map(str::to_owned);
        place.ok_or_else(|| running.trouble("is to be a server and told no address").into())
    }
}

fn no_unit(running: &Running, ns: u64) -> Failure {
    let what = format!("did not end one unit of work in {:.1} s", ns as f64 / 1e9);
    running.trouble(&what).try_this("give it more time: --for 10s")
}
