//! What /proc and /sys say about processes and the machine, as typed values.
//!
//! Read by proofs, facts and reports. Text is parsed by pure functions (`parse_*`, testable on samples); the functions
//! beside them read the live files. A process that ends meanwhile is an error or an empty answer, never a panic.

mod cost;
mod files;
mod machine;
mod maps;
mod net;
mod process;
mod traffic;

pub use crate::tasks::tasks;
pub use cost::{
    Faults, IoCount, Memory, MemoryUse, TaskCost, faults, io_count, memory_use, open_files, parse_faults,
    parse_io, parse_memory_use, parse_task_status, task_costs,
};
pub use files::{kernel_symbols, link_name, names, parse_capabilities, text};
pub use machine::{
    CpuStat, LoadAverage, Machine, begun, cpu_stat, load_average, machine, memory_left_bytes, nofile,
    parse_cpu_model, parse_cpu_stat, parse_load_average, parse_memory_bytes, raise_nofile_to_hard, uptime_ns,
};
pub use maps::{
    FileId, Mapping, command_line, file_id, innermost_pid, is_run_by_others, mappings, name, parse_mappings,
    parse_mount_device,
};
pub use net::{
    Holders, InetLine, UdpLine, UnixLine, UnixListenerLine, listeners, listens_on, parse_inet, parse_unix,
    parse_unix_listeners, same_network, socket_holders, sockets_accepted, tcp_sockets_of, unix_listeners,
    unix_table, unix_waiting,
};
pub(crate) use net::{inet_lines, network_of, socket_fds, socket_inode, socket_inodes, udp_lines};
pub use process::{
    Stat, all_sleeping, anonymous_bytes, cpus_allowed, epoll_events, folder, has_ended, has_thread_ended,
    is_gone, maps, parse_epoll_fdinfo, parse_maps, parse_run_ns, parse_stat, parse_status_field,
    parse_status_kib, process_of, pss_bytes, rss_bytes, rss_peak_bytes, run_ns, standing_for, stat, state,
    task_run_ns, timer_slack_ns, tree, user_system_ticks,
};
pub use traffic::{
    CpuQuota, NetCount, NetCpu, PacketLine, PacketTap, QuotaGroup, Ticks, all_ticks, binding_quota,
    cpu_quotas, memory_limit_bytes, most_held, net_count, net_cpus, packet_taps, parse_cpu_max,
    parse_cpu_stat_file, parse_dev, parse_net_cpus, parse_packet,
};
