//! Proofs of settings of the machine: huge pages, clock, frequency, idling, memory.
//!
//! Where the kernel tells what it does beside what it was told, that is read; where new memory shows it, some is asked for. It
//! only reads.

use dyno_record::tune::Effect;
use dyno_sys::huge::{self, Asks};
use dyno_sys::proc;

use super::seen::{Moved, Sight, Text};

const THP: &str = "/sys/kernel/mm/transparent_hugepage/";
const KSM: &str = "/sys/kernel/mm/ksm/";
const SCANNED: &str = "scanned";
const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
const POLLED_US: &str = "polled us";
const NUMA: &str = "/proc/sys/kernel/numa_balancing";
const UNMAPPED: &str = "unmapped";
const GROUPS: &str = "/sys/fs/cgroup";
const GROUP_US: &str = "group us";
const PERIODS: &str = "periods";
const HELD: &str = "held";
const HELD_ABOVE: &str = "held above";
const CPUS: &str = "/sys/devices/system/cpu";
const CPUS_MAX: usize = 10_000;

/// Counters that show it.
pub(super) fn moving(path: &str, text: Text<'_>) -> Moved {
    let number = |path: &str| text(path)?.parse().ok();
    if let Some(group) = group_of(path) {
        return of_group(group, text);
    }
    match path {
        HALT_POLL => Moved::default().with(POLLED_US, polled_us(text)),
        NUMA => Moved::default().with(UNMAPPED, of_vmstat("numa_pte_updates", text)),
        _ if path.starts_with(KSM) => Moved::default().with(SCANNED, number(&format!("{KSM}pages_scanned"))),
        _ => Moved::default(),
    }
}

/// The group whose quota this file sets.
fn group_of(path: &str) -> Option<&str> {
    let (group, file) = path.strip_prefix(GROUPS)?.rsplit_once('/')?;
    ["cpu.max", "cpu.cfs_quota_us"].contains(&file).then_some(group)
}

/// µs that a group of v1 has run, which another controller counts.
fn group_us(group: &str, text: Text<'_>) -> Option<u64> {
    let beside = group.strip_prefix("/cpu").map(|rest| format!("/cpuacct{rest}"));
    let folders = [Some(group.to_owned()), beside];
    let mut told =
        folders.iter().flatten().filter_map(|group| text(&format!("{GROUPS}{group}/cpuacct.usage")));
    told.next()?.parse::<u64>().ok().map(|ns| ns / 1_000)
}

/// Counters of a control group, and of those that it is in.
fn of_group(group: &str, text: Text<'_>) -> Moved {
    let of = |group: &str, name: &str| {
        let told = text(&format!("{GROUPS}{group}/cpu.stat"))?;
        let mut lines = told.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(word, _)| *word == name)?.1.trim().parse::<u64>().ok()
    };
    let above =
        || std::iter::successors(group.rsplit_once('/').map(|(up, _)| up), |up| Some(up.rsplit_once('/')?.0));
    Moved::default()
        .with(GROUP_US, of(group, "usage_usec").or_else(|| group_us(group, text)))
        .with(PERIODS, of(group, "nr_periods"))
        .with(HELD, of(group, "nr_throttled"))
        .with(HELD_ABOVE, above().filter_map(|up| of(up, "nr_throttled")).sum::<u64>())
}

/// Time that CPUs spent polling while idle: the first state of each, where it is called so.
fn polled_us(text: Text<'_>) -> Option<u64> {
    let names = proc::names(CPUS, CPUS_MAX).unwrap_or_default();
    let state = |cpu: &String| {
        let folder = format!("{CPUS}/{cpu}/cpuidle/state0");
        let is_polling = text(&format!("{folder}/name"))? == "POLL";
        if is_polling { text(&format!("{folder}/time"))?.parse::<u64>().ok() } else { None }
    };
    names.iter().filter_map(state).reduce(|sum, one| sum + one)
}

fn of_vmstat(name: &str, text: Text<'_>) -> Option<u64> {
    let all = text("/proc/vmstat")?;
    let mut lines = all.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(word, _)| *word == name)?.1.trim().parse().ok()
}

pub(super) fn judge(path: &str, wanted: &str, sight: &Sight<'_>) -> Effect {
    if path.ends_with("/cpufreq/scaling_governor") {
        return frequency(path, wanted, sight);
    }
    if group_of(path).is_some() {
        return quota(wanted, &sight.moved);
    }
    match path {
        HALT_POLL => idling(wanted, sight),
        NUMA => numa(wanted, sight),
        "/proc/sys/vm/swappiness" => swapping(sight),
        "/proc/sys/vm/dirty_ratio" => dirty(wanted, sight),
        "/proc/sys/kernel/nmi_watchdog" => Effect::not_shown(
            "the watchdog interrupts a CPU once in ten seconds".to_owned(),
            "NMI in /proc/interrupts that stands still, and a counter more for perf stat",
        ),
        _ if path == format!("{THP}enabled") => huge_pages(wanted),
        _ if path == format!("{THP}defrag") => Effect::not_shown(
            "the kernel asks for it when no huge page is free".to_owned(),
            "compact_stall in /proc/vmstat under the load under which it grew",
        ),
        _ if path == format!("{KSM}run") => merging(wanted, sight),
        _ if path.contains("/clocksource/") => clock(wanted, sight),
        other => Effect::not_shown(format!("no proof of {other} is known"), "the load for which it was set"),
    }
}

fn frequency(path: &str, wanted: &str, sight: &Sight<'_>) -> Effect {
    let folder = path.trim_end_matches("scaling_governor");
    let khz = |file: &str| sight.number(&format!("{folder}{file}"));
    let (now, most, can) = (khz("scaling_cur_freq"), khz("scaling_max_freq"), khz("cpuinfo_max_freq"));
    match (now, most, can) {
        _ if wanted != "performance" => {
            Effect::not_shown("its frequency follows its load".to_owned(), "scaling_cur_freq under load")
        }
        (_, Some(most), Some(can)) if most < can => {
            Effect::not_in_force(format!("scaling_max_freq holds it at {most} of {can} kHz"))
        }
        (Some(now), Some(most), _) if now * 100 >= most * 95 => {
            Effect::in_force(format!("it runs at {now} of {most} kHz"))
        }
        _ => Effect::not_shown(
            format!("it runs at {} kHz, as an idle CPU may", now.unwrap_or(0)),
            "scaling_cur_freq at scaling_max_freq under load",
        ),
    }
}

/// Periods are counted of a group that has a quota and runs.
fn quota(wanted: &str, moved: &Moved) -> Effect {
    let (ran, periods, held, above) =
        (moved.of(GROUP_US), moved.of(PERIODS), moved.of(HELD), moved.of(HELD_ABOVE));
    if above > 0 {
        return Effect::not_in_force(format!(
            "a group that it is in was held {above} times meanwhile, by a quota of its own"
        ));
    }
    match wanted.starts_with("max") || wanted == "-1" {
        true if periods > 0 => {
            Effect::not_in_force(format!("{periods} periods of a quota were counted meanwhile"))
        }
        true if ran > 0 => {
            Effect::in_force(format!("the group ran {ran} µs meanwhile, and no period was counted"))
        }
        false if held > 0 => Effect::not_in_force(format!("the group was still held {held} times meanwhile")),
        _ => Effect::not_shown(
            format!("the group ran {ran} µs meanwhile and was not held, as it may not have been before"),
            "nr_throttled in its cpu.stat that stands still under the load under which it grew",
        ),
    }
}

/// Only the governor of that name polls before it gives a virtual CPU back.
fn idling(wanted: &str, sight: &Sight<'_>) -> Effect {
    let governor = (sight.text)(&format!("{CPUS}/cpuidle/current_governor"));
    let polled = sight.moved.get(POLLED_US);
    match (governor.as_deref(), polled) {
        (Some("haltpoll"), Some(us)) if us > 0 && wanted != "0" => {
            Effect::in_force(format!("idle CPUs polled {us} µs meanwhile"))
        }
        (Some("haltpoll"), Some(us)) if us > 0 => {
            Effect::not_in_force(format!("idle CPUs still polled {us} µs meanwhile"))
        }
        (Some("haltpoll"), _) => Effect::not_shown(
            "idle CPUs did not poll meanwhile".to_owned(),
            "the time of cpuidle/state0 (POLL) that rises",
        ),
        (other, _) => Effect::not_in_force(format!(
            "the governor of idle CPUs is {}, and haltpoll alone asks for it",
            other.unwrap_or("none")
        )),
    }
}

fn numa(wanted: &str, sight: &Sight<'_>) -> Effect {
    match (wanted, sight.moved.get(UNMAPPED)) {
        ("0", Some(0)) => Effect::in_force("no page was unmapped meanwhile to see who uses it".to_owned()),
        ("0", Some(pages)) => {
            Effect::not_in_force(format!("{pages} pages were unmapped meanwhile to see who uses them"))
        }
        (_, Some(pages)) if pages > 0 => Effect::in_force(format!("{pages} pages were unmapped meanwhile")),
        _ => Effect::not_shown(
            "no page was unmapped meanwhile".to_owned(),
            "numa_pte_updates in /proc/vmstat that rises, or does not",
        ),
    }
}

/// Without a place to swap to nothing asks how readily.
fn swapping(sight: &Sight<'_>) -> Effect {
    let swaps = (sight.text)("/proc/swaps").map(|text| text.lines().skip(1).count());
    match swaps {
        Some(0) => Effect::not_in_force("there is no swap: nothing asks for it".to_owned()),
        _ => Effect::not_shown(
            "the kernel asks for it when memory is short".to_owned(),
            "pswpout in /proc/vmstat under the load under which it grew",
        ),
    }
}

/// The kernel tells how many pages it lets be dirty.
fn dirty(wanted: &str, sight: &Sight<'_>) -> Effect {
    let of = |name: &str| of_vmstat(name, sight.text);
    let usable: Option<u64> =
        ["nr_free_pages", "nr_inactive_file", "nr_active_file"].iter().map(|one| of(one)).sum();
    let (Some(usable), Some(most), Ok(percent)) =
        (usable, of("nr_dirty_threshold"), wanted.trim().parse::<u64>())
    else {
        return Effect::not_shown(
            "the kernel does not tell its threshold".to_owned(),
            "nr_dirty_threshold in /proc/vmstat",
        );
    };
    let share = 100.0 * most as f64 / usable.max(1) as f64;
    // Reserves of the zones are no part of it: on a small machine some percent of it.
    match (share - percent as f64).abs() <= 0.25 * percent as f64 + 1.0 {
        true => Effect::in_force(format!("{most} pages may be dirty, {share:.0} % of those that could be")),
        false => Effect::not_in_force(format!(
            "{most} pages may be dirty, {share:.0} % of those that could be: vm.dirty_bytes may be set"
        )),
    }
}

/// New memory of this process, which stands for what is started from now on.
fn huge_pages(wanted: &str) -> Effect {
    let asks = if wanted == "always" { Asks::Nothing } else { Asks::Madvise };
    match huge::are_given(asks) {
        Ok(given) => of_probe(wanted, given),
        Err(error) => Effect::not_shown(
            format!("no memory could be asked for: {error}"),
            "AnonHugePages in /proc/PID/smaps",
        ),
    }
}

fn of_probe(wanted: &str, is_given: bool) -> Effect {
    let asking = if wanted == "always" { "memory" } else { "memory that asks for it (madvise)" };
    match (wanted == "never", is_given) {
        (false, true) => {
            Effect::in_force(format!("new {asking} stands in huge pages; that of before stays as it was"))
        }
        (true, false) => Effect::in_force(format!("new {asking} stands in no huge page")),
        (true, true) => Effect::not_in_force(format!(
            "new {asking} still stands in huge pages: their sizes have files of their own"
        )),
        (false, false) => Effect::not_in_force(format!(
            "new {asking} got no huge page: none is free, hugepages-2048kB/enabled forbids it, or it is off for this process"
        )),
    }
}

fn merging(wanted: &str, sight: &Sight<'_>) -> Effect {
    match (wanted, sight.moved.get(SCANNED)) {
        (_, None) => {
            Effect::not_shown("the kernel does not count what it scans".to_owned(), "the CPU time of ksmd")
        }
        ("1", Some(0)) => {
            Effect::not_shown("no page was scanned meanwhile".to_owned(), "pages_scanned that rises")
        }
        ("1", Some(pages)) => Effect::in_force(format!("{pages} pages were scanned meanwhile")),
        (_, Some(0)) => Effect::in_force("no page was scanned meanwhile".to_owned()),
        (_, Some(pages)) => Effect::not_in_force(format!("{pages} pages were still scanned meanwhile")),
    }
}

/// The kernel names the clock that it reads, which is not always the one that it was told.
fn clock(wanted: &str, sight: &Sight<'_>) -> Effect {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    match (sight.text)(&format!("{folder}/current_clocksource")) {
        Some(has) if has == wanted => Effect::in_force(format!("the kernel reads {has}")),
        Some(has) => {
            Effect::not_in_force(format!("the kernel reads {has}: it takes {wanted} for unstable, perhaps"))
        }
        None => {
            Effect::not_shown("the kernel does not name its clock".to_owned(), "the cost of clock_gettime")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tune::Force;

    fn force(path: &str, wanted: &str, files: &[(&str, &str)], counts: &[(&str, u64)]) -> Force {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let text =
            move |path: &str| files.iter().find(|(name, _)| name == path).map(|(_, text)| text.clone());
        let moved = counts.iter().fold(Moved::default(), |moved, (name, count)| moved.with(name, *count));
        judge(path, wanted, &Sight { text: &text, moved }).force
    }

    /// Planted fault: the groups above are not looked at; then a quota that holds from there is not told.
    #[test]
    fn a_quota_of_a_group_above_keeps_one_that_was_lifted_from_being_in_force() {
        let path = "/sys/fs/cgroup/a/b/cpu.max";
        let of = |wanted, counts: &[(&str, u64)]| force(path, wanted, &[], counts);
        assert_eq!(of("max 100000", &[(GROUP_US, 900)]), Force::InForce);
        assert_eq!(of("max 100000", &[(GROUP_US, 900), (PERIODS, 3)]), Force::NotInForce);
        assert_eq!(of("max 100000", &[(GROUP_US, 900), (HELD_ABOVE, 1)]), Force::NotInForce);
        assert_eq!(of("max 100000", &[]), Force::NotShown);
        assert_eq!(of("200000 100000", &[(GROUP_US, 900), (HELD, 2)]), Force::NotInForce);
        let files = |path: &str| match path {
            "/sys/fs/cgroup/a/b/cpu.stat" => Some("usage_usec 5\nnr_periods 4\nnr_throttled 3".to_owned()),
            "/sys/fs/cgroup/a/cpu.stat" => Some("usage_usec 9\nnr_throttled 7".to_owned()),
            _ => None,
        };
        let usage =
            |path: &str| (path == "/sys/fs/cgroup/cpuacct/a/cpuacct.usage").then(|| "9000".to_owned());
        assert_eq!(moving("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", &usage).of(GROUP_US), 9);
        assert_eq!(
            force("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1", &[], &[(GROUP_US, 9)]),
            Force::InForce
        );
        let seen = moving(path, &files);
        assert_eq!([GROUP_US, PERIODS, HELD, HELD_ABOVE].map(|name| seen.of(name)), [5, 4, 3, 7]);
    }

    /// Planted fault: the governor is not asked for.
    #[test]
    fn idling_by_another_governor_is_not_in_force() {
        let of = |governor: &str, us| {
            let files = [("/sys/devices/system/cpu/cpuidle/current_governor", governor)];
            force(HALT_POLL, "200000", &files, &[(POLLED_US, us)])
        };
        assert_eq!(
            [of("haltpoll", 90), of("menu", 90), of("haltpoll", 0)],
            [Force::InForce, Force::NotInForce, Force::NotShown]
        );
    }

    /// Planted fault: the limit beside the governor is not looked at.
    #[test]
    fn a_frequency_that_something_holds_is_not_in_force() {
        let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let of = |now, most| {
            let file = |name: &str| format!("/sys/devices/system/cpu/cpu0/cpufreq/{name}");
            let names = ["scaling_cur_freq", "scaling_max_freq", "cpuinfo_max_freq"].map(file);
            let files = [(names[0].as_str(), now), (names[1].as_str(), most), (names[2].as_str(), "3000000")];
            force(path, "performance", &files, &[])
        };
        assert_eq!(of("3000000", "3000000"), Force::InForce);
        assert_eq!(of("2000000", "2000000"), Force::NotInForce);
        assert_eq!(of("1000000", "3000000"), Force::NotShown);
    }

    /// Planted fault: what is read is what was written; then a clock that the kernel did not take is in force.
    #[test]
    fn what_the_machine_does_is_asked_beside_what_it_was_told() {
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let of = |has| force(clock, "tsc", &[(clock, has)], &[]);
        assert_eq!([of("tsc"), of("hpet")], [Force::InForce, Force::NotInForce]);
        let ksm = |pages| force("/sys/kernel/mm/ksm/run", "0", &[], &[(SCANNED, pages)]);
        assert_eq!([ksm(0), ksm(100)], [Force::InForce, Force::NotInForce]);
        let numa = |pages| force(NUMA, "0", &[], &[(UNMAPPED, pages)]);
        assert_eq!([numa(0), numa(7)], [Force::InForce, Force::NotInForce]);
        let swap = |swaps| force("/proc/sys/vm/swappiness", "10", &[("/proc/swaps", swaps)], &[]);
        assert_eq!(
            [swap("Filename"), swap("Filename\n/dev/a partition")],
            [Force::NotInForce, Force::NotShown]
        );
        let dirty = |most: &str| {
            let text = format!(
                "nr_free_pages 800\nnr_inactive_file 100\nnr_active_file 100\nnr_dirty_threshold {most}"
            );
            force("/proc/sys/vm/dirty_ratio", "10", &[("/proc/vmstat", &text)], &[])
        };
        assert_eq!([dirty("95"), dirty("400")], [Force::InForce, Force::NotInForce]);
    }

    #[test]
    fn huge_pages_are_judged_by_memory_that_was_asked_for() {
        let of = |wanted, is_given| of_probe(wanted, is_given).force;
        assert_eq!([of("madvise", true), of("madvise", false)], [Force::InForce, Force::NotInForce]);
        assert_eq!([of("never", false), of("never", true)], [Force::InForce, Force::NotInForce]);
    }
}
