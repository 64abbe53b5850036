//! What the flags about logs come to, and what is told of the logs.

use crate::cli::LogFlags;
use dyno_engine::supervisor::LogTrouble;
use dyno_engine::{Config, Log};
use dyno_lab::Failure;
use dyno_measure::units::thousands;

/// Words that would do nothing are a mistake: who sets them wants something.
pub(super) fn check(flags: &LogFlags, config: &Config) -> Result<(), Failure> {
    if flags.log_fsync && config.dials.log != Log::Commit {
        return Err(Failure::usage("--log-fsync is set and replies do not wait for the access log")
            .likely("the disk is waited for where replies wait for their lines")
            .try_this("--log commit --log-fsync"));
    }
    Ok(())
}

/// Something is wrong with the access log.
pub(super) fn trouble(why: &LogTrouble) -> String {
    let meanwhile = "what it does not take is lost and counted";
    format!("warning: the access log does not take every line: {why}; {meanwhile}\n")
}

/// It is over.
pub(super) fn recovered(lost: u64) -> String {
    let lines = match lost {
        0 => "no line was lost".to_owned(),
        1 => "1 line was lost".to_owned(),
        lines => format!("{} lines were lost", thousands(lines as f64)),
    };
    format!("the access log takes every line again; {lines}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_with_its_reason_and_its_end_with_its_price() {
        let full = trouble(&LogTrouble::Refused(28));
        assert!(
            full.starts_with("warning: the access log does not take every line: No space left"),
            "{full}"
        );
        let ends = [0, 1, 12_345].map(recovered);
        let says = ["no line was lost", "1 line was lost", "12,345 lines were lost"];
        for (end, says) in ends.iter().zip(says) {
            assert_eq!(*end, format!("the access log takes every line again; {says}\n"));
        }
    }
}
