//! The page of a history: one file, no network, readable without scripts.

use dyno_record::history::History;

use super::draw::{SCRIPT, page};
use crate::view;

const STYLE: &str = concat!(include_str!("style.css"), include_str!("chart/course.css"));

/// The whole page.
pub fn render(history: &History) -> String {
    page(&view::history::view(history), None, STYLE, SCRIPT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::html::tests::assert_balanced;
    use crate::samples::climb::sample_climb;
    use dyno_record::figure::Sheet;
    use dyno_record::sheet::of_climb;

    fn climbs(count: u64) -> Vec<(String, Sheet)> {
        let sheet = of_climb(&sample_climb(6));
        let climb = |at: u64| (format!("{at}.json"), Sheet { started_unix_s: at, ..sheet.clone() });
        (0..count).map(climb).collect()
    }

    #[test]
    fn of_very_many_climbs_the_last_are_drawn_and_that_is_said() {
        let page = |count| render(&History::of("folder", "0", climbs(count), Vec::new()));
        let (few, many) = (page(3), page(300));
        assert_balanced(&many);
        assert!(many.contains("the last 200; the table has 100 more") && !few.contains("the last 200"));
        assert_eq!(few.matches("<circle").count() * 200 / 3, many.matches("<circle").count());
        assert!(many.contains(">0.json<") && many.contains(">299.json<"));
    }

    #[test]
    fn a_history_of_nothing_is_still_a_page() {
        assert_balanced(&render(&History::default()));
    }
}
