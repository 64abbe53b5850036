//! When a session last received anything.
//!
//! [`crate::connections`] tells that bytes came, [`crate::session`] when it asks: a server that answers nothing any more is
//! silent from the last byte on, whatever is connected. No clock is read here.

/// The last time something came, as late as it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Something came since then.
    fresh: bool,
    at_ns: u64,
}

impl Heard {
    /// From here on, as though something came now.
    pub(crate) fn start(&mut self, now_ns: u64) {
        *self = Self { fresh: false, at_ns: now_ns };
    }

    /// Bytes came, of a right answer or a wrong one.
    #[inline]
    pub(crate) fn bytes(&mut self) {
        self.fresh = true;
    }

    /// When something last came; what came since the last asking came now.
    pub(crate) fn last_ns(&mut self, now_ns: u64) -> u64 {
        if std::mem::take(&mut self.fresh) {
            self.at_ns = now_ns;
        }
        self.at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted faults: what came once counts at each asking; and a block begins with what came before it.
    #[test]
    fn what_came_counts_at_the_next_asking_and_at_that_alone() {
        let mut heard = Heard::default();
        heard.bytes();
        heard.start(10);
        assert_eq!(heard.last_ns(20), 10);
        heard.bytes();
        heard.bytes();
        assert_eq!([30, 40].map(|now_ns| heard.last_ns(now_ns)), [30, 30]);
        heard.bytes();
        assert_eq!(heard.last_ns(50), 50);
    }
}
