//! Proof of where an interrupt goes: the CPU that the kernel names, and the CPUs on which it came meanwhile.
//!
//! It only reads.

use dyno_record::tune::Effect;
use dyno_sys::affinity::CpuSet;
use dyno_sys::proc;

use super::seen::{Moved, Sight, Text};

/// What moves interrupts between CPUs.
const BALANCER: &str = "irqbalance";

/// How often it came on each CPU.
pub(super) fn moving(irq: &str, text: Text<'_>) -> Moved {
    let counts = text(&format!("/sys/kernel/irq/{irq}/per_cpu_count")).unwrap_or_default();
    let each = counts.split(',').enumerate();
    each.fold(Moved::default(), |moved, (cpu, count)| moved.with(&cpu.to_string(), count.parse::<u64>().ok()))
}

/// The daemon that would move it again.
pub(super) fn balancer() -> Option<i32> {
    proc::all_ticks().into_iter().find(|(_, one)| one.name == BALANCER).map(|(pid, _)| pid)
}

pub(super) fn judge(irq: &str, wanted: &str, sight: &Sight<'_>, balancer: Option<i32>) -> Effect {
    let told = (sight.text)(&format!("/proc/irq/{irq}/effective_affinity_list")).unwrap_or_default();
    let parsed = |text: &str| text.parse::<CpuSet>().ok().filter(|cpus| !cpus.is_empty());
    let (Some(has), Some(wanted)) = (parsed(&told), parsed(wanted)) else {
        return Effect::not_shown(
            format!("the kernel does not tell where interrupt {irq} goes"),
            "its line in /proc/interrupts under load",
        );
    };
    let came = sight.moved.sum();
    let warning = balancer.map_or_else(String::new, |pid| {
        format!(
            "; {BALANCER} ({pid}) runs and may move it again within seconds: ban it there (--banirq={irq})"
        )
    });
    match (has.iter().all(|cpu| wanted.contains(cpu)), came) {
        (true, 0) => Effect::in_force(format!("interrupt {irq} goes to CPU {told}{warning}")),
        (true, came) => {
            let there: u64 = wanted.iter().map(|cpu| sight.moved.of(&cpu.to_string())).sum();
            Effect::in_force(format!(
                "interrupt {irq} goes to CPU {told}; meanwhile it came {came} times, {there} of them there{warning}"
            ))
        }
        (false, 0) => Effect::not_shown(
            format!("interrupt {irq} has not come since, and some controllers move it when it next comes"),
            format!("/proc/irq/{irq}/effective_affinity_list after a packet"),
        ),
        (false, _) => Effect::not_in_force(format!("interrupt {irq} still goes to CPU {told}{warning}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tune::Force;

    fn judged(has: &'static str, wanted: &str, counts: &[(&str, u64)], balancer: Option<i32>) -> Effect {
        let moved = counts.iter().fold(Moved::default(), |moved, (cpu, count)| moved.with(cpu, *count));
        let text = move |path: &str| {
            (path == "/proc/irq/9/effective_affinity_list" && !has.is_empty()).then(|| has.to_owned())
        };
        judge("9", wanted, &Sight { text: &text, moved }, balancer)
    }

    /// Planted fault: smp_affinity_list is read again instead; it always agrees.
    #[test]
    fn an_interrupt_that_goes_elsewhere_is_not_in_force_once_it_has_come() {
        let force = |has, counts: &[(&str, u64)]| judged(has, "2-3", counts, None).force;
        assert_eq!([force("2", &[]), force("2-3", &[("2", 4)])], [Force::InForce; 2]);
        assert_eq!([force("0", &[("0", 7)]), force("0", &[])], [Force::NotInForce, Force::NotShown]);
        assert_eq!([force("", &[]), judged("2", "", &[], None).force], [Force::NotShown; 2]);
    }

    /// Planted fault: the daemon is not looked for; then it is not told that the change will not last.
    #[test]
    fn a_daemon_that_would_move_it_again_is_named() {
        let told = judged("2", "2", &[("0", 1), ("2", 5)], Some(77)).to_string();
        assert!(told.contains("came 6 times, 5 of them there; irqbalance (77)"), "{told}");
        assert!(!judged("2", "2", &[], None).to_string().contains("irqbalance"));
    }
}
