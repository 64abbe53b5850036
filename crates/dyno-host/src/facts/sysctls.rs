//! Settings under /proc/sys that bear on a server's speed, each as it reads.

use std::collections::BTreeMap;

use dyno_record::fact::Fact;

use super::read::text;

/// By name, with dots as sysctl(8) has them. Those of the network are of the reader's namespace.
const NAMES: [&str; 92] = [
    "fs.file-max",
    "fs.file-nr",
    "fs.nr_open",
    "kernel.nmi_watchdog",
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.perf_event_max_sample_rate",
    "kernel.pid_max",
    "kernel.randomize_va_space",
    "kernel.sched_autogroup_enabled",
    "kernel.sched_rt_runtime_us",
    "kernel.threads-max",
    "kernel.timer_migration",
    "kernel.unprivileged_bpf_disabled",
    "kernel.yama.ptrace_scope",
    "kernel.kptr_restrict",
    "user.max_net_namespaces",
    "user.max_user_namespaces",
    "net.core.bpf_jit_enable",
    "net.core.bpf_jit_harden",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.flow_limit_cpu_bitmap",
    "net.core.flow_limit_table_len",
    "net.core.gro_normal_batch",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.netdev_tstamp_prequeue",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.skb_defer_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_early_demux",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv4.route.max_size",
    "net.ipv4.conf.all.log_martians",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_demux",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_migrate_req",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_tcp_timeout_time_wait",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.overcommit_memory",
    "vm.stat_interval",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// All of them.
pub(super) fn sysctls() -> BTreeMap<String, Fact<String>> {
    NAMES.iter().map(|name| ((*name).to_owned(), text(&path(name)))).collect()
}

/// Those that the kernel lets nobody write, root neither.
pub(super) fn fixed() -> Vec<String> {
    let is_fixed = |path: &String| std::fs::metadata(path).is_ok_and(|found| found.permissions().readonly());
    NAMES.iter().map(|name| path(name)).filter(is_fixed).collect()
}

/// Dots part folders; none of the names above has one in a folder's name.
fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_by_name_and_none_is_passed_over() {
        let all = sysctls();
        assert_eq!(all.len(), NAMES.len(), "a name stands there twice");
        assert!(all["net.ipv4.tcp_rmem"].value().is_some_and(|text| text.split_whitespace().count() == 3));
        assert_eq!(path("net.core.somaxconn"), "/proc/sys/net/core/somaxconn");
        let fixed = fixed();
        assert!(fixed.contains(&path("fs.file-nr")) && !fixed.contains(&path("fs.file-max")), "{fixed:?}");
    }
}
