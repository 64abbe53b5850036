//! A thread's class, read, and set on the thread that asks: for proofs, and for a program that is started in one.
//!
//! Settings of others go through [`super::Setting::Scheduler`], with a journal.

use super::kind::Kind;
use super::task::Scheduler;
use crate::Tid;
use std::io;

/// The class of a thread: `other`, `batch`, `idle`, `fifo`, `rr`.
///
/// # Errors
/// When it has ended, or is of a class with deadlines.
pub fn class_of(tid: Tid) -> io::Result<String> {
    let text = Scheduler(tid).get()?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// Class and place in it: `other nice 5`, `fifo priority 1`; and `reset-on-fork` behind them where children start anew.
///
/// # Errors
/// When it has ended, or is of a class with deadlines.
pub fn place_of(tid: Tid) -> io::Result<String> {
    Scheduler(tid).get()
}

/// Puts this thread, and whatever it starts, in a class: `other nice 0`, `batch nice 0`, `fifo priority 1`.
///
/// # Errors
/// When there is no such class, or it needs CAP_SYS_NICE.
pub fn set_own(text: &str) -> io::Result<()> {
    // 0 is the thread that asks.
    Scheduler(0).put(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_thread_is_in_the_class_that_it_was_put_in() {
        let thread = std::thread::spawn(|| {
            set_own("batch nice 0").unwrap();
            [class_of(0).unwrap(), place_of(0).unwrap()]
        });
        assert_eq!(thread.join().unwrap(), ["batch", "batch nice 0"]);
        assert!(set_own("hurried nice 0").is_err() && class_of(i32::MAX).is_err());
    }
}
