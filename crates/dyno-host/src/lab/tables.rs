//! Tables of nftables as text, and what their counters say.

use dyno_record::lab::{Form, Rules};
use serde_json::Value;

/// The table of rules, and that of tracking.
pub(super) const RULES: &str = "dyno_rules";
pub(super) const TRACKING: &str = "dyno_tracking";
/// Names of counters.
pub(super) const PASSED: &str = "passed";
pub(super) const TRACKED: &str = "tracked";
pub(super) const UNTRACKED: &str = "untracked";

/// What `nft -f` is given so that a table is this and nothing else: whole or not at all.
fn instead(table: &str, body: Option<String>) -> String {
    let remove = format!("add table inet {table}\ndelete table inet {table}\n");
    match body {
        None => remove,
        Some(body) => format!("{remove}table inet {table} {{\n{body}}}\n"),
    }
}

/// Rules that refuse addresses which never come.
pub(super) fn rules(rules: Rules) -> String {
    let Rules::Some { form, count, tracked } = rules else { return instead(RULES, None) };
    let mut body = format!("counter {PASSED} {{}}\n");
    let refused = match form {
        Form::Linear | Form::Unhooked => {
            addresses(count).map(|address| format!("ip saddr {address} drop\n")).collect()
        }
        Form::Set => {
            let all: Vec<String> = addresses(count).collect();
            body += &format!("set refused {{ type ipv4_addr; elements = {{ {} }}\n}}\n", all.join(", "));
            "ip saddr @refused drop\n".to_owned()
        }
    };
    let hook =
        if form == Form::Unhooked { "" } else { "type filter hook input priority 0; policy accept;\n" };
    let behind = if tracked { "ct state established accept\n" } else { "" };
    body += &format!(
        "chain input {{\n{hook}{refused}counter name {PASSED}\n{behind}meta l4proto tcp accept\n}}\n"
    );
    instead(RULES, Some(body))
}

/// Addresses of 192.168.0.0/16, from the first on.
fn addresses(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|at| format!("192.168.{}.{}", at / 250, at % 250 + 1))
}

/// Tracking as most hosts have it, or left out for TCP.
pub(super) fn tracking(value: &str) -> String {
    if value == "none" {
        return instead(TRACKING, None);
    }
    let raw = "meta l4proto tcp notrack\n";
    let raw = if value == "notrack" {
        format!(
            "chain before {{\ntype filter hook prerouting priority -300;\n{raw}}}\nchain after {{\ntype filter hook output priority -300;\n{raw}}}\n"
        )
    } else {
        String::new()
    };
    let body = format!(
        "counter {TRACKED} {{}}\ncounter {UNTRACKED} {{}}\n{raw}chain input {{\ntype filter hook input priority 10; policy accept;\n\
         ct state established counter name {TRACKED} accept\nct state untracked counter name {UNTRACKED} accept\n\
         ct state new accept\n}}\n"
    );
    instead(TRACKING, Some(body))
}

/// Packets that a named counter saw, of what `nft -j list ruleset` prints; 0 where it is not there.
pub(super) fn packets(ruleset: &Value, table: &str, counter: &str) -> u64 {
    let is = |entry: &&Value| entry["table"] == table && entry["name"] == counter;
    let found = entries(ruleset, "counter").find(is);
    found.and_then(|entry| entry["packets"].as_u64()).unwrap_or(0)
}

/// Rules in front of the one that counts what passed.
pub(super) fn rules_before(ruleset: &Value) -> u64 {
    let ours = entries(ruleset, "rule").filter(|rule| rule["table"] == RULES);
    ours.take_while(|rule| !counts(rule)).count() as u64
}

fn counts(rule: &Value) -> bool {
    let steps = rule["expr"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().any(|step| step["counter"] == PASSED)
}

fn entries<'v>(ruleset: &'v Value, kind: &'v str) -> impl Iterator<Item = &'v Value> {
    let all = ruleset["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(move |entry| entry.get(kind))
}
