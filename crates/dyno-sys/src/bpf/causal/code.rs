//! Values in the form that the causal probe compares with: ranges of code, and the numbers of devices.
//!
//! The probe calls it before an experiment begins; nothing here calls the kernel.

use std::ops::Range;

use super::layout::{RANGES_MAX, RawRanges};
use crate::bpf::BpfError;

/// The kernel's own form of a device number: 20 bits of minor.
pub(super) fn kernel_device((major, minor): (u32, u32)) -> u64 {
    u64::from(major) << 20 | u64::from(minor)
}

/// Ranges in order, those that touch as one.
pub(super) fn packed(ranges: &[Range<u64>]) -> Result<RawRanges, BpfError> {
    let mut sorted: Vec<Range<u64>> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    if joined.len() > RANGES_MAX {
        return Err(BpfError::Pieces { count: joined.len(), most: RANGES_MAX });
    }
    let mut raw = RawRanges { count: joined.len() as u64, from: [0; RANGES_MAX], to: [0; RANGES_MAX] };
    for (at, range) in joined.into_iter().enumerate() {
        (raw.from[at], raw.to[at]) = (range.start, range.end);
    }
    check_ranges(&raw);
    Ok(raw)
}

/// The programs search ranges by halves: they ascend, none is empty, and no two touch.
fn check_ranges(raw: &RawRanges) {
    let (from, to) = (&raw.from[..raw.count as usize], &raw.to[..raw.count as usize]);
    assert!(from.iter().zip(to).all(|(from, to)| from < to), "an empty range of code");
    assert!(to.iter().zip(from.iter().skip(1)).all(|(to, next)| to < next), "ranges of code overlap");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranges_that_touch_are_one_and_empty_ones_none() {
        let raw = packed(&[30..40, 10..20, 15..18, 20..25, 7..7]).unwrap();
        assert_eq!((raw.count, &raw.from[..3], &raw.to[..3]), (2, &[10, 30, 0][..], &[25, 40, 0][..]));
    }

    #[test]
    fn code_in_too_many_pieces_is_refused() {
        let many: Vec<Range<u64>> = (0..RANGES_MAX as u64 + 1).map(|at| at * 10..at * 10 + 5).collect();
        assert!(matches!(packed(&many), Err(BpfError::Pieces { count: 4097, most: 4096 })));
        assert_eq!(packed(&many[1..]).unwrap().count, 4096);
    }

    #[test]
    fn a_device_is_written_in_the_kernels_form() {
        assert_eq!(kernel_device((254, 3)), 254 << 20 | 3);
    }

    #[test]
    #[should_panic(expected = "ranges of code overlap")]
    fn ranges_that_overlap_never_reach_the_programs() {
        let mut raw = packed(&[10..20, 30..40]).unwrap();
        raw.to[0] = 35;
        check_ranges(&raw);
    }
}
