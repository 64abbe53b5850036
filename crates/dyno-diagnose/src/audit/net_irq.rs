//! Which CPUs take the interrupts of network hardware: one for each queue, and those of the server where it is bound.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::change::What;
use dyno_record::fact::Gap;
use dyno_record::facts::{Device, Facts, Interrupt};

use super::cpu_list::cpus;
use super::draft::{Check, FAST, Looked, Say, Seen, counted, finding, published, quoted};

pub(super) const CHECKS: &[Check] =
    &[Check { id: "net.irq", about: "CPUs that take the hardware's interrupts", look: irq }];

/// Parts of the names of interrupts that bring no packets: links that change, mailboxes, firmware.
const CONTROL: [&str; 9] = ["config", "mgmnt", "async", "ctrl", "control", "event", "misc", "admin", "mbx"];
/// Parts of the names of those that bring some.
const RECEIVING: [&str; 3] = ["rx", "input", "comp"];
/// And of those that tell that something was sent.
const SENDING: [&str; 2] = ["tx", "output"];
/// Interrupts that one finding names.
const NAMED_MAX: usize = 8;
/// And whose commands it shows.
const COMMANDS_MAX: usize = 16;

fn irq(facts: &Facts) -> Seen {
    let interrupts = facts.cpus.interrupts.known()?;
    let all = facts.network.devices.known()?;
    let devices: Vec<&Device> =
        all.iter().filter(|one| one.is_up && one.driver.is_some() && !one.interrupts.is_empty()).collect();
    if devices.is_empty() {
        return Ok(Looked::NotHere("a network device with interrupts".into()));
    }
    let balancer = *facts.cpus.irqbalance.known()?;
    let placed: Vec<Placed<'_>> =
        devices.iter().map(|device| Placed::of(device, interrupts, facts)).collect::<Result<_, Gap>>()?;
    let mut found: Vec<AuditFinding> =
        placed.iter().filter(|one| one.reason != Reason::None).map(|one| one.finding(balancer)).collect();
    let told: Vec<String> = placed.iter().map(Placed::words).collect();
    if let (Some(pid), true) = (balancer, found.is_empty()) {
        found.push(of_balancer(pid, told.join("; "), &placed));
    }
    Ok(Looked::found_or(found, || told.join("; ")))
}

/// A device's receiving interrupts, where they go, and where they should.
struct Placed<'f> {
    device: &'f Device,
    receiving: Vec<&'f Interrupt>,
    /// Interrupts with the CPU that each should go to.
    moves: Vec<(&'f Interrupt, u32)>,
    reason: Reason,
    /// CPUs that they may go to.
    room: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Reason {
    /// Some CPU takes several queues while another takes none.
    Uneven,
    /// The server is bound to other CPUs.
    Elsewhere,
    /// It is, and to fewer of them than there are queues.
    Crowded,
    /// All is well, or they are fixed.
    None,
}

impl<'f> Placed<'f> {
    fn of(device: &'f Device, interrupts: &'f [Interrupt], facts: &Facts) -> Result<Placed<'f>, Gap> {
        let numbers: BTreeSet<u32> = device.interrupts.iter().copied().collect();
        let is_own = |one: &&Interrupt| numbers.contains(&one.irq) && !has(&one.name, &CONTROL);
        let own: Vec<&Interrupt> = interrupts.iter().filter(is_own).collect();
        let named: Vec<&Interrupt> = own.iter().copied().filter(|one| has(&one.name, &RECEIVING)).collect();
        let mut receiving = if named.is_empty() { own.clone() } else { named };
        receiving.sort_by_key(|one| (number(&one.name), one.irq));
        let bound = bound(facts)?;
        let room = match &bound {
            Some(cpus) => cpus.clone(),
            None => near(device, facts)?,
        };
        let reason = reason(&receiving, &room, bound.is_some());
        let mut moves = Vec::new();
        if [Reason::Uneven, Reason::Elsewhere].contains(&reason) {
            let movable = |one: &Interrupt, cpu| !one.is_fixed && taken(one) != Some(cpu);
            let senders = senders(&own, &receiving);
            for (one, cpu) in wanted(&receiving, &room).into_iter().filter(|(one, cpu)| movable(one, *cpu)) {
                moves.push((one, cpu));
                // The sending interrupt of a queue goes with the receiving one.
                let with = number(&one.name).and_then(|queue| senders.get(&queue));
                moves.extend(
                    with.into_iter().flatten().filter(|one| movable(one, cpu)).map(|one| (*one, cpu)),
                );
            }
        }
        let is_done = moves.is_empty() && reason != Reason::Crowded;
        let reason = if is_done { Reason::None } else { reason };
        Ok(Placed { device, receiving, moves, reason, room: room.len() })
    }

    /// `eth0: 4 receive queues, interrupts 41→0 42→1`.
    fn words(&self) -> String {
        let mut named: Vec<String> = self
            .receiving
            .iter()
            .take(NAMED_MAX)
            .map(|one| {
                format!("{}→CPU {}{}", one.irq, one.effective, if one.is_fixed { " (fixed)" } else { "" })
            })
            .collect();
        let more = self.receiving.len().saturating_sub(NAMED_MAX);
        named.extend((more > 0).then(|| format!("{more} more")));
        match named.is_empty() {
            true => format!("{}: no interrupt that brings packets", self.device.name),
            false => format!("{}: interrupts {}", self.device.name, named.join(", ")),
        }
    }

    /// All queues on the CPUs of the server would leave it no time: there have to be fewer of them first.
    fn crowded(&self) -> AuditFinding {
        let (device, queues) = (&self.device.name, self.receiving.len());
        let (name, room) = (quoted(device), counted(self.room, "CPU"));
        let kind = if self.device.channel_kind == "rx" { "rx" } else { "combined" };
        let set = |queues: usize| format!("sudo ethtool -L {name} {kind} {queues}");
        let steer = "# or rules that send the server's port to few queues: ethtool -N … flow-type tcp4 dst-port PORT action QUEUE; then audit again";
        let has_channels = self.device.channels.value().is_some();
        let apply = has_channels.then(|| set(self.room)).into_iter().chain([steer.to_owned()]).collect();
        let revert =
            if has_channels { set(queues) } else { "# delete these rules: ethtool -N … delete".into() };
        let made = finding(
            format!("Packets of {device} arrive on CPUs that the server may not use"),
            self.words(),
            format!("no more queues than the server has CPUs ({}), or steering", self.room),
        )
        .about(device)
        .gain(FAST, published(38.0, "locality as a whole, of which this is a part"))
        .choice()
        .risk(Risk::Operational, "what else this machine does has fewer queues; the device is reset, and connections stall for a moment")
        .why(WHY)
        .hand(&format!(
            "{device} has {} and the server {room}: moved there, all of them would take the time that it answers in",
            counted(queues, "queue")
        ))
        .see(&["cat /proc/interrupts", &format!("ethtool -l {name}")]);
        AuditFinding { apply, revert: vec![revert], ..made }
    }

    fn finding(&self, balancer: Option<u32>) -> AuditFinding {
        if self.reason == Reason::Crowded {
            return self.crowded();
        }
        let name = &self.device.name;
        let title = match self.reason {
            Reason::Elsewhere => {
                format!("Packets of {name} arrive on CPUs that the server may not use")
            }
            _ => format!("One CPU takes the packets of several queues of {name}, while another takes none"),
        };
        let wanted: BTreeMap<u32, u32> = self.moves.iter().map(|(one, cpu)| (one.irq, *cpu)).collect();
        let better: Vec<String> =
            wanted.iter().take(NAMED_MAX).map(|(irq, cpu)| format!("{irq} on CPU {cpu}")).collect();
        let made = finding(title, self.words(), better.join(", "))
            .about(name)
            .gain(FAST, published(38.0, "locality as a whole, of which this is a part"))
            .risk(Risk::Operational, "the CPUs that get them have less time for programs")
            .why(WHY);
        let made = self.with_commands(made, balancer);
        match balancer {
            Some(pid) => by_hand(made, pid, &self.receiving),
            None => self.moves.iter().fold(made, |made, (one, cpu)| {
                made.set(What::Interrupt { irq: one.irq, name: one.name.clone() }, &cpu.to_string())
            }),
        }
    }

    fn with_commands(&self, made: AuditFinding, balancer: Option<u32>) -> AuditFinding {
        let set = |irq: u32, cpus: &str| format!("echo {cpus} | sudo tee /proc/irq/{irq}/smp_affinity_list");
        let mut made = made.see(&["cat /proc/interrupts", "grep . /proc/irq/*/effective_affinity_list"]);
        let shown = || self.moves.iter().take(COMMANDS_MAX);
        made.apply = shown().map(|(one, cpu)| set(one.irq, &cpu.to_string())).collect();
        made.revert = shown().map(|(one, _)| set(one.irq, &one.allowed)).collect();
        let more = self.moves.len().saturating_sub(COMMANDS_MAX);
        if more > 0 {
            made.apply.push(format!("# and {more} more: dyno tune apply net.irq does all of them"));
        }
        if balancer.is_some() {
            made.apply.insert(0, STOP.to_owned());
            made.revert.push(START.to_owned());
        }
        made
    }
}

const WHY: &str = "A CPU that a packet interrupts also does the kernel's work on it, and hands the data to the server: on the same CPU it is still in the cache.";
const STOP: &str = "sudo systemctl stop irqbalance";
const START: &str = "sudo systemctl start irqbalance";

/// With a daemon that moves interrupts a change of ours would last ten seconds.
fn by_hand(mut made: AuditFinding, pid: u32, receiving: &[&Interrupt]) -> AuditFinding {
    let bans: Vec<String> =
        receiving.iter().take(NAMED_MAX).map(|one| format!("--banirq={}", one.irq)).collect();
    made.by_hand = format!(
        "irqbalance ({pid}) would move them again within ten seconds. Stop it and dyno tune apply net.irq does the rest; or let it \
         go on with the others: IRQBALANCE_ARGS=\"{}\" in /etc/default/irqbalance (Fedora: /etc/sysconfig/irqbalance), sudo systemctl \
         restart irqbalance, and write the CPUs by hand. To undo: take the line out and restart it",
        bans.join(" ")
    );
    made
}

fn of_balancer(pid: u32, found: String, placed: &[Placed<'_>]) -> AuditFinding {
    let receiving: Vec<&Interrupt> = placed.iter().flat_map(|one| one.receiving.iter().copied()).collect();
    let made = finding(
        "A program moves the network's interrupts from CPU to CPU",
        format!("irqbalance ({pid}); {found}"),
        "interrupts that stay on one CPU each",
    )
    .gain(FAST, published(38.0, "locality as a whole, of which this is a part"))
    .choice()
    .risk(Risk::Operational, "interrupts of other devices are no longer spread")
    .why("The packets of a queue stay with the CPU of its interrupt. When that moves, the data that the server works on is in another CPU's cache.")
    .see(&["cat /proc/interrupts", "grep . /proc/irq/*/effective_affinity_list"])
    .apply(&[STOP])
    .revert(&[START]);
    by_hand(made, pid, &receiving)
}

fn has(name: &str, parts: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    parts.iter().any(|part| name.contains(part))
}

/// The last number of a name: the queue's.
fn number(name: &str) -> Option<u32> {
    let digits = |c: char| c.is_ascii_digit();
    // `mlx5_comp3@pci:0000:01:00.0` names its bus behind.
    let name = name.split('@').next().unwrap_or(name);
    let ended = name.trim_end_matches(|c: char| !digits(c));
    let before = ended.trim_end_matches(digits);
    ended[before.len()..].parse().ok()
}

/// The CPU that takes it, where that is one.
fn taken(one: &Interrupt) -> Option<u32> {
    let is = cpus(if one.effective.is_empty() { &one.allowed } else { &one.effective });
    if is.len() == 1 { is.first().copied() } else { None }
}

/// CPUs that the server is bound to, where it is to fewer than all. Those that are kept free of everything are none of them:
/// whoever isolated them wants no interrupts there.
fn bound(facts: &Facts) -> Result<Option<Vec<u32>>, Gap> {
    let Some(threads) = facts.server.as_ref().and_then(|server| server.threads.value()) else {
        return Ok(None);
    };
    let online = online(facts)?;
    let used: BTreeSet<u32> = threads.cpus.keys().flat_map(|list| cpus(list)).collect();
    let used: Vec<u32> = used.into_iter().filter(|cpu| online.contains(cpu)).collect();
    let is_bound = used.len() < online.len();
    let isolated = isolated(facts);
    let free: Vec<u32> = used.into_iter().filter(|cpu| !isolated.contains(cpu)).collect();
    Ok((is_bound && !free.is_empty()).then_some(free))
}

fn online(facts: &Facts) -> Result<Vec<u32>, Gap> {
    let named = facts.cpus.online.value().map(|list| cpus(list)).unwrap_or_default();
    Ok(if named.is_empty() { (0..facts.cpu_count()?).collect() } else { named })
}

fn isolated(facts: &Facts) -> Vec<u32> {
    facts.cpus.isolated.value().map(|list| cpus(list)).unwrap_or_default()
}

/// CPUs at the device's memory, and not those that are kept free of everything.
fn near(device: &Device, facts: &Facts) -> Result<Vec<u32>, Gap> {
    let isolated = isolated(facts);
    let mut room = online(facts)?;
    if room.iter().any(|cpu| !isolated.contains(cpu)) {
        room.retain(|cpu| !isolated.contains(cpu));
    }
    let node = device.node.value().and_then(|node| u32::try_from(*node).ok());
    let nodes = facts.cpus.nodes.value().map(Vec::as_slice).unwrap_or_default();
    let own = nodes.iter().find(|one| Some(one.node) == node).map(|one| cpus(&one.cpus)).unwrap_or_default();
    let local: Vec<u32> = room.iter().copied().filter(|cpu| own.contains(cpu)).collect();
    Ok(if nodes.len() < 2 || local.is_empty() { room } else { local })
}

fn reason(receiving: &[&Interrupt], room: &[u32], is_bound: bool) -> Reason {
    let is: Option<Vec<u32>> = receiving.iter().map(|one| taken(one)).collect();
    // Where the kernel does not tell one CPU for each, nothing is compared.
    let Some(is) = is else { return Reason::None };
    if is_bound && is.iter().any(|cpu| !room.contains(cpu)) {
        let is_fixed = receiving.iter().all(|one| one.is_fixed);
        return match receiving.len() > room.len() {
            true if is_fixed => Reason::None,
            true => Reason::Crowded,
            false => Reason::Elsewhere,
        };
    }
    let different: BTreeSet<u32> = is.iter().copied().collect();
    match different.len() < receiving.len().min(room.len()) {
        true => Reason::Uneven,
        false => Reason::None,
    }
}

/// A CPU for each: those that are fixed stay, and those that stand alone then on a CPU of the room; the others go where
/// fewest are.
fn wanted<'f>(receiving: &[&'f Interrupt], room: &[u32]) -> Vec<(&'f Interrupt, u32)> {
    let mut load: BTreeMap<u32, usize> = room.iter().map(|cpu| (*cpu, 0)).collect();
    let mut placed = Vec::new();
    let mut left = Vec::new();
    let (fixed, free): (Vec<&Interrupt>, Vec<&Interrupt>) = receiving.iter().partition(|one| one.is_fixed);
    for one in fixed.iter().chain(&free) {
        match taken(one).and_then(|cpu| Some((cpu, load.get_mut(&cpu)?))) {
            Some((cpu, count)) if *count == 0 || one.is_fixed => {
                *count += 1;
                placed.push((*one, cpu));
            }
            // It stays outside of the room, and takes nobody's place there.
            _ if one.is_fixed => {}
            _ => left.push(*one),
        }
    }
    let mut fewest: BTreeSet<(usize, u32)> = load.into_iter().map(|(cpu, count)| (count, cpu)).collect();
    for one in left {
        let Some((count, cpu)) = fewest.pop_first() else { break };
        fewest.insert((count + 1, cpu));
        placed.push((one, cpu));
    }
    placed
}

/// Interrupts that tell that something was sent, by their queue.
fn senders<'f>(own: &[&'f Interrupt], receiving: &[&Interrupt]) -> BTreeMap<u32, Vec<&'f Interrupt>> {
    let received: BTreeSet<u32> = receiving.iter().map(|one| one.irq).collect();
    let mut all: BTreeMap<u32, Vec<&Interrupt>> = BTreeMap::new();
    for one in own.iter().filter(|one| !received.contains(&one.irq) && has(&one.name, &SENDING)) {
        if let Some(queue) = number(&one.name) {
            all.entry(queue).or_default().push(one);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Goal, Level};
    use dyno_record::fact::Fact;
    use dyno_record::facts::{Node, Server, Threads, Within};

    /// A card whose queues have these interrupts, with the CPU of each; and a machine of that many CPUs.
    fn facts(count: u32, interrupts: &[(u32, &str, &str)]) -> Facts {
        let one = |(irq, name, cpu): &(u32, &str, &str)| Interrupt {
            irq: *irq,
            name: (*name).into(),
            allowed: format!("0-{}", count - 1),
            effective: (*cpu).into(),
            ..Interrupt::default()
        };
        let mut facts = Facts::default();
        facts.cpus.count = count;
        facts.cpus.online = Fact::Value(format!("0-{}", count - 1));
        facts.cpus.irqbalance = Fact::Value(None);
        facts.cpus.interrupts = Fact::Value(interrupts.iter().map(one).collect());
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        facts.network.devices = Fact::Value(vec![Device {
            index: 2,
            name: "eth0".into(),
            driver: Some("virtio_net".into()),
            is_up: true,
            interrupts: interrupts.iter().map(|one| one.0).collect(),
            ..Device::default()
        }]);
        facts
    }

    fn found(facts: &Facts) -> Option<AuditFinding> {
        crate::audit::audit(facts, Goal::Throughput).findings.into_iter().find(|one| one.id == "net.irq")
    }

    fn moves(facts: &Facts) -> Vec<(u32, String)> {
        let all = found(facts).map(|one| one.changes).unwrap_or_default();
        all.into_iter()
            .map(|spec| match spec.what {
                What::Interrupt { irq, .. } => (irq, spec.wanted),
                other => panic!("{other}"),
            })
            .collect()
    }

    const FOUR: [(u32, &str, &str); 5] = [
        (40, "eth0", "3"),
        (41, "eth0-TxRx-0", "0"),
        (42, "eth0-TxRx-1", "0"),
        (43, "eth0-TxRx-2", "1"),
        (44, "eth0-TxRx-3", "0"),
    ];

    /// Planted fault: those that stand well are moved too; then a CPU's connections lose their cache for nothing.
    #[test]
    fn queues_that_share_a_cpu_go_where_none_is_and_the_others_stay() {
        assert_eq!(moves(&facts(4, &FOUR)), [(42, "2".to_owned()), (44, "3".to_owned())]);
        assert_eq!(moves(&facts(2, &FOUR)), [], "two CPUs and both take some");
        let made = found(&facts(4, &FOUR)).unwrap();
        assert_eq!(made.revert[0], "echo 0-3 | sudo tee /proc/irq/42/smp_affinity_list");
    }

    #[test]
    fn a_virtual_card_of_one_queue_is_fine_and_its_other_interrupts_are_no_queues() {
        let one = [(37, "virtio2-config", "0"), (38, "virtio2-input.0", "1"), (39, "virtio2-output.0", "0")];
        assert_eq!(found(&facts(2, &one)), None);
    }

    /// Planted fault: the server's CPUs are not asked for; then packets go on to arrive elsewhere.
    #[test]
    fn interrupts_follow_a_server_that_is_bound_and_the_sending_ones_go_along() {
        let one = [(37, "virtio2-config", "0"), (38, "virtio2-input.0", "0"), (39, "virtio2-output.0", "0")];
        let mut facts = facts(4, &one);
        let threads = Threads { cpus: [("2-3".to_owned(), 2)].into(), ..Threads::default() };
        facts.server = Some(Server { pid: 7, threads: Fact::Value(threads), ..Server::default() });
        assert_eq!(moves(&facts), [(38, "2".to_owned()), (39, "2".to_owned())]);
        let threads = Threads { cpus: [("0-3".to_owned(), 2)].into(), ..Threads::default() };
        facts.server.as_mut().unwrap().threads = Fact::Value(threads);
        assert_eq!(found(&facts), None, "it is bound to nothing");
    }

    fn bound_to(cpus: &str) -> Option<Server> {
        let threads = Threads { cpus: [(cpus.to_owned(), 2)].into(), ..Threads::default() };
        Some(Server { pid: 7, threads: Fact::Value(threads), ..Server::default() })
    }

    /// Planted fault: all queues go where the server is; then one CPU of 256 takes 64 interrupts and answers nobody.
    #[test]
    fn more_queues_than_the_server_has_cpus_are_not_piled_on_them() {
        let names: Vec<String> = (0..64).map(|queue| format!("eth0-TxRx-{queue}")).collect();
        let cpus: Vec<String> = (0..64).map(|queue| queue.to_string()).collect();
        let all: Vec<(u32, &str, &str)> =
            (0..64).map(|at| (100 + at as u32, names[at].as_str(), cpus[at].as_str())).collect();
        let mut facts = facts(256, &all);
        facts.server = bound_to("5");
        let Fact::Value(devices) = &mut facts.network.devices else { panic!() };
        devices[0].channels = Fact::Value(Within { is: 64, max: 64 });
        let made = found(&facts).unwrap();
        assert!(
            made.changes.is_empty() && made.by_hand.contains("64 queues and the server 1 CPU"),
            "{made:?}"
        );
        assert_eq!((made.apply[0].as_str(), made.level), ("sudo ethtool -L eth0 combined 1", Level::Low));
        facts.server = bound_to("64-191");
        assert_eq!(moves(&facts).len(), 64, "a CPU for each of them");
    }

    /// Planted fault: the CPUs of a server are taken as they are; then interrupts come to those that were isolated from them.
    #[test]
    fn a_server_on_isolated_cpus_keeps_them_free_of_interrupts() {
        let mut facts = facts(4, &FOUR[..2]);
        facts.cpus.isolated = Fact::Value("2-3".into());
        facts.server = bound_to("2-3");
        assert_eq!(found(&facts), None);
        facts.server = bound_to("1-2");
        assert_eq!(moves(&facts), [(41, "1".to_owned())]);
    }

    /// Planted fault: queues are placed in their order; then one stays beside a fixed one, and a CPU takes none.
    #[test]
    fn queues_that_are_fixed_have_their_places_first() {
        let mut facts = facts(4, &FOUR);
        let Fact::Value(all) = &mut facts.cpus.interrupts else { panic!() };
        all.iter_mut().filter(|one| one.irq == 44).for_each(|one| one.is_fixed = true);
        assert_eq!(moves(&facts), [(41, "2".to_owned()), (42, "3".to_owned())]);
        let Fact::Value(all) = &mut facts.cpus.interrupts else { panic!() };
        all.iter_mut().filter(|one| one.irq == 44).for_each(|one| one.effective = "9".into());
        assert_eq!(moves(&facts), [(42, "2".to_owned())], "41 stands alone on CPU 0 now");
    }

    #[test]
    fn what_a_driver_has_fixed_is_not_advised_to_be_moved() {
        let mut facts = facts(4, &FOUR);
        let Fact::Value(all) = &mut facts.cpus.interrupts else { panic!() };
        all.iter_mut().for_each(|one| one.is_fixed = true);
        assert_eq!(found(&facts), None);
    }

    /// Planted fault: the daemon is not looked at; then tune moves what is moved back ten seconds later.
    #[test]
    fn with_a_daemon_that_moves_them_it_takes_a_person_and_says_how() {
        let mut facts = facts(4, &FOUR);
        facts.cpus.irqbalance = Fact::Value(Some(77));
        let made = found(&facts).unwrap();
        assert!(made.changes.is_empty() && made.by_hand.contains("--banirq=41 --banirq=42"), "{made:?}");
        assert_eq!((made.apply[0].as_str(), made.revert.last().unwrap().as_str()), (STOP, START));
    }

    #[test]
    fn cpus_of_the_cards_own_memory_are_preferred_and_isolated_ones_left_out() {
        let mut facts = facts(8, &FOUR);
        let node = |node, cpus: &str| Node { node, cpus: cpus.into(), ..Node::default() };
        facts.cpus.nodes = Fact::Value(vec![node(0, "0-3"), node(1, "4-7")]);
        facts.cpus.isolated = Fact::Value("7".into());
        let Fact::Value(all) = &mut facts.network.devices else { panic!() };
        all[0].node = Fact::Value(1);
        let placed = moves(&facts);
        assert!(placed.iter().all(|(_, cpu)| ["4", "5", "6"].contains(&cpu.as_str())), "{placed:?}");
    }

    #[test]
    fn a_queues_number_is_the_last_of_its_name() {
        let all =
            ["eth0-TxRx-12", "virtio3-input.7", "mlx5_comp3@pci:0000:01:00.0", "eth", "i40e-eth1-TxRx-0"];
        assert_eq!(all.map(number), [Some(12), Some(7), Some(3), None, Some(0)]);
        assert_eq!(["é7", "7é", "é", ""].map(number), [Some(7), Some(7), None, None]);
    }
}
