//! The time in which no connection of a session was up.
//!
//! [`crate::connections`] tells when its last connection is gone, that an attempt to make one failed, and when the first
//! one is there again; a crew asks what the sessions have in common. No clock is read here.

use std::ops::Range;

/// Shorter spans are not kept, so that there are a hundred a second at most: one refused connection is none.
const SPAN_NS_MIN: u64 = 10_000_000;
/// A span without an attempt that failed is one from this on: connections that a server ends after each answer are made
/// anew in a round trip, and a SYN that was lost is sent again after a second.
const CONNECTING_NS_MAX: u64 = 1_000_000_000;

/// Spans without any connection.
#[derive(Debug, Default)]
pub(crate) struct Down {
    since_ns: Option<u64>,
    /// Whether an attempt failed since then.
    failed: bool,
    spans: Vec<Range<u64>>,
}

impl Down {
    /// From now on there is none.
    pub(crate) fn lost(&mut self, now_ns: u64) {
        self.since_ns = Some(now_ns);
        self.failed = false;
    }

    /// A connection could not be made.
    pub(crate) fn failed(&mut self) {
        self.failed = true;
    }

    /// There is one again, or nobody asks any more.
    pub(crate) fn over(&mut self, now_ns: u64) {
        let Some(since_ns) = self.since_ns.take() else { return };
        let least_ns = if self.failed { SPAN_NS_MIN } else { CONNECTING_NS_MAX };
        if now_ns.saturating_sub(since_ns) >= least_ns {
            self.spans.push(since_ns..now_ns);
        }
    }

    /// The spans so far, taken out.
    pub(crate) fn take(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.spans)
    }
}

/// What two sessions have in common; both in order.
pub(crate) fn common(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut both = Vec::new();
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        let shared = a.start.max(b.start)..a.end.min(b.end);
        let ends_first = if a.end <= b.end { &mut one } else { &mut other };
        ends_first.next();
        if !shared.is_empty() {
            both.push(shared);
        }
    }
    both
}

/// How long they are together.
pub(crate) fn sum(spans: &[Range<u64>]) -> u64 {
    spans.iter().map(|span| span.end.saturating_sub(span.start)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Planted faults: the moment between two connections of a server that ends each is time without one; and an attempt that
    /// nobody answers is none.
    #[test]
    fn a_span_counts_where_an_attempt_failed_or_nobody_answers() {
        let mut down = Down::default();
        down.over(5 * MS);
        down.lost(10 * MS);
        down.over(900 * MS);
        down.lost(1_000 * MS);
        down.over(2_000 * MS);
        down.failed();
        down.lost(3_000 * MS);
        down.over(3_500 * MS);
        down.lost(4_000 * MS);
        down.failed();
        down.over(4_009 * MS);
        down.lost(5_000 * MS);
        down.failed();
        down.over(5_010 * MS);
        assert_eq!(down.take(), [1_000 * MS..2_000 * MS, 5_000 * MS..5_010 * MS]);
        assert!(down.take().is_empty(), "each is told once");
    }

    /// Planted fault: one thread's connections are lost while the others' are up, and that is no connection.
    #[test]
    fn only_what_all_sessions_have_in_common_is_without_a_connection() {
        let one = [0..10, 20..30, 40..50];
        assert_eq!(common(&one, &[5..25, 28..45]), [5..10, 20..25, 28..30, 40..45]);
        assert_eq!(sum(&common(&one, &[10..20, 30..40])), 0);
        assert_eq!(sum(&common(&one, &one)), 30);
    }
}
