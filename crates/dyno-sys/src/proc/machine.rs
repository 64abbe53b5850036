//! The machine: its CPUs, kernel, memory and clock, where CPU time went, load, and this process's descriptor limit.

use crate::Pid;
use crate::affinity::{CpuSet, online};
use crate::clock;
use crate::errno::checked;
use std::fs;
use std::io;
use std::time::{Duration, SystemTime};

/// What a report's first screen says about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// CPUs online.
    pub cpus: CpuSet,
    /// The processor's name, or its architecture where the kernel has no name for it.
    pub model: String,
    /// The hypervisor, where it gives its name; `None` on bare metal (or where nothing tells).
    pub vm: Option<String>,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Memory in all, in bytes.
    pub memory_bytes: u64,
    /// The clock source in use; anything but `tsc` makes clock reads dear on x86.
    pub clocksource: String,
    /// The system's congestion control.
    pub congestion: String,
}

/// Where one CPU's time went since boot, in nanoseconds (counted in ticks of 10 ms).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuStat {
    /// Which CPU.
    pub cpu: usize,
    /// User code.
    pub user: u64,
    /// User code at low priority.
    pub nice: u64,
    /// The kernel.
    pub system: u64,
    /// Nothing.
    pub idle: u64,
    /// Nothing, with input or output pending.
    pub iowait: u64,
    /// Hard interrupts.
    pub irq: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// Taken by the hypervisor for others.
    pub steal: u64,
}

/// Runnable and uninterruptible tasks on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadAverage {
    /// Over one minute.
    pub one: f64,
    /// Over five minutes.
    pub five: f64,
    /// Over fifteen minutes.
    pub fifteen: f64,
}

/// Reads the machine once; what the kernel does not say is empty or 0.
pub fn machine() -> Machine {
    let cpuinfo = text("/proc/cpuinfo");
    Machine {
        cpus: online(),
        model: parse_cpu_model(&cpuinfo).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        vm: hypervisor(&cpuinfo),
        kernel: text("/proc/sys/kernel/osrelease"),
        memory_bytes: parse_memory_bytes(&text("/proc/meminfo")).unwrap_or(0),
        clocksource: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        congestion: text("/proc/sys/net/ipv4/tcp_congestion_control"),
    }
}

/// The processor's name in /proc/cpuinfo.
pub fn parse_cpu_model(cpuinfo: &str) -> Option<String> {
    let value =
        |line: &str| line.strip_prefix("model name")?.split_once(':').map(|pair| pair.1.trim().to_owned());
    cpuinfo.lines().find_map(value)
}

/// `MemTotal` of /proc/meminfo, in bytes.
pub fn parse_memory_bytes(meminfo: &str) -> Option<u64> {
    super::parse_status_kib(meminfo, "MemTotal")
}

/// Memory that could be taken without swapping (`MemAvailable`), in bytes.
pub fn memory_left_bytes() -> Option<u64> {
    super::parse_status_kib(&text("/proc/meminfo"), "MemAvailable")
}

/// The CPU flag says that there is one; firmware or the device tree may say which.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let mut names = [text("/sys/class/dmi/id/sys_vendor"), text("/sys/hypervisor/type")].into_iter();
    let flagged = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"));
    let tree = fs::metadata("/proc/device-tree/hypervisor").is_ok();
    let name = names.find(|name| !name.is_empty());
    (flagged || tree).then(|| name.unwrap_or_else(|| "unnamed".to_owned()))
}

fn text(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Where each online CPU's time went since boot. Empty when /proc is not mounted.
pub fn cpu_stat() -> Vec<CpuStat> {
    parse_cpu_stat(&text("/proc/stat"), ns_per_tick())
}

/// The lines `cpuN …` of /proc/stat.
pub fn parse_cpu_stat(text: &str, ns_per_tick: u64) -> Vec<CpuStat> {
    text.lines().filter_map(|line| parse_cpu_line(line, ns_per_tick)).collect()
}

fn parse_cpu_line(line: &str, ns_per_tick: u64) -> Option<CpuStat> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    // The line of sums, "cpu ", has no number here but its first count; it begins with a blank.
    let cpu = line.as_bytes().get(3).filter(|byte| byte.is_ascii_digit()).and(words.next())?.parse().ok()?;
    // Kernels before 2.6.11 print fewer columns: what is missing is 0.
    let mut next = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * ns_per_tick;
    Some(CpuStat {
        cpu,
        user: next(),
        nice: next(),
        system: next(),
        idle: next(),
        iowait: next(),
        irq: next(),
        softirq: next(),
        steal: next(),
    })
}

fn ns_per_tick() -> u64 {
    // SAFETY: sysconf takes no pointer.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(per_second).unwrap_or(100).max(1)
}

/// Nanoseconds since boot, counted in 10 ms (/proc/uptime).
pub fn uptime_ns() -> u64 {
    let text = text("/proc/uptime");
    let seconds: f64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    (seconds * 1e9) as u64
}

/// When a process began by the wall clock, some 20 ms early at most and as far off as that was set since; `None` when it is gone.
pub fn begun(pid: Pid) -> Option<SystemTime> {
    const TICK_MS: u64 = 10;
    let started = Duration::from_millis(super::stat(pid).ok()?.start_ticks * TICK_MS);
    // Not /proc/uptime: a container may be shown its own, and starts are counted from the machine's.
    let ago = Duration::from_nanos(clock::boot_ns()).checked_sub(started)?;
    // It is counted in ticks, rounded down.
    SystemTime::now().checked_sub(ago + 2 * Duration::from_millis(TICK_MS))
}

/// The load averages; `None` when /proc is not mounted.
pub fn load_average() -> Option<LoadAverage> {
    parse_load_average(&text("/proc/loadavg"))
}

/// The first three numbers of /proc/loadavg.
pub fn parse_load_average(text: &str) -> Option<LoadAverage> {
    let mut words = text.split_whitespace().map(str::parse::<f64>);
    let mut next = || words.next()?.ok();
    Some(LoadAverage { one: next()?, five: next()?, fifteen: next()? })
}

/// How many descriptors this process may have open: `(soft, hard)`; the soft one is in force.
pub fn nofile() -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable for the length of the call.
    let read = checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) });
    read.expect("RLIMIT_NOFILE exists on every Linux and the pointer is ours");
    (limit.rlim_cur, limit.rlim_max)
}

/// Raises the limit as far as it goes without privileges; the limit then in force. Children inherit it.
pub fn raise_nofile_to_hard() -> io::Result<u64> {
    let (_, hard) = nofile();
    let limit = libc::rlimit { rlim_cur: hard, rlim_max: hard };
    // SAFETY: `limit` is readable for the length of the call.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(hard)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn cpu_lines_are_read_and_the_sum_is_not() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu12 10 0 0 1\nintr 5 6\n";
        let zero = CpuStat {
            cpu: 0,
            user: 10,
            nice: 20,
            system: 30,
            idle: 40,
            iowait: 50,
            irq: 60,
            softirq: 70,
            steal: 80,
        };
        let twelve = CpuStat {
            cpu: 12,
            user: 100,
            nice: 0,
            system: 0,
            idle: 10,
            iowait: 0,
            irq: 0,
            softirq: 0,
            steal: 0,
        };
        assert_eq!(parse_cpu_stat(stat, 10), [zero, twelve]);
    }

    #[test]
    fn names_and_sizes_are_read_from_samples() {
        assert_eq!(
            parse_cpu_model("model\t: 85\nmodel name\t: A Chip @ 2 GHz\n").as_deref(),
            Some("A Chip @ 2 GHz")
        );
        assert_eq!(parse_cpu_model("BogoMIPS : 50\n"), None);
        assert_eq!(parse_memory_bytes("MemTotal:       1000 kB\nMemFree: 1 kB\n"), Some(1_024_000));
        let load = LoadAverage { one: 0.05, five: 0.19, fifteen: 0.15 };
        assert_eq!(parse_load_average("0.05 0.19 0.15 1/86 5773\n"), Some(load));
        assert_eq!(parse_load_average("0.05"), None);
    }

    #[test]
    fn this_machine_tells_what_it_is() {
        let machine = machine();
        assert!(!machine.cpus.is_empty() && !machine.model.is_empty() && !machine.kernel.is_empty());
        assert!(machine.memory_bytes > 1 << 20);
        assert!(memory_left_bytes().is_some_and(|left| left <= machine.memory_bytes));
        assert_eq!(cpu_stat().len(), machine.cpus.len());
        assert!(uptime_ns() > 0 && load_average().is_some());
    }

    #[test]
    fn the_soft_limit_rises_to_the_hard_one() {
        let (soft, hard) = nofile();
        assert!(soft <= hard);
        assert_eq!(raise_nofile_to_hard().unwrap(), hard);
        assert_eq!(nofile(), (hard, hard));
    }
}
