//! What the proofs look at: files as text, and how far counters have moved meanwhile.
//!
//! All proofs read through it, so that their tests can say what is read. It only reads.

use std::collections::BTreeMap;

use dyno_sys::proc;

/// Counters by name: where they stand, or how far they have moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Moved(BTreeMap<String, u64>);

impl Moved {
    pub(super) fn with(mut self, name: &str, count: impl Into<Option<u64>>) -> Moved {
        if let Some(count) = count.into() {
            self.0.insert(name.to_owned(), count);
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The distance from an earlier look. What was not there then has come from nothing.
    pub(super) fn since(mut self, before: &Moved) -> Moved {
        for (name, count) in &mut self.0 {
            *count = count.saturating_sub(before.get(name).unwrap_or(0));
        }
        self
    }

    /// All of them together.
    pub(super) fn sum(&self) -> u64 {
        self.0.values().sum()
    }

    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// What is not counted has not moved.
    pub(super) fn of(&self, name: &str) -> u64 {
        self.get(name).unwrap_or(0)
    }
}

/// A file's text without blanks at its ends; nothing where there is none.
pub(super) type Text<'s> = &'s dyn Fn(&str) -> Option<String>;

/// What a proof sees.
pub(super) struct Sight<'s> {
    pub(super) text: Text<'s>,
    pub(super) moved: Moved,
}

impl Sight<'static> {
    pub(super) fn of_kernel(moved: Moved) -> Sight<'static> {
        Sight { text: &text, moved }
    }
}

impl Sight<'_> {
    /// The first number of a file.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        (self.text)(path)?.split_whitespace().next()?.parse().ok()
    }
}

pub(super) fn text(path: &str) -> Option<String> {
    proc::text(path).ok()
}

/// A mask as the kernel writes it, groups of hexadecimal digits: whether a CPU is in it.
pub(super) fn is_empty_mask(mask: &str) -> bool {
    mask.chars().all(|c| c == '0' || c == ',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_move_by_their_difference_and_never_backwards() {
        let before = Moved::default().with("a", 5).with("b", 9).with("none", None);
        let moved = Moved::default().with("a", 7).with("b", 2).with("new", 3).since(&before);
        assert_eq!([moved.of("a"), moved.of("b"), moved.of("new"), moved.of("none")], [2, 0, 3, 0]);
        assert!(is_empty_mask("00000000,0") && !is_empty_mask("00000000,2"));
    }
}
