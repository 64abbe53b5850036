//! Over the budget: who holds most for longest without progress is cut first, never an honest slow reader before an
//! idle hoarder.

use super::Core;
use crate::seam::Net;

/// Cutting goes on until so many eighths of the budget are free again: looking at every connection is dear, and is not
/// done for each byte too much.
const FREE_EIGHTHS: usize = 1;

/// A candidate: bytes held × ticks without progress.
struct Hoarder {
    index: u32,
    score: u64,
}

impl<N: Net> Core<N> {
    /// Cuts connections until the budget holds again.
    #[cold]
    pub(super) fn cut_hoarders(&mut self) {
        debug_assert_eq!(
            self.conns.iter().filter_map(|(_, conn)| Some(conn.busy.as_deref()?.charged)).sum::<usize>(),
            self.http.budget.used(),
            "bytes are charged: the budget is the sum of what connections hold"
        );
        self.note_readers();
        let mut hoarders = self.hoarders();
        hoarders.sort_unstable_by_key(|hoarder| hoarder.score);
        let enough = self.http.budget.max() / 8 * (8 - FREE_EIGHTHS);
        while self.http.budget.used() > enough
            && let Some(hoarder) = hoarders.pop()
        {
            self.http.scratch.counts().budget_cuts += 1;
            self.cut(hoarder.index);
        }
    }

    /// Who has acknowledged something has made progress, whatever the socket takes now.
    fn note_readers(&mut self) {
        let waiting: Vec<u32> =
            self.conns.iter().filter(|(_, conn)| conn.has_queue()).map(|(index, _)| index).collect();
        for index in waiting {
            self.note_reader(index);
        }
    }

    fn hoarders(&self) -> Vec<Hoarder> {
        let score = |busy: &crate::conn::Busy| {
            let waited = (self.now - busy.moved).0.min(1 << 31);
            (busy.charged as u64).saturating_mul(u64::from(waited) + 1)
        };
        let boxed = self.conns.iter().filter_map(|(index, conn)| Some((index, conn.busy.as_deref()?)));
        let holding = boxed.filter(|(_, busy)| busy.charged > 0);
        holding.map(|(index, busy)| Hoarder { index, score: score(busy) }).collect()
    }
}
