//! `dyno diagnose` on the terminal.

use dyno_record::diagnosis::Diagnosis;

use super::draw;
use crate::color::Color;
use crate::view;

/// The whole diagnosis in at most `width` columns.
pub fn diagnosis_card(record: &Diagnosis, width: usize, color: Color) -> String {
    draw::view(&view::diagnosis::view(record, &[]), width, color)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::diagnosis::{Card, Resources, Tail};
    use dyno_record::finding::{Class, Confidence, Evidence, Finding, Next, RuledOut};
    use dyno_record::observation::NotLookedAt;
    use dyno_record::profile::Target;

    fn small() -> Diagnosis {
        let evidence = Evidence {
            text: "80 % of it waits for the disk itself".into(),
            value: Some(0.8),
            unit: "share".into(),
        };
        let next = Next {
            text: "gather records".into(),
            rung: Some("log-ring".into()),
            code: None,
            specimen: Some("sync-log".into()),
        };
        Diagnosis {
            duration_s: 10.0,
            target: Target { pid: Some(42), name: "program".into(), ..Target::default() },
            card: Card {
                requests_per_second: Some(1_234.0),
                latency_us: Some(Tail { p50: 1_900.0, p99: 8_100.0 }),
                cpus_used: 0.25,
                cpus: 2,
                per: "request".into(),
                resources: Resources {
                    cpu_us: 81.0,
                    system_calls: Some(4.1),
                    switches: 1.0,
                    faults: 0.0,
                    wire_bytes: None,
                    connections: None,
                },
                scalability: None,
            },
            findings: vec![Finding {
                class: Class::SyncIo,
                confidence: Confidence::High,
                weight: 0.9,
                summary: "90 % of the working threads' time goes into waiting for fdatasync".into(),
                evidence: vec![evidence],
                ruled_out: vec![RuledOut {
                    class: Class::LockContention,
                    by: "0.1 % waits for locks".into(),
                }],
                next: vec![next],
            }],
            not_looked_at: vec![NotLookedAt { what: "tlb_reach".into(), why: "it needs the code".into() }],
            ..Diagnosis::default()
        }
    }

    #[test]
    fn a_card_says_the_figures_then_what_is_wrong_then_what_to_try() {
        let text = diagnosis_card(&small(), 78, Color::Plain);
        assert_eq!(
            text,
            "target       program (42) · 0.25 of 2 CPUs busy · watched for 10.0 s\n\
             throughput   1,234 requests/s · latency p50 1.90 ms, p99 8.10 ms\n\
             per request  CPU 81.0 µs · 4.10 system calls · 1.00 switches · 0.00 page\n\
             \x20            faults\n\
             \n\
             \x20 1  sync_io  (sure)\n\
             \x20    90 % of the working threads' time goes into waiting for fdatasync\n\
             \x20      ·   80 % of it waits for the disk itself\n\
             \x20      not lock_contention: 0.1 % waits for locks\n\
             \x20      try gather records [rung: log-ring; see: dyno specimen explain\n\
             \x20          sync-log]\n\
             \n\
             not seen     tlb_reach: it needs the code\n"
        );
    }

    #[test]
    fn nothing_found_says_how_much_was_looked_at() {
        let ruled_out = vec![RuledOut { class: Class::Spinning, by: "no loop only looks".into() }];
        let healthy = Diagnosis { findings: Vec::new(), ruled_out, ..small() };
        let text = diagnosis_card(&healthy, 120, Color::Plain);
        assert!(text.contains("nothing found by 23 of 24 rules"), "{text}");
        // Faults: where no figure comes near no line says so; or one does where a finding is, or where little could be seen.
        let none = "nearest      nothing: no figure comes to a quarter";
        assert!(text.contains(none), "{text}");
        assert!(!diagnosis_card(&small(), 120, Color::Plain).contains(none));
        let blind: Vec<NotLookedAt> = Class::ALL
            .iter()
            .take(16)
            .map(|class| NotLookedAt { what: class.name().into(), why: "it needs root".into() })
            .collect();
        let blind = Diagnosis { not_looked_at: blind, ..healthy.clone() };
        let text = diagnosis_card(&blind, 120, Color::Plain);
        assert!(text.contains("16 of 24 rules could not look") && !text.contains("nothing found"), "{text}");
        assert!(!text.contains(none), "{text}");
        // Fault: a line for each rule, sixteen times the same reason.
        assert_eq!(text.matches("it needs root").count(), 1, "{text}");
        let near = vec![RuledOut { class: Class::Copying, by: "20 % of the CPU copies bytes".into() }];
        let near = Diagnosis { nearest: near, ..healthy };
        assert!(diagnosis_card(&near, 80, Color::Plain).contains("nearest      copying: 20 %"));
        let idle = Diagnosis { findings: Vec::new(), ..small() };
        assert!(diagnosis_card(&idle, 80, Color::Plain).contains("no rule had anything to look at"));
    }

    /// Planted fault: the shell alone is named.
    #[test]
    fn a_shell_is_named_with_what_it_runs() {
        let record = Diagnosis { works_in: Some("sort".into()), ..small() };
        let text = diagnosis_card(&record, 120, Color::Plain);
        assert!(
            text.starts_with("target       program (42), which works in sort · 0.25 of 2 CPUs busy"),
            "{text}"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_escapes_are_shown() {
        let mut record = small();
        record.target.name = "evil\u{1b}[2J".into();
        for width in [40, 60, 100] {
            let text = diagnosis_card(&record, width, Color::Plain);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(!text.contains('\u{1b}'));
        }
    }
}
