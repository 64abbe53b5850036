//! Files and answers of the kernel as facts.
//!
//! Every file of this folder uses it. What an error number means for whoever reads facts is decided here.

use std::collections::BTreeMap;
use std::io;

use dyno_record::fact::{Fact, Unread};
use dyno_sys::affinity::CpuSet;
use dyno_sys::proc;

/// What helps where a right is missing: to root inside of a container that it is root there says nothing.
const ROOT: &str = "root: sudo dyno audit";
const HOST_ROOT: &str = "root on the host itself, outside of the container";

fn root() -> &'static str {
    if dyno_sys::user::current().0 == 0 { HOST_ROOT } else { ROOT }
}

/// Error numbers of what is not there, as Linux has them on every machine: no such file, device, folder, protocol, family,
/// call, operation.
const ABSENT: [i32; 8] = [2, 6, 19, 20, 38, 93, 95, 97];
/// Not permitted; permission denied.
const REFUSED: [i32; 2] = [1, 13];

/// The answer of the kernel to a question.
pub(super) fn fact<T>(what: &str, read: io::Result<T>) -> Fact<T> {
    match read {
        Ok(value) => Fact::Value(value),
        Err(error) if error.raw_os_error().is_some_and(|errno| ABSENT.contains(&errno)) => {
            Fact::Absent(what.to_owned())
        }
        Err(error) => {
            let errno = error.raw_os_error();
            let is_refused = errno.is_some_and(|errno| REFUSED.contains(&errno));
            let needs = if is_refused { root() } else { "" };
            unread(what, errno, &plain(&error), needs)
        }
    }
}

/// The same to a question that older kernels do not know: that they do not answer says nothing of what was asked.
pub(super) fn newer<T>(what: &str, read: io::Result<T>, since: &str) -> Fact<T> {
    let errno = read.as_ref().err().and_then(io::Error::raw_os_error);
    match fact(what, read) {
        Fact::Absent(_) => {
            unread(what, errno, &format!("this kernel does not tell it, as {since} does"), since)
        }
        asked => asked,
    }
}

/// Something that was not asked, and why.
pub(super) fn unread<T>(what: &str, errno: Option<i32>, why: &str, needs: &str) -> Fact<T> {
    Fact::Unread(Unread { what: what.to_owned(), errno, why: why.to_owned(), needs: needs.to_owned() })
}

/// An error's words without the number, which stands beside them.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// A file's text.
pub(super) fn text(path: &str) -> Fact<String> {
    fact(path, proc::text(path))
}

/// A file that holds a number.
pub(super) fn number<N: std::str::FromStr>(path: &str) -> Fact<N> {
    parsed(path, |text| text.parse().ok())
}

/// A file's text as something else.
pub(super) fn parsed<T>(path: &str, parse: impl Fn(&str) -> Option<T>) -> Fact<T> {
    match text(path) {
        Fact::Value(text) => match parse(&text) {
            Some(value) => Fact::Value(value),
            None => unread(path, None, &format!("it reads {text:?}, which is not understood"), ""),
        },
        Fact::Absent(what) => Fact::Absent(what),
        Fact::Unread(why) => Fact::Unread(why),
    }
}

/// CPUs by the value that a file of each of them holds; absent where none has it.
pub(super) fn by_cpu(file: &str, max: usize) -> Fact<BTreeMap<String, String>> {
    let mut sets: BTreeMap<String, CpuSet> = BTreeMap::new();
    for cpu in dyno_sys::affinity::online().iter().take(max) {
        if let Ok(value) = proc::text(&format!("/sys/devices/system/cpu/cpu{cpu}/{file}")) {
            sets.entry(value).or_insert_with(CpuSet::empty).insert(cpu);
        }
    }
    if sets.is_empty() {
        return Fact::Absent(file.to_owned());
    }
    Fact::Value(sets.into_iter().map(|(value, cpus)| (value, cpus.to_string())).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(errno: i32) -> Fact<u32> {
        fact("audit", Err(io::Error::from_raw_os_error(errno)))
    }

    #[test]
    fn what_is_not_there_is_told_from_what_may_not_be_read() {
        assert_eq!(of(2), Fact::Absent("audit".into()));
        let Fact::Unread(refused) = of(1) else { panic!("a right is missing") };
        assert_eq!((refused.errno, refused.needs.as_str()), (Some(1), root()));
        assert_eq!(refused.why, "operation not permitted");
        let Fact::Unread(broken) = of(5) else { panic!("it is there and does not read") };
        assert!(broken.needs.is_empty(), "root does not mend a device");
    }

    /// Planted fault: such a kernel has none of it; then what nobody could see is told as fine.
    #[test]
    fn what_an_older_kernel_does_not_tell_is_not_absent() {
        let of = |errno| newer::<u32>("rings", Err(io::Error::from_raw_os_error(errno)), "Linux 5.7");
        for errno in [2, 95] {
            let Fact::Unread(why) = of(errno) else { panic!("nobody could look") };
            assert_eq!((why.errno, why.needs.as_str()), (Some(errno), "Linux 5.7"));
        }
        assert_eq!(newer("rings", Ok(1), "Linux 5.7"), Fact::Value(1));
    }

    #[test]
    fn a_file_of_another_shape_is_no_number_and_no_silence() {
        assert_eq!(
            number::<u64>("/proc/sys/kernel/nothing-of-this-name"),
            Fact::Absent("/proc/sys/kernel/nothing-of-this-name".into())
        );
        let Fact::Unread(why) = number::<u64>("/proc/sys/kernel/ostype") else {
            panic!("Linux is no number")
        };
        assert!(why.why.contains("Linux"));
    }
}
