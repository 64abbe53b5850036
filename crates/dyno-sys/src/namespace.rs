//! Namespaces (`namespaces(7)`): whether this process may make one.
//!
//! `dyno doctor` asks. What is made belongs to one thread, and is gone when that has ended.

use crate::errno::checked;
use std::io;

/// Whether a network namespace could be made. It needs CAP_SYS_ADMIN.
pub fn can_make_network() -> io::Result<()> {
    let made = std::thread::spawn(|| {
        // SAFETY: unshare takes an integer; only this thread, which ends here, is in the new namespace.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(|_| ())
    });
    made.join().expect("the thread makes one call and does not panic")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::proc;

    #[test]
    fn making_one_leaves_this_process_where_it_was() {
        let before = proc::link_name("/proc/self/ns/net").unwrap();
        match can_make_network() {
            Ok(()) => assert_eq!(crate::user::current().0, 0),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
        assert_eq!(proc::link_name("/proc/self/ns/net").unwrap(), before);
    }
}
