//! Who else uses the CPUs: what differs between the beginning and the end of reading.

use std::collections::BTreeMap;
use std::time::Instant;

use dyno_record::fact::Fact;
use dyno_record::facts::{Cgroup, Facts, Neighbour, Softnet};
use dyno_sys::Pid;
use dyno_sys::proc::{self, CpuStat, QuotaGroup, Ticks};

use super::cpus;
use super::limits::NEIGHBOURS_MAX;
use super::network;

/// Clock ticks per second, as /proc counts them on every architecture (USER_HZ).
const TICKS_PER_S: f64 = 100.0;
/// Who uses less than this of a CPU is nobody's trouble.
const PERCENT_MIN: f64 = 1.0;
/// What moves interrupts between CPUs.
const IRQBALANCE: &str = "irqbalance";

/// Counters at one moment.
pub(super) struct Look {
    at: Instant,
    ticks: BTreeMap<Pid, Ticks>,
    cpus: Vec<CpuStat>,
    softnet: Fact<Softnet>,
    quotas: Vec<QuotaGroup>,
}

impl Look {
    /// Reads them.
    pub(super) fn take(server: Option<Pid>) -> Look {
        Look {
            at: Instant::now(),
            ticks: proc::all_ticks(),
            cpus: proc::cpu_stat(),
            softnet: network::softnet(),
            quotas: proc::cpu_quotas(server.unwrap_or_else(dyno_sys::child::this)),
        }
    }
}

/// Enters what happened between two looks.
pub(super) fn compare(before: &Look, after: &Look, facts: &mut Facts) {
    let seconds = (after.at - before.at).as_secs_f64();
    let own = own_processes(facts);
    facts.neighbours = Fact::Value(named(used(before, after, seconds, &own)));
    facts.cpus.lately = Fact::Value(cpus::shares(&before.cpus, &after.cpus));
    let balancer = after.ticks.iter().find(|(_, one)| one.name == IRQBALANCE);
    facts.cpus.irqbalance = Fact::Value(balancer.map(|(pid, _)| pid.cast_unsigned()));
    if let (Fact::Value(was), Fact::Value(is)) = (&before.softnet, &mut facts.network.softnet) {
        let now = after.softnet.value().copied().unwrap_or(*is);
        is.lately = (
            now.dropped.saturating_sub(was.dropped),
            now.squeezed.saturating_sub(was.squeezed),
            now.handed_over.saturating_sub(was.handed_over),
        );
    }
    let group = facts.server.as_mut().map(|server| &mut server.cgroup);
    if let Some(Fact::Value(group)) = group {
        enter_holding(group, &before.quotas, &after.quotas);
    }
}

/// The group that held the server most meanwhile is the one whose quota counts, be it its own or one above it.
fn enter_holding(group: &mut Cgroup, before: &[QuotaGroup], after: &[QuotaGroup]) {
    let lately = |one: &&QuotaGroup| {
        let was = before.iter().find(|was| was.file == one.file).map_or(0, |was| was.quota.throttled);
        one.quota.throttled.saturating_sub(was)
    };
    let Some(most) = after.iter().max_by_key(lately).filter(|one| lately(one) > 0) else { return };
    group.throttled_lately = lately(&most);
    group.quota_file.clone_from(&most.file);
    (group.periods, group.throttled) = (most.quota.periods, most.quota.throttled);
}

/// This process and the server: none of them is a neighbour.
fn own_processes(facts: &Facts) -> Vec<Pid> {
    let server = facts.server.iter().flat_map(|server| server.pids.iter().copied());
    server.chain([dyno_sys::child::this()]).collect()
}

fn used(before: &Look, after: &Look, seconds: f64, own: &[Pid]) -> Vec<(f64, Pid)> {
    let mut used: Vec<(f64, Pid)> = after
        .ticks
        .iter()
        .filter(|(pid, one)| !one.is_kernel && !own.contains(pid))
        .map(|(pid, one)| {
            let was = before.ticks.get(pid).map_or(0, |was| was.ticks);
            // One that began meanwhile has used all of its time meanwhile.
            (100.0 * one.ticks.saturating_sub(was) as f64 / TICKS_PER_S / seconds.max(0.01), *pid)
        })
        .filter(|(percent, _)| *percent >= PERCENT_MIN)
        .collect();
    used.sort_by(|a, b| b.0.total_cmp(&a.0));
    used.truncate(NEIGHBOURS_MAX);
    used
}

fn named(used: Vec<(f64, Pid)>) -> Vec<Neighbour> {
    used.into_iter()
        .map(|(percent, pid)| {
            let stat = proc::text(&format!("/proc/{pid}/stat")).unwrap_or_default();
            // Counted from the last bracket, for a name may hold some: the state is field 3, nice 19, the CPU 39.
            let fields: Vec<&str> =
                stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
            let field = |number: usize| fields.get(number - 3).and_then(|word| word.parse::<i32>().ok());
            Neighbour {
                pid,
                name: proc::name(pid).unwrap_or_default(),
                cpu_percent: (percent * 10.0).round() / 10.0,
                nice: field(19).unwrap_or(0),
                cpu: field(39).and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(0),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn look(ticks: &[(Pid, u64)], at: Instant) -> Look {
        let tick = |(pid, ticks): &(Pid, u64)| {
            (*pid, Ticks { name: "hog".into(), ticks: *ticks, ..Ticks::default() })
        };
        let ticks = ticks.iter().map(tick).collect();
        Look { at, ticks, cpus: Vec::new(), softnet: Fact::default(), quotas: Vec::new() }
    }

    /// Planted fault: the server's own group alone is looked at; then a slice that holds it is never named.
    #[test]
    fn the_group_that_holds_the_server_is_named_wherever_it_stands() {
        let group = |file: &str, throttled| QuotaGroup {
            file: file.into(),
            quota: proc::CpuQuota { cpus: Some(1.0), periods: 50, throttled, throttled_ns: 0 },
        };
        let before = [group("/web/cpu.max", 40), group("/slice/cpu.max", 3)];
        let after = [group("/web/cpu.max", 40), group("/slice/cpu.max", 9)];
        let mut told = Cgroup { quota_file: "/web/cpu.max".into(), ..Cgroup::default() };
        enter_holding(&mut told, &before, &before);
        assert_eq!((told.quota_file.as_str(), told.throttled_lately), ("/web/cpu.max", 0));
        enter_holding(&mut told, &before, &after);
        assert_eq!(
            (told.quota_file.as_str(), told.throttled_lately, told.throttled),
            ("/slice/cpu.max", 6, 9)
        );
    }

    #[test]
    fn who_used_cpu_meanwhile_is_named_and_the_server_is_not() {
        let begin = Instant::now();
        let before = look(&[(900_001, 100), (900_002, 5), (900_003, 7)], begin);
        let after = look(&[(900_001, 150), (900_002, 105), (900_003, 7)], begin + Duration::from_secs(1));
        assert_eq!(used(&before, &after, 1.0, &[900_002]), [(50.0, 900_001)]);
        let both = used(&before, &after, 1.0, &[]);
        assert_eq!(both, [(100.0, 900_002), (50.0, 900_001)], "the dearest comes first");
    }
}
