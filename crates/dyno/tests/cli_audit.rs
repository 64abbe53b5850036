//! `dyno audit` and `dyno doctor`: this machine as it is, and facts from a file.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, run, run_with_input};
use dyno_record::audit::{AUDIT_SCHEMA, Audit};
use dyno_record::doctor::{Doctor, State};
use dyno_record::facts::Facts;

/// Facts of a host with things planted, as `dyno audit facts` wrote them.
const PLANTED: &str = include_str!("golden/facts-planted.json");

#[test]
fn a_machine_is_judged_alike_live_and_from_a_file() {
    let folder = Folder::new("audit-facts");
    let place = folder.path("facts.json").to_str().unwrap().to_owned();
    run(["audit", "facts", "-o", &place]).done();
    let facts = Facts::from_json(&std::fs::read_to_string(&place).unwrap()).unwrap();
    let judged: Audit = serde_json::from_str(run(["audit", "--from", &place, "--json"]).done()).unwrap();
    assert_eq!((judged.schema.as_str(), judged.started_unix_s), (AUDIT_SCHEMA, facts.taken_unix_s));
    let again = dyno_diagnose::audit::audit(&facts, judged.goal);
    assert_eq!((judged.findings, judged.fine), (again.findings, again.fine));
    assert_eq!(judged.machine.cpus, facts.cpus.count as usize);
}

#[test]
fn a_server_is_looked_at_and_this_test_is_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let me = std::process::id().to_string();
    let facts = run(["audit", "facts", "--pid", &me]);
    let server = Facts::from_json(facts.done()).unwrap().server.unwrap();
    let local = listener.local_addr().unwrap().to_string();
    assert!(server.listeners.value().unwrap().iter().any(|one| one.local == local), "{server:?}");
    assert!(server.threads.value().unwrap().count > 1);
}

/// Planted fault: the process is not asked; then the audit advises a server to ask for what it never gets.
#[test]
fn a_server_that_gave_huge_pages_up_is_seen_to() {
    let of = |pages: &str| {
        let mut child =
            common::dyno(["netlab", "under", "--pages", pages, "--", "sleep", "600"]).spawn().unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        common::wait_for("the program", || {
            std::fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n")
        });
        let facts = run(["audit", "facts", "--pid", &child.id().to_string()]);
        child.kill().unwrap();
        child.wait().unwrap();
        let server = Facts::from_json(facts.done()).unwrap().server.unwrap();
        server.threads.value().unwrap().without_huge_pages
    };
    assert_eq!((of("small"), of("system")), (1, 0));
}

#[test]
fn the_exit_status_is_the_answer_only_where_it_is_asked_for() {
    let ending = |words: &[&str]| run_with_input(["audit", "--from", "-"].iter().chain(words), PLANTED).code;
    assert_eq!(ending(&[]), Some(0));
    assert_eq!(ending(&["--fail-on", "high"]), Some(1));
    assert_eq!(ending(&["--fail-on", "never", "--json"]), Some(0));
    assert_eq!(ending(&["--fail-on", "high", "--goal", "memory"]), Some(0));
}

#[test]
fn a_hostile_name_is_no_tag_of_the_page_and_no_order_to_the_terminal() {
    let hostile = PLANTED.replace("<img src=x>", "<img src=x>\\u001b[2J\\u202e");
    assert_ne!(hostile, PLANTED, "the planted host has a hostile name");
    let page = run_with_input(["audit", "--from", "-", "--format", "html"], &hostile);
    let page = page.done();
    assert!(!page.contains("<img") && page.contains("&lt;img"));
    let text = run_with_input(["audit", "--from", "-", "--full"], &hostile);
    let text = text.done();
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && text.contains("<img src=x>"), "{text}");
}

/// Names as their makers may choose them: tags, orders to a terminal, ends of lines, quotes of every format.
const HOSTILE: &str = "<img src=x onerror=1>\u{1b}[2J\n\r\u{202e}\"'\\{},|`$(reboot)";

/// Every text of the facts that a stranger chooses is that name.
fn all_hostile() -> String {
    fn hostile(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let is_name = ["name", "owner", "device", "table", "label"].contains(&name.as_str());
                    match value {
                        serde_json::Value::String(text) if is_name => *text = HOSTILE.to_owned(),
                        value => hostile(value),
                    }
                }
            }
            serde_json::Value::Array(all) => all.iter_mut().for_each(hostile),
            _ => {}
        }
    }
    let mut facts: serde_json::Value = serde_json::from_str(PLANTED).unwrap();
    hostile(&mut facts);
    facts.to_string()
}

/// Planted fault: a format writes a name as it is; then whoever reads it obeys it.
#[test]
fn a_hostile_name_is_a_text_in_every_format() {
    let facts = all_hostile();
    let written = |format: &str| {
        let ended = run_with_input(["audit", "--from", "-", "--full", "--format", format], &facts);
        ended.done().to_owned()
    };
    let is_obeyed =
        |text: &str| text.chars().any(|c| c.is_control() && c != '\n') || text.contains('\u{202e}');
    for format in ["table", "markdown", "csv", "junit", "github", "prometheus", "html"] {
        let text = written(format);
        // A cell of CSV may hold the end of a line within its quotes.
        let text = if format == "csv" { text.replace('\r', "") } else { text };
        assert!(!is_obeyed(&text), "{format}: {:?}", text.chars().find(|c| is_obeyed(&c.to_string())));
    }
    for format in ["html", "junit"] {
        assert!(!written(format).contains("<img"), "{format}");
    }
    for format in ["json", "sarif"] {
        let text = written(format);
        // What only turns a line about is a letter to JSON; what ends one, or is an order, is escaped.
        let has_orders = text.chars().any(|c| c.is_control() && c != '\n');
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok() && !has_orders, "{format}");
    }
    let lines = written("prometheus");
    let is_sample = |line: &str| line.starts_with('#') || line.starts_with("dyno_audit_");
    assert!(lines.lines().all(is_sample), "{lines}");
}

/// Planted fault: something in the judgement is square in the CPUs, or a list of them is shown whole.
#[test]
fn a_machine_of_four_thousand_cpus_is_judged_in_a_second_and_told_in_few_lines() {
    let cpus = 4_096u32;
    let mut facts: serde_json::Value = serde_json::from_str(PLANTED).unwrap();
    facts["cpus"]["count"] = cpus.into();
    facts["cpus"]["online"] = serde_json::json!({ "value": format!("0-{}", cpus - 1) });
    facts["cpus"]["isolated"] = serde_json::json!({ "value": "2048-4095" });
    let powersave = serde_json::json!({ "value": { "powersave": "0-4095" } });
    facts["cpus"]["frequency"]["governors"] = powersave.clone();
    facts["cpus"]["frequency"]["preferences"] = serde_json::json!({ "value": { "power": "0-4095" } });
    let one = |irq: u32| serde_json::json!({ "irq": irq, "name": format!("eth0-TxRx-{irq}"), "allowed": "0-4095", "effective": "7", "count": 9 });
    facts["cpus"]["interrupts"] = serde_json::json!({ "value": (0..cpus).map(one).collect::<Vec<_>>() });
    facts["cpus"]["irqbalance"] = serde_json::json!({ "value": null });
    let device = &mut facts["network"]["devices"]["value"][0];
    device["interrupts"] = (0..cpus).collect();
    device["driver"] = "mlx5_core".into();
    device["is_up"] = true.into();
    let facts = facts.to_string();
    let begun = std::time::Instant::now();
    let judged = run_with_input(["audit", "--from", "-", "--json"], &facts);
    let took = begun.elapsed();
    let judged: Audit = serde_json::from_str(judged.done()).unwrap();
    // No stopwatch: ten times what it takes on the slowest machine, so that only another order of growth fails.
    assert!(took.as_secs() < 30, "{took:?}");
    let irq = judged.findings.iter().find(|one| one.id == "net.irq").unwrap();
    assert!(
        irq.found.len() < 400 && irq.recommended.len() < 400 && irq.changes.len() > 4_000,
        "{}",
        irq.found
    );
    let text = run_with_input(["audit", "--from", "-"], &facts);
    assert!(text.done().lines().count() < 200, "{}", text.out.lines().count());
    assert!(text.out.lines().all(|line| line.chars().count() <= 80), "{}", text.out);
}

#[test]
fn what_is_no_record_of_facts_is_told_in_three_lines() {
    for text in ["", "[]x", r#"{"schema": "dyno.climb/2"}"#] {
        let ended = run_with_input(["audit", "--from", "-"], text);
        assert_eq!((ended.code, ended.err.lines().count()), (Some(2), 3), "{}", ended.err);
        assert!(ended.err.contains("dyno audit facts"), "{}", ended.err);
    }
    let gone = run(["audit", "--pid", "2147483646"]);
    assert_eq!(gone.code, Some(2));
    assert!(gone.err.contains("there is no process 2147483646"), "{}", gone.err);
}

/// Planted fault: parts that the file does not hold read as nothing wrong.
#[test]
fn facts_that_hold_nearly_nothing_are_no_host_on_which_all_is_well() {
    let headline = "too little could be seen to say that nothing is wrong: ";
    let one_finding =
        r#"{"schema":"dyno.facts/1","sysctls":{"net.ipv4.tcp_congestion_control":{"value":"cubic"}}}"#;
    for text in [r#"{"schema":"dyno.facts/1"}"#, one_finding] {
        let told = run_with_input(["audit", "--from", "-"], text);
        let flat = told.done().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains(headline) && flat.contains("these facts do not hold cpus, kernel, memory"),
            "{flat}"
        );
        for format in ["github", "html"] {
            let written = run_with_input(["audit", "--from", "-", "--format", format], text);
            assert!(written.done().contains(headline), "{}", written.out);
        }
    }
    let mut cut: serde_json::Value = serde_json::from_str(PLANTED).unwrap();
    cut["cpus"].as_object_mut().unwrap().remove("count");
    let told = run_with_input(["audit", "--from", "-"], &cut.to_string());
    assert!(told.done().contains("these facts do not hold cpus.count: what rests on"), "{}", told.out);
    assert!(!run_with_input(["audit", "--from", "-"], PLANTED).done().contains("do not hold"));
}

#[test]
fn the_doctor_says_of_each_missing_thing_what_gets_it() {
    let doctor: Doctor = serde_json::from_str(run(["doctor", "--json"]).done()).unwrap();
    let missing = doctor.abilities.iter().filter(|one| one.state != State::Works);
    let text = run(["doctor"]);
    let text = text.done();
    for one in missing {
        assert!(!one.get.is_empty() && text.contains(&one.name), "{one:?}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn measuring_says_how_long_it_takes_and_what_it_could_not_measure() {
    let ended = run(["audit", "--measure", "--json"]);
    let audit: Audit = serde_json::from_str(ended.done()).unwrap();
    assert!(ended.err.contains("measuring for up to 15 s"), "{}", ended.err);
    let measured = audit.measured.unwrap();
    let call = measured.call_ns.value().unwrap();
    assert!(call.value > 10.0 && call.interval[0] <= call.value && call.n > 5, "{call:?}");
    assert!(measured.request_us.value().is_some());
    let text = run(["audit", "--measure"]);
    let text = text.done();
    assert!(text.contains("not measured: not here: a server to look at"), "{text}");
    let refused = run_with_input(["audit", "--from", "-", "--measure"], PLANTED);
    assert_eq!(refused.code, Some(2), "what a file holds cannot be measured");
}
