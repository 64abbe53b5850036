//! Requests of a Go program that wait behind one goroutine which syncs: a log that is written ahead, say.
//!
//! Goroutines wait without a thread, and other threads work meanwhile: of the working time the disk has little. But who syncs one call
//! after another does so on a way that all requests take, and of that way the time on the clock is the measure. Seen are the calls,
//! that they are small and many (who writes behind others gathers), and requests that wait in channels. Which word they wait for is
//! not seen. The rule for disks asks.

use dyno_record::finding::{Class, Confidence};

use super::channels;
use super::draft::{Draft, percent};
use super::facts::Facts;
use super::names;
use super::waits::OffCpu;

/// Of the time on the clock: without it a quarter more would be done.
const SHARE_MIN: f64 = 0.20;
/// Syncs from which on nothing is gathered by time.
const OFTEN_PER_S: f64 = 100.0;
/// Calls under way at a time, at most: more of them are several ways.
const AT_A_TIME_MAX: f64 = 1.0;
/// Requests that wait in channels, at least.
const WAITING_MIN: f64 = 1.0;

const CALLS: &[&str] = &["fsync", "fdatasync", "msync", "sync_file_range", "syncfs"];

pub(super) fn requests_behind(facts: &Facts<'_>, off: &OffCpu<'_>) -> Option<Draft> {
    let waiting = channels::waiting(facts)?;
    let calls = || off.profile.system_calls.iter().filter(|(name, _)| names::is(name, CALLS));
    let ns: u64 = calls().map(|(_, call)| call.total_ns).sum();
    let (per_s, at_a_time) = (off.calls_per_s(CALLS), ns as f64 / off.window_ns);
    let share = off.sum(|time| time.disk + time.syncing) as f64 / off.window_ns;
    if waiting < WAITING_MIN || per_s < OFTEN_PER_S || at_a_time > AT_A_TIME_MAX || share < SHARE_MIN {
        return None;
    }
    let name = calls().max_by_key(|(_, call)| call.count).map_or("fsync", |(name, _)| name.as_str());
    let summary = format!("{} of the time one goroutine is at the disk while requests wait", percent(share));
    let place =
        off.disks.values().filter(|wait| wait.call.as_deref() == Some(name)).max_by_key(|wait| wait.ns);
    Some(
        Draft::new(Class::SyncIo, share, summary)
            .sure(Confidence::Low)
            .fact(format!("{name}: {per_s:.0} a second, one after another"), per_s, "calls/s")
            .fact(
                format!("with its waits for a CPU such a call is under way for {} of the time", percent(at_a_time)),
                at_a_time,
                "share",
            )
            .fact(format!("{waiting:.1} requests wait in channels at a time"), waiting, "goroutines")
            .sign("whether it is that goroutine's word for which they wait is not to be seen")
            .next("let more records share one sync, or answer before the bytes are on the disk and say what a crash may lose")
            .at(place.and_then(|wait| wait.place.clone()))
            .specimen("sync-log"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Goroutines, Place};
    use dyno_record::profile::{SystemCall, WaitClass};

    use crate::scene::Scene;

    /// Three threads that are busy, in one of which a goroutine is at the disk for so many of ten seconds, by that many calls;
    /// so many requests wait meanwhile. A store's log, as etcd writes it.
    fn store(at_disk_s: f64, calls: u64, requests: f64) -> Scene {
        let sync = "main.(*wal).sync;syscall.Syscall;do_syscall_64_[k];__x64_sys_fdatasync_[k];do_fsync_[k]";
        let scene = Scene::new(&[9.0, 9.0, 9.0]).on("main.serve;main.work", 100);
        scene.off(1, WaitClass::Disk, sync, at_disk_s).with(|seen| {
            let place = Place {
                state: "select".into(),
                stack: "google.golang.org/grpc.(*Server).handleStream;google.golang.org/grpc.(*Server).processUnaryRPC;main.put".into(),
                many: requests,
            };
            seen.goroutines = Some(Goroutines { looks: 50, places: vec![place], ..Goroutines::default() });
            let total_ns = (at_disk_s * 1.5e9) as u64;
            let call = SystemCall { count: calls, total_ns, ..SystemCall::default() };
            let off = seen.off_cpu.as_mut().unwrap();
            off.system_calls.insert("fdatasync".into(), call);
            off.stacks.last_mut().unwrap().wait.as_mut().unwrap().system_call = Some("fdatasync".into());
        })
    }

    /// Planted faults: the working time alone is the measure; one who flushes now and then keeps requests; nobody needs to wait; several
    /// at a time are one way.
    #[test]
    fn requests_behind_a_goroutine_that_syncs_wait_for_the_disk() {
        let said = store(3.5, 20_000, 3.0).diagnosed().findings.remove(0);
        assert_eq!(said.class, Class::SyncIo);
        assert!(
            said.summary.starts_with("35 % of the time one goroutine is at the disk"),
            "{}",
            said.summary
        );
        assert_eq!(store(3.5, 900, 3.0).classes(), [], "it writes behind them");
        assert_eq!(store(3.5, 20_000, 0.5).classes(), [], "nobody waits");
        assert_eq!(store(1.9, 20_000, 3.0).classes(), []);
        let several = store(3.5, 20_000, 3.0).with(|seen| {
            let calls = &mut seen.off_cpu.as_mut().unwrap().system_calls;
            calls.get_mut("fdatasync").unwrap().total_ns = 11_000_000_000;
        });
        assert_eq!(several.classes(), []);
    }
}
