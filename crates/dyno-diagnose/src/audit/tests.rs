//! Judging made-up facts: a quiet host, the same with things planted, and hosts of a size or malice that none has.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use dyno_record::audit::{Audit, Goal, Level, Risk, Source};
use dyno_record::change;
use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::{
    Audit as AuditFacts, AuditRule, Cgroup, Chain, Conntrack, Cpus, Device, Facts, Listener, Network, Qdisc,
    QueueSetting, Rule, Scheduled, Server, ServerListener, Softnet, Tap, Threads,
};

use super::{audit, catalogue};

fn queue(value: &str) -> Fact<Vec<QueueSetting>> {
    Fact::Value(vec![QueueSetting { queue: "rx-0".into(), value: value.into() }])
}

fn quiet_device(name: &str) -> Device {
    Device {
        index: 2,
        name: name.into(),
        kind: "veth".into(),
        is_up: true,
        rx_queues: 1,
        tx_queues: 1,
        qdiscs: Fact::Value(vec![Qdisc { kind: "noqueue".into(), is_root: true, ..Qdisc::default() }]),
        filters: Fact::Value(Vec::new()),
        features: Fact::Value(vec!["tx-tcp-segmentation".into(), "tx-generic-segmentation".into()]),
        settable_features: Fact::Value(vec!["tx-tcp-segmentation".into(), "tx-generic-segmentation".into()]),
        wanted_features: Fact::Value(vec!["tx-tcp-segmentation".into(), "tx-generic-segmentation".into()]),
        napi_ids: Fact::Value(Vec::new()),
        rps: queue("0"),
        rfs: queue("0"),
        xps: Fact::Absent("xps_cpus".into()),
        threaded: Fact::Value(0),
        ..Device::default()
    }
}

/// A host on which nothing is wrong, with a server.
fn quiet() -> Facts {
    let sysctls = [
        ("net.core.busy_poll", "0"),
        ("net.core.somaxconn", "4096"),
        ("net.core.rps_sock_flow_entries", "0"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
    ];
    Facts {
        cpus: Cpus {
            count: 2,
            interrupts: Fact::Value(Vec::new()),
            irqbalance: Fact::Value(None),
            ..Cpus::default()
        },
        network: Network {
            devices: Fact::Value(vec![quiet_device("vS")]),
            taps: Fact::Value(Vec::new()),
            listeners: Fact::Value(Vec::<Listener>::new()),
            counters: Fact::Value([("ListenOverflows".to_owned(), 0)].into()),
            lately: Fact::Value([("ListenOverflows".to_owned(), 0)].into()),
            softnet: Fact::Value(Softnet::default()),
            ..Network::default()
        },
        netfilter: dyno_record::facts::Netfilter {
            nftables: Fact::Value(Vec::new()),
            legacy: Fact::Absent("the older packet filters".into()),
            conntrack: Fact::Value(Conntrack { max: 65_536, ..Conntrack::default() }),
            ..dyno_record::facts::Netfilter::default()
        },
        sysctls: sysctls.map(|(name, value)| (name.to_owned(), Fact::Value(value.to_owned()))).into(),
        neighbours: Fact::Value(Vec::new()),
        server: Some(Server {
            pid: 42,
            name: "server".into(),
            pids: vec![42],
            threads: Fact::Value(Threads {
                count: 2,
                serving: 1,
                seccomp_filters: [(0, 2)].into(),
                scheduling: [("other 0".to_owned(), 2)].into(),
                ..Threads::default()
            }),
            listeners: Fact::Value(vec![ServerListener {
                local: "10.0.0.1:8080".into(),
                sockets: 1,
                backlog: 4_096,
                ..ServerListener::default()
            }]),
            ..Server::default()
        }),
        ..Facts::default()
    }
}

fn rule(tests: &[&str], action: &str) -> Rule {
    Rule {
        tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        action: action.into(),
        ..Rule::default()
    }
}

fn input(rules: Vec<Rule>) -> Chain {
    Chain {
        family: "inet".into(),
        table: "filter".into(),
        name: "input".into(),
        hook: Some("input".into()),
        kind: "filter".into(),
        rules,
        ..Chain::default()
    }
}

type Plant = (&'static str, fn(&mut Facts));

/// What the planted host has, each with the check that must name it.
const PLANTS: [Plant; 8] = [
    ("nf.linear", |facts| {
        let mut rules = vec![rule(&["address"], "drop"); 300];
        rules.push(rule(&["port 8080"], "accept"));
        facts.netfilter.nftables = Fact::Value(vec![input(rules)]);
    }),
    ("nf.ct", |facts| {
        let plant = input(vec![rule(&["established"], "accept"), rule(&["port 8080"], "accept")]);
        let mut all = facts.netfilter.nftables.value().unwrap().clone();
        all.push(Chain { name: "second".into(), ..plant });
        facts.netfilter.nftables = Fact::Value(all);
    }),
    ("net.qdisc", |facts| {
        device(facts).qdiscs =
            Fact::Value(vec![Qdisc { kind: "tbf".into(), is_root: true, ..Qdisc::default() }]);
    }),
    ("net.rps", |facts| device(facts).rps = queue("2")),
    ("net.tso", |facts| {
        device(facts).features = Fact::Value(Vec::new());
        device(facts).wanted_features = Fact::Value(Vec::new());
    }),
    ("tap.packet", |facts| {
        let tap =
            Tap { protocol: 3, device: "vS".into(), pid: Some(9), owner: "tap".into(), ..Tap::default() };
        facts.network.taps = Fact::Value(vec![tap; 10]);
    }),
    ("app.seccomp", |facts| {
        let Some(Fact::Value(threads)) = facts.server.as_mut().map(|server| &mut server.threads) else {
            return;
        };
        threads.seccomp_filters = [(3, 2)].into();
    }),
    ("app.foreign", |facts| {
        let Some(Fact::Value(all)) = facts.server.as_mut().map(|server| &mut server.listeners) else {
            return;
        };
        let group = dyno_record::facts::Group { pid: Some(77), name: "old".into(), sockets: 1 };
        all[0].strangers.push(group);
    }),
];

fn device(facts: &mut Facts) -> &mut Device {
    match &mut facts.network.devices {
        Fact::Value(all) => &mut all[0],
        _ => panic!("the quiet host has a device"),
    }
}

fn found(facts: &Facts, goal: Goal) -> BTreeSet<String> {
    audit(facts, goal).findings.into_iter().map(|finding| finding.id).collect()
}

/// Planted fault: threads that were put before others (`other -5`, `fifo`) are changed too.
#[test]
fn threads_behind_others_and_a_quota_that_holds_are_changes_of_that_server_alone() {
    let mut facts = quiet();
    facts.reader.network_namespace = Fact::Value("net:[9]".into());
    let server = facts.server.as_mut().unwrap();
    let thread = |tid: i32, scheduling: &str| Scheduled {
        task: change::Task { pid: 42, tid, started: 7 },
        scheduling: scheduling.into(),
        nice: (scheduling == "batch").then_some(3),
    };
    let Fact::Value(threads) = &mut server.threads else { panic!("they are planted") };
    threads.apart =
        vec![thread(42, "other 7"), thread(43, "other -5"), thread(44, "batch"), thread(45, "fifo")];
    threads.scheduling = threads.apart.iter().map(|one| (one.scheduling.clone(), 1)).collect();
    server.cgroup = Fact::Value(Cgroup {
        path: "/web".into(),
        cpus: Some(0.5),
        quota_file: "/sys/fs/cgroup/web/cpu.max".into(),
        periods: 100,
        throttled: 50,
        throttled_lately: 5,
        ..Cgroup::default()
    });
    let found = audit(&facts, Goal::Throughput).findings;
    let changes = |id: &str| found.iter().find(|finding| finding.id == id).unwrap().changes.clone();
    let tids: Vec<i32> = changes("app.sched")
        .iter()
        .map(|spec| match &spec.what {
            change::What::Scheduler(task) => task.tid,
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(tids, [42, 44]);
    // Planted fault: the process alone is told; then its other threads and its class stay as they are.
    let sched = found.iter().find(|finding| finding.id == "app.sched").unwrap();
    let usual = |tid: i32| format!("sudo chrt -o -p 0 {tid} && sudo renice -n 0 -p {tid}");
    assert_eq!(sched.apply, [usual(42), usual(44)]);
    let undo = [
        "sudo chrt -o -p 0 42 && sudo renice -n 7 -p 42",
        "sudo chrt --batch -p 0 44 && sudo renice -n 3 -p 44",
    ];
    assert_eq!(sched.revert, undo);
    let quota = changes("app.cgroup");
    assert_eq!(quota[0].what, change::What::File("/sys/fs/cgroup/web/cpu.max".into()));
    assert_eq!(quota[0].wanted, "max 100000");
}

/// Planted fault: periods since the group was made are judged as now; then a quota that was taken away is a High for ever.
#[test]
fn a_quota_that_held_once_is_no_loss_of_now() {
    let of = |cpus, lately| {
        let mut facts = quiet();
        let group =
            Cgroup { cpus, periods: 100, throttled: 50, throttled_lately: lately, ..Cgroup::default() };
        facts.server.as_mut().unwrap().cgroup = Fact::Value(group);
        let found = audit(&facts, Goal::Throughput).findings;
        found.into_iter().find(|one| one.id == "app.cgroup").map(|one| one.level)
    };
    assert_eq!(
        (of(None, 0), of(Some(0.5), 0), of(Some(0.5), 9)),
        (None, Some(Level::Low), Some(Level::High))
    );
}

#[test]
fn on_a_quiet_host_nothing_is_found() {
    assert_eq!(found(&quiet(), Goal::Throughput), BTreeSet::new());
}

#[test]
fn each_plant_is_named_and_nothing_else_is() {
    for (id, plant) in PLANTS {
        let mut facts = quiet();
        plant(&mut facts);
        assert_eq!(found(&facts, Goal::Throughput), [id.to_owned()].into(), "{id}");
    }
}

#[test]
fn a_host_with_every_plant_differs_by_exactly_the_plants() {
    let mut facts = quiet();
    PLANTS.iter().for_each(|(_, plant)| plant(&mut facts));
    let ids: BTreeSet<String> = PLANTS.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(found(&facts, Goal::Throughput), ids);
}

#[test]
fn an_established_accept_behind_other_rules_is_named_with_its_place() {
    let mut facts = quiet();
    let mut rules = vec![rule(&["address"], "drop"); 7];
    rules.push(rule(&["established"], "accept"));
    facts.netfilter.nftables = Fact::Value(vec![input(rules)]);
    let judged = audit(&facts, Goal::Throughput);
    let first = judged.findings.iter().find(|finding| finding.id == "nf.first").unwrap();
    assert_eq!(first.found, "'established accept' stands behind 7 rules in inet filter input");
}

#[test]
fn every_check_ends_in_exactly_one_list() {
    for facts in [Facts::default(), quiet()] {
        let judged = audit(&facts, Goal::Throughput);
        let mut ids: Vec<&str> = judged.fine.iter().map(|one| one.id.as_str()).collect();
        ids.extend(judged.not_here.iter().map(|one| one.id.as_str()));
        ids.extend(judged.not_looked_at.iter().map(|one| one.id.as_str()));
        let found: BTreeSet<&str> = judged.findings.iter().map(|one| one.id.as_str()).collect();
        ids.extend(found);
        let other: BTreeSet<&str> = judged.other_goals.iter().map(|one| one.id.as_str()).collect();
        ids.extend(other);
        ids.sort_unstable();
        let mut all: Vec<&str> = catalogue().into_iter().map(|(id, _)| id).collect();
        all.sort_unstable();
        assert_eq!(ids, all);
    }
}

#[test]
fn ids_are_each_used_once_and_have_a_family() {
    let all = catalogue();
    let ids: BTreeSet<&str> = all.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), all.len());
    assert!(ids.iter().all(|id| id.split('.').count() > 1), "{ids:?}");
}

#[test]
fn what_nobody_could_read_is_never_fine() {
    let judged = audit(&Facts::default(), Goal::Throughput);
    assert!(judged.fine.is_empty() && judged.findings.is_empty(), "{:?}", judged.fine);
    let mut facts = quiet();
    let refused =
        Unread { what: "audit".into(), errno: Some(1), why: "not permitted".into(), needs: "root".into() };
    facts.security.audit = Fact::Unread(refused);
    let judged = audit(&facts, Goal::Throughput);
    let unseen = judged.not_looked_at.iter().find(|one| one.id == "sec.audit.rules").unwrap();
    assert_eq!((unseen.why.as_str(), unseen.needs.as_str()), ("audit: not permitted", "root"));
}

#[test]
fn a_finding_has_a_figure_with_its_source_or_says_that_none_is_known() {
    for finding in everything_found().findings {
        match finding.gain.source {
            Source::NoneFound => assert_eq!(finding.gain.percent, None, "{}", finding.id),
            _ => assert!(finding.gain.percent.is_some_and(|[least, most]| least <= most), "{}", finding.id),
        }
        let said = [&finding.title, &finding.found, &finding.recommended, &finding.why, &finding.gain.of];
        assert!(said.iter().all(|text| !text.is_empty()), "{}", finding.id);
        assert!(
            !finding.see.is_empty() && !finding.apply.is_empty() && !finding.revert.is_empty(),
            "{}",
            finding.id
        );
        let prices = &finding.prices;
        let price = [&prices.security, &prices.durability, &prices.cpu, &prices.operability];
        assert_eq!(price.iter().all(|words| words.is_empty()), finding.risk == Risk::None, "{}", finding.id);
    }
}

fn everything_found() -> Audit {
    let mut facts = quiet();
    PLANTS.iter().for_each(|(_, plant)| plant(&mut facts));
    let rules = vec![AuditRule { list: "exit".into(), action: "always".into(), ..AuditRule::default() }; 11];
    facts.security.audit = Fact::Value(AuditFacts { enabled: 1, rules, ..AuditFacts::default() });
    facts.security.vulnerabilities =
        Fact::Value([("retbleed".to_owned(), "Mitigation: x".to_owned())].into());
    let mut unused = vec![Rule { packets: Some(0), ..rule(&["address"], "drop") }; 150];
    unused.insert(0, Rule { packets: Some(20_000), ..rule(&["protocol"], "") });
    unused.push(rule(&["established"], "accept"));
    facts.netfilter.legacy = Fact::Value(vec![Chain { family: "ip".into(), ..input(unused) }]);
    facts.memory.thp = Fact::Value("always madvise [never]".into());
    facts.network.softnet =
        Fact::Value(Softnet { packets: 10, dropped: 5, lately: (5, 0, 0), ..Softnet::default() });
    facts.sysctls.insert("net.core.netdev_max_backlog".into(), Fact::Value("1000".into()));
    let judged = audit(&facts, Goal::Throughput);
    let ids: BTreeSet<&str> = judged.findings.iter().map(|finding| finding.id.as_str()).collect();
    assert!(
        ["nf.unused", "nf.legacy", "nf.first", "net.softnet"].iter().all(|id| ids.contains(id)),
        "{ids:?}"
    );
    judged
}

#[test]
fn the_dearest_comes_first_and_a_choice_of_safety_is_no_fault() {
    let judged = everything_found();
    assert!(judged.findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.level)));
    let choice = judged.findings.iter().find(|finding| finding.id == "sec.mitig").unwrap();
    assert_eq!((choice.level, choice.risk), (Level::Low, Risk::Reboot));
}

#[test]
fn a_finding_for_another_goal_is_told_apart() {
    let mut facts = quiet();
    facts.sysctls.insert("net.ipv4.ip_local_port_range".into(), Fact::Value("32768\t60999".into()));
    assert!(!found(&facts, Goal::Throughput).contains("net.ports"));
    assert!(found(&facts, Goal::Connections).contains("net.ports"));
    let judged = audit(&facts, Goal::Throughput);
    assert!(judged.other_goals.iter().any(|one| one.id == "net.ports" && one.goals == [Goal::Connections]));
}

#[test]
fn thousands_of_rules_cpus_and_queues_are_judged() {
    let mut facts = quiet();
    facts.cpus.count = 4_096;
    facts.cpus.online = Fact::Value("0-4095".into());
    let mut rules = vec![rule(&["address"], "drop"); 9_999];
    rules.push(rule(&["established"], "accept"));
    facts.netfilter.nftables = Fact::Value(vec![input(rules)]);
    let mask = vec!["ffffffff"; 128].join(",");
    let queues = (0..4_096).map(|at| QueueSetting { queue: format!("rx-{at}"), value: mask.clone() });
    device(&mut facts).rps = Fact::Value(queues.collect());
    facts.cut.push("nftables rules after the first 10000".into());
    let judged = audit(&facts, Goal::Throughput);
    let linear = judged.findings.iter().find(|finding| finding.id == "nf.linear").unwrap();
    assert!(linear.found.starts_with("10000 rules") && linear.gain.percent.unwrap()[1] > 95.0);
    let rps = judged.findings.iter().find(|finding| finding.id == "net.rps").unwrap();
    assert!(rps.found.ends_with("and 4092 more") && rps.apply.len() == 4);
    assert!(judged.warnings[0].contains("10000"));
}

/// Planted faults: parts that are missing are not told; all of them are named.
#[test]
fn facts_that_do_not_hold_all_say_what_they_lack() {
    let warnings = |many: usize| {
        let missing = (0..many).map(|part| format!("part {part}")).collect();
        audit(&Facts { missing, ..Facts::default() }, Goal::Throughput).warnings
    };
    assert!(warnings(0).is_empty());
    assert!(
        warnings(8)[0].ends_with("part 7: what rests on them could not be looked at"),
        "{:?}",
        warnings(8)
    );
    assert!(warnings(10)[0].contains("part 7 and 2 more:") && warnings(10).len() == 1);
}

#[test]
fn a_hostile_name_is_one_word_of_a_command() {
    let hostile = "x;touch /tmp/y'";
    let mut facts = quiet();
    *device(&mut facts) = Device { rps: queue("2"), ..quiet_device(hostile) };
    facts.network.taps = Fact::Value(vec![Tap {
        protocol: 3,
        pid: Some(9),
        owner: "<img src=x>\nrm -r /".into(),
        ..Tap::default()
    }]);
    let judged = audit(&facts, Goal::Throughput);
    let commands = judged.findings.iter().flat_map(|one| [&one.see, &one.apply, &one.revert]).flatten();
    for command in commands.filter(|command| command.contains("touch")) {
        let script = format!(
            "show() {{ printf '%s\\n' \"$@\"; }}; sudo() {{ shift; show \"$@\"; }}; grep() {{ show \"$@\"; }}; {command}"
        );
        let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(&format!("/sys/class/net/{hostile}/")), "{command}: {text}");
    }
}

#[test]
fn what_other_tools_look_at_is_found_where_it_bears_on_speed() {
    let set = |facts: &mut Facts, name: &str, value: &str| {
        facts.sysctls.insert(name.to_owned(), Fact::Value(value.to_owned()));
    };
    let mut facts = quiet();
    set(&mut facts, "net.core.bpf_jit_enable", "1");
    set(&mut facts, "net.core.bpf_jit_harden", "2");
    set(&mut facts, "vm.dirty_ratio", "20");
    set(&mut facts, "vm.dirty_background_ratio", "10");
    set(&mut facts, "net.ipv4.neigh.default.gc_thresh3", "1024");
    facts.memory.total_bytes = 64 << 30;
    facts.network.counters = Fact::Value(
        [("ListenOverflows", 0), ("NeighbourEntries", 1_000)].map(|(name, n)| (name.to_owned(), n)).into(),
    );
    let latency = found(&facts, Goal::Latency);
    assert!(
        ["host.jit", "host.writeback", "net.neigh"].iter().all(|id| latency.contains(*id)),
        "{latency:?}"
    );
    set(&mut facts, "net.core.bpf_jit_harden", "1");
    set(&mut facts, "vm.dirty_ratio", "10");
    set(&mut facts, "net.ipv4.neigh.default.gc_thresh3", "4096");
    let latency = found(&facts, Goal::Latency);
    assert!(!latency.iter().any(|id| id.starts_with("host.") || id == "net.neigh"), "{latency:?}");
}
