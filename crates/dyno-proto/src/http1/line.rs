//! Line ends: what the readers of request lines and of field lines share.

use super::reject::{Reject, Stop};

/// What is left after the line end that must stand first; `otherwise` if something else stands there.
#[inline(always)]
pub(crate) fn after_line_end(rest: &[u8], otherwise: Reject) -> Result<&[u8], Stop> {
    strip_line_end(rest).ok_or_else(|| no_line_end(rest, otherwise))
}

/// What is left after a line end, if one stands first.
#[inline(always)]
pub(crate) fn strip_line_end(rest: &[u8]) -> Option<&[u8]> {
    let (end, after) = rest.split_first_chunk()?;
    // As a number, so that two bytes are compared at once.
    (u16::from_le_bytes(*end) == u16::from_le_bytes(*b"\r\n")).then_some(after)
}

#[cold]
fn no_line_end(rest: &[u8], otherwise: Reject) -> Stop {
    match rest {
        [] | [b'\r'] => Stop::NeedMore,
        [b'\r', ..] => Reject::BareReturn.into(),
        [b'\n', ..] => Reject::BareFeed.into(),
        _ => otherwise.into(),
    }
}
