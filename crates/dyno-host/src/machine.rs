//! The machine, as records describe it.
//!
//! Every verb that writes a record calls it; it only reads.

use dyno_record::machine::Machine;
use dyno_sys::{proc, user};

/// What can be read of this machine; what depends on a run is filled in by its caller.
#[must_use]
pub fn machine() -> Machine {
    let machine = proc::machine();
    Machine {
        cpus: machine.cpus.len(),
        model: machine.model,
        virtual_machine: machine.vm.is_some(),
        kernel: machine.kernel,
        memory_bytes: machine.memory_bytes,
        clocksource: machine.clocksource,
        congestion: machine.congestion,
        root: user::current().0 == 0,
        ..Machine::default()
    }
}
