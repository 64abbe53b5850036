//! Single lines: the progress that rewrites itself.
//!
//! Called by every command; knows nothing about terminals but a width.

use std::time::Duration;

use crate::number::{clock, percent, visible};

/// Where a long run stands.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'p> {
    /// What is counted, and how far it is: `rung 3 of 11`, `noise`, `total`.
    pub stage: &'p str,
    /// Its name.
    pub rung: &'p str,
    /// Pairs measured so far.
    pub pair: usize,
    /// Pairs at the last look.
    pub pairs_max: usize,
    /// Effect and half width of the last look, in percent.
    pub effect: Option<(f64, f64)>,
    /// Time left of the whole run.
    pub left: Duration,
}

impl Progress<'_> {
    /// One line of at most `width` columns: a line that wraps cannot rewrite itself.
    pub fn line(&self, width: usize) -> String {
        fitted(self.parts(), self.left, width)
    }

    fn parts(&self) -> impl Iterator<Item = String> {
        let effect = self.effect.map(|(value, half)| format!("{} ±{half:.1}", percent(value)));
        let head = self.stage.to_owned();
        let pair = format!("pair {}/{}", self.pair, self.pairs_max);
        [head, visible(self.rung), pair].into_iter().chain(effect).filter(|part| !part.is_empty())
    }
}

/// What is being done that takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doing<'d> {
    /// In words.
    pub what: &'d str,
    /// Time left; none where nobody knows.
    pub left: Option<Duration>,
    /// Time since it all began, told where the time left is not known.
    pub spent: Duration,
}

impl Doing<'_> {
    /// One line of at most `width` columns.
    pub fn line(&self, width: usize) -> String {
        let what = [visible(self.what)].into_iter();
        match self.left {
            Some(left) => fitted(what, left, width),
            None => with_end(what, format!("({} so far)", clock(self.spent)), width),
        }
    }
}

/// As many parts as fit, from the left, and the time left in any case.
pub(super) fn fitted(parts: impl Iterator<Item = String>, left: Duration, width: usize) -> String {
    with_end(parts, format!("({} left)", clock(left)), width)
}

/// Fewer letters of a name are no name.
const BEGINNING_MIN: usize = 8;

fn with_end(parts: impl Iterator<Item = String>, left: String, width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let room = width.saturating_sub(line.chars().count() + 2 + left.chars().count());
        if part.chars().count() > room {
            // A time left of nothing tells nobody anything: of the first part stays what there is room for.
            if line.is_empty() && room >= BEGINNING_MIN {
                line.extend(part.chars().take(room - 1).chain("…  ".chars()));
            }
            break;
        }
        line.push_str(&part);
        line.push_str("  ");
    }
    line.push_str(&left);
    line.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: Progress<'static> = Progress {
        stage: "rung 3 of 11",
        rung: "recv-send",
        pair: 86,
        pairs_max: 240,
        effect: Some((-2.1, 1.4)),
        left: Duration::from_secs(151),
    };

    #[test]
    fn progress_is_one_line_that_says_what_how_far_and_how_long() {
        assert_eq!(RUNNING.line(80), "rung 3 of 11  recv-send  pair 86/240  −2.1 % ±1.4  (2:31 left)");
        let before = Progress { effect: None, ..RUNNING };
        assert_eq!(before.line(80), "rung 3 of 11  recv-send  pair 86/240  (2:31 left)");
    }

    #[test]
    fn what_is_done_is_told_with_the_time_left_or_else_the_time_spent() {
        let doing =
            Doing { what: "watching nginx", left: Some(Duration::from_secs(18)), spent: Duration::ZERO };
        assert_eq!(doing.line(80), "watching nginx  (0:18 left)");
        let endless = Doing { left: None, spent: Duration::from_secs(75), ..doing };
        assert_eq!(endless.line(80), "watching nginx  (1:15 so far)");
        assert!((0..40).all(|width| doing.line(width).chars().count() <= width));
    }

    /// Fault: a name that is wider than the terminal leaves the time left alone.
    #[test]
    fn of_a_long_name_the_beginning_is_told() {
        let what =
            "rank(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)";
        let doing = Doing { what, left: Some(Duration::from_secs(19)), spent: Duration::ZERO };
        assert_eq!(doing.line(40), "rank(std::__cxx11::basic_s…  (0:19 left)");
        assert!((0..120).all(|width| doing.line(width).chars().count() <= width));
    }

    #[test]
    fn progress_never_reaches_past_the_width() {
        assert_eq!(RUNNING.line(50), "rung 3 of 11  recv-send  pair 86/240  (2:31 left)");
        for width in 0..80 {
            let line = RUNNING.line(width);
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}
