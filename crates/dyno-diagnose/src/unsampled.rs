//! CPU time that was counted and of which no sample tells what was done: rules that go by code say nothing of it.

use dyno_record::observation::NotLookedAt;

use super::draft::percent;
use super::facts::Facts;

/// Of the CPU time, what must be without a sample to be told: with less, what is seen stands for the rest.
const UNSEEN_MIN: f64 = 0.5;
/// CPUs in use below which shares say little.
const CPUS_MIN: f64 = 0.2;

/// What was not sampled, where that is most of it.
pub(super) fn of(facts: &Facts<'_>) -> Option<NotLookedAt> {
    let profile = facts.seen.on_cpu.as_ref()?;
    // A user who may not see the kernel has no samples of it, and is told so.
    let cpus = facts.seen.cpus_used();
    facts.on_both_sides().filter(|_| cpus >= CPUS_MIN)?;
    let [sampled_ns, short_ns] = [true, false].map(|is_sampled| {
        let those = profile.stacks.iter().filter(|stack| (stack.samples > 0) == is_sampled);
        those.map(|stack| stack.weight_ns).sum::<u64>() as f64
    });
    let short = short_ns / (sampled_ns + short_ns).max(1.0);
    let unsampled = |share: f64, why: &str| NotLookedAt {
        what: format!("what {} of the CPU time is spent on", percent(share)),
        why: format!("it is in {why}: their time is counted, and their code is not seen"),
    };
    if short >= UNSEEN_MIN {
        return Some(unsampled(short, "threads or processes that end before they are sampled"));
    }
    let there = (sampled_ns + short_ns) / 1e9 / profile.duration_s.max(1e-9);
    let gone = 1.0 - there / used_at_least(facts, cpus)?;
    (gone >= UNSEEN_MIN).then(|| {
        unsampled(
            1.0 - sampled_ns / (sampled_ns + short_ns).max(1.0) * (1.0 - gone),
            "processes that could not be sampled, as where they change their user when they begin, or end at once",
        )
    })
}

/// CPUs that were used in each of the windows in which that was counted: a load that changes is no reason for a doubt.
fn used_at_least(facts: &Facts<'_>, counted: f64) -> Option<f64> {
    let off = facts.seen.off_cpu.as_ref().filter(|profile| !profile.thread_times.is_empty())?;
    let ran_ns: u64 = off.thread_times.iter().map(|time| time.running_ns).sum();
    let used = counted.min(ran_ns as f64 / 1e9 / off.duration_s.max(1e-9));
    (used >= CPUS_MIN).then_some(used)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::profile::ThreadTime;

    use crate::scene::Scene;

    /// A program that used 1.2 CPUs, of which so much was sampled and so much counted meanwhile. Planted faults: the counters alone are
    /// asked; however little is missing.
    #[test]
    fn time_that_was_counted_and_is_in_no_sample_is_told_as_not_seen() {
        let told = |sampled_s: u64, ran_s: u64| {
            let scene = Scene::new(&[6.0, 6.0]).on("main;work", 100 * sampled_s).with(|seen| {
                let running_ns = ran_s * 1_000_000_000;
                let time = ThreadTime { thread: 0, running_ns, ..ThreadTime::default() };
                seen.off_cpu.as_mut().unwrap().thread_times = vec![time];
            });
            let said = scene.diagnosed().not_looked_at.into_iter();
            said.map(|one| one.what).find(|what| what.contains("of the CPU time is spent on"))
        };
        assert_eq!(told(3, 13).as_deref(), Some("what 75 % of the CPU time is spent on"));
        assert_eq!(told(7, 13), None);
        assert_eq!(told(3, 4), None, "the load changes");
    }

    /// A program that used 1.2 CPUs for ten seconds, so many seconds of which have samples, and so many more are those of threads that
    /// ended before one. Planted fault: however little it is (`UNSEEN_MIN` of nought).
    #[test]
    fn time_without_samples_is_told_as_not_seen() {
        let told = |sampled: u64, ended: u64| {
            let scene = Scene::new(&[6.0, 6.0]).on("main;work", 100 * sampled).on("main;gone", 100 * ended);
            let scene = scene.with(|seen| {
                let stacks = seen.on_cpu.as_mut().map(|profile| &mut profile.stacks).into_iter().flatten();
                stacks
                    .filter(|stack| stack.weight_ns == ended * 1_000_000_000)
                    .for_each(|one| one.samples = 0);
            });
            let said = scene.diagnosed();
            said.not_looked_at
                .into_iter()
                .map(|one| one.what)
                .find(|what| what.contains("of the CPU time is spent on"))
        };
        assert_eq!(told(11, 1), None);
        assert_eq!(told(4, 9).as_deref(), Some("what 69 % of the CPU time is spent on"));
    }
}
