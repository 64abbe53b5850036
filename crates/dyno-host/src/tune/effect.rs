//! Proof of effect: whether a change that was written and reads back does what it is for.
//!
//! The verb asks for it when the changes of an apply stand, and again for `status`. What only packets can show is looked at
//! twice, with a pause between: nothing is sent to anybody for it, and without packets it says so. Sockets that are opened for
//! a proof stay on 127.0.0.1 of the setting's own namespace. Nothing of the host is changed here.

mod device;
mod host;
mod interrupt;
mod netfilter;
mod seen;
mod sockets;
mod steering;
mod sysctl;
mod task;

use std::time::Duration;

use dyno_record::change::{Network, What};
use dyno_record::tune::Effect;
use dyno_sys::setting;

use crate::place;
use seen::{Moved, Sight};

/// The pause: some packets of a host that serves; who waits at a terminal does not mind it.
pub const PAUSE: Duration = Duration::from_millis(300);

/// A change whose effect is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The setting.
    pub what: &'a What,
    /// What it was before.
    pub old: &'a str,
    /// Where it was to stand, and stands.
    pub wanted: &'a str,
}

/// The effect of each, in their order. `pause` is called once between two looks at what moves, if anything does.
pub fn prove(all: &[Asked<'_>], pause: &mut dyn FnMut()) -> Vec<Effect> {
    let before: Vec<Result<Moved, String>> =
        all.iter().map(|one| at(one.what, || moving(one.what))).collect();
    if before.iter().flatten().any(|counts| !counts.is_empty()) {
        pause();
    }
    let judged = |(one, before): (&Asked<'_>, Result<Moved, String>)| {
        let shown = before.and_then(|before| {
            at(one.what, || {
                let sight = Sight::of_kernel(moving(one.what).since(&before));
                judge(one, &sight)
            })
        });
        shown.unwrap_or_else(|why| Effect::not_shown(why, "a look into its network namespace"))
    };
    all.iter().zip(before).map(judged).collect()
}

/// Does something where the setting is.
fn at<T: Send>(what: &What, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    match network_of(what) {
        None => Ok(work()),
        Some(network) => setting::there(&place::to_sys(network), work).map_err(|error| error.to_string())?,
    }
}

fn network_of(what: &What) -> Option<Network> {
    match what {
        What::NetworkFile { network, .. } | What::Table { network, .. } | What::FirstRule { network, .. } => {
            Some(*network)
        }
        what => what.device().map(|device| device.network),
    }
}

/// Counters that show its work.
fn moving(what: &What) -> Moved {
    match what {
        What::File(path) | What::NetworkFile { path, .. } if path.starts_with("/proc/sys/net/") => {
            sysctl::moving(path)
        }
        What::File(path) => host::moving(path, &seen::text),
        What::FirstRule { family, table, chain, .. } => netfilter::moving(family, table, chain),
        What::Interrupt { irq, .. } => interrupt::moving(&irq.to_string(), &seen::text),
        What::Affinity(task) | What::Scheduler(task) => task::moving(task),
        what => what.device().map_or_else(Moved::default, device::moving),
    }
}

fn judge(asked: &Asked<'_>, sight: &Sight<'_>) -> Effect {
    let Asked { what, old, wanted } = *asked;
    match what {
        What::File(path) | What::NetworkFile { path, .. } if path.starts_with("/proc/sys/net/") => {
            sysctl::judge(path, old, wanted, sight)
        }
        What::File(path) => host::judge(path, wanted, sight),
        What::NetworkFile { path, .. } => {
            Effect::not_shown(format!("no proof of {path} is known"), "a person")
        }
        What::DeviceFile { device, file } => steering::judge(device, file, wanted, sight),
        What::Feature { device, name } => device::feature(device, name, wanted, sight),
        What::Hardware { device, field } => device::hardware(device, field, wanted, sight),
        What::Qdisc { device } => device::qdisc(device, sight),
        What::Table { family, name, .. } => netfilter::judge(family, name),
        What::FirstRule { family, table, chain, .. } => netfilter::first(family, table, chain, sight),
        What::Interrupt { irq, .. } => {
            interrupt::judge(&irq.to_string(), wanted, sight, interrupt::balancer())
        }
        What::Affinity(task) => task::affinity(task, wanted, sight),
        What::Scheduler(task) => task::scheduler(task, wanted, sight),
        What::OwnFile { .. } | What::OwnFolder { .. } => {
            Effect::not_shown("it is read at the next boot", "dyno tune snapshot and diff after that boot")
        }
    }
}
