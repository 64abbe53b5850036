//! A process in the form that the off-CPU probe compares with: where its code lies, and the bit of its number.
//!
//! The probe calls it before it watches a process; nothing here calls the kernel.

use super::layout::{RANGES_MAX, RawCode, STRETCHES};
use super::word::MARK_WORDS;
use crate::Pid;

pub(super) fn packed(ranges: &[(u64, u64)]) -> RawCode {
    let mut sorted: Vec<(u64, u64)> = ranges.iter().copied().filter(|(from, to)| from < to).collect();
    sorted.sort_unstable();
    while sorted.len() > RANGES_MAX {
        // The two that lie closest become one: the words between them are rare on stacks.
        let gap = |at: &usize| sorted[at + 1].0.saturating_sub(sorted[*at].1);
        let closest = (0..sorted.len() - 1).min_by_key(gap).expect("there are more than two");
        sorted[closest].1 = sorted[closest].1.max(sorted[closest + 1].1);
        sorted.remove(closest + 1);
    }
    let (low, bytes) = stretches(&sorted);
    // Ranges that are not there begin beyond every address: the search ends at them.
    let mut code = RawCode { low, bytes, from: [u64::MAX; RANGES_MAX], to: [0; RANGES_MAX] };
    for (at, (from, to)) in sorted.into_iter().enumerate() {
        code.from[at] = from;
        code.to[at] = to;
    }
    check_code(&code);
    code
}

/// The programs search ranges by halves and ask the stretches first: ranges ascend, those that are not there come last, and
/// each begins in a stretch.
fn check_code(code: &RawCode) {
    let is_there = |at: &usize| code.from[*at] != u64::MAX;
    let there = (0..RANGES_MAX).filter(is_there).count();
    assert!(code.from.is_sorted() && (0..there).all(|at| is_there(&at)), "ranges of code are out of order");
    let in_stretch = |at: usize| {
        // Below its beginning the difference is beyond every length.
        let holds = |stretch: usize| code.from[at].wrapping_sub(code.low[stretch]) < code.bytes[stretch];
        (0..STRETCHES).any(holds)
    };
    assert!((0..there).all(in_stretch), "code beside all stretches would never be seen");
}

/// Where the ranges begin and how far they reach, in two stretches with the widest gap between them: what lies there, the
/// heap and all stacks of a program that is loaded high, is then distinguished from code by two comparisons.
fn stretches(sorted: &[(u64, u64)]) -> ([u64; STRETCHES], [u64; STRETCHES]) {
    let gap = |at: &usize| sorted[*at].0.saturating_sub(sorted[at - 1].1);
    let widest = (1..sorted.len()).max_by_key(gap).unwrap_or(sorted.len());
    let (own, libraries) = sorted.split_at(widest);
    let low = |part: &[(u64, u64)]| part.first().map_or(0, |range| range.0);
    let bytes = |part: &[(u64, u64)]| part.last().map_or(0, |range| range.1) - low(part);
    ([low(own), low(libraries)], [bytes(own), bytes(libraries)])
}

/// The word of a process's bit, and the bit in it.
pub(super) fn mark(pid: Pid) -> (usize, u64) {
    let number = pid.cast_unsigned();
    (number as usize / 64 % MARK_WORDS, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_where_they_lie_closest() {
        let many: Vec<(u64, u64)> = (0..30).map(|at| (at * 100 + at * at, at * 100 + at * at + 10)).collect();
        let code = packed(&many);
        let (first, last) = (many[0].0, many[29].1);
        // The widest gap is the last one: behind it lies one range alone.
        assert_eq!(code.low, [first, many[29].0]);
        assert_eq!(code.bytes, [many[28].1 - first, last - many[29].0]);
        // Gaps grow with the number, so that the first ranges are the ones that became one.
        assert_eq!((code.from[0], code.to[0]), (0, 6 * 100 + 36 + 10));
        assert!(
            many.iter()
                .all(|(from, to)| { (0..RANGES_MAX).any(|at| code.from[at] <= *from && *to <= code.to[at]) })
        );
    }

    #[test]
    fn no_range_and_one_range_have_their_stretches() {
        assert_eq!(stretches(&[]), ([0, 0], [0, 0]));
        assert_eq!(stretches(&[(16, 48)]), ([16, 0], [32, 0]));
    }

    #[test]
    fn process_numbers_have_a_bit_each() {
        assert_eq!((mark(0), mark(63), mark(64)), ((0, 1), (0, 1 << 63), (1, 1)));
        assert_eq!((mark(65_535), mark(65_536)), ((1_023, 1 << 63), (0, 1)));
    }

    #[test]
    #[should_panic(expected = "beside all stretches")]
    fn code_beside_all_stretches_never_reaches_the_programs() {
        let mut code = packed(&[(10, 20), (100, 120)]);
        code.bytes[1] = 0;
        check_code(&code);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn ranges_out_of_order_never_reach_the_programs() {
        let mut code = packed(&[(10, 20), (100, 120)]);
        code.from.swap(0, 1);
        check_code(&code);
    }
}
