//! The proof of huge pages, alone in its process: what is forbidden to it is forbidden for good.
#![allow(clippy::unwrap_used)]

use dyno_host::tune::effect::{Asked, prove};
use dyno_record::change::What;
use dyno_record::tune::{Effect, Force};
use dyno_sys::child;

fn effect(wanted: &str) -> Effect {
    let what = What::File("/sys/kernel/mm/transparent_hugepage/enabled".into());
    prove(&[Asked { what: &what, old: "never", wanted }], &mut || {}).remove(0)
}

/// The host's setting is only read. Where it gives huge pages, a process that may have none gets none all the same: that is
/// what a service with `MemoryTHP=` sees, or a host whose sizes are off one by one.
///
/// Planted fault: the file is read again in place of new memory; it says `madvise` as it was written.
#[test]
fn huge_pages_that_new_memory_does_not_get_are_not_in_force() {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let is_given = enabled.contains("[madvise]") || enabled.contains("[always]");
    let given = effect("madvise");
    assert_eq!(given.force, if is_given { Force::InForce } else { Force::NotInForce }, "{enabled}: {given}");
    child::no_huge_pages().unwrap();
    let none = effect("madvise");
    assert_eq!(none.force, Force::NotInForce, "{none}");
    let never = effect("never");
    assert_eq!(never.force, Force::InForce, "{never}");
}
