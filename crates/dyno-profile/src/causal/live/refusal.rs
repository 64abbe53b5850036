//! What the kernel's refusals mean.

use dyno_sys::bpf::BpfError;

use crate::causal::rig::site::Entry;
use crate::error::Error;

/// A probe on an instruction that the kernel did not take.
pub(super) fn no_probe(entry: &Entry, source: BpfError) -> Error {
    match source {
        BpfError::Attach { .. } if !source.is_permission() => {
            Error::NoProbe { place: format!("{}+{:#x}", entry.image.display(), entry.offset), source }
        }
        other => refused(other),
    }
}

pub(super) fn refused(source: BpfError) -> Error {
    if source.is_permission() { Error::ProbeRefused { source } } else { Error::ProbeUnable { source } }
}

pub(super) fn no_tracepoint(name: &str, error: BpfError) -> Error {
    match error {
        BpfError::Missing { .. } => Error::NoProgress {
            asked: format!("tracepoint:{name}"),
            reason: "this kernel has no such tracepoint".to_owned(),
        },
        other => refused(other),
    }
}
