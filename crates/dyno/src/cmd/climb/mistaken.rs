//! What is wrong with a plan or the name of a rung, in three lines and with what was perhaps meant.
//!
//! `dyno climb` asks before anything is started.

use dyno_climb::plan::{Plan, PlanError};
use dyno_climb::proof::Proof;
use dyno_climb::rung::Rung;
use dyno_lab::Failure;
use dyno_lab::launch::load_fault;
use dyno_record::alike;
use dyno_sys::trace;

/// How a call is named that this build has no name for.
const BY_NUMBER: &str = "syscall_";

/// A plan that cannot be climbed: where, what, and the line itself.
pub(super) fn plan(name: &str, error: &PlanError) -> Failure {
    let failure = match error {
        PlanError::Syntax(syntax) => {
            let place = format!("{name}:{}:{}", syntax.line, syntax.column);
            Failure::error(format!("{place}: {}", syntax.what)).picture(&syntax.picture)
        }
        other => Failure::error(format!("{name}: {other}")),
    };
    meant(failure, error)
        .try_this("compare it with examples/nginx.toml; docs/manual/plans.md lists every key")
}

/// A rung that the plan does not have.
pub(super) fn rung(error: &PlanError) -> Failure {
    meant(Failure::usage(error.to_string()), error).try_this("dyno climb --list")
}

fn meant(failure: Failure, error: &PlanError) -> Failure {
    match error.meant() {
        Some(name) => failure.likely(alike::question(name)),
        None => failure,
    }
}

/// Whether all system calls that proofs count are known: one that is not would never be seen, and the rung would fail.
///
/// # Errors
/// With the rung that names the first one that is not.
pub(super) fn calls(plan: &Plan, name: &str) -> Result<(), Failure> {
    let is_known = |call: &str| trace::call_number(call).is_some() || call.starts_with(BY_NUMBER);
    for rung in &plan.rungs {
        let counted = rung.proofs.iter().filter_map(|proof| match proof {
            Proof::Syscalls { names, .. } => Some(names),
            _ => None,
        });
        if let Some(call) = counted.flatten().find(|call| !is_known(call)) {
            let what = format!("{name}: rung \"{}\": no system call \"{call}\" is known here", rung.id);
            let likely = alike::did_you_mean(call, trace::call_names());
            return Err(Failure::error(what)
                .likely(likely.unwrap_or_else(|| "it has another name in the kernel".to_owned()))
                .try_this("strace -c -f -p PID, which names those that a server makes"));
        }
    }
    Ok(())
}

/// Whether every load can be sent: a server that was prepared for and started would hear nothing of one that cannot.
///
/// # Errors
/// With the place of the first one that cannot.
pub(super) fn loads(plan: &Plan, name: &str) -> Result<(), Failure> {
    let own = |rung: &Rung| rung.load.clone().map(|load| (format!("rung \"{}\": load", rung.id), load));
    let all =
        std::iter::once(("load".to_owned(), plan.load.clone())).chain(plan.rungs.iter().filter_map(own));
    for (place, load) in all {
        if let Some(why) = load_fault(&load) {
            return Err(Failure::error(format!("{name}: {place}: {why}"))
                .likely("a request with it would not be one request of HTTP/1.1")
                .try_this("percent-encode what stands in a path (a blank is %20); docs/manual/plans.md lists every key"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_proof_that_counts_a_misspelt_call_is_refused_with_the_rung_that_has_it() {
        let text = include_str!("../../../../../examples/nginx.toml");
        assert!(calls(&Plan::from_toml(text).unwrap(), "plan.toml").is_ok());
        let wrong = text.replacen("names = [\"write\"]", "names = [\"wriet\"]", 1);
        let lines = calls(&Plan::from_toml(&wrong).unwrap(), "plan.toml").unwrap_err().lines();
        assert!(
            lines.starts_with("error: plan.toml: rung \"log-buffer\": no system call \"wriet\""),
            "{lines}"
        );
        assert!(lines.contains("did you mean write?"), "{lines}");
    }

    /// Planted fault: the first server that is started finds it.
    #[test]
    fn a_load_that_no_server_could_be_sent_is_refused_with_its_place() {
        let text = include_str!("../../../../../examples/nginx.toml");
        let plan = Plan::from_toml(text).unwrap();
        assert!(loads(&plan, "plan.toml").is_ok());
        let bad = |change: &dyn Fn(&mut dyno_climb::load::LoadSpec)| {
            let mut plan = plan.clone();
            change(&mut plan.load);
            loads(&plan, "plan.toml").unwrap_err().lines()
        };
        let blank = bad(&|load| load.path = "/a b".into());
        assert!(blank.starts_with("error: plan.toml: load: "), "{blank}");
        assert!(bad(&|load| load.method = "GE T".into()).contains("\"GE T\""));
        assert!(bad(&|load| drop(load.headers.insert("A B".into(), "c".into()))).contains("\"A B\""));
        let mut own = plan.clone();
        own.rungs[0].load = Some(dyno_climb::load::LoadSpec { path: "/a b".into(), ..plan.load.clone() });
        let lines = loads(&own, "plan.toml").unwrap_err().lines();
        assert!(lines.starts_with("error: plan.toml: rung \"log-buffer\": load: "), "{lines}");
    }
}
