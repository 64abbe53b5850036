//! Rules for CPU time in the kernel: what stands before each system call, and the path of packets.

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::{Packets, Tap};

use super::draft::{Draft, Outcome, percent};
use super::facts::{Cost, Facts};
use super::names;

/// Filters before calls: measured elsewhere as 3 to 11 % of a server.
const FILTER_SHARE_MIN: f64 = 0.03;
/// Taps: measured elsewhere as 1 to 6 %.
const TAP_SHARE_MIN: f64 = 0.01;
/// Packet filter rules and connection set-up that could be avoided.
const AVOIDABLE_SHARE_MIN: f64 = 0.10;
/// CPU time at the kernel's own locks, a fifth as for others' locks.
const KERNEL_SPIN_MIN: f64 = 0.20;
/// Share from which the network path is worth a word.
const NETWORK_SHARE_NOTED: f64 = 0.50;
/// Share of received packets that are handed from one CPU to another.
const HANDED_OVER_MIN: f64 = 0.5;
/// Share of packets over real devices below which this is loopback, where the sender's CPU does the receiver's work.
const DEVICE_SHARE_MIN: f64 = 0.5;
/// Share of the CPU in the network path below which where packets are worked on makes no difference.
const TRAFFIC_SHARE_MIN: f64 = 0.05;
/// Share of receive work on the target's CPUs below which it is done elsewhere.
const LOCAL_SHARE_MIN: f64 = 0.2;
/// `ETH_P_ALL`: every packet.
const EVERY_PACKET: u32 = 3;

/// seccomp, audit or somebody who traces it stand before every system call.
pub(super) fn filtered_syscalls(facts: &Facts<'_>) -> Outcome {
    let filters = facts.seen.process.seccomp_filters;
    let Some(share) = facts.cpu_share(&[Cost::Filter]) else { return facts.no_kernel_profile() };
    if share < FILTER_SHARE_MIN {
        let text = format!("{filters} seccomp filters, {} of the CPU in filters and audit", percent(share));
        return Outcome::near(&[(share, FILTER_SHARE_MIN)], text);
    }
    let probed = facts.on.as_ref().map_or(0.0, |on| on.share_with(names::PROBES));
    if probed >= PROBED_MIN * share {
        return Outcome::Found(probes_draft(facts, share));
    }
    let who = facts.on.as_ref().map(|on| on.seen_of(names::FILTER)).unwrap_or_default();
    let seen_in = format!("seen in {}", who.into_iter().take(4).collect::<Vec<_>>().join(", "));
    if let Some((pid, name)) = facts.seen.process.traced_by.as_ref().filter(|_| filters == 0) {
        let summary = format!(
            "{name} ({pid}) traces it: {} of the CPU stops and goes on at each system call",
            percent(share)
        );
        return Outcome::Found(
            Draft::new(Class::FilteredSyscalls, share, summary)
                .sure(Confidence::High)
                .sign(seen_in)
                .next(format!("end {name}: what traces by ptrace stops a thread at each call; perf trace and BPF look without stopping it")),
        );
    }
    Outcome::Found(
        Draft::new(Class::FilteredSyscalls, share, format!("{} of the CPU asks filters about each system call", percent(share)))
            .sure(Confidence::High)
            .fact(format!("{filters} seccomp filters are in force"), f64::from(filters), "filters")
            .sign(seen_in)
            .next("one filter that tests numbers only (kernels since 5.11 remember its answers); audit rules off, or never,task: each gives up some security"),
    )
}

/// Of what stands before calls and functions, the part in probes from which on these are what is told.
const PROBED_MIN: f64 = 0.5;

/// Somebody has set probes: an observer's agent, a tracer that was forgotten.
fn probes_draft(facts: &Facts<'_>, share: f64) -> Draft {
    let seen = facts.on.as_ref().map(|on| on.seen_of(names::PROBES)).unwrap_or_default();
    let summary = format!(
        "{} of the CPU runs probes that somebody has set (uprobes, kprobes, tracepoints, BPF)",
        percent(share)
    );
    Draft::new(Class::FilteredSyscalls, share, summary)
        .sure(Confidence::High)
        .sign(format!("seen in {}", seen.into_iter().take(4).collect::<Vec<_>>().join(", ")))
        .next("find who set them (bpftool prog, /sys/kernel/tracing/uprobe_events and kprobe_events, perf) and end it, or let it look at a function that is called less often")
}

/// A program taps packets.
pub(super) fn packet_tap(facts: &Facts<'_>) -> Outcome {
    let Some(packets) = &facts.seen.packets else {
        return Outcome::Unseen("packet sockets (/proc/net/packet)");
    };
    let taps: Vec<&Tap> = packets.taps.iter().filter(|tap| tap.protocol == EVERY_PACKET).collect();
    let share = facts.cpu_share(&[Cost::Tap]).unwrap_or(0.0);
    let traffic = packets.loopback_packets + packets.device_packets;
    // Two taps cost as much as the threshold where no profile can show it.
    let costs = share >= TAP_SHARE_MIN || facts.on_both_sides().is_none() && taps.len() >= 2;
    if taps.is_empty() && share < TAP_SHARE_MIN || !costs || traffic == 0 {
        let text =
            format!("{} sockets see every packet, {} of the CPU serves them", taps.len(), percent(share));
        let share = if traffic == 0 { 0.0 } else { share };
        return Outcome::near(&[(share, TAP_SHARE_MIN)], text);
    }
    let owners: Vec<String> = taps
        .iter()
        .filter_map(|tap| tap.owner.as_ref())
        .map(|(pid, name)| format!("{name} ({pid})"))
        .collect();
    Outcome::Found(
        Draft::new(Class::PacketTap, share.max(TAP_SHARE_MIN), format!("{} sockets get a copy of every packet", taps.len()))
            .sure(if share >= TAP_SHARE_MIN { Confidence::High } else { Confidence::Medium })
            .fact(format!("{} of the server's CPU serves them", percent(share)), share, "share")
            .sign_if((!owners.is_empty()).then(|| format!("they belong to {}", owners.join(", "))))
            .next("end captures that nobody reads; a DHCP client that listens on a raw socket gives way to a fixed address"),
    )
}

/// Packets are worked on another CPU than the server's.
pub(super) fn wrong_core(facts: &Facts<'_>) -> Outcome {
    let Some(packets) = &facts.seen.packets else {
        return Outcome::Unseen("where packets are worked on (/proc/net)");
    };
    let network = facts.cpu_share(&[Cost::Network, Cost::Connect, Cost::Firewall, Cost::Tap]);
    if network.is_some_and(|share| share < TRAFFIC_SHARE_MIN) {
        let share = percent(network.unwrap_or(0.0));
        return Outcome::Against(format!("{share} of the CPU is the network's: it hardly sends"));
    }
    let softirq = &facts.seen.host.softirq;
    let handed: u64 = softirq.iter().map(|cpu| cpu.handed_over).sum();
    let all = packets.device_packets + packets.loopback_packets;
    // Handed over are packets of the whole machine, counted here are those of a namespace.
    let handed_share = if all > 0 { (handed as f64 / all as f64).min(1.0) } else { 0.0 };
    if handed_share >= HANDED_OVER_MIN {
        let draft = Draft::new(
            Class::WrongCore,
            handed_share,
            format!("{} of the packets are handed from one CPU to another", percent(handed_share)),
        )
        .fact(format!("{handed} packets were handed over (RPS)"), handed as f64, "packets");
        return Outcome::Found(draft.next("turn RPS off where CPUs are busy: echo 0 > /sys/class/net/DEVICE/queues/rx-0/rps_cpus; steer connections to the CPU of their worker").rung("cpu-steering"));
    }
    let local_packets = all == 0 || (packets.device_packets as f64) < DEVICE_SHARE_MIN * all as f64;
    if local_packets {
        let text = "packets come over loopback, where the sender's CPU does the receiver's work";
        if handed_share < 0.01 {
            return Outcome::Against(text.to_owned());
        }
        let text = format!("{text}; {} are handed from CPU to CPU", percent(handed_share));
        return Outcome::near(&[(handed_share, HANDED_OVER_MIN)], text);
    }
    elsewhere(facts)
}

/// Receive interrupts on CPUs on which the target may not run.
fn elsewhere(facts: &Facts<'_>) -> Outcome {
    let softirq = &facts.seen.host.softirq;
    let all: u64 = softirq.iter().map(|cpu| cpu.net_rx).sum();
    let local: u64 = softirq.iter().filter(|cpu| cpu.targets).map(|cpu| cpu.net_rx).sum();
    let share = if all > 0 { local as f64 / all as f64 } else { 1.0 };
    let text = format!("{} of the receive interrupts are worked on the server's CPUs", percent(share));
    if share >= LOCAL_SHARE_MIN {
        return Outcome::Against(text);
    }
    Outcome::Found(
        Draft::new(Class::WrongCore, 1.0 - share, "packets are worked on CPUs on which the server does not run")
            .fact(text, share, "share")
            .next("give the device's interrupts to the workers' CPUs (/proc/irq/N/smp_affinity), or bind workers where interrupts come")
            .rung("cpu-steering"),
    )
}

/// The target's threads meet in the kernel: they burn CPU until one of them gives a lock of the kernel's back.
pub(super) fn met_in_kernel(facts: &Facts<'_>) -> Option<Draft> {
    let on = facts.on_both_sides().filter(|_| !facts.has_cpu_to_spare())?;
    let share = on.share(&[Cost::KernelSpin]);
    if share < KERNEL_SPIN_MIN {
        return None;
    }
    let call = on.top_call(Cost::KernelSpin).map_or(String::new(), |call| format!(", most of it in {call}"));
    let summary = format!("{} of the CPU waits for locks inside the kernel{call}", percent(share));
    let place = on.places(&[Cost::KernelSpin]).first().map(|place| place.0.clone());
    Some(
        Draft::new(Class::LockContention, share, summary)
            .sure(if share >= 2.0 * KERNEL_SPIN_MIN { Confidence::High } else { Confidence::Medium })
            .fact(format!("{} of the CPU spins at locks that the kernel takes for its calls", percent(share)), share, "share")
            .next("share less of what the call works on: an epoll, a socket (SO_REUSEPORT) or a directory for each thread, or fewer threads")
            .at(place),
    )
}

/// The kernel's network path is what is left; a fault only where a part of it could be avoided.
pub(super) fn kernel_network(facts: &Facts<'_>) -> Outcome {
    let Some(on) = facts.on_both_sides() else { return facts.no_kernel_profile() };
    let firewall = on.share(&[Cost::Firewall]);
    let connects = on.share(&[Cost::Connect]);
    // Who goes to sleep below epoll_wait, or looks through a list of descriptors there, moves no packet.
    let waits = on.share_for_events(&[Cost::Network]);
    let path = on.share(&[Cost::Network, Cost::Firewall, Cost::Connect, Cost::Tap]) - waits;
    if firewall >= AVOIDABLE_SHARE_MIN {
        return Outcome::Found(
            network_draft(path, firewall, "packet filter rules")
                .next("accept established connections first, use a set instead of a row of rules, do not track the server's port"),
        );
    }
    if connects >= AVOIDABLE_SHARE_MIN {
        return Outcome::Found(
            network_draft(path, connects, "making and ending connections")
                .sign_if(reconnects(facts.seen.packets.as_ref(), facts))
                .next("keep connections open: keep-alive on both sides, and a longer idle time"),
        );
    }
    if waits >= NETWORK_SHARE_NOTED {
        let text = format!(
            "{} of the CPU waits for events: it goes to sleep, or looks through descriptors, in epoll_wait, poll or select",
            percent(waits)
        );
        let draft = Draft::new(Class::KernelNetwork, waits, text);
        let next = "fewer waits: take all that is there before the next one, epoll in place of poll, one thread woken for each thing";
        return Outcome::Noted(draft.next(next));
    }
    let avoidable = firewall.max(connects);
    if path < NETWORK_SHARE_NOTED {
        let what = if firewall > connects {
            "packet filter rules take"
        } else {
            "making and ending connections takes"
        };
        let path = percent(path);
        let text =
            format!("of a network path of {path} of the CPU, {what} {} of the CPU", percent(avoidable));
        return Outcome::near(&[(avoidable, AVOIDABLE_SHARE_MIN)], text);
    }
    let text = format!(
        "{} of the CPU is the kernel's network path: {} is packet filter rules, {} making and ending connections",
        percent(path),
        percent(firewall),
        percent(connects)
    );
    Outcome::Noted(
        Draft::new(Class::KernelNetwork, path, text)
            .next("nothing in the program costs more than what TCP does for it: fewer packets, or more CPUs"),
    )
}

fn network_draft(path: f64, share: f64, what: &str) -> Draft {
    Draft::new(Class::KernelNetwork, share, format!("{} of the CPU goes into {what}", percent(share)))
        .sure(Confidence::High)
        .fact(format!("the kernel's network path takes {} in all", percent(path)), path, "share")
}

fn reconnects(_packets: Option<&Packets>, facts: &Facts<'_>) -> Option<String> {
    let load = facts.seen.load.as_ref().filter(|load| load.reconnects > 0)?;
    Some(format!("the generator had to connect anew {} times for {} replies", load.reconnects, load.replies))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Packets, SoftIrq, Tap};

    use crate::scene::{S, Scene, busy_load};

    #[test]
    fn the_network_path_is_a_note_unless_part_of_it_can_be_avoided() {
        let server = |extra: &str, weight: u64| {
            Scene::new(&[9.0])
                .on("main;send;tcp_sendmsg_[k];ip_output_[k]", 80 - weight)
                .on("main;work", 20)
                .on(extra, weight)
                .load(busy_load())
                .with(|seen| seen.host.own_ns = 9 * S)
        };
        let plain = server("main;send;tcp_sendmsg_[k]", 10);
        assert_eq!(plain.classes(), []);
        assert!(plain.diagnosed().notes.iter().any(|note| note.class == Class::KernelNetwork));
        assert_eq!(
            server("main;send;tcp_sendmsg_[k];nf_hook_slow_[k];nft_do_chain_[k]", 30).classes(),
            [Class::KernelNetwork]
        );
        assert_eq!(
            server("main;accept;__x64_sys_accept4_[k];inet_csk_accept_[k]", 30).classes(),
            [Class::KernelNetwork]
        );
    }

    /// Planted faults: whatever stands below epoll_wait or poll is the network's path (`waits` of 0); so is what goes to sleep there.
    #[test]
    fn who_waits_for_events_moves_no_packets() {
        let note = |stack: &str| {
            let scene = Scene::new(&[9.0]).on(stack, 60).on("main;work", 40);
            let notes = scene.diagnosed().notes.into_iter();
            notes.map(|note| note.summary).find(|text| text.contains("of the CPU"))
        };
        for waits in
            ["main;epoll_wait;do_epoll_wait_[k];schedule_[k]", "main;poll;do_sys_poll_[k];sock_poll_[k]"]
        {
            assert!(note(waits).unwrap().contains("waits for events"), "{waits}");
        }
        assert!(
            note("main;epoll_wait;do_epoll_wait_[k];ep_send_events_[k]").unwrap().contains("network path")
        );
        assert!(note("main;send;tcp_sendmsg_[k];try_to_wake_up_[k]").unwrap().contains("network path"));
    }

    #[test]
    fn filters_and_taps_are_known_by_their_functions() {
        let filtered = Scene::new(&[10.0])
            .on("main;work", 90)
            .on("main;read;syscall_trace_enter_[k];__seccomp_filter_[k]", 10);
        assert_eq!(filtered.classes(), [Class::FilteredSyscalls]);
        let tap = |taps: usize| {
            Scene::new(&[10.0])
                .on("main;work", 95)
                .on(
                    "main;send;tcp_sendmsg_[k];dev_queue_xmit_nit_[k];packet_rcv_[k]",
                    if taps > 0 { 5 } else { 0 },
                )
                .with(|seen| {
                    let taps = vec![Tap { protocol: 3, device: 0, owner: Some((9, "tcpdump".into())) }; taps];
                    seen.packets = Some(Packets { taps, device_packets: 1_000, ..Packets::default() });
                })
        };
        assert_eq!(tap(1).classes(), [Class::PacketTap]);
        assert_eq!(tap(0).classes(), []);
        assert!(tap(1).diagnosed().findings[0].evidence.iter().any(|fact| fact.text.contains("tcpdump (9)")));
    }

    /// An agent's uprobe at a hot function, and BPF at a tracepoint. Planted faults: none is known (`PROBES` of nothing); they are told as
    /// filters of system calls.
    #[test]
    fn probes_that_somebody_has_set_are_told_as_such() {
        for probe in [
            "main;work;asm_exc_int3_[k];exc_int3_[k];irqentry_exit_to_user_mode_[k];uprobe_notify_resume_[k];handle_swbp_[k]",
            "main;read;do_syscall_64_[k];trace_sys_enter_[k];bpf_trace_run2_[k];bpf_prog_1234_[k]",
        ] {
            let scene = Scene::new(&[10.0]).on("main;work", 70).on(probe, 30);
            let found = scene.diagnosed().findings.remove(0);
            assert_eq!(found.class, Class::FilteredSyscalls);
            assert!(found.summary.starts_with("30 % of the CPU runs probes"), "{}", found.summary);
        }
    }

    #[test]
    fn packets_on_other_cpus_are_a_finding_only_where_they_come_over_a_device() {
        let received = |device: u64, loopback: u64, handed: u64| {
            let working = Scene::new(&[10.0]).on("main;work", 80);
            working.on("main;send;tcp_sendmsg_[k]", 20).with(|seen| {
                seen.packets = Some(Packets {
                    device_packets: device,
                    loopback_packets: loopback,
                    ..Packets::default()
                });
                seen.host.softirq = vec![
                    SoftIrq { cpu: 0, net_rx: 10, targets: true, handed_over: handed, ..SoftIrq::default() },
                    SoftIrq { cpu: 1, net_rx: 990, targets: false, ..SoftIrq::default() },
                ];
            })
        };
        assert_eq!(received(1_000, 0, 0).classes(), [Class::WrongCore]);
        assert_eq!(received(0, 1_000, 0).classes(), []);
        assert_eq!(received(100, 900, 800).classes(), [Class::WrongCore]);
        let mut idle = received(1_000, 0, 0);
        idle.seen.on_cpu.as_mut().unwrap().stacks.truncate(2);
        idle = idle.on("main;work", 20);
        assert_eq!(idle.classes(), [], "who hardly sends loses nothing");
    }

    #[test]
    fn threads_that_meet_at_a_lock_of_the_kernel_contend_for_it() {
        let met = |spins: u64| {
            let spin = "run;work;epoll_wait;do_syscall_64_[k];__x64_sys_epoll_wait_[k];native_queued_spin_lock_slowpath_[k]";
            Scene::new(&[9.0, 9.0]).on("run;work", 100 - spins).on(spin, spins)
        };
        let finding = met(30).diagnosed().findings.remove(0);
        assert_eq!(finding.class, Class::LockContention);
        assert!(finding.summary.contains("most of it in epoll_wait"), "{}", finding.summary);
        assert_eq!(met(15).classes(), []);
    }

    #[test]
    fn few_samples_are_no_share() {
        let filtered = |samples: u64| {
            Scene::new(&[4.0])
                .on("main;work", samples * 19 / 20)
                .on("main;read;do_syscall_64_[k];__seccomp_filter_[k]", samples / 20)
        };
        assert_eq!(filtered(40).classes(), []);
        assert_eq!(filtered(400).classes(), [Class::FilteredSyscalls]);
    }

    /// Planted faults: one tap costs as much as two where nobody can see it; without traffic taps cost something.
    #[test]
    fn two_taps_are_found_where_the_kernels_side_cannot_be_seen() {
        let blind = |taps: usize, traffic: u64| {
            let scene = Scene::new(&[9.0, 9.0]).on("main;page", 50).on("main;other", 50).with(|seen| {
                seen.on_cpu.as_mut().unwrap().sampling.event = "cpu-clock:u".to_owned();
                let taps = vec![Tap { protocol: 3, ..Tap::default() }; taps];
                seen.packets = Some(Packets { taps, loopback_packets: traffic, ..Packets::default() });
            });
            scene.classes().contains(&Class::PacketTap)
        };
        assert_eq!([blind(2, 9), blind(1, 9), blind(0, 9), blind(2, 0)], [true, false, false, false]);
    }
}
