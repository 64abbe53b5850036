//! The CPUs of an interrupt (`/proc/irq/N/smp_affinity_list`), which is known by its number and by who asked for it.
//!
//! A number is given to another device when its own has gone; such a namesake is never touched.

use super::kind::{Kind, inner};
use crate::affinity::CpuSet;
use crate::knob;
use crate::proc;
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct Interrupt(pub(super) u32);

/// The file that sets it.
pub(super) fn file(irq: u32) -> PathBuf {
    format!("/proc/irq/{irq}/smp_affinity_list").into()
}

/// Why it is not there any more.
pub(super) fn missing(irq: u32, name: &str) -> Option<String> {
    match proc::text(&format!("/sys/kernel/irq/{irq}/actions")) {
        Ok(now) if now == name => None,
        Ok(now) if now.is_empty() => {
            Some(format!("nobody uses interrupt {irq} any more, which was of {name}"))
        }
        Ok(now) => Some(format!("interrupt {irq} is of {now} by now, and was of {name}")),
        Err(_) => Some(format!("there is no interrupt {irq} any more")),
    }
}

impl Kind for Interrupt {
    fn get(&self) -> io::Result<String> {
        let raw = knob::read(file(self.0)).map_err(inner)?;
        Ok(String::from_utf8_lossy(raw.trim_ascii()).into_owned())
    }

    fn put(&self, value: &str) -> io::Result<()> {
        // A fixed one says that it may not be written; to root the kernel would say "input/output error".
        if is_fixed(&file(self.0)) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the driver has fixed its CPUs"));
        }
        knob::put(&file(self.0), value.as_bytes())
    }

    fn same(&self, reads: &str, wanted: &str) -> bool {
        let parsed = |text: &str| text.parse::<CpuSet>().ok();
        parsed(reads).is_some_and(|reads| parsed(wanted) == Some(reads))
    }
}

fn is_fixed(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.permissions().readonly())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::knob::KnobError;
    use crate::setting::Setting;

    /// Planted fault: `missing` looks at the number alone; then another device's interrupt is moved.
    #[test]
    fn an_interrupt_of_a_number_that_another_device_has_by_now_is_gone() {
        let all = proc::names("/sys/kernel/irq", 1_000).unwrap_or_default();
        let named = |irq: &String| {
            let name = proc::text(&format!("/sys/kernel/irq/{irq}/actions")).ok()?;
            Some((irq.parse::<u32>().ok()?, name)).filter(|(_, name)| !name.is_empty())
        };
        let Some((irq, name)) = all.iter().find_map(named) else { return };
        let other = Setting::Interrupt { irq, name: format!("{name}x") };
        let Err(KnobError::Gone { why, .. }) = other.read() else { panic!("it is another one") };
        assert!(why.contains(&name), "{why}");
        let none = Setting::Interrupt { irq: u32::MAX, name };
        assert!(matches!(none.write(b"0"), Err(KnobError::Gone { .. })));
    }

    #[test]
    fn the_same_cpus_in_other_words_are_the_same() {
        let irq = Interrupt(9);
        assert!(irq.same("0-1", "0,1") && irq.same("3", "3"));
        assert!(!irq.same("0-1", "0") && !irq.same("", "") && !irq.same("0", "all"));
    }
}
