//! What is wrong with a plan or the name of a rung, in three lines and with what was perhaps meant.
//!
//! `dyno climb` asks before anything is started.

use dyno_climb::plan::{Plan, PlanError};
use dyno_climb::proof::Proof;
use dyno_lab::Failure;
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
}
