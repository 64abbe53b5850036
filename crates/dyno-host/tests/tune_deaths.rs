//! Death at every state-changing step of an apply, of a rollback, and of the rollback after that: the host is as it was.
//!
//! The host here is the kernel, in a network namespace of the test's own, and dies at the n-th write: before it, in its
//! middle, or after it. The guard dies with it, so that the journal on disk is all that is left. Every kind of change takes
//! part; n goes up until a run comes through.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use dyno_host::host::{Host, Kernel};
use dyno_host::journal::Journal;
use dyno_host::memory::Watchman;
use dyno_host::place;
use dyno_host::tune::rollback::{Foreign, Outcome, open, roll_back};
use dyno_host::tune::session::Session;
use dyno_host::tune::snapshot::snapshot;
use dyno_record::change::{ChangeSpec, Task, What};
use dyno_record::tune::{Plan, Planned, Reading, Step, difference};
use dyno_sys::knob::KnobError;
use dyno_sys::namespace;
use dyno_sys::setting::{FOLDER, MARK};

/// Where a death comes, seen from one write.
const MOMENTS: [Moment; 2] = [Moment::Before, Moment::After];
/// A run has fewer writes.
const WRITES_MAX: u64 = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// The kernel, until the n-th write.
struct Mortal {
    left: Cell<u64>,
    moment: Moment,
}

impl Mortal {
    fn dying_at(n: u64, moment: Moment) -> Mortal {
        Mortal { left: Cell::new(n), moment }
    }

    fn write(&self, work: impl FnOnce() -> Result<(), KnobError>) -> Result<(), KnobError> {
        self.left.set(self.left.get().saturating_sub(1));
        let dies = |moment| self.left.get() == 0 && self.moment == moment;
        if dies(Moment::Before) {
            panic::resume_unwind(Box::new("killed before a write"));
        }
        let written = work();
        if dies(Moment::After) {
            panic::resume_unwind(Box::new("killed after a write"));
        }
        written
    }
}

impl Host for Mortal {
    fn read(&self, what: &What) -> Result<Vec<u8>, KnobError> {
        Kernel.read(what)
    }

    fn holds(&self, what: &What, value: &[u8]) -> Result<bool, KnobError> {
        Kernel.holds(what, value)
    }

    fn write(&mut self, what: &What, value: &[u8]) -> Result<(), KnobError> {
        Mortal::write(self, || Kernel.write(what, value))
    }

    fn put_back(&mut self, what: &What, old: &[u8]) -> Result<(), KnobError> {
        Mortal::write(self, || Kernel.put_back(what, old))
    }
}

/// A namespace with something to change of every kind.
struct Lab {
    folder: PathBuf,
    sleeper: Child,
}

impl Lab {
    fn set_up(name: &str) -> Lab {
        for command in [
            "ip link add vA numtxqueues 4 numrxqueues 4 type veth peer name vB",
            "ip link set vA up",
            "ip link set vB up",
            "tc qdisc replace dev vA root handle 77: tbf rate 40gbit burst 10mb limit 100mb",
        ] {
            run(command);
        }
        std::fs::write("/sys/class/net/vA/queues/rx-0/rps_cpus", "1").unwrap();
        let folder = std::env::temp_dir().join(format!("dyno-deaths-{}-{name}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Lab { folder, sleeper: Command::new("/bin/sleep").arg("600").spawn().unwrap() }
    }

    fn plan(&self) -> Plan {
        let (network, device) = (place::network().unwrap(), || place::device("vA").unwrap());
        let task: Task = place::threads(self.sleeper.id().cast_signed()).unwrap()[0];
        let below = |name: &str| self.folder.join(name).display().to_string();
        let cpu = dyno_sys::affinity::allowed().iter().next().unwrap().to_string();
        let changes = [
            (What::NetworkFile { network, path: "/proc/sys/net/core/somaxconn".into() }, "99"),
            (What::DeviceFile { device: device(), file: "queues/rx-0/rps_cpus".into() }, "0"),
            (What::Feature { device: device(), name: "tx-tcp-segmentation".into() }, "off"),
            (What::Hardware { device: device(), field: "channels tx".into() }, "2"),
            (What::Qdisc { device: device() }, "default"),
            (What::Table { network, family: "ip".into(), name: "dyno_x".into() }, "chain a { }"),
            (What::Scheduler(task), "batch nice 3"),
            (What::Affinity(task), cpu.as_str()),
            (What::OwnFolder { path: below("etc") }, FOLDER),
            (What::OwnFile { path: below("etc/90-dyno.conf") }, MARK),
        ];
        let planned = |(what, wanted): (What, &str)| Planned {
            spec: ChangeSpec { what, wanted: wanted.to_owned(), why: "a test".into() },
            was: String::new(),
            set: String::new(),
            undo: String::new(),
            cuts: None,
        };
        let step = Step { id: "x".into(), changes: changes.map(planned).to_vec(), ..Step::default() };
        Plan { steps: vec![step], ..Plan::default() }
    }

    /// Everything that the plan touches, as it is.
    fn state(&self) -> Vec<(String, Reading)> {
        let mut all: Vec<(String, Reading)> = Vec::new();
        for change in &self.plan().steps[0].changes {
            let value = Kernel.read(&change.spec.what).unwrap();
            all.push((change.spec.what.to_string(), Reading::Value(String::from_utf8(value).unwrap())));
        }
        let network = snapshot().settings.into_iter();
        all.extend(network.filter(|(name, _)| !name.starts_with('/') || name.starts_with("/sys/class/net")));
        all
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.folder.join("journal")).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{command}");
}

/// Whether it came through; a death is passed over, any other panic is not.
fn survives(work: impl FnOnce()) -> bool {
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(()) => true,
        Err(death) if death.downcast_ref::<&str>().is_some_and(|said| said.starts_with("killed")) => false,
        Err(other) => panic::resume_unwind(other),
    }
}

/// An apply whose guard dies with it.
fn apply(lab: &Lab, host: &mut dyn Host) {
    let (guard, mut journal, plan) = (Watchman::default(), lab.journal(), lab.plan());
    let mut session = Session::new(&guard, &mut journal);
    session.carry_out(&plan, host, &mut |_| {}).unwrap();
    session.keep().unwrap();
}

fn rolled_back(lab: &Lab, host: &mut dyn Host) {
    let mut journal = lab.journal();
    let all = open(&journal);
    roll_back(&all, Foreign::Told, &mut journal, host, &mut |open, outcome| {
        let is_back = matches!(outcome, Outcome::PutBack(_) | Outcome::WasBack);
        assert!(is_back, "{}: {outcome:?}", open.left.what);
    })
    .unwrap();
}

/// Runs in a network of its own; without the right to make one there is nothing to test.
fn in_network(work: impl FnOnce() + Send) {
    if let Err(error) = namespace::in_new_network(work) {
        assert!(!namespace::may_make_network(), "{error}");
        eprintln!("not tested, without the right to make a network: {error}");
    }
}

/// Planted fault: `Session::make` writes before the journal has its line, or `roll_back` marks a change before it is back;
/// then a death between the two leaves the host changed.
#[test]
fn a_death_at_any_write_of_apply_and_of_two_rollbacks_leaves_the_host_as_it_was() {
    in_network(|| {
        let lab = Lab::set_up("writes");
        let before = lab.state();
        for moment in MOMENTS {
            let mut deaths = 0;
            for n in 1..WRITES_MAX {
                let applied = survives(|| apply(&lab, &mut Mortal::dying_at(n, moment)));
                let mut rollbacks = 0;
                // Killed at its first write, at its second … and once more after that, until one comes through.
                for m in (1..WRITES_MAX).flat_map(|m| [m, m]) {
                    rollbacks += 1;
                    if survives(|| rolled_back(&lab, &mut Mortal::dying_at(m, moment))) {
                        break;
                    }
                }
                assert!(rollbacks > 0);
                assert_eq!(lab.state(), before, "killed at write {n}");
                assert!(open(&lab.journal()).is_empty());
                deaths += u64::from(!applied);
                if applied {
                    break;
                }
            }
            assert_eq!(deaths, 10, "one for each change");
        }
    });
}

/// Planted fault: the pending entry is not looked at; then the kernel's 4096 is taken for somebody else's and left.
#[test]
fn a_value_that_the_kernel_rounded_before_a_death_is_put_back() {
    in_network(|| {
        let lab = Lab::set_up("rounded");
        let file = "/sys/class/net/vA/queues/rx-0/rps_flow_cnt";
        let what = What::DeviceFile {
            device: place::device("vA").unwrap(),
            file: "queues/rx-0/rps_flow_cnt".into(),
        };
        let mut journal = lab.journal();
        let spec = ChangeSpec { what, wanted: "4000".into(), why: "a test".into() };
        journal.change(&spec, "0").unwrap();
        // The write of a run that was killed before it read back.
        std::fs::write(file, "4000").unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap().trim(), "4096", "this kernel rounds up");
        drop(journal);
        let mut outcomes = Vec::new();
        let mut journal = lab.journal();
        let all = open(&journal);
        roll_back(&all, Foreign::Told, &mut journal, &mut Kernel, &mut |_, outcome| {
            outcomes.push(outcome.clone());
        })
        .unwrap();
        assert_eq!(outcomes, [Outcome::PutBack("4096".into())]);
        assert_eq!(std::fs::read_to_string(file).unwrap().trim(), "0");
    });
}

#[test]
fn a_device_that_went_and_came_back_under_its_name_is_marked_and_not_touched() {
    in_network(|| {
        let lab = Lab::set_up("namesake");
        apply(&lab, &mut Kernel);
        run("ip link del vA");
        run("ip link add vA numtxqueues 4 numrxqueues 4 type veth peer name vB");
        let before = snapshot();
        let (mut gone, mut back) = (0, 0);
        let mut journal = lab.journal();
        let all = open(&journal);
        roll_back(&all, Foreign::Told, &mut journal, &mut Kernel, &mut |_, outcome| match outcome {
            Outcome::Gone(_) => gone += 1,
            Outcome::PutBack(_) => back += 1,
            other => panic!("{other:?}"),
        })
        .unwrap();
        assert_eq!((gone, back), (4, 6));
        let changed = difference(&before, &snapshot()).changed;
        let of_device = |name: &&String| name.contains("vA");
        assert_eq!(changed.keys().filter(of_device).count(), 0, "{changed:?}");
        assert!(!Path::new(&lab.folder.join("etc")).exists());
    });
}
