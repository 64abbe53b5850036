//! An observation made by hand, for the tests of rules: a process that nothing is wrong with until a test says so.
#![allow(clippy::unwrap_used)]

use dyno_record::finding::Class;
use dyno_record::observation::{
    Host, HotSpot, Load, Memory, Observation, Packets, ProcessCost, Registers, ThreadCost,
};
use dyno_record::profile::{Frame, Kind, Module, Origin, Profile, Stack, Thread, Wait, WaitClass, Waker};

use super::{Diagnosed, diagnose};

pub(super) const S: u64 = 1_000_000_000;
/// Machine code of small loops, as in the tests of `code`.
pub(super) const COLUMNS: (&str, u64) =
    ("4863c631d2488d0487488db00090d0034863084805803e00004801ca4839f075ef4889d0c3", 0x10);
pub(super) const ROWS: (&str, u64) =
    ("488d8f803e000031c00f1f80000000004863174883c7044801d04839cf75f1c3", 0x13);
pub(super) const WAIT: (&str, u64) = ("488b074839f074f8c3", 0x3);
pub(super) const FIND: (&str, u64) =
    ("eb17660f1f44000048397710741a488b07480f4e47084889c74885ff75ea31c0c3", 0x16);
pub(super) const COUNT: (&str, u64) = ("bae80300000f1f00488b074883c00148890783ea0175f1c3", 0xf);
pub(super) const WALK: (&str, u64) = (
    "49b8cdcccccccccccccc4889f0be00100000660f1f4400004889c248c1e20d4831c24889d048c1e8074831d04889c148c1e1114831c1\
     4889c849f7e048c1ea1b488d04924889ca48c1e0194829c2488b04d783e0014801c84883c80183ee0175b7c3",
    0x52,
);

/// Ten seconds of a process on two CPUs; nothing is wrong with it until a test says so.
pub(super) struct Scene {
    pub(super) seen: Observation,
}

impl Scene {
    /// Threads that ran for so many seconds each.
    pub(super) fn new(run_s: &[f64]) -> Scene {
        let ns = |s: f64| (s * 1e9) as u64;
        let thread = |(at, s): (usize, &f64)| ThreadCost {
            tid: at as u32 + 1,
            name: "t".into(),
            run_ns: ns(*s),
            ..ThreadCost::default()
        };
        let cpu_ns = ns(run_s.iter().sum());
        let profile = |kind| Profile {
            kind,
            duration_s: 10.0,
            threads: (1..=run_s.len() as u32).map(|tid| Thread { pid: 1, tid, name: "t".into() }).collect(),
            modules: vec![
                Module { path: "/usr/bin/x".into(), ..Module::default() },
                Module { path: "/lib/libc.so.6".into(), ..Module::default() },
            ],
            ..Profile::default()
        };
        let seen = Observation {
            duration_s: 10.0,
            host: Host {
                cpus: 2,
                all_ns: 20 * S,
                idle_ns: (20 * S).saturating_sub(cpu_ns),
                ..Host::default()
            },
            threads: run_s.iter().enumerate().map(thread).collect(),
            process: ProcessCost { cpu_ns, ..ProcessCost::default() },
            memory: Some(Memory {
                rss_bytes: 8 << 20,
                anonymous_bytes: 4 << 20,
                huge_pages: "madvise".into(),
                ..Memory::default()
            }),
            packets: Some(Packets::default()),
            on_cpu: Some(profile(Kind::OnCpu)),
            off_cpu: Some(profile(Kind::OffCpu)),
            ..Observation::default()
        };
        Scene { seen }
    }

    /// CPU time: `main;work;malloc` from the root to the leaf, the kernel's functions marked as `tcp_sendmsg_[k]`.
    pub(super) fn on(mut self, folded: &str, weight: u64) -> Scene {
        // A program's work is more than one function, unless a test is about that.
        let rest = if folded.ends_with("work") { weight * 2 / 5 } else { 0 };
        let profile = self.seen.on_cpu.as_mut().unwrap();
        for (folded, weight) in [(folded.to_owned(), weight - rest), (format!("{folded}_too"), rest)] {
            if weight > 0 {
                let frames = frames(profile, &folded);
                let weight_ns = weight * S / 100;
                profile.stacks.push(Stack { frames, samples: weight, weight_ns, ..Stack::default() });
            }
        }
        self
    }

    /// A wait of thread `tid` for so many seconds.
    pub(super) fn off(mut self, tid: u32, class: WaitClass, folded: &str, seconds: f64) -> Scene {
        let profile = self.seen.off_cpu.as_mut().unwrap();
        let frames = frames(profile, folded);
        let wait = Some(Wait { class, system_call: Some("call".into()), object: None });
        profile.stacks.push(Stack {
            frames,
            thread: tid - 1,
            samples: 100,
            weight_ns: (seconds * 1e9) as u64,
            wait,
            ..Stack::default()
        });
        self
    }

    /// The last wait was for this object, ended by this thread in this stack.
    pub(super) fn woken(mut self, object: &str, tid: u32, folded: &str) -> Scene {
        let profile = self.seen.off_cpu.as_mut().unwrap();
        let frames = frames(profile, folded);
        profile.wakers.push(Waker { pid: 1, tid, name: "t".into(), frames });
        let waker = profile.wakers.len() as u32 - 1;
        let stack = profile.stacks.last_mut().unwrap();
        stack.waker = Some(waker);
        stack.wait.as_mut().unwrap().object = Some(object.into());
        self
    }

    pub(super) fn hot(mut self, code: (&str, u64), share: f64, seen: Vec<Registers>) -> Scene {
        let at = 0x40_0000 + 0x1000 * self.seen.hot.len() as u64;
        let spot = HotSpot {
            address: at + code.1,
            function: "work".into(),
            share,
            code_at: at,
            code: code.0.into(),
            seen,
            ..HotSpot::default()
        };
        self.seen.hot.push(spot);
        self
    }

    pub(super) fn load(mut self, load: Load) -> Scene {
        self.seen.load = Some(load);
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Observation)) -> Scene {
        change(&mut self.seen);
        self
    }

    pub(super) fn diagnosed(&self) -> Diagnosed {
        diagnose(&self.seen)
    }

    pub(super) fn classes(&self) -> Vec<Class> {
        self.diagnosed().findings.iter().map(|finding| finding.class).collect()
    }

    pub(super) fn first(&self) -> Option<Class> {
        self.classes().first().copied()
    }
}

fn frames(profile: &mut Profile, folded: &str) -> Vec<u32> {
    let mut frame = |name: &str| {
        let kernel = name.strip_suffix("_[k]");
        let library = super::names::is(name, super::names::ALLOCATOR)
            || name.starts_with("pthread")
            || name.starts_with("mem");
        let frame = Frame {
            name: kernel.unwrap_or(name).into(),
            origin: if kernel.is_some() { Origin::Kernel } else { Origin::User },
            module: kernel.is_none().then_some(u32::from(library)),
            ..Frame::default()
        };
        let at = profile.frames.iter().position(|one| *one == frame);
        at.unwrap_or_else(|| {
            profile.frames.push(frame);
            profile.frames.len() - 1
        }) as u32
    };
    folded.split(';').map(&mut frame).collect()
}

pub(super) fn registers(tid: u32, rdi: u64, rdx: u64) -> Registers {
    let mut values = [0; 16];
    (values[5], values[3]) = (rdi, rdx);
    Registers { tid, pid: 1, values }
}

pub(super) fn busy_load() -> Load {
    Load {
        connections: 64,
        replies: 100_000,
        replies_per_s: 10_000.0,
        p50_ns: 2_000_000,
        p99_ns: 9_000_000,
        busy: 0.4,
        ..Load::default()
    }
}

/// Eight threads, one of which always writes while the others wait for its lock.
pub(super) fn synchronous_log() -> Scene {
    let mut scene = Scene::new(&[0.2; 8]).on("conn_main;write_[k];ext4_file_write_iter_[k]", 100);
    for tid in 1..=8 {
        scene = scene
            .off(tid, WaitClass::Disk, "conn_main;fdatasync;do_fsync_[k];jbd2_log_wait_commit_[k]", 1.2)
            .off(tid, WaitClass::Lock, "conn_main;pthread_mutex_lock;futex_wait_[k]", 8.0)
            .woken("0x7f00", tid % 8 + 1, "conn_main;pthread_mutex_unlock;futex_wake_[k]");
    }
    scene.with(|seen| seen.process.disk_write_bytes = Some(8 * 100 * 4_096))
}
