//! A filter of system calls as it was written, so that a process of ours can be put behind the same one.
//!
//! [`crate::trace`] reads them off a thread; an audit that measures puts a child of its own behind them.

use super::install;
use std::io;

/// A filter's instructions.
#[derive(Clone)]
pub struct Filter(pub(crate) Vec<libc::sock_filter>);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filter({} instructions)", self.0.len())
    }
}

impl Filter {
    /// How many instructions it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: the kernel takes no empty one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts this thread behind it, for good. What the filter kills for, it kills for here as well.
    ///
    /// # Errors
    /// As [`super::confine`].
    pub fn put_on(&self) -> io::Result<()> {
        install(&self.0, 0).map(|_| ())
    }
}
