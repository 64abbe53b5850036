//! Where received packets are worked on while a server runs: on its CPUs, or on others.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::Locality;
use dyno_sys::{Pid, Tid, clock, proc};

use super::figure::figure;

/// Looks, each as long as this. Sixteen make the interval.
const LOOKS: usize = 16;
const LOOK_NS: u64 = 60_000_000;
/// Receive interrupts per second below which there is nothing to tell.
const PER_SECOND_MIN: f64 = 200.0;
/// Threads that are looked at.
const THREADS_MAX: usize = 1_000;

/// The part of all receive interrupts that came on CPUs where no thread of the server ran in the same moment.
pub(super) fn locality(pids: &[Pid]) -> Fact<Locality> {
    if pids.is_empty() {
        return Fact::Absent("a server to look at".into());
    }
    let (mut shares, mut all, mut ran_on) = (Vec::new(), 0, BTreeSet::new());
    for _ in 0..LOOKS {
        let (before, were) = (received(), threads(pids));
        clock::sleep_ns(LOOK_NS);
        let (after, are) = (received(), threads(pids));
        let ran = ran(&were, &are);
        let new = |cpu: &usize| after[cpu].saturating_sub(before.get(cpu).copied().unwrap_or(0));
        let total: u64 = after.keys().map(new).sum();
        let elsewhere: u64 = after.keys().filter(|cpu| !ran.contains(cpu)).map(new).sum();
        if total > 0 && !ran.is_empty() {
            shares.push(100.0 * elsewhere as f64 / total as f64);
            all += total;
        }
        ran_on.extend(ran);
    }
    let per_second = all as f64 / (LOOKS as f64 * LOOK_NS as f64 / 1e9);
    if shares.len() < 2 || per_second < PER_SECOND_MIN {
        return Fact::Unread(Unread {
            what: "where packets are worked on".into(),
            why: format!("the server was idle: {per_second:.0} receive interrupts a second"),
            needs: "a server under load".into(),
            ..Unread::default()
        });
    }
    let server_cpus = ran_on.into_iter().map(|cpu| cpu as u32).collect();
    Fact::Value(Locality { server_cpus, per_second, elsewhere_percent: figure(&shares) })
}

fn received() -> BTreeMap<usize, u64> {
    proc::net_cpus().iter().map(|cpu| (cpu.cpu, cpu.net_rx)).collect()
}

/// Threads with the time that they have run, ns, and the CPU that they ran on last.
fn threads(pids: &[Pid]) -> BTreeMap<Tid, (u64, usize)> {
    let tids = pids.iter().flat_map(|pid| proc::tasks(*pid)).take(THREADS_MAX);
    tids.filter_map(|tid| {
        let run = proc::text(&format!("/proc/{tid}/schedstat")).ok()?;
        let run = run.split_whitespace().next()?.parse().ok()?;
        Some((tid, (run, last_cpu(&proc::text(&format!("/proc/{tid}/stat")).ok()?)?)))
    })
    .collect()
}

/// Field 39 of a thread's stat, counted from the last bracket.
fn last_cpu(stat: &str) -> Option<usize> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(39 - 3)?.parse().ok()
}

/// CPUs of threads that have run between two looks.
fn ran(were: &BTreeMap<Tid, (u64, usize)>, are: &BTreeMap<Tid, (u64, usize)>) -> BTreeSet<usize> {
    let ran = are.iter().filter(|(tid, now)| were.get(*tid).is_none_or(|then| then.0 < now.0));
    ran.flat_map(|(tid, now)| were.get(tid).map(|then| then.1).into_iter().chain([now.1])).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_cpu_is_found_behind_a_name_with_brackets() {
        let mut fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        fields[0] = "S".into();
        assert_eq!(last_cpu(&format!("7 (a) b) ) {}", fields.join(" "))), Some(39));
        let own = proc::text("/proc/self/stat").unwrap();
        assert!(last_cpu(&own).is_some_and(|cpu| cpu < 10_000));
    }

    #[test]
    fn only_threads_that_ran_count() {
        let were = [(1, (10, 0)), (2, (10, 3))].into();
        assert_eq!(ran(&were, &[(1, (10, 0)), (2, (11, 1))].into()), [1, 3].into());
        assert!(matches!(locality(&[]), Fact::Absent(_)));
    }
}
