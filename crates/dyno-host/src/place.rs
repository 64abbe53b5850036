//! Where a change takes place: this thread's network namespace, another process's, a device by its name, a process's threads.
//!
//! Those who make change specifications ask here, so that each names one namespace, one device and one thread for ever.

use std::io;

use dyno_record::change::{Device, Network, Task};
use dyno_sys::{Pid, namespace, proc, setting};

/// This thread's network namespace.
///
/// # Errors
/// When /proc cannot be read.
pub fn network() -> io::Result<Network> {
    namespace::network().map(from_sys)
}

/// The network namespace of a process.
///
/// # Errors
/// When it has ended, or its namespace may not be entered (CAP_SYS_ADMIN).
pub fn network_of(pid: Pid) -> io::Result<Network> {
    namespace::in_network_of(pid, network)?
}

/// The device of that name in this thread's namespace.
///
/// # Errors
/// When there is none.
pub fn device(name: &str) -> io::Result<Device> {
    let setting::Device { network, index, name } = setting::Device::here(name)?;
    Ok(Device { network: from_sys(network), index, name })
}

/// The device of that name in a process's namespace.
///
/// # Errors
/// As [`network_of`], and when there is none.
pub fn device_of(pid: Pid, name: &str) -> io::Result<Device> {
    namespace::in_network_of(pid, || device(name))?
}

/// The threads of a process.
///
/// # Errors
/// When it has ended.
pub fn threads(pid: Pid) -> io::Result<Vec<Task>> {
    let tasks = proc::tasks(pid);
    let known: Vec<Task> = tasks.into_iter().filter_map(|tid| task(pid, tid).ok()).collect();
    if known.is_empty() { Err(io::Error::from(io::ErrorKind::NotFound)) } else { Ok(known) }
}

pub(crate) fn task(pid: Pid, tid: Pid) -> io::Result<Task> {
    let setting::Task { pid, tid, started } = setting::Task::of(pid, tid)?;
    Ok(Task { pid, tid, started })
}

fn from_sys(network: namespace::Network) -> Network {
    Network { inode: network.inode, cookie: network.cookie }
}

pub(crate) fn to_sys(network: Network) -> namespace::Network {
    namespace::Network { inode: network.inode, cookie: network.cookie }
}

pub(crate) fn device_to_sys(device: Device) -> setting::Device {
    setting::Device { network: to_sys(device.network), index: device.index, name: device.name }
}

pub(crate) fn task_to_sys(task: Task) -> setting::Task {
    setting::Task { pid: task.pid, tid: task.tid, started: task.started }
}
