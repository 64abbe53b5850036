//! Variables of the environment that are perhaps settings with a slip in their name: in a file such a one is an error, and so it
//! is here.
//!
//! Others may have variables of this beginning (an orchestrator names them after its services, `DYNO_PORT_80_TCP`), so that
//! only what is very like a setting's name is one of ours.

use std::ffi::{OsStr, OsString};

use super::settings::{self, Setting};
use dyno_lab::Failure;
use dyno_record::alike;

/// What all of ours begin with.
const PREFIX: &str = "DYNO_";

/// A name that is more alike is a slip. Of short names one letter makes another word: DYNO_DATA is not meant to be the date.
const SLIP: f64 = 0.75;

/// The mistakes among the names of these variables; an empty variable is none.
pub(super) fn mistakes(variables: &[(OsString, OsString)], settings: &[Setting]) -> Vec<Failure> {
    let set = variables.iter().filter(|(_, word)| !word.is_empty()).filter_map(|(name, _)| name.to_str());
    let names: Vec<String> = settings.iter().map(Setting::variable).collect();
    let unknown = set.filter(|name| !names.iter().any(|known| known == name));
    unknown
        .filter_map(|name| Some((name, meant(name, &names)?)))
        .map(|(name, meant)| slip(name, meant))
        .collect()
}

/// The word of one variable.
pub(super) fn word<'v>(variables: &'v [(OsString, OsString)], name: &str) -> Option<&'v OsStr> {
    variables.iter().find(|(variable, _)| variable == name).map(|(_, word)| word.as_os_str())
}

/// Whose name was perhaps meant. A file's path with its table is a name with too much in front.
fn meant<'n>(name: &str, names: &'n [String]) -> Option<&'n str> {
    let own = name.strip_prefix(PREFIX)?;
    let bare = settings::tables().find_map(|table| own.strip_prefix(&format!("{}_", table.to_uppercase())));
    let likeness = |known: &str| {
        let known = known.strip_prefix(PREFIX).unwrap_or(known);
        if bare == Some(known) { 1.0 } else { alike::likeness(own, known) }
    };
    let rated = names.iter().map(|known| (likeness(known), known.as_str()));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 > SLIP).then_some(best.1)
}

fn slip(name: &str, meant: &str) -> Failure {
    Failure::usage(format!("there is no setting for the variable {name}"))
        .likely(alike::question(meant))
        .try_this(format!("unset {name}, if it is no setting of this server"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, word: &str) -> Vec<String> {
        let variables = [(name.into(), word.into())];
        mistakes(&variables, &settings::all()).iter().map(Failure::in_one_line).collect()
    }

    /// Planted fault: nobody looks at names that are no setting's.
    #[test]
    fn a_slip_in_a_name_is_a_mistake_with_what_was_meant() {
        for (slip, meant) in [
            ("DYNO_IDEL_TIMEOUT", "DYNO_IDLE_TIMEOUT"),
            ("DYNO_IDLE_TIMOUT", "DYNO_IDLE_TIMEOUT"),
            ("DYNO_WORKER", "DYNO_WORKERS"),
            ("DYNO_LIMITS_IDLE_TIMEOUT", "DYNO_IDLE_TIMEOUT"),
            ("DYNO_DIALS_LOG", "DYNO_LOG"),
            ("DYNO_LOGFILE", "DYNO_LOG_FILE"),
        ] {
            let said = told(slip, "5s");
            assert_eq!(said.len(), 1, "{slip}: {said:?}");
            assert!(
                said[0].contains(slip) && said[0].contains(&format!("did you mean {meant}?")),
                "{said:?}"
            );
        }
        assert!(told("DYNO_IDEL_TIMEOUT", "").is_empty(), "an empty variable is none");
    }

    /// Planted fault: whatever begins like ours is one.
    #[test]
    fn settings_and_what_is_somebody_elses_are_no_mistakes() {
        for name in [
            "DYNO_IDLE_TIMEOUT",
            "DYNO_CONTENT_ROOT",
            dyno_engine::master::VARIABLE,
            // Those of an orchestrator for a service of this name.
            "DYNO_PORT",
            "DYNO_PORT_8080_TCP",
            "DYNO_PORT_8080_TCP_ADDR",
            "DYNO_PORT_8080_TCP_PROTO",
            "DYNO_SERVICE_HOST",
            "DYNO_SERVICE_PORT",
            "DYNO_SERVICE_PORT_HTTP",
            // Those of this project's tests and tasks.
            "DYNO_KILLS",
            "DYNO_SEEDS",
            "DYNO_GOLDEN",
            "DYNO_TARGET",
            "DYNO_COMMIT",
            "DYNO_BASE",
            "DYNO_RELOADS",
            "DYNO_CROWD",
            "DYNO_NAME",
            "DYNO_DATA",
            "DYNO_END",
            "DYNO_HOME",
            "DYNO",
            "IDEL_TIMEOUT",
        ] {
            assert_eq!(told(name, "x"), [""; 0], "{name}");
        }
    }
}
