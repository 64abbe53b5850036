//! What a server tells of itself: its workers' shared memory, and what was fixed at its start.

use crate::ledger::Ledger;
use crate::meter::Meters;
use crate::stats::{Accepting, Counters};

/// What the page is made of.
#[derive(Clone, Copy)]
pub(crate) struct Board {
    pub(crate) counters: Counters,
    pub(crate) meters: Meters,
    pub(crate) ledger: Ledger,
    /// Bytes that connections of all workers may hold.
    pub(crate) buffer_bytes_max: usize,
    /// When the server started: seconds since 1970, and nanoseconds of the monotonic clock.
    pub(crate) started_s: u64,
    pub(crate) started_ns: u64,
    /// What the product calls its version.
    pub(crate) version: &'static str,
}

impl Board {
    /// Why the server should get no more connections now; `None` while every worker accepts them, and where those of another
    /// generation do in their place.
    pub(super) fn ailment(&self) -> Option<String> {
        if self.meters.is_draining() {
            return Some("draining\n".to_owned());
        }
        if self.meters.is_retired() {
            return None;
        }
        let rows = self.meters.rows();
        let of = |state| (0..rows).filter(|row| self.counters.accepting(*row) == state).count();
        let (accepting, stuck) = (of(Accepting::Open), of(Accepting::Stuck));
        let why = match stuck {
            0 => String::new(),
            1 => ": one does not get on".to_owned(),
            _ => format!(": {stuck} do not get on"),
        };
        (accepting < rows).then(|| format!("{accepting} of {rows} workers accept{why}\n"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_server_is_well_while_every_worker_accepts() {
        let (counters, meters) = (Counters::new(2, 0).unwrap(), Meters::new(2).unwrap());
        let ledger = Ledger::new().unwrap();
        let board = Board {
            counters,
            meters,
            ledger,
            buffer_bytes_max: 1,
            started_s: 0,
            started_ns: 0,
            version: "1",
        };
        assert_eq!(board.ailment(), None);
        counters.set_accepting(1, Accepting::Full);
        assert_eq!(board.ailment().as_deref(), Some("1 of 2 workers accept\n"));
        counters.set_accepting(0, Accepting::Stuck);
        assert_eq!(board.ailment().as_deref(), Some("0 of 2 workers accept: one does not get on\n"));
        meters.retire();
        assert_eq!(board.ailment(), None, "another generation's accept");
        meters.begin_drain();
        assert_eq!(board.ailment().as_deref(), Some("draining\n"));
    }
}
