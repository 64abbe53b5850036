//! `dyno audit` and `dyno doctor` on the terminal.

use dyno_record::audit::Audit;
use dyno_record::doctor::Doctor;

use super::draw;
use crate::color::Color;
use crate::view;

pub use crate::view::audit::Depth;

/// The whole audit in at most `width` columns.
pub fn audit(record: &Audit, depth: Depth, width: usize, color: Color) -> String {
    draw::view(&view::audit::view(record, depth), width, color)
}

/// What works on this machine, in at most `width` columns.
pub fn doctor(record: &Doctor, width: usize, color: Color) -> String {
    draw::view(&view::doctor::view(record), width, color)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::audit::{AuditFinding, Gain, Goal, Level, NotLooked, Source};
    use dyno_record::doctor::{Ability, State};

    fn small() -> Audit {
        let finding = AuditFinding {
            id: "net.rps".into(),
            object: "evil\u{1b}[2J".into(),
            title: "Each packet is handed over".into(),
            found: "rx-0=2".into(),
            recommended: "0: off".into(),
            goals: vec![Goal::Throughput],
            level: Level::High,
            gain: Gain { percent: Some([34.0, 47.0]), source: Source::MeasuredElsewhere, of: "x".into() },
            apply: vec!["echo 0".into()],
            revert: vec!["echo 2".into()],
            ..AuditFinding::default()
        };
        let unseen =
            NotLooked { id: "sec.audit.on".into(), why: "audit: not permitted".into(), needs: "root".into() };
        Audit { findings: vec![finding], not_looked_at: vec![unseen], ..Audit::default() }
    }

    #[test]
    fn a_row_says_what_it_costs_and_what_to_try() {
        let text = audit(&small(), Depth::Short, 100, Color::Plain);
        for part in ["net.rps", "34 to 47 %", "measured elsewhere", "found: rx-0=2", "try: echo 0", "high"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("sec.audit.on: audit: not permitted; it needs root"), "{text}");
    }

    /// Planted fault: a column as wide as its longest word; then `undo` and the command are one word.
    #[test]
    fn a_full_card_says_how_it_is_undone() {
        let text = audit(&small(), Depth::Full, 100, Color::Plain);
        assert!(text.contains(" undo ") && text.contains("echo 2") && text.contains("none known"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_escapes_are_shown() {
        for depth in [Depth::Short, Depth::Full] {
            for width in [40, 60, 100] {
                let text = audit(&small(), depth, width, Color::Plain);
                assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
                assert!(!text.contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn with_most_of_it_unseen_nothing_found_is_no_good_news() {
        let blind = Audit { findings: Vec::new(), ..small() };
        assert!(audit(&blind, Depth::Short, 100, Color::Plain).contains("too little could be seen"));
    }

    #[test]
    fn what_is_missing_says_what_gets_it() {
        let ability = Ability {
            name: "packet filters".into(),
            purpose: "audit".into(),
            state: State::Missing,
            why: "nft is not installed".into(),
            get: "sudo apt-get install nftables".into(),
        };
        let record = Doctor { abilities: vec![ability], ..Doctor::default() };
        let text = doctor(&record, 100, Color::Plain);
        assert!(
            text.contains("get it: sudo apt-get install nftables") && text.contains("0 of 1 work"),
            "{text}"
        );
    }
}
