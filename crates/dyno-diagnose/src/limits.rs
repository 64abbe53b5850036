//! Rules for what bounds the target from outside or by its shape: one thread, the generator, others, a quota.

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::{Limit, Load, ThreadCost};
use dyno_record::profile::WaitClass;

use super::draft::{Draft, Outcome, percent};
use super::facts::Facts;
use super::waits::OffCpu;

/// A thread that runs this share of the time is at its limit: the rest is what the scheduler takes for switching.
const THREAD_FULL: f64 = 0.88;
/// CPUs that must be free before more threads could help: half of one.
const FREE_CPUS_MIN: f64 = 0.4;
/// The same as a share of what the target and those who ask it use: so much more the CPUs could do at most, since who asks
/// works more too. Measured: a second process brought 1.3 times as much at 0.35, and less than a tenth at 0.25.
const GAIN_MIN: f64 = 0.3;
/// From here on it is worth having in any case.
const GAIN_SURE: f64 = 0.5;
/// Requests that stand in line for each one that is worked on, from which load counts as waiting.
const IN_LINE_MIN: f64 = 4.0;
/// Of few connections, the share with bytes that it had not read.
const UNREAD_SHARE_MIN: f64 = 0.5;
/// Looks from which on a share of them is told.
const ROUNDS_MIN: u64 = 20;
/// Share of the looks at which something waited to be read or accepted: one client alone never waits like that, since it
/// asks again only after it was answered.
pub(super) const WAITING_SHARE_MIN: f64 = 0.5;
/// The same before a thread at its limit: what one client alone asks waits only while that thread does not run, an eighth
/// of the time at most.
const WAITING_BEFORE_FULL_MIN: f64 = 0.25;
/// Share of the other threads' waits that the thread at its limit ended.
const WAIT_FOR_IT_MIN: f64 = 0.3;
/// Waiting of other threads below this share of the window is no waiting.
const OTHERS_WAIT_MIN: f64 = 0.2;
/// Others' CPU and the hypervisor's: from a tenth on, figures are theirs too.
const FOREIGN_MIN: f64 = 0.10;
/// Share of the target's time spent waiting for a CPU from which on others delay it; below, they only used idle time.
const DELAY_MIN: f64 = 0.05;
/// A thread that runs less is no competitor for a CPU.
const BUSY_MIN: f64 = 0.1;
/// Time that the hypervisor takes: 2 % make a run void elsewhere; 5 % are a finding.
const STEAL_MIN: f64 = 0.05;
/// Share of periods in which a quota held the target.
const THROTTLED_MIN: f64 = 0.05;
/// Time held, as a share of what it ran and was held: many periods that end a moment too early cost nothing.
const HELD_MIN: f64 = 0.05;

/// One thread is at its limit while CPUs are free. It is a finding only when something waits for that thread.
pub(super) fn single_thread_limit(facts: &Facts<'_>) -> Outcome {
    let Some(free) = facts.spare_cpus() else { return Outcome::Unseen("how busy the CPUs were") };
    let Some((busiest, share)) = facts.busiest() else {
        return Outcome::Unseen("the times of single threads");
    };
    let full = facts.seen.threads.iter().filter(|thread| run_share(facts, thread) >= THREAD_FULL).count();
    let gain = facts.gain_at_most().unwrap_or(0.0);
    if share < THREAD_FULL || full > 1 || free < FREE_CPUS_MIN || gain < GAIN_MIN {
        let much = if gain < GAIN_MIN { format!(": {} more at most", percent(gain)) } else { String::new() };
        let text = format!(
            "the busiest thread runs {} of the time, {full} are full, {free:.1} CPUs are free{much}",
            percent(share)
        );
        return Outcome::Against(text);
    }
    let draft = Draft::new(Class::SingleThreadLimit, share * free.min(1.0), format!("thread {} ({}) runs {} of the time while {free:.1} CPUs are free", busiest.tid, busiest.name, percent(share)))
        .fact(format!("the busiest thread runs {} of the time", percent(share)), share, "share of the time")
        .fact(format!("{free:.1} CPUs are used by nobody"), free, "CPUs")
        .fact(format!("with them {} more at most, who asks included", percent(gain)), gain, "of what is done")
        .next("a second thread or process for the same work, each with its own listener; or less work on that thread")
        .rung("workers")
        .specimen("single-loop");
    match who_waits(facts, busiest) {
        Some(who) => {
            let sure = if gain >= GAIN_SURE { Confidence::High } else { Confidence::Medium };
            Outcome::Found(draft.sure(sure).sign(who))
        }
        None => Outcome::Noted(draft.sign("nobody was seen waiting for it")),
    }
}

/// Share of the window that a thread ran, or would have run had others not been there.
fn run_share(facts: &Facts<'_>, thread: &ThreadCost) -> f64 {
    let kept_off = thread.wait_ns as f64 * facts.crowd();
    (thread.run_ns as f64 + kept_off) / 1e9 / facts.seen.duration_s.max(1e-9)
}

/// Who waits for a thread: connections that were refused, requests in line, other threads that it wakes.
fn who_waits(facts: &Facts<'_>, busiest: &ThreadCost) -> Option<String> {
    let seen = facts.seen;
    let overflows =
        seen.packets.as_ref().map_or(0, |packets| packets.listen_overflows + packets.listen_drops);
    if overflows > 0 {
        return Some(format!("{overflows} connections found the listener's queue full"));
    }
    if let Some(load) = seen.load.as_ref().filter(|load| load.lost > 0) {
        return Some(format!("{} connections of the load were refused, reset or timed out", load.lost));
    }
    requests_in_line(facts)
        .or_else(|| unread(facts))
        .or_else(|| untaken(facts, WAITING_BEFORE_FULL_MIN))
        .or_else(|| threads_wait(facts, busiest))
}

/// Latency is many times what a request costs: the others stand in line before the thread.
fn requests_in_line(facts: &Facts<'_>) -> Option<String> {
    let load = facts.seen.load.as_ref().filter(|load| load.connections > 1 && load.limited != Limit::Yes)?;
    let cost_ns = facts.seen.process.cpu_ns as f64 / facts.seen.requests()?;
    let in_line = load.p50_ns as f64 / cost_ns.max(1.0);
    (in_line >= IN_LINE_MIN).then(|| {
        format!(
            "a request costs {:.0} µs and takes {:.0} µs: some {:.0} stand in line",
            cost_ns / 1e3,
            load.p50_ns as f64 / 1e3,
            in_line - 1.0
        )
    })
}

/// What was asked lies in its sockets.
pub(super) fn unread(facts: &Facts<'_>) -> Option<String> {
    let packets = facts.seen.packets.as_ref()?;
    let (unread, all) = (packets.unread, packets.connections);
    let most = unread >= 2 && unread as f64 >= UNREAD_SHARE_MIN * all as f64 && all > 0;
    (unread as f64 >= IN_LINE_MIN || most)
        .then(|| format!("{unread} connections and more held bytes that it had not read"))
}

/// Whether somebody seems to wait for the target: bytes and connections that it has not taken.
pub(super) fn is_waited_for(facts: &Facts<'_>) -> bool {
    unread(facts).is_some() || untaken(facts, WAITING_SHARE_MIN).is_some()
}

/// At so many of the looks something waited to be read or accepted.
pub(super) fn untaken(facts: &Facts<'_>, share_min: f64) -> Option<String> {
    let sending = facts.seen.packets.as_ref()?.sending?;
    let (rounds, waited) = (sending.rounds, sending.rounds_waiting);
    let often = rounds >= ROUNDS_MIN && waited as f64 >= share_min * rounds as f64;
    often.then(|| {
        let mean = sending.waiting as f64 / rounds as f64;
        format!(
            "at {waited} of {rounds} looks, connections waited to be accepted or read, {mean:.1} on average"
        )
    })
}

/// Other threads wait for locks or pipes, and this thread is who wakes them.
fn threads_wait(facts: &Facts<'_>, busiest: &ThreadCost) -> Option<String> {
    let off = facts.off.as_ref()?;
    let profile = off.profile;
    let (mut all, mut by_it) = (0_u64, 0_u64);
    for stack in
        profile.stacks.iter().filter(|stack| profile.threads[stack.thread as usize].tid != busiest.tid)
    {
        let class = stack.wait.as_ref().map(|wait| wait.class).unwrap_or_default();
        if !matches!(class, WaitClass::Lock | WaitClass::Network) {
            continue;
        }
        all += stack.weight_ns;
        let waker = stack.waker.and_then(|at| profile.wakers.get(at as usize));
        by_it += waker.filter(|waker| waker.tid == busiest.tid).map_or(0, |_| stack.weight_ns);
    }
    let (all, by_it) = (all as f64, by_it as f64);
    let waits = by_it >= WAIT_FOR_IT_MIN * all && by_it >= OTHERS_WAIT_MIN * off.window_ns;
    waits.then(|| format!("{} of the other threads' waits were ended by it", percent(by_it / all)))
}

/// The generator is the limit, not the server.
pub(super) fn generator_limited(facts: &Facts<'_>) -> Outcome {
    let Some(load) = &facts.seen.load else { return Outcome::Unseen("the load: none was given by --load") };
    let text = format!("the generator was busy {} of the time; {}", percent(load.busy), load.limited_why);
    if load.limited != Limit::Yes {
        return Outcome::Against(text);
    }
    Outcome::Found(
        Draft::new(
            Class::GeneratorLimited,
            load.busy,
            "the load could not be made larger: the server may be faster than shown",
        )
        .sure(Confidence::High)
        .fact(text, load.busy, "share")
        .sign(rate(load))
        .next("more threads for the load (-t) on CPUs that the server leaves, or a second machine"),
    )
}

fn rate(load: &Load) -> String {
    format!(
        "{:.0} requests per second over {} connections are the generator's figure",
        load.replies_per_s, load.connections
    )
}

/// Others use the CPUs, or the hypervisor takes them.
pub(super) fn noisy_neighbor(facts: &Facts<'_>) -> Outcome {
    let host = &facts.seen.host;
    if host.all_ns == 0 {
        return Outcome::Unseen("where the CPUs' time went (/proc/stat)");
    }
    let share = |ns: u64| ns as f64 / host.all_ns as f64;
    // Who asks over something else than TCP is known by what its writes do: they end waits for requests.
    let askers = facts.off.as_ref().map(OffCpu::askers).unwrap_or_default();
    let (asking, others): (Vec<_>, Vec<_>) =
        host.neighbours.iter().cloned().partition(|(name, _)| askers.contains(name.as_str()));
    let asking_ns: u64 = asking.iter().map(|(_, ns)| ns).sum();
    let (foreign, steal) = (share(host.foreign_ns.saturating_sub(asking_ns)), share(host.steal_ns));
    let delay = delay(facts);
    let felt = delay.is_none_or(|delay| delay >= DELAY_MIN);
    let waited = delay.map_or_else(String::new, |delay| {
        format!("; its threads waited {} of their time for a CPU", percent(delay))
    });
    let text = format!(
        "others used {} of its CPUs' time, the hypervisor {}{waited}",
        percent(foreign),
        percent(steal)
    );
    let named = |used: &[(String, u64)]| {
        let all: Vec<String> =
            used.iter().take(3).map(|(name, ns)| format!("{name} {}", percent(share(*ns)))).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    if (foreign < FOREIGN_MIN || !felt) && steal < STEAL_MIN {
        let peers = share(host.peers_ns + asking_ns);
        if peers < FOREIGN_MIN {
            return Outcome::Against(text);
        }
        let text = format!("its own peers on this machine used {} of its CPUs' time", percent(peers));
        let draft = Draft::new(Class::NoisyNeighbor, peers, text)
            .sign_if(named(&[host.peers.clone(), asking].concat()));
        return Outcome::Noted(draft.next("peers on CPUs of their own, or on another machine"));
    }
    Outcome::Found(
        Draft::new(Class::NoisyNeighbor, foreign + steal, text)
            .sure(Confidence::High)
            .fact(format!("others used {} of its CPUs' time", percent(foreign)), foreign, "share")
            .fact(format!("the hypervisor kept {}", percent(steal)), steal, "share")
            .sign_if(named(&others))
            .next("stop them, or keep them off the server's CPUs (cpuset); on a shared host, another host"),
    )
}

/// Share of the threads' time in which they could run and got no CPU; `None` where the target alone has more busy threads
/// than CPUs: then they wait for each other.
fn delay(facts: &Facts<'_>) -> Option<f64> {
    let threads = &facts.seen.threads;
    let busy = threads.iter().filter(|thread| run_share(facts, thread) >= BUSY_MIN).count();
    let run: u64 = threads.iter().map(|thread| thread.run_ns).sum();
    let wait: u64 = threads.iter().map(|thread| thread.wait_ns).sum();
    let alone = busy <= facts.seen.host.cpus as usize && run + wait > 0;
    alone.then(|| wait as f64 / (run + wait) as f64)
}

/// The cgroup's CPU quota holds the server back.
pub(super) fn throttled(facts: &Facts<'_>) -> Outcome {
    let Some(quota) = &facts.seen.quota else { return Outcome::Unseen("the cgroup's cpu.stat") };
    let share = if quota.periods > 0 { quota.throttled as f64 / quota.periods as f64 } else { 0.0 };
    let text = format!("its quota held it in {} of {} periods", quota.throttled, quota.periods);
    if share < THROTTLED_MIN {
        return Outcome::Against(text);
    }
    let cpus = quota.cpus.map_or_else(|| "a quota".to_owned(), |cpus| format!("a quota of {cpus} CPUs"));
    let held_ns = quota.throttled_ns as f64;
    let draft = Draft::new(
        Class::Throttled,
        share,
        format!("{cpus} holds it back in {} of all periods", percent(share)),
    )
    .fact(text, share, "share")
    .fact(format!("its threads were held for {:.1} s in all", held_ns / 1e9), held_ns / 1e9, "s")
    .next("raise cpu.max (cgroup v2) or cpu.cfs_quota_us (v1), or run fewer threads than it allows CPUs");
    if held_ns < HELD_MIN * (facts.seen.process.cpu_ns as f64 + held_ns) {
        return Outcome::Noted(draft);
    }
    Outcome::Found(draft.sure(Confidence::High))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Limit, Load, Packets, Quota, Sending};
    use dyno_record::profile::WaitClass;

    use crate::scene::{S, Scene, busy_load, synchronous_log};

    #[test]
    fn one_full_thread_leads_only_when_somebody_waits_for_it() {
        let alone = Scene::new(&[9.9]).on("main;work", 100);
        assert_eq!(alone.classes(), []);
        assert!(alone.diagnosed().notes.iter().any(|note| note.class == Class::SingleThreadLimit));
        let refused = Scene::new(&[9.9])
            .on("main;work", 100)
            .with(|seen| seen.packets.as_mut().unwrap().listen_overflows = 12);
        assert_eq!(refused.classes(), [Class::SingleThreadLimit]);
        // 64 connections at 100 µs of CPU each: the last one waits 6.4 ms.
        let in_line = Scene::new(&[9.9]).on("main;work", 100).load(Load { p50_ns: 6_000_000, ..busy_load() });
        assert_eq!(in_line.classes(), [Class::SingleThreadLimit]);
        let mut waiting = Scene::new(&[9.9, 0.1, 0.1]).on("main;work", 100);
        for tid in [2, 3] {
            waiting = waiting.off(tid, WaitClass::Lock, "run;pthread_cond_wait;futex_wait_[k]", 9.5).woken(
                "0x7f",
                1,
                "main;pthread_cond_signal",
            );
        }
        assert_eq!(waiting.classes(), [Class::SingleThreadLimit]);
        let two = Scene::new(&[9.9, 9.9]).on("main;work", 100).load(busy_load());
        assert_eq!(two.classes(), []);
    }

    #[test]
    fn outside_limits_come_before_everything() {
        let generator = |limited| {
            Scene::new(&[9.0])
                .on("main;work;malloc", 60)
                .on("main;work", 40)
                .load(Load { limited, busy: 0.99, ..busy_load() })
                .with(|seen| seen.host.own_ns = 10 * S)
        };
        assert_eq!(generator(Limit::Yes).classes(), [Class::GeneratorLimited, Class::AllocationChurn]);
        assert_eq!(generator(Limit::No).classes(), [Class::AllocationChurn]);
        let quota = |throttled| {
            synchronous_log().with(|seen| {
                seen.quota = Some(Quota { cpus: Some(0.5), periods: 100, throttled, throttled_ns: S });
            })
        };
        assert_eq!(quota(60).classes(), [Class::Throttled, Class::SyncIo]);
        assert_eq!(quota(1).classes(), [Class::SyncIo]);
    }

    /// Planted fault: periods counted, however short each was held.
    #[test]
    fn a_quota_that_holds_it_for_moments_is_no_finding() {
        let held = |ns| {
            let scene = Scene::new(&[5.0]).on("main;work", 100);
            scene.with(|seen| {
                seen.quota = Some(Quota { cpus: Some(0.5), periods: 25, throttled: 2, throttled_ns: ns });
            })
        };
        assert!(!held(S / 150).classes().contains(&Class::Throttled));
        assert!(held(S).classes().contains(&Class::Throttled));
    }

    #[test]
    fn a_neighbour_comes_last_and_only_where_somebody_waited_for_a_cpu() {
        let foreign = |seconds: u64| {
            Scene::new(&[8.0]).on("main;work;malloc", 60).on("main;work", 40).with(|seen| {
                seen.host.foreign_ns = seconds * S;
                seen.threads[0].wait_ns = 2 * S;
                seen.host.neighbours = vec![("cc1plus".into(), seconds * S)];
            })
        };
        assert_eq!(foreign(3).classes(), [Class::AllocationChurn, Class::NoisyNeighbor]);
        assert_eq!(foreign(10).classes(), [Class::AllocationChurn, Class::NoisyNeighbor]);
        assert_eq!(foreign(1).classes(), [Class::AllocationChurn]);
        let left_over = Scene::new(&[8.0]).on("main;work", 100).with(|seen| seen.host.foreign_ns = 10 * S);
        assert_eq!(left_over.classes(), [], "nobody waited for a CPU");
        let stolen = Scene::new(&[8.0]).on("main;work", 100).with(|seen| seen.host.steal_ns = 2 * S);
        assert_eq!(stolen.classes(), [Class::NoisyNeighbor]);
    }

    #[test]
    fn who_asks_from_the_same_machine_is_no_neighbour() {
        let asked = |seconds: u64| {
            Scene::new(&[8.0]).on("main;work", 100).with(|seen| {
                seen.host.peers_ns = seconds * S;
                seen.threads[0].wait_ns = 2 * S;
                seen.host.peers = vec![("wrk".into(), seconds * S)];
            })
        };
        let noted =
            |scene: Scene| scene.diagnosed().notes.iter().any(|note| note.class == Class::NoisyNeighbor);
        assert_eq!(asked(9).classes(), []);
        assert!(noted(asked(9)), "it is noted all the same");
        assert!(!noted(asked(1)));
    }

    #[test]
    fn who_asks_over_a_unix_socket_is_no_neighbour_either() {
        let asked = |by: &str| {
            let scene = Scene::new(&[8.0]).on("main;work", 100);
            let scene = scene.off(1, WaitClass::Network, "main;read;unix_stream_read_[k]", 1.0);
            let mut scene = scene.woken("socket", 77, by).with(|seen| {
                seen.host.foreign_ns = 9 * S;
                seen.threads[0].wait_ns = 2 * S;
                seen.host.neighbours = vec![("pgbench".into(), 9 * S)];
            });
            let waker = scene.seen.off_cpu.as_mut().unwrap().wakers.last_mut().unwrap();
            (waker.pid, waker.name) = (77, "pgbench".into());
            scene.classes()
        };
        assert_eq!(asked("main;send;unix_stream_sendmsg_[k]"), []);
        assert_eq!(
            asked("main;work;hrtimer_wakeup_[k]"),
            [Class::NoisyNeighbor],
            "it only ran when a timer fired"
        );
    }

    #[test]
    fn a_thread_at_its_limit_leads_where_requests_lie_unread() {
        let full = |unread: u64| {
            Scene::new(&[9.8])
                .on("main;work", 100)
                .with(|seen| seen.packets = Some(Packets { unread, ..Packets::default() }))
        };
        assert_eq!(full(40).classes(), [Class::SingleThreadLimit]);
        assert_eq!(full(1).classes(), []);
    }

    #[test]
    fn a_thread_at_its_limit_leads_where_something_waits_at_a_quarter_of_the_looks() {
        let looked = |rounds, rounds_waiting| {
            let sending = Sending { rounds, rounds_waiting, waiting: rounds_waiting, ..Sending::default() };
            Scene::new(&[9.8])
                .on("main;work", 100)
                .with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
                .classes()
        };
        assert_eq!(looked(100, 25), [Class::SingleThreadLimit]);
        assert_eq!(looked(100, 24), [], "one client that asks again at once");
        assert_eq!(looked(19, 19), [], "looked at too seldom");
    }
}
