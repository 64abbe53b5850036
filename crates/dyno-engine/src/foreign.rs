//! Values of whoever embeds the server, kept here for a while: dropping one runs code of theirs, which may panic.
//!
//! Held by replies and connections. A handler's own panic is caught where it is called; this is the same for destructors, which
//! run wherever a connection ends.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Such a value; a panic of its destructor ends there.
#[derive(Clone)]
pub(crate) struct Foreign<T>(Option<T>);

impl<T> Foreign<T> {
    pub(crate) fn new(value: T) -> Foreign<T> {
        Foreign(Some(value))
    }
}

impl<T> Deref for Foreign<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is taken out when it is dropped")
    }
}

impl<T> DerefMut for Foreign<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is taken out when it is dropped")
    }
}

impl<T> Drop for Foreign<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        // The panic has been told by its hook, and there is nobody here to answer for it.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("it was asked to");
        }
    }

    #[test]
    fn a_destructor_that_panics_ends_where_it_is_called() {
        drop(Foreign::new(Panics));
        assert_eq!(Foreign::new("as it was").len(), 9);
    }
}
