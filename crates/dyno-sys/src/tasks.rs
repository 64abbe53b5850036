//! The threads of a process, as /proc numbers them. Below [`crate::proc`] and [`crate::affinity`], which both need them.

use crate::{Pid, Tid};
use std::fs;
use std::io;

/// The threads of `pid`, ascending; empty when it is gone.
pub fn tasks(pid: Pid) -> Vec<Tid> {
    numbers_in(&format!("/proc/{pid}/task"))
}

/// The names in a folder that are numbers, ascending; empty when it cannot be read.
pub(crate) fn numbers_in(folder: &str) -> Vec<i32> {
    read_numbers(folder).unwrap_or_default()
}

/// The same, with why it cannot be read.
pub(crate) fn read_numbers(folder: &str) -> io::Result<Vec<i32>> {
    let names = fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut numbers: Vec<i32> = names.filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
