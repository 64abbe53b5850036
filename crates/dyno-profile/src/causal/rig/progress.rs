//! What counts as progress: in the user's words, and as a rig counts it.
//!
//! `dyno causal` reads it with [`Named`], has its places resolved, and hands the [`Progress`] to the live rig.

use std::str::FromStr;

use dyno_sys::{Pid, trace};

use super::site::Entry;
use crate::calls::{self, Moves};
use crate::error::Error;

/// Progress in the user's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Each time that a place in the code is passed: `SYMBOL`, `SYMBOL+OFFSET`, `FILE:LINE`.
    Code(String),
    /// From a place to another: `begin:PLACE,end:PLACE`. Ends count, and latency is measured.
    Between {
        /// Where a unit of work begins.
        begin: String,
        /// Where it ends.
        end: String,
    },
    /// A tracepoint of the kernel, passed by the target: `tracepoint:NAME`.
    Tracepoint(String),
    /// Returns of a system call: `syscall:NAME`.
    SystemCall {
        /// Its name.
        name: String,
        /// Its number here.
        number: u32,
        /// Which returns.
        returns: Returns,
    },
}

/// Which returns of a system call count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// Those that moved something: greater than zero.
    Data,
    /// All that were no errors.
    Success,
}

/// Progress as the rig counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Passing a place in the code of the target, or of `whom`.
    At {
        /// The places.
        entries: Vec<Entry>,
        /// In whose address spaces; the target's where none is given.
        whom: Vec<Pid>,
    },
    /// From a place to another.
    Between {
        /// Where a unit of work begins.
        begin: Vec<Entry>,
        /// Where it ends.
        end: Vec<Entry>,
    },
    /// A tracepoint of the kernel.
    Tracepoint(String),
    /// Returns of a system call.
    SystemCall {
        /// Its number.
        number: u32,
        /// Which returns.
        returns: Returns,
    },
}

impl FromStr for Named {
    type Err = Error;

    fn from_str(asked: &str) -> Result<Named, Error> {
        let wrong = |reason: &str| Error::NoProgress { asked: asked.to_owned(), reason: reason.to_owned() };
        if asked.is_empty() {
            return Err(wrong("it is empty"));
        }
        if let Some(name) = asked.strip_prefix("syscall:") {
            return system_call(name).ok_or_else(|| {
                wrong("this machine has no such system call, or it is none that is known here")
            });
        }
        if let Some(name) = asked.strip_prefix("tracepoint:") {
            return tracepoint(name).map_err(wrong);
        }
        if let Some(rest) = asked.strip_prefix("begin:") {
            let pair = rest.split_once(",end:").filter(|(begin, end)| !begin.is_empty() && !end.is_empty());
            let (begin, end) = pair.ok_or_else(|| wrong("a pair is written begin:PLACE,end:PLACE"))?;
            return Ok(Named::Between { begin: begin.to_owned(), end: end.to_owned() });
        }
        Ok(Named::Code(asked.to_owned()))
    }
}

fn system_call(name: &str) -> Option<Named> {
    let number = trace::call_number(name)?;
    // An answer of nothing from a call that moves data is no progress.
    let moves_data = calls::named(name).is_some_and(|call| call.moves != Moves::Nothing);
    let returns = if moves_data { Returns::Data } else { Returns::Success };
    Some(Named::SystemCall { name: name.to_owned(), number, returns })
}

/// Tracepoints are known by their names alone; a group before it, as other tools want it, is passed over.
fn tracepoint(asked: &str) -> Result<Named, &'static str> {
    let (group, name) = asked.rsplit_once(':').map_or((None, asked), |(group, name)| (Some(group), name));
    if group == Some("syscalls") || name.starts_with("sys_enter_") || name.starts_with("sys_exit_") {
        return Err("a single system call is counted with syscall:NAME");
    }
    if name.is_empty() {
        return Err("a tracepoint is written tracepoint:NAME");
    }
    Ok(Named::Tracepoint(name.to_owned()))
}

impl Named {
    /// With its places found by `find`.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn resolved<E>(&self, find: &mut dyn FnMut(&str) -> Result<Vec<Entry>, E>) -> Result<Progress, E> {
        Ok(match self {
            Named::Code(place) => Progress::At { entries: find(place)?, whom: Vec::new() },
            Named::Between { begin, end } => Progress::Between { begin: find(begin)?, end: find(end)? },
            Named::Tracepoint(name) => Progress::Tracepoint(name.clone()),
            Named::SystemCall { number, returns, .. } => {
                Progress::SystemCall { number: *number, returns: *returns }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn progress_is_read_in_each_of_its_forms() {
        let read = |text: &str| text.parse::<Named>().unwrap();
        assert_eq!(read("serve"), Named::Code("serve".to_owned()));
        assert_eq!(read("main.c:12"), Named::Code("main.c:12".to_owned()));
        assert_eq!(read("ns::serve+0x10"), Named::Code("ns::serve+0x10".to_owned()));
        assert_eq!(
            read("begin:a::b,end:c.c:7"),
            Named::Between { begin: "a::b".to_owned(), end: "c.c:7".to_owned() }
        );
        assert_eq!(read("tracepoint:sched:sched_switch"), Named::Tracepoint("sched_switch".to_owned()));
        let Named::SystemCall { returns, .. } = read("syscall:write") else { panic!("a system call") };
        assert_eq!(returns, Returns::Data);
        let Named::SystemCall { returns, .. } = read("syscall:accept4") else { panic!("a system call") };
        assert_eq!(returns, Returns::Success);
    }

    #[test]
    fn progress_that_cannot_be_counted_says_what_can() {
        let reason = |text: &str| text.parse::<Named>().unwrap_err().to_string();
        assert!(reason("syscall:wriet").contains("no such system call"));
        assert!(reason("tracepoint:syscalls:sys_exit_write").contains("syscall:NAME"));
        assert!(reason("begin:a").contains("begin:PLACE,end:PLACE"));
        assert!(reason("begin:a,end:").contains("begin:PLACE,end:PLACE"));
        assert!(reason("tracepoint:").contains("tracepoint:NAME"));
        assert!(reason("").contains("empty"));
    }

    #[test]
    fn places_are_resolved_where_they_stand() {
        let entry = |offset| Entry { image: "/x".into(), offset };
        let mut asked = Vec::new();
        let mut find = |place: &str| {
            asked.push(place.to_owned());
            Ok::<_, Error>(vec![entry(asked.len() as u64)])
        };
        let named: Named = "begin:a,end:b".parse().unwrap();
        let found = named.resolved(&mut find).unwrap();
        assert_eq!(found, Progress::Between { begin: vec![entry(1)], end: vec![entry(2)] });
        assert_eq!(asked, ["a", "b"]);
    }
}
