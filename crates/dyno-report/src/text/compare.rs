//! Two records, or a folder of them, on the terminal.

use dyno_record::difference::Difference;
use dyno_record::history::History;
use dyno_record::judged::Judged;

use super::draw;
use crate::color::Color;
use crate::view;

/// Two records held against each other, in at most `width` columns.
pub fn difference(record: &Difference, width: usize, color: Color) -> String {
    draw::view(&view::difference::view(record), width, color)
}

/// A folder's climbs over time, in at most `width` columns.
pub fn history(record: &History, width: usize, color: Color) -> String {
    draw::view(&view::history::view(record), width, color)
}

/// A climb's record judged again, in at most `width` columns.
pub fn judged(record: &Judged, width: usize, color: Color) -> String {
    draw::view(&view::judged::view(record), width, color)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::climb::sample_climb;
    use dyno_record::climb::RungVerdict;
    use dyno_record::difference::Named;
    use dyno_record::history::Skipped;
    use dyno_record::judged::Again;
    use dyno_record::sheet::of_climb;

    /// Two climbs, the later one with other names and on another machine.
    fn texts(width: usize) -> [String; 2] {
        let before = sample_climb(6);
        let mut after = before.clone();
        after.started_unix_s += 86_400;
        after.machine.model = "another \u{1b}[2Jmachine with a rather long name of its processor".into();
        after.rungs[0].id = "evil\u{1b}[31m | a name that is longer than any column of a table".into();
        let sheets = [of_climb(&before), of_climb(&after)];
        let named = |at: usize| Named { file: "climb.json", sheet: &sheets[at] };
        let told = Difference::of(named(0), named(1), "0.1.0").expect("two climbs of one plan");
        let skipped = vec![Skipped { file: "x\u{202e}.json".into(), why: "it is not text".into() }];
        let climbs = sheets.iter().map(|sheet| ("climb.json".to_owned(), sheet.clone())).collect();
        let all = History::of("folder", "0.1.0", climbs, skipped);
        [difference(&told, width, Color::Plain), history(&all, width, Color::Plain)]
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_nothing_is_obeyed() {
        for width in [40, 60, 80, 140] {
            for text in texts(width) {
                let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > width).collect();
                assert!(wide.is_empty(), "{width}: {wide:#?}");
                assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
            }
        }
    }

    /// Planted faults: A falls first, for nobody said which side is wanted; a table without columns that fall runs over.
    #[test]
    fn both_sides_stand_at_eighty_columns_and_the_side_before_stays_longest() {
        let [told, _] = texts(80);
        let head =
            told.lines().find(|line| line.trim_start().starts_with("figure")).expect("the table's head");
        let heads: Vec<&str> = head.split_whitespace().collect();
        assert_eq!(heads, ["figure", "A", "B", "B", "against", "A", "verdict"], "{told}");
        let [told, _] = texts(60);
        let head =
            told.lines().find(|line| line.trim_start().starts_with("figure")).expect("the table's head");
        assert!(head.split_whitespace().nth(1) == Some("A"), "{told}");
        let again = |rung: &str| Again {
            rung: rung.into(),
            stored: RungVerdict::NoDifference,
            again: Some(RungVerdict::Kept),
        };
        let record = Judged { verdicts: vec![again("log-off (first try)")], ..Judged::default() };
        let text = judged(&record, 40, Color::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("stored verdict no difference") && text.contains("kept — differs"), "{text}");
    }

    #[test]
    fn the_answer_and_each_figure_stay_at_sixty_columns() {
        let [told, all] = texts(60);
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("B against A verdict") && words.contains("the machines differ (processor)"),
            "{told}"
        );
        let climbs = all.lines().filter(|line| line.trim_start().starts_with("climb.json")).count();
        assert_eq!(climbs, 2, "{all}");
    }
}
