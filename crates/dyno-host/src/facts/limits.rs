//! How much of each list is read. Whoever reads past one of these says so in the facts.

/// Rules of packet filters, of each kind.
pub(super) const RULES_MAX: usize = 10_000;
/// Devices; a host of containers has some hundreds.
pub(super) const DEVICES_MAX: usize = 1_024;
/// Queues of a device: the kernel's own limit for hardware is 4,096 (IFLA_NUM_TX_QUEUES).
pub(super) const QUEUES_MAX: usize = 4_096;
/// Sockets that listen, and those that tap.
pub(super) const SOCKETS_MAX: usize = 10_000;
/// Interrupts: a large host has some thousands.
pub(super) const INTERRUPTS_MAX: usize = 8_192;
/// Processors (Linux is built for 8,192 at most).
pub(super) const CPUS_MAX: usize = 8_192;
/// BPF programs and events of the tracer.
pub(super) const PROGRAMS_MAX: usize = 4_096;
/// Neighbours that are named.
pub(super) const NEIGHBOURS_MAX: usize = 16;
/// Connections of a server whose options are asked.
pub(super) const CONNECTIONS_MAX: usize = 256;
/// Threads of a server.
pub(super) const THREADS_MAX: usize = 16_384;
