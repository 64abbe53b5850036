//! The CPUs of an interrupt (`/proc/irq/N/smp_affinity_list`), which is known by its number and by who asked for it.
//!
//! A number is given to another device when its own has gone; such a namesake is never touched.

use super::kind::{Kind, inner};
use crate::affinity::CpuSet;
use crate::knob;
use crate::proc;
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct Interrupt<'s> {
    pub(super) irq: u32,
    pub(super) name: &'s str,
}

/// The file that sets it.
pub(super) fn file(irq: u32) -> PathBuf {
    format!("/proc/irq/{irq}/smp_affinity_list").into()
}

/// Who asked for it; nothing is nobody, as while its device is down.
fn user_of(irq: u32) -> io::Result<String> {
    proc::text(&format!("/sys/kernel/irq/{irq}/actions"))
}

/// Why it is not there any more.
pub(super) fn missing(irq: u32, name: &str) -> Option<String> {
    match user_of(irq) {
        Ok(now) => is_anothers(irq, name, &now),
        Err(_) if Path::new(&format!("/proc/irq/{irq}")).exists() => None,
        Err(_) => Some(format!("there is no interrupt {irq} any more")),
    }
}

/// Its user may be `now`. It keeps its CPUs while nobody uses it.
fn is_anothers(irq: u32, name: &str, now: &str) -> Option<String> {
    let is_gone = now != name && !now.is_empty();
    is_gone.then(|| format!("interrupt {irq} is of {now} by now, and was of {name}"))
}

impl Interrupt<'_> {
    /// The file, where it is this one's: without a user nobody can tell whose it is, and it is neither read nor written.
    fn file(&self) -> io::Result<PathBuf> {
        self.file_while_of(&user_of(self.irq)?)
    }

    fn file_while_of(&self, now: &str) -> io::Result<PathBuf> {
        let Self { irq, name } = self;
        let down = || format!("nobody uses interrupt {irq} now, which was of {name}: its device may be down");
        (now == *name).then(|| file(*irq)).ok_or_else(|| io::Error::other(down()))
    }
}

impl Kind for Interrupt<'_> {
    fn get(&self) -> io::Result<String> {
        let raw = knob::read(self.file()?).map_err(inner)?;
        Ok(String::from_utf8_lossy(raw.trim_ascii()).into_owned())
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let file = self.file()?;
        // A fixed one says that it may not be written; to root the kernel would say "input/output error".
        if is_fixed(&file) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the driver has fixed its CPUs"));
        }
        knob::put(&file, value.as_bytes())
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
        let (irq, name) = all.iter().find_map(named).expect("a machine has an interrupt that is used");
        let other = Setting::Interrupt { irq, name: format!("{name}x") };
        let Err(KnobError::Gone { why, .. }) = other.read() else { panic!("it is another one") };
        assert!(why.contains(&name), "{why}");
        let none = Setting::Interrupt { irq: u32::MAX, name };
        assert!(matches!(none.write(b"0"), Err(KnobError::Gone { .. })));
    }

    /// Planted fault: one without a user is gone; then a rollback forgets the CPUs of a device that is down for a moment.
    #[test]
    fn an_interrupt_that_nobody_uses_now_is_not_gone_and_not_touched() {
        assert_eq!(is_anothers(9, "eth0-rx-0", ""), None);
        assert_eq!(is_anothers(9, "eth0-rx-0", "eth0-rx-0"), None);
        assert!(is_anothers(9, "eth0-rx-0", "nvme0q1").is_some());
        let irq = Interrupt { irq: 9, name: "eth0-rx-0" };
        assert_eq!(irq.file_while_of("eth0-rx-0").unwrap(), file(9));
        let told = irq.file_while_of("").unwrap_err().to_string();
        assert!(told.contains("nobody uses interrupt 9 now"), "{told}");
    }

    #[test]
    fn the_same_cpus_in_other_words_are_the_same() {
        let irq = Interrupt { irq: 9, name: "eth0" };
        assert!(irq.same("0-1", "0,1") && irq.same("3", "3"));
        assert!(!irq.same("0-1", "0") && !irq.same("", "") && !irq.same("0", "all"));
    }
}
