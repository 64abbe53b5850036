//! Settings of the host that are more than a file: offloads and hardware of a network device, its root qdisc, a table of packet
//! filters, a rule of ours in somebody's chain, an interrupt's CPUs, a thread's CPUs and its place in line, files of a network
//! namespace, files and folders of our own.
//!
//! `dyno_host` calls it to change one, the keeper to undo it. A value is a text that reads back as it was written; a device is
//! known by its namespace, its number and its name, a thread by its number and its start, so that a namesake is never touched.
//! What could not be put back exactly is not changed. The caller has journalled the old value first.

mod feature;
mod first_rule;
mod hardware;
mod interrupt;
mod kind;
mod own;
mod place;
mod qdisc;
pub mod scheduling;
mod table;
mod task;

pub use first_rule::RULE as FIRST_RULE;
pub use hardware::Field;
pub use kind::VALUE_BYTES_MAX;
pub use own::{FOLDER, MARK};
pub use place::{Device, Task, there};
pub use table::PREFIX as TABLE_PREFIX;

use crate::knob::{self, KnobError};
use crate::namespace::Network;
use kind::{Kind, NotExact, inner};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Which setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A file of a network namespace: `/proc/sys/net/…`.
    NetworkFile {
        /// The namespace.
        network: Network,
        /// The file, as seen from inside; absolute.
        path: PathBuf,
    },
    /// A file of a device, as `queues/rx-0/rps_cpus` under `/sys/class/net/NAME`.
    DeviceFile {
        /// The device.
        device: Device,
        /// The file, below the device's folder.
        file: String,
    },
    /// An offload: `on` or `off`.
    Feature {
        /// The device.
        device: Device,
        /// The kernel's name of it, as `tx-tcp-segmentation`.
        name: String,
    },
    /// What network hardware is set to: a number.
    Hardware {
        /// The device.
        device: Device,
        /// Which.
        field: Field,
    },
    /// The root qdisc: `default`, `KIND`, or as it reads.
    Qdisc(Device),
    /// A table of nftables of our own: its chains and rules; nothing is "no such table".
    Table {
        /// The namespace.
        network: Network,
        /// `ip`, `ip6` or `inet`.
        family: String,
        /// Its name, which begins with [`TABLE_PREFIX`].
        name: String,
    },
    /// A rule of ours at the head of somebody's chain: [`FIRST_RULE`]; nothing is "no such rule".
    FirstRule {
        /// The namespace.
        network: Network,
        /// `ip`, `ip6` or `inet`.
        family: String,
        /// The table, which is somebody's.
        table: String,
        /// The chain in it.
        chain: String,
    },
    /// The CPUs that may take an interrupt, as `0-1,5`.
    Interrupt {
        /// Its number.
        irq: u32,
        /// Who asked for it, as `/sys/kernel/irq/N/actions` says: tells it from a later one of the number.
        name: String,
    },
    /// Where a thread may run: CPUs, as `0-1,5`.
    Affinity(Task),
    /// A thread's class and place in line: `other nice 0`, `fifo priority 10`.
    Scheduler(Task),
    /// A file of our own, with the line [`MARK`] in it: its contents; nothing is "no such file".
    OwnFile(PathBuf),
    /// A folder of our own: [`FOLDER`]; nothing is "no such folder".
    OwnFolder(PathBuf),
}

impl Setting {
    /// What it stands at.
    ///
    /// # Errors
    /// When it cannot be read, is gone, or could not be put back exactly.
    pub fn read(&self) -> Result<Vec<u8>, KnobError> {
        self.there(|kind| kind.get().map(String::into_bytes).map_err(|error| self.unreadable(error)))
    }

    /// Whether it stands at this value.
    ///
    /// # Errors
    /// As [`Setting::read`].
    pub fn holds(&self, value: &[u8]) -> Result<bool, KnobError> {
        self.there(|kind| self.reads_as(kind, value))
    }

    /// Writes a value and reads it back. Whatever goes wrong, the value before is written again.
    ///
    /// # Errors
    /// When it was not taken; with [`KnobError::NotRestored`] it does not stand where it stood either.
    pub fn write(&self, value: &[u8]) -> Result<(), KnobError> {
        self.there(|kind| self.write_to(kind, value))
    }

    fn write_to(&self, kind: &dyn Kind, value: &[u8]) -> Result<(), KnobError> {
        let old = kind.get().map_err(|error| self.unreadable(error))?;
        let failure = match kind.put(&text(value)).map(|()| self.reads_as(kind, value)) {
            Ok(Ok(true)) => return Ok(()),
            Ok(Ok(false)) => KnobError::ReadBackDiffers {
                knob: self.knob(),
                wrote: text(value),
                read: kind.get().unwrap_or_default(),
            },
            Ok(Err(unreadable)) => {
                // It is ours, whatever it reads as: it was written a moment ago.
                self.put_old(kind, &old)?;
                return Err(unreadable);
            }
            Err(source) => self.refused(value, source),
        };
        self.back(kind, &old)?;
        Err(failure)
    }

    /// Why a value is better not written now, although it could be. It only reads.
    #[must_use]
    pub fn advises_against(&self, value: &[u8]) -> Option<String> {
        let asked =
            self.there(|kind| kind.advises_against(&text(value)).map_err(|error| self.unreadable(error)));
        // What cannot be read is told by whoever reads it next.
        asked.ok().flatten()
    }

    /// Writes an old value again and sees that it holds; what holds already is not written.
    ///
    /// # Errors
    /// When it does not.
    pub fn put_back(&self, old: &[u8]) -> Result<(), KnobError> {
        self.there(|kind| self.back(kind, &text(old)))
    }

    /// Why it could never be changed, in words.
    pub(crate) fn fault(&self) -> Option<String> {
        let bad = match self {
            Setting::NetworkFile { path, .. } => !path.starts_with("/proc/sys/net") || is_crooked(path),
            Setting::DeviceFile { device, file } => device.is_crooked() || is_crooked(Path::new(file)),
            Setting::Feature { device, .. } | Setting::Hardware { device, .. } | Setting::Qdisc(device) => {
                device.is_crooked()
            }
            Setting::Table { family, name, .. } => table::is_crooked(family, name),
            Setting::FirstRule { family, table, chain, .. } => first_rule::is_crooked(family, [table, chain]),
            Setting::Interrupt { name, .. } => name.is_empty(),
            Setting::Affinity(task) | Setting::Scheduler(task) => task.tid <= 0,
            Setting::OwnFile(path) | Setting::OwnFolder(path) => !path.is_absolute() || is_crooked(path),
        };
        bad.then(|| format!("{self} cannot be a setting of ours"))
    }

    /// Does something where the setting is, which is a namespace perhaps.
    fn there<T: Send>(
        &self,
        work: impl Fn(&dyn Kind) -> Result<T, KnobError> + Send + Sync,
    ) -> Result<T, KnobError> {
        if let Some(why) = self.fault() {
            return Err(KnobError::NotExact { knob: self.knob(), why });
        }
        let gone = |why| KnobError::Gone { knob: self.knob(), why };
        let unreadable = |source| KnobError::Unreadable { knob: self.knob(), source };
        let inside = || match self.missing() {
            Some(why) => Err(gone(why)),
            None => work(&*self.kind()),
        };
        match self.network() {
            None => inside(),
            Some(network) => {
                place::there(network, inside).map_err(unreadable)?.unwrap_or_else(|why| Err(gone(why)))
            }
        }
    }

    fn network(&self) -> Option<&Network> {
        match self {
            Setting::NetworkFile { network, .. }
            | Setting::Table { network, .. }
            | Setting::FirstRule { network, .. } => Some(network),
            Setting::DeviceFile { device, .. }
            | Setting::Feature { device, .. }
            | Setting::Hardware { device, .. }
            | Setting::Qdisc(device) => Some(&device.network),
            Setting::Interrupt { .. }
            | Setting::Affinity(_)
            | Setting::Scheduler(_)
            | Setting::OwnFile(_)
            | Setting::OwnFolder(_) => None,
        }
    }

    /// What of it is no longer there.
    fn missing(&self) -> Option<String> {
        match self {
            Setting::DeviceFile { device, .. }
            | Setting::Feature { device, .. }
            | Setting::Hardware { device, .. }
            | Setting::Qdisc(device) => device.missing(),
            Setting::Affinity(task) | Setting::Scheduler(task) => task.missing(),
            Setting::Interrupt { irq, name } => interrupt::missing(*irq, name),
            Setting::FirstRule { family, table, chain, .. } => {
                first_rule::FirstRule { family, table, chain }.missing()
            }
            _ => None,
        }
    }

    fn kind(&self) -> Box<dyn Kind + '_> {
        match self {
            Setting::NetworkFile { path, .. } => Box::new(InFile(path.clone())),
            Setting::DeviceFile { device, file } => Box::new(InFile(device.folder().join(file))),
            Setting::Feature { device, name } => Box::new(feature::Feature { device: device.index, name }),
            Setting::Hardware { device, field } => {
                Box::new(hardware::Hardware { device: device.index, field: *field })
            }
            Setting::Qdisc(device) => Box::new(qdisc::Root(device.index)),
            Setting::Table { family, name, .. } => Box::new(table::Table { family, name }),
            Setting::FirstRule { family, table, chain, .. } => {
                Box::new(first_rule::FirstRule { family, table, chain })
            }
            Setting::Interrupt { irq, name } => Box::new(interrupt::Interrupt { irq: *irq, name }),
            Setting::Affinity(task) => Box::new(task::Affinity(task.tid)),
            Setting::Scheduler(task) => Box::new(task::Scheduler(task.tid)),
            Setting::OwnFile(path) => Box::new(own::OwnFile(path)),
            Setting::OwnFolder(path) => Box::new(own::OwnFolder(path)),
        }
    }

    fn reads_as(&self, kind: &dyn Kind, value: &[u8]) -> Result<bool, KnobError> {
        let reads = kind.get().map_err(|error| self.unreadable(error))?;
        Ok(kind.same(&reads, &text(value)))
    }

    fn back(&self, kind: &dyn Kind, old: &str) -> Result<(), KnobError> {
        let failed = |source| KnobError::NotRestored { knob: self.knob(), old: old.to_owned(), source };
        let is_back = kind.get().map(|reads| kind.same(&reads, old));
        match is_back.map_err(failed)? {
            true => Ok(()),
            false => self.put_old(kind, old),
        }
    }

    fn put_old(&self, kind: &dyn Kind, old: &str) -> Result<(), KnobError> {
        let failed = |source| KnobError::NotRestored { knob: self.knob(), old: old.to_owned(), source };
        kind.put(old).map_err(failed)?;
        let reads = kind.get().map_err(failed)?;
        match kind.same(&reads, old) {
            true => Ok(()),
            false => Err(failed(io::Error::other(format!("it reads {reads:?}")))),
        }
    }

    fn unreadable(&self, source: io::Error) -> KnobError {
        match source.get_ref().and_then(|inner| inner.downcast_ref::<NotExact>()) {
            Some(NotExact(why)) => KnobError::NotExact { knob: self.knob(), why: why.clone() },
            None => KnobError::Unreadable { knob: self.knob(), source },
        }
    }

    fn refused(&self, value: &[u8], source: io::Error) -> KnobError {
        match self.unreadable(source) {
            KnobError::Unreadable { knob, source } => KnobError::Refused { knob, wrote: text(value), source },
            other => other,
        }
    }

    fn knob(&self) -> PathBuf {
        self.to_string().into()
    }
}

/// A file, by `knob`'s rules.
struct InFile(PathBuf);

impl Kind for InFile {
    fn get(&self) -> io::Result<String> {
        let raw = knob::read(&self.0).map_err(inner)?;
        Ok(text(&knob::settable(&raw)))
    }

    fn put(&self, value: &str) -> io::Result<()> {
        knob::put(&self.0, value.as_bytes())
    }

    fn same(&self, reads: &str, wanted: &str) -> bool {
        knob::same(reads.as_bytes(), wanted.as_bytes())
    }
}

/// A path that leads elsewhere than it says.
fn is_crooked(path: &Path) -> bool {
    use std::path::Component;
    path.as_os_str().is_empty() || path.components().any(|part| matches!(part, Component::ParentDir))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::NetworkFile { path, .. } => write!(f, "{}", path.display()),
            Setting::DeviceFile { device, file } => write!(f, "{}/{file}", device.folder().display()),
            Setting::Feature { device, name } => write!(f, "offload {name} of {}", device.name),
            Setting::Hardware { device, field } => write!(f, "{} of {}", field.name(), device.name),
            Setting::Qdisc(device) => write!(f, "root qdisc of {}", device.name),
            Setting::Table { family, name, .. } => write!(f, "nftables table {family} {name}"),
            Setting::FirstRule { family, table, chain, .. } => {
                write!(f, "first rule of nftables chain {family} {table} {chain}")
            }
            Setting::Interrupt { irq, name } => write!(f, "CPUs of interrupt {irq} ({name})"),
            Setting::Affinity(task) => write!(f, "CPUs of thread {} of {}", task.tid, task.pid),
            Setting::Scheduler(task) => write!(f, "scheduling of thread {} of {}", task.tid, task.pid),
            Setting::OwnFile(path) | Setting::OwnFolder(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::namespace;
    use std::process::Command;

    /// Runs in a network of its own; without the right to make one nothing can be changed, and nothing is tested.
    pub(super) fn in_network(work: impl FnOnce() + Send) {
        match namespace::in_new_network(work) {
            Ok(()) => {}
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}"),
        }
    }

    /// The same with a pair of devices, `vA` and `vB`, of four queues.
    pub(super) fn in_network_with_pair(work: impl FnOnce() + Send) {
        in_network(|| {
            run("ip link add vA numtxqueues 4 numrxqueues 4 type veth peer name vB");
            run("ip link set vA up");
            run("ip link set vB up");
            work();
        });
    }

    pub(super) fn run(command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn device(name: &str) -> Device {
        Device::here(name).unwrap()
    }

    #[test]
    fn a_file_of_a_device_and_of_a_network_is_written_and_put_back() {
        in_network_with_pair(|| {
            let rps = Setting::DeviceFile { device: device("vA"), file: "queues/rx-0/rps_cpus".into() };
            let network = namespace::network().unwrap();
            let path = "/proc/sys/net/core/somaxconn".into();
            let backlog = Setting::NetworkFile { network, path };
            for (setting, wanted) in [(&rps, "1"), (&backlog, "99")] {
                let before = setting.read().unwrap();
                setting.write(wanted.as_bytes()).unwrap();
                assert!(setting.holds(wanted.as_bytes()).unwrap());
                assert!(setting.write(b"nonsense").is_err() && setting.holds(wanted.as_bytes()).unwrap());
                setting.put_back(&before).unwrap();
                assert!(setting.holds(&before).unwrap());
            }
        });
    }

    /// Planted fault: `there` runs the work without entering; then this machine's own setting changes.
    #[test]
    fn a_setting_of_another_network_is_changed_there_and_nowhere_else() {
        let own = std::fs::read("/proc/sys/net/core/somaxconn").unwrap();
        in_network(|| {
            let network = namespace::network().unwrap();
            // It holds the namespace; the thread that looks from outside finds it by this process.
            let mut held = Command::new("/bin/sleep").arg("600").spawn().unwrap();
            std::thread::scope(|scope| {
                let outside = scope.spawn(|| {
                    let own = std::fs::File::open("/proc/self/ns/net").unwrap();
                    namespace::in_network(&own, || {
                        let path = "/proc/sys/net/core/somaxconn".into();
                        let backlog = Setting::NetworkFile { network, path };
                        let before = backlog.read().unwrap();
                        backlog.write(b"77").unwrap();
                        assert_eq!(backlog.read().unwrap(), b"77");
                        backlog.put_back(&before).unwrap();
                        let name = Setting::Table { network, family: "ip".into(), name: "dyno_x".into() };
                        name.write(b"chain x { }").unwrap();
                        name.put_back(b"").unwrap();
                        backlog.write(b"78").unwrap();
                    })
                    .unwrap();
                });
                outside.join().unwrap();
            });
            assert_eq!(std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap(), "78\n");
            held.kill().unwrap();
            held.wait().unwrap();
        });
        assert_eq!(std::fs::read("/proc/sys/net/core/somaxconn").unwrap(), own);
    }

    /// Takes every value, and cannot be read while it stands at one of them.
    struct Veiled(std::cell::RefCell<String>);

    impl Kind for Veiled {
        fn get(&self) -> io::Result<String> {
            match self.0.borrow().as_str() {
                "hidden" => Err(io::Error::from(io::ErrorKind::TimedOut)),
                seen => Ok(seen.to_owned()),
            }
        }

        fn put(&self, value: &str) -> io::Result<()> {
            *self.0.borrow_mut() = value.to_owned();
            Ok(())
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_back_does_not_stay() {
        let setting = Setting::OwnFile("/x".into());
        let kind = Veiled("old".to_owned().into());
        let failure = setting.write_to(&kind, b"hidden").unwrap_err();
        assert!(matches!(failure, KnobError::Unreadable { .. }), "{failure}");
        assert_eq!(kind.0.into_inner(), "old");
    }

    #[test]
    fn a_network_that_has_ended_is_gone() {
        let ended = Network { inode: 1, cookie: 1 };
        let path: PathBuf = "/proc/sys/net/core/somaxconn".into();
        let setting = Setting::NetworkFile { network: ended, path };
        assert!(matches!(setting.write(b"1"), Err(KnobError::Gone { .. })));
    }

    #[test]
    fn what_leads_elsewhere_is_no_setting_of_ours() {
        let network = namespace::network().unwrap();
        let device = |name: &str| Device { network, index: 1, name: name.into() };
        for bad in [
            Setting::NetworkFile { network, path: "/etc/passwd".into() },
            Setting::NetworkFile { network, path: "/proc/sys/net/../kernel/sysrq".into() },
            Setting::DeviceFile { device: device("lo"), file: "../../x".into() },
            Setting::Qdisc(device("..")),
            Setting::Qdisc(device("a/b")),
            Setting::OwnFile("etc/x".into()),
            Setting::Table { network, family: "inet".into(), name: "dyno_x; flush ruleset".into() },
        ] {
            assert!(bad.fault().is_some() && bad.write(b"1").is_err(), "{bad}");
        }
    }
}
