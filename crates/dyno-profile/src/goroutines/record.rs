//! The run-time's record of a goroutine: where in it the state, the number and the reason lie.
//!
//! Which that is differs by the Go that built the program; all records of a program must agree on it.

use std::collections::BTreeSet;

/// Goroutines of one program at most.
pub(super) const GOROUTINES_MAX: usize = 1 << 20;
/// Bytes of the run-time's record of a goroutine that hold what is asked for.
pub(super) const RECORD_BYTES: usize = 200;
/// Where the state lies in that record: it moved when fields before it came and went. Number and reason lie behind it.
const STATE_AT: [usize; 3] = [144, 152, 160];
const NUMBER_BEHIND: usize = 8;
pub(super) const REASON_BEHIND: usize = 32;
/// Goroutines that must agree before a layout is believed.
const AGREE_MIN: usize = 2;

/// Where the state lies, if all records agree: states are small numbers, goroutines have numbers of their own.
pub(super) fn layout(records: &[&[u8]]) -> Option<usize> {
    let fits = |state_at: &usize| {
        let mut numbers = BTreeSet::new();
        records.iter().all(|record| {
            let state = half(record, *state_at).map(|state| state & !0x1000);
            let number = number(record, *state_at);
            // One that was never used has no number, and is dead; none on the list is only being made (state 0).
            let is_new = number > 0 && number < 1 << 48 && numbers.insert(number);
            state.is_some_and(|state| (1..=15).contains(&state))
                && (is_new || matches!(state, Some(6 | 10..)))
        }) && numbers.len() >= AGREE_MIN
    };
    STATE_AT.into_iter().find(fits)
}

/// A goroutine's own number; 0 for one that was never used.
pub(super) fn number(record: &[u8], state_at: usize) -> u64 {
    word(record, state_at + NUMBER_BEHIND).unwrap_or(0)
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(super) fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(state_at: usize, state: u32, number: u64) -> Vec<u8> {
        let mut bytes = vec![0xff; RECORD_BYTES];
        bytes[state_at..state_at + 4].copy_from_slice(&state.to_le_bytes());
        bytes[state_at + 8..state_at + 16].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn with(words: &[(usize, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_BYTES];
        words.iter().for_each(|(at, word)| bytes[*at..at + 8].copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    #[test]
    fn the_layout_is_the_one_that_all_records_agree_on() {
        for state_at in STATE_AT {
            let records = [record(state_at, 4, 1), record(state_at, 0x1002, 2), record(state_at, 6, 7)];
            let all: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            assert_eq!(layout(&all), Some(state_at));
        }
        // Two states look like two numbers. Planted fault: a state of 0 is one, as before; then all that wait are in none.
        let (waits, dead) = (with(&[(152, 4), (160, 1)]), with(&[(152, 6), (160, 17)]));
        assert_eq!(layout(&[&waits, &dead, &with(&[(152, 4), (160, 2)])]), Some(152));
        let twice = [record(144, 4, 1), record(144, 4, 1)];
        assert_eq!(layout(&[&twice[0], &twice[1]]), None, "two have one number");
    }
}
