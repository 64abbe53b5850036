//! Settings that are more than a file: which setting of `dyno_sys` a change means, and how the keeper undoes it.
//!
//! [`crate::host`] calls it. Reading, writing and putting back is `dyno_sys::setting`'s.

use std::path::PathBuf;

use dyno_record::change::What;
use dyno_sys::keeper::Undo;
use dyno_sys::knob::KnobError;
use dyno_sys::setting::{Field, Setting};

use crate::place;

/// The setting that is meant; a file of this process's own is none of these.
pub(crate) fn of(what: &What) -> Result<Setting, KnobError> {
    Ok(match what.clone() {
        What::File(_) => unreachable!("a file is read and written by its own rules"),
        What::NetworkFile { network, path } => {
            Setting::NetworkFile { network: place::to_sys(network), path: path.into() }
        }
        What::DeviceFile { device, file } => {
            Setting::DeviceFile { device: place::device_to_sys(device), file }
        }
        What::Feature { device, name } => Setting::Feature { device: place::device_to_sys(device), name },
        What::Hardware { device, field } => {
            let field = Field::named(&field).ok_or_else(|| unknown(what))?;
            Setting::Hardware { device: place::device_to_sys(device), field }
        }
        What::Qdisc { device } => Setting::Qdisc(place::device_to_sys(device)),
        What::Table { network, family, name } => {
            Setting::Table { network: place::to_sys(network), family, name }
        }
        What::FirstRule { network, family, table, chain } => {
            Setting::FirstRule { network: place::to_sys(network), family, table, chain }
        }
        What::Interrupt { irq, name } => Setting::Interrupt { irq, name },
        What::Affinity(task) => Setting::Affinity(place::task_to_sys(task)),
        What::Scheduler(task) => Setting::Scheduler(place::task_to_sys(task)),
        What::OwnFile { path } => Setting::OwnFile(path.into()),
        What::OwnFolder { path } => Setting::OwnFolder(path.into()),
    })
}

fn unknown(what: &What) -> KnobError {
    KnobError::NotExact { knob: PathBuf::from(what.to_string()), why: "there is no such setting".into() }
}

pub(crate) fn undo(what: &What, old: &[u8], ours: &[Vec<u8>]) -> Vec<Undo> {
    let setting = of(what).expect("it was read before it is guarded");
    vec![Undo::PutBack { setting: Box::new(setting), old: old.to_vec(), ours: ours.to_vec() }]
}
