//! Counters that never fall. One that is above zero says that something happened once; only what it counted while the facts
//! were read says that it happens. Every check of lost packets and connections asks here, so that what was mended is not
//! mended again for ever.

use dyno_record::audit::AuditFinding;
use dyno_record::fact::Gap;
use dyno_record::facts::Facts;

use super::draft::Say;

/// A packet in a million that was lost is no trouble: sending it again, after 200 ms at least, is 0.2 µs for each of them.
pub(super) const OF_PACKETS: u64 = 1_000_000;
/// A connection in a thousand that finds no room.
pub(super) const OF_CONNECTIONS: u64 = 1_000;

/// What a counter says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// It counted while the facts were read.
    Now,
    /// It did not, and since boot it makes more than a share of all.
    Before,
    /// It is nothing, or history.
    No,
}

/// Judges what a counter counted lately and since boot; `share` is one in how many of `all` since boot is too much.
pub(super) fn moved((lately, since_boot): (u64, u64), all: u64, share: u64) -> Moved {
    match since_boot.saturating_mul(share) > all {
        _ if lately > 0 => Moved::Now,
        true => Moved::Before,
        false => Moved::No,
    }
}

/// Counters of TCP by name: what they counted while the facts were read, and since boot.
pub(super) fn counted(facts: &Facts, names: &[&str]) -> Result<(u64, u64), Gap> {
    let (lately, all) = (facts.network.lately.known()?, facts.network.counters.known()?);
    let sum = |from: &std::collections::BTreeMap<String, u64>| {
        names.iter().filter_map(|name| from.get(*name)).sum::<u64>()
    };
    Ok((sum(lately), sum(all)))
}

/// What is over is told, and nothing is set for it: a limit that was raised since would be raised again each time.
pub(super) fn only_told(mut finding: AuditFinding) -> AuditFinding {
    finding.changes.clear();
    finding.hand(OVER)
}

/// Why tune leaves it alone.
const OVER: &str = "none was counted while the facts were read: run the audit under load, and change this where it still happens then";

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: what was counted since boot counts as now; then one packet in ten thousand million is a High.
    #[test]
    fn what_was_once_is_not_what_is() {
        assert_eq!(moved((0, 1), 10_000_000_000, OF_PACKETS), Moved::No);
        assert_eq!(moved((0, 11), 10_000_000, OF_PACKETS), Moved::Before);
        assert_eq!(moved((1, 1), 10_000_000_000, OF_PACKETS), Moved::Now);
        assert_eq!(moved((0, 0), 0, OF_PACKETS), Moved::No);
        assert_eq!(moved((0, 1), 0, OF_PACKETS), Moved::Before, "of nothing");
    }
}
