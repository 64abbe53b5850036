//! The named server: what stands before its system calls, how it is scheduled, what its control group allows.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::change::What;
use dyno_record::commands::command;
use dyno_record::facts::{Facts, Scheduled};

use super::draft::{
    ALL, Check, FAST, Looked, Say, Seen, counted, finding, measured, quoted, server, unknown,
};
use super::here;

pub(super) const CHECKS: &[Check] = &[
    Check { id: "app.seccomp", about: "seccomp filters before its system calls", look: seccomp },
    Check { id: "app.spec", about: "speculation that it is denied", look: speculation },
    Check { id: "app.sched", about: "how its threads are scheduled", look: scheduling },
    Check { id: "app.cgroup", about: "the CPU quota of its control group", look: quota },
];

/// Filters from which a stack is one: a single list of names is answered from a bitmap (Linux 5.11) and cost nothing.
const STACK: u32 = 2;

fn seccomp(facts: &Facts) -> Seen {
    let threads = server(facts)?.threads.known()?;
    let most = threads.seccomp_filters.keys().max().copied().unwrap_or(0);
    let words: Vec<String> = threads
        .seccomp_filters
        .iter()
        .map(|(filters, count)| {
            format!("{} with {}", counted(*count as usize, "thread"), counted(*filters as usize, "filter"))
        })
        .collect();
    if most < STACK {
        return Ok(Looked::Fine(words.join(", ")));
    }
    Ok(finding(
        format!("{} are asked before each system call of the server", counted(most as usize, "seccomp filter")),
        words.join(", "),
        "one filter that names calls and tests no arguments",
    )
    .gain(FAST, here::of_filters(facts).unwrap_or_else(|| measured(4.0, 12.0, "one filter that tests arguments 4 %, three of them 10 % [8, 12]; a list of names alone no difference")))
    .risk(Risk::Security, "a call that a filter refuses today is allowed then")
    .why("Filters add up: a container engine's, a service manager's, the server's own. A filter that only names calls is answered from a table; one that tests arguments runs each time.")
    .see(&["grep Seccomp /proc/PID/task/*/status"])
    .apply(&["systemd: fewer SystemCallFilter= lines; docker: --security-opt seccomp=PROFILE with names alone; then restart the server"])
    .revert(&["the setting as it was; then restart it"])
    .into())
}

fn speculation(facts: &Facts) -> Seen {
    let threads = server(facts)?.threads.known()?;
    let denied: Vec<String> = threads
        .speculation
        .iter()
        .filter(|(state, _)| state.contains("mitigated"))
        .map(|(state, count)| format!("{}: {state}", counted(*count as usize, "thread")))
        .collect();
    let all: Vec<&str> =
        threads.speculation.keys().map(String::as_str).filter(|state| !state.is_empty()).collect();
    if denied.is_empty() {
        return Ok(Looked::fine(if all.is_empty() {
            "the kernel says nothing of it".into()
        } else {
            all.join(", ")
        }));
    }
    Ok(finding("The processor may not work ahead of the server's writes to memory", denied.join(", "), "allowed, where it runs no foreign code")
        .gain(FAST, unknown("it depends on the processor and the code"))
        .risk(Risk::Security, "code inside the server could read memory that it should not")
        .why("Some processors leak memory when they work ahead, and the kernel can forbid it for a program. Before Linux 5.16 each seccomp filter did so; some service managers still do.")
        .see(&["grep Speculation /proc/PID/status"])
        .apply(&["start the server with SECCOMP_FILTER_FLAG_SPEC_ALLOW, or with spec_store_bypass_disable=prctl on the kernel's command line"])
        .revert(&["the start as it was"])
        .into())
}

fn scheduling(facts: &Facts) -> Seen {
    let server = server(facts)?;
    let threads = server.threads.known()?;
    let words: Vec<String> = threads.scheduling.iter().map(|(how, count)| format!("{count} {how}")).collect();
    let is_behind = |how: &str| {
        let nice = how.strip_prefix("other ").and_then(|nice| nice.parse::<i32>().ok());
        nice.is_some_and(|nice| nice > 0) || matches!(how, "batch" | "idle")
    };
    if !threads.scheduling.keys().any(|how| is_behind(how)) {
        return Ok(Looked::Fine(words.join(", ")));
    }
    let behind: Vec<&Scheduled> = threads.apart.iter().filter(|one| is_behind(&one.scheduling)).collect();
    let commands = |value: fn(&Scheduled) -> String| -> Vec<String> {
        let shown = behind.iter().take(COMMANDS_MAX);
        let mut all: Vec<String> =
            shown.map(|one| command(&What::Scheduler(one.task), &value(one))).collect();
        let more = behind.len().saturating_sub(COMMANDS_MAX);
        all.extend(
            (more > 0).then(|| format!("# and {more} more: dyno tune apply app.sched does all of them")),
        );
        all
    };
    let made =
        finding("Other programs run before the server when CPUs are short", words.join(", "), "nice 0")
            .gain(
                FAST,
                measured(
                    0.0,
                    15.0,
                    "nothing while nobody else wants the CPU; a busy neighbour cost 13 to 15 %",
                ),
            )
            .choice()
            .risk(Risk::Operational, "what was to come first comes second")
            .why("A positive nice value, or the class batch or idle, gives way to everybody else.")
            .see(&[&format!("ps -L -o pid,tid,cls,ni,comm -p {}", listed(&server.pids))]);
    let made = match behind.is_empty() {
        false => AuditFinding { apply: commands(|_| USUAL.to_owned()), revert: commands(as_set), ..made },
        true => made
            .apply(&["sudo renice -n 0 -p TID  # for each thread of the list"])
            .revert(&["the same with the value of the list"]),
    };
    Ok(behind.iter().fold(made, |made, one| made.set(What::Scheduler(one.task), USUAL)).into())
}

fn listed(pids: &[i32]) -> String {
    pids.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}

/// How a thread is scheduled that nobody asked for anything else, as a change says it.
const USUAL: &str = "other nice 0";
/// Threads whose commands are shown.
const COMMANDS_MAX: usize = 16;

/// `other 7` as a change says it: `other nice 7`.
fn as_set(one: &Scheduled) -> String {
    let (class, nice) = one.scheduling.split_once(' ').unwrap_or((&one.scheduling, "0"));
    one.nice.map_or_else(|| format!("{class} nice {nice}"), |nice| format!("{class} nice {nice}"))
}

/// Percent of periods in which a group was held, from which it is worth a sentence.
const HELD_MIN: f64 = 1.0;

fn quota(facts: &Facts) -> Seen {
    let group = server(facts)?.cgroup.known()?;
    let held = 100.0 * group.throttled as f64 / group.periods.max(1) as f64;
    let cpus = group.cpus.map_or_else(|| "no quota".to_owned(), |cpus| format!("{cpus:.2} CPUs"));
    let found = format!(
        "{cpus}; held in {} of {} periods ({held:.1} %), {} of them while the facts were read",
        group.throttled, group.periods, group.throttled_lately
    );
    let is_now = group.throttled_lately > 0;
    // Where there is no quota any more, what was held once is over.
    if !is_now && (held < HELD_MIN || group.cpus.is_none()) {
        return Ok(Looked::Fine(found));
    }
    let path = match group.quota_file.as_str() {
        "" => format!("/sys/fs/cgroup{}/cpu.max", group.path.trim_end_matches('/')),
        file => file.to_owned(),
    };
    let (none, all_of_it) = if path.ends_with("/cpu.max") { ("max", "max 100000") } else { ("-1", "-1") };
    let file = quoted(&path);
    let made = finding("The server's control group, or one above it, holds it back", format!("{found}; {path}"), "a larger quota, or none")
        .gain(ALL, unknown("as much as the quota withholds"))
        .risk(Risk::Operational, "others of this machine get less")
        .why("When a group has used its CPU time of a period, all its threads stand still until the next: a request that meets this waits up to 100 ms.")
        .see(&[&format!("cat {file}")])
        .apply(&[&format!("echo {none} | sudo tee {file}")])
        .revert(&["write back what it read"]);
    let made = if is_now { made.loses() } else { made };
    Ok(match group.cpus {
        // The file has a period too, which is the kernel's own where nothing is held to it.
        Some(_) if !group.quota_file.is_empty() => made.set(What::File(path), all_of_it).into(),
        _ => made.into(),
    })
}
