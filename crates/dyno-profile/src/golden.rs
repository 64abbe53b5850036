//! What tests share that compare records with those written down in `tests/golden/`.
//!
//! A change that is meant is written down with `GOLDEN=write cargo test`; the programs, and what was recorded of one, are
//! described in `tests/golden/program.c`.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use dyno_record::profile::Profile;
use serde_json::Value;

use crate::export;

/// Where all of it stands.
pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/");

/// A kernel of some functions and a module.
pub(crate) const KALLSYMS: &str = "ffffffff81000000 T entry_SYSCALL_64
ffffffff81000100 T do_syscall_64
ffffffff81000200 T __x64_sys_read
ffffffff81000300 T vfs_read
ffffffff81000400 T __schedule
ffffffff81000500 T schedule
ffffffff81000600 T futex_wait_queue
ffffffff81000700 T __x64_sys_futex
ffffffff81000800 T io_schedule
ffffffffc0000000 t wheel_turn\t[wheel]
ffffffffc0001000 t wheel_end\t[wheel]
";

/// The record, a row a line, and its folded stacks.
pub(crate) fn lines(what: &str, profile: &Profile) -> String {
    let Value::Object(whole) = serde_json::to_value(profile).unwrap() else { panic!("an object") };
    let mut out = format!("{what}\n");
    for (key, value) in whole.into_iter().filter(|(key, _)| key != "version") {
        match value {
            Value::Array(rows) => rows.iter().for_each(|row| writeln!(out, "  {key} {row}").unwrap()),
            value => writeln!(out, "  {key} {value}").unwrap(),
        }
    }
    out.push_str(&String::from_utf8(export::folded::bytes(profile)).unwrap());
    out.replace(FOLDER, "/golden/")
}

/// Compares with what is written down, line by line.
pub(crate) fn assert_golden(name: &str, found: &str) {
    let path = format!("{FOLDER}{name}");
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(&path, found).unwrap();
    }
    let wanted = std::fs::read_to_string(path).unwrap();
    for (at, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(found, wanted, "{name}, line {}", at + 1);
    }
    assert_eq!(found.lines().count(), wanted.lines().count(), "{name}");
}
