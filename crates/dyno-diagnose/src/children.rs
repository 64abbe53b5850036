//! Processes that begin, do little and end: one for each request, each login, each line of a script.
//!
//! Sampling sees little of them, and nothing of those that change their user when they begin: the kernel takes the sampler from
//! them. What every process ran is counted where it is watched what threads wait for. Asked by the rule for pages.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::Observation;

use super::draft::{Draft, percent};

/// Half of the CPU: what each of them does besides is as much at most.
const SHARE_MIN: f64 = 0.5;
/// Fewer are no habit.
const MANY_MIN: usize = 10;
/// CPU time of each, on average. To begin a program that has a few libraries and to end it takes a millisecond or two, and an
/// interpreter ten; who works for longer is worth its beginning.
const EACH_MS_MAX: f64 = 10.0;

/// What is advised against them.
pub(super) const FEWER: &str = "fewer children: do it in the program itself, let workers live and take the next piece of work, or \
     begin programs by posix_spawn or vfork, which copy no address space";

/// Processes that began while others of the target were counted.
#[derive(Debug)]
struct Children {
    many: usize,
    ns: u64,
    /// Of what all ran.
    share: f64,
    per_s: f64,
    names: Vec<String>,
}

impl Children {
    fn of(seen: &Observation) -> Option<Children> {
        let profile = seen.off_cpu.as_ref().filter(|profile| profile.duration_s > 0.0)?;
        let old: BTreeSet<u32> = seen.threads.iter().map(|thread| thread.tid).collect();
        let (mut all_ns, mut new) = (0, BTreeMap::<u32, u64>::new());
        let mut names = BTreeMap::<&str, u64>::new();
        for time in &profile.thread_times {
            let Some(thread) = profile.threads.get(time.thread as usize) else { continue };
            all_ns += time.running_ns;
            if !old.contains(&thread.pid) {
                *new.entry(thread.pid).or_default() += time.running_ns;
                *names.entry(&thread.name).or_default() += time.running_ns;
            }
        }
        let ns = new.values().sum::<u64>();
        let mut names: Vec<(&str, u64)> = names.into_iter().filter(|(name, _)| !name.is_empty()).collect();
        names.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        (all_ns > 0).then(|| Children {
            many: new.len(),
            ns,
            share: ns as f64 / all_ns as f64,
            per_s: new.len() as f64 / profile.duration_s,
            names: names.into_iter().take(3).map(|(name, _)| name.to_owned()).collect(),
        })
    }

    fn each_ms(&self) -> f64 {
        self.ns as f64 / 1e6 / self.many.max(1) as f64
    }
}

/// Most of the CPU goes into processes that live for a moment.
pub(super) fn short_lived(seen: &Observation) -> Option<Draft> {
    let children = Children::of(seen)?;
    let each_ms = children.each_ms();
    if children.share < SHARE_MIN || children.many < MANY_MIN || each_ms > EACH_MS_MAX {
        return None;
    }
    let (share, per_s) = (children.share, children.per_s);
    let summary = format!(
        "{} of the CPU runs processes that begin and end again: {per_s:.0} a second, {each_ms:.1} ms of CPU time each",
        percent(share)
    );
    Some(
        Draft::new(Class::PageFaults, share, summary)
            .sure(Confidence::Medium)
            .fact(format!("most of it is in {}", children.names.join(", ")), share, "share")
            .sign("each has its memory made, its libraries loaded and its settings read anew")
            .next(format!("{FEWER}; a server's setting says how many requests each may serve"))
            .specimen("buffer-per-request"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::ThreadCost;
    use dyno_record::profile::{Thread, ThreadTime};

    use crate::scene::Scene;

    /// A server that ran for two seconds, beside so many processes that each began meanwhile and ran for so long.
    fn beside(many: u32, each_ms: u64, name: &str) -> Scene {
        let scene = Scene::new(&[2.0]).on("main;serve", 60).on("main;wait", 60);
        scene.with(|seen| {
            let off = seen.off_cpu.as_mut().unwrap();
            off.thread_times =
                vec![ThreadTime { thread: 0, running_ns: 2_000_000_000, ..ThreadTime::default() }];
            for child in 0..many {
                off.threads.push(Thread { pid: 100 + child, tid: 100 + child, name: name.to_owned() });
                let running_ns = each_ms * 1_000_000;
                off.thread_times.push(ThreadTime { thread: 1 + child, running_ns, ..ThreadTime::default() });
            }
        })
    }

    /// Planted faults: each of the three lines at nought or without end; threads of a process that was there are children.
    #[test]
    fn a_process_for_each_request_is_told_with_how_many_there_are() {
        let told = |many, each_ms| beside(many, each_ms, "imap-login").classes();
        assert_eq!(told(500, 5), [Class::PageFaults]);
        assert_eq!(told(300, 5), [], "the server does more itself");
        assert_eq!(told(9, 9), [], "they are few");
        assert_eq!(told(500, 11), [], "each works for a while");
        let summary = beside(500, 5, "imap-login").diagnosed().findings.remove(0).summary;
        assert!(summary.starts_with("56 % of the CPU runs processes"), "{summary}");
        assert!(summary.ends_with("50 a second, 5.0 ms of CPU time each"), "{summary}");
        // A thread that begins in each of five hundred processes that were there.
        let threads = beside(500, 5, "worker").with(|seen| {
            let olds = (1_000..1_600).map(|tid| ThreadCost { tid, ..ThreadCost::default() });
            seen.threads.extend(olds);
            let threads = seen.off_cpu.as_mut().unwrap().threads.iter_mut().skip(1);
            threads.for_each(|thread| thread.pid = 900 + thread.tid);
        });
        assert_eq!(threads.classes(), []);
    }
}
