//! Proofs on a live server: what is read to see that a change is in force.

mod arrivals;
mod code;
mod network;
mod program;
mod seen;

use dyno_climb::load::LoadSpec;
use dyno_climb::meter::Trouble;
use dyno_climb::proof::{Proof, Reading};
use dyno_load::{BlockSpec, Expect, OpenError, Session, SessionPlan};
use dyno_sys::proc;
use dyno_sys::trace::{Counts, count_syscalls};

use crate::failure::chain;
use crate::launch::{Arm, FINE, Run, World, load_target as target, within};

/// Requests that a counting proof watches: enough that one odd call does not matter.
const REQUESTS: u64 = 50;
/// Calls that start threads and processes. What was not there when the watching began is not watched.
const BIRTHS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// How long a proof's command may take.
const COMMAND_NS_MAX: u64 = 10_000_000_000;
/// Fifty requests take milliseconds, traced ones a hundred times longer.
const WATCHED: BlockSpec = BlockSpec {
    settle_ns: 0,
    measure_ns: 1,
    replies_min: REQUESTS,
    ns_max: 3_000_000_000,
    drain_ns_max: 3_000_000_000,
    drain_slow_ns_max: 0,
};

impl World<'_> {
    pub(crate) fn prove_on(&mut self, arm: &mut Arm, proof: &Proof) -> Result<Reading, Trouble> {
        let pids = arm.processes();
        match proof {
            Proof::Threads { .. } => Ok(seen::threads(&pids)),
            Proof::Filters { .. } => Ok(seen::filters(&pids)),
            Proof::Scheduled { class, nice } => Ok(seen::scheduled(&pids, class, *nice)),
            Proof::TimerSlack { ns } => Ok(seen::timer_slack(&pids, *ns)),
            Proof::OpenFiles { contains, flag, .. } => Ok(seen::open_files(&pids, contains, *flag)),
            Proof::Built { file } => Ok(self.runs_its_build(arm, file)),
            Proof::HugePages { .. } => Ok(seen::huge_pages(&pids)),
            Proof::Cpus { .. } => Ok(seen::pinned(&pids)),
            Proof::Maps { contains } => Ok(seen::maps(&pids, contains)),
            Proof::Listeners { .. } => Ok(seen::listeners(&pids, &arm.addr)),
            Proof::EpollFlags { edge } => Ok(seen::epoll_flags(&pids, arm.port, *edge)),
            Proof::Local { .. } => self.while_it_serves(arm, seen::local),
            Proof::Sockopt { option, expect } => Ok(seen::sockopt(&pids, arm.port, option, expect)),
            Proof::Syscalls { names, .. } => self.syscalls(arm, &pids, names),
            Proof::Counter { name, .. } => self.counter(arm, name),
            Proof::Network { count, .. } => self.network(arm, *count),
            Proof::Polled { .. } => self.while_it_serves(arm, seen::polled),
            Proof::Answer { path, contains } => Ok(self.answer(arm, path, contains)),
            Proof::Command { argv, expect } => self.command(arm, argv, expect),
        }
    }

    /// System calls while the server answers: every thread of it is traced, and runs on when this is over or dies.
    fn syscalls(
        &mut self,
        arm: &mut Arm,
        pids: &[dyno_sys::Pid],
        names: &[String],
    ) -> Result<Reading, Trouble> {
        let tids: Vec<_> = pids.iter().flat_map(|pid| proc::tasks(*pid)).collect();
        let mut report = None;
        let counted = count_syscalls(&tids, &mut || report = Some(arm.driver.block(&WATCHED, &mut |_| {})));
        let Some(report) = report else {
            return Ok(Reading::CannotTell("the server could not be traced".into()));
        };
        self.check(arm, &report, &WATCHED)?;
        let counts = match counted {
            Ok(counts) => counts,
            Err(error) => return Ok(Reading::CannotTell(chain(&error))),
        };
        if has_births(&counts) && !names.iter().all(|name| BIRTHS.contains(&name.as_str())) {
            let why = "it starts threads or processes while it serves, and what these call is not counted";
            return Ok(Reading::CannotTell(why.into()));
        }
        let wanted =
            counts.iter().filter(|(name, _)| names.iter().any(|wanted| wanted.as_str() == name.as_ref()));
        Ok(Reading::Number(
            wanted.map(|(_, count)| *count as f64).sum::<f64>() / report.replies.max(1) as f64,
        ))
    }

    fn counter(&mut self, arm: &mut Arm, name: &str) -> Result<Reading, Trouble> {
        let before = counter_of(&arm.ask("counters")?, name);
        let report = arm.driver.block(&WATCHED, &mut |_| {});
        self.check(arm, &report, &WATCHED)?;
        let after = counter_of(&arm.ask("counters")?, name);
        Ok(match (before, after) {
            (Some(before), Some(after)) => {
                Reading::Number(after.saturating_sub(before) as f64 / report.replies.max(1) as f64)
            }
            _ => Reading::CannotTell(format!("the server has no counter {name}")),
        })
    }

    fn command(&mut self, arm: &Arm, argv: &[String], expect: &str) -> Result<Reading, Trouble> {
        let fill = |word: &String| {
            let word = word.replace("{pid}", &arm.pid.to_string()).replace("{port}", &arm.port.to_string());
            let word = word.replace("{address}", &self.address().to_string());
            word.replace("{dir}", &arm.dir.display().to_string())
        };
        let argv: Vec<String> = argv.iter().map(fill).collect();
        let cpus = Some(self.ground.server_cpus.clone());
        match self.run_to_end(&Run { argv: &argv, env: &[], cwd: &arm.dir, cpus }, COMMAND_NS_MAX) {
            Ok((status, text)) => {
                let holds = status == FINE && has_line(&text, expect);
                let said = first_line(&text);
                let text = if status == FINE { said } else { format!("{status}: {said}") };
                Ok(Reading::Fact { holds, text })
            }
            Err(trouble) if trouble.ends_the_climb() => Err(trouble),
            Err(trouble) => Ok(Reading::CannotTell(trouble.to_string())),
        }
    }

    /// Another request's answer.
    fn answer(&self, arm: &Arm, path: &str, contains: &str) -> Reading {
        let load = LoadSpec { path: path.to_owned(), connections: 1, ..LoadSpec::default() };
        let open = |target| {
            let plan = SessionPlan {
                target,
                expect: Expect::any(),
                connections: 1,
                pipeline: 1,
                timeout_ns: 2_000_000_000,
            };
            within(self.client().as_deref(), || Session::open(&plan))
        };
        match target(&load, self.address(), arm.port).map(open) {
            Err(trouble) => Reading::CannotTell(trouble.to_string()),
            // There is no such answer: what only the change provides is not there without it.
            Ok(Err(OpenError::WrongAnswer { got, .. })) => Reading::Fact { holds: false, text: got },
            Ok(Err(error)) => Reading::CannotTell(chain(&error)),
            Ok(Ok(session)) => {
                let text = String::from_utf8_lossy(session.sample_answer()).into_owned();
                let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
                Reading::Fact { holds: body.contains(contains), text: first_line(body) }
            }
        }
    }
}

/// Whether a thread or a process was started that nobody watched.
fn has_births(counts: &Counts) -> bool {
    counts.keys().any(|name| BIRTHS.contains(&name.as_ref()))
}

/// The value of `name=` in a line of counters.
fn counter_of(line: &str, name: &str) -> Option<u64> {
    line.split_whitespace().find_map(|word| word.split_once('=').filter(|(n, _)| *n == name)?.1.parse().ok())
}

/// Whether a line of it is this; an output of nothing has the empty one.
fn has_line(text: &str, wanted: &str) -> bool {
    text.split('\n').any(|line| line.trim_end_matches('\r') == wanted)
}

/// Enough of an output to recognise it.
fn first_line(text: &str) -> String {
    text.trim().lines().next_back().unwrap_or("").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: only what was watched is asked for; a server that forks for each request then makes hardly any call.
    #[test]
    fn calls_of_whoever_was_born_meanwhile_cannot_be_told() {
        let counts =
            |names: &[&'static str]| -> Counts { names.iter().map(|name| ((*name).into(), 1)).collect() };
        assert!(BIRTHS.iter().all(|birth| has_births(&counts(&["read", birth]))));
        assert!(!has_births(&counts(&["read", "cloned"])));
    }

    /// Planted fault: a part of a line is enough, and "10" proves "1".
    #[test]
    fn an_output_is_held_against_by_whole_lines() {
        assert!(
            has_line("10\n1\n", "1") && has_line("1", "1") && has_line("a\r\nb", "a") && has_line("", "")
        );
        assert!(!has_line("10\n21", "1") && !has_line("1 ", "1") && !has_line("a", ""));
    }

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let line = "requests=70 owned_heads=0 heads=5";
        assert_eq!(counter_of(line, "heads"), Some(5));
        assert_eq!(counter_of(line, "owned_heads"), Some(0));
        assert_eq!(counter_of(line, "head"), None);
    }
}
