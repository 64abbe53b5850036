//! What `dyno serve` says of what happens: a line for each event, on standard error.

use dyno_engine::supervisor::{Event, ExitReport};
use dyno_engine::{Addr, Drained, Limits};
use dyno_lab::chain;
use dyno_measure::units::thousands;

use super::logs;
use super::trouble::{engine_failure, url};

/// The line for an event; some have none.
pub(super) fn told(event: &Event) -> String {
    match event {
        Event::Listening { addrs, pids } => {
            let lines: String = addrs.iter().map(|addr| format!("listening on {}\n", url(addr))).collect();
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            let noun = if pids.len() == 1 { "worker" } else { "workers" };
            format!("{lines}{noun} {}\n", pids.join(" "))
        }
        Event::Metrics { addr } => match addr {
            Addr::Tcp(_) => format!("metrics on {}/metrics\n", url(addr)),
            Addr::Unix(_) => format!("metrics on {addr}\n"),
        },
        Event::MetricsDied { exit, replaced_in_ns } => {
            format!(
                "warning: the process for metrics died ({exit}); it is replaced {}\n",
                soon(*replaced_in_ns)
            )
        }
        Event::WorkerDied { pid, exit, replaced_in_ns } => {
            format!("warning: worker {pid} died ({exit}); it is replaced {}\n", soon(*replaced_in_ns))
        }
        Event::WorkerStuck { pid, for_ns } => format!(
            "warning: worker {pid} has not got on for {} s: it was stopped, or a handler does not come back; \
             its connections wait\n",
            *for_ns as f64 / 1e9
        ),
        Event::WorkerGetsOn { pid } => format!("worker {pid} gets on again\n"),
        Event::WorkerDrained { pid } => {
            format!("worker {pid} was told to drain and has ended; it is replaced\n")
        }
        Event::WorkerReplaced { old, new } => format!("worker {new} replaces {old}\n"),
        Event::WorkerNotReplaced { why } => {
            format!("warning: a worker could not be replaced: {}; it is tried again\n", chain(why))
        }
        Event::LogWriterDied { exit, replaced_in_ns } => {
            format!(
                "warning: the access log's writer died ({exit}); it is replaced {}\n",
                soon(*replaced_in_ns)
            )
        }
        Event::Content { folder, files, unread } => {
            let lost = match unread {
                0 => String::new(),
                unread => format!(" (warning: {unread} cannot be read by whoever serves)"),
            };
            let noun = if *files == 1 { "file" } else { "files" };
            format!("{} {noun} of {}{lost}\n", thousands(*files as f64), folder.display())
        }
        Event::BuilderDied { exit, replaced_in_ns } => format!(
            "warning: the process that reads the folder died ({exit}); it is replaced {}\n",
            soon(*replaced_in_ns)
        ),
        Event::ContentStale { why } => {
            format!("warning: changes of the folder are not served: {why}; it is tried again\n")
        }
        // Nobody asked for so many: it is told, and nothing is amiss.
        Event::Fitted { asked, fitting } if *asked == Limits::default().connections_max => {
            format!("a worker can hold {} connections (ulimit -n)\n", thousands(*fitting as f64))
        }
        Event::Fitted { asked, fitting } => format!(
            "warning: a worker can hold {} connections, not {}: descriptors are limited (ulimit -n)\n",
            thousands(*fitting as f64),
            thousands(*asked as f64)
        ),
        Event::Full { workers } => {
            let who = if *workers == 1 {
                "a worker accepts".to_owned()
            } else {
                format!("{workers} workers accept")
            };
            format!(
                "warning: {who} no more connections: no descriptor is free, or --connections-max is reached\n"
            )
        }
        Event::Alive => String::new(),
        Event::SignalIgnored { signal } => format!("{signal} means nothing here and is ignored\n"),
        Event::LogTrouble { why } => logs::trouble(why),
        Event::LogRecovered { lost } => logs::recovered(*lost),
        Event::LogReopened { path } => format!("the log {} was opened anew\n", path.display()),
        Event::LogNotReopened { why } => {
            format!("warning: {}; the file that was open goes on being written\n", chain(why))
        }
        Event::MemoryShort { refused, cut } => format!(
            "warning: connections hold more than --buffer-bytes-max: {refused} bodies were refused, {cut} connections \
             cut in the last minute\n"
        ),
        Event::Draining { within_ns } => {
            let seconds = *within_ns as f64 / 1e9;
            format!("draining for at most {seconds} s; a second signal ends at once\n")
        }
        Event::NotStarted { error } => engine_failure(error).lines(),
        Event::Ready { .. } => String::new(),
        Event::SupervisorDied { pid, exit, replaced_in_ns } => format!(
            "warning: supervisor {pid} died ({exit}), and its workers with it; it is replaced {}\n",
            soon(*replaced_in_ns)
        ),
        Event::FilesOpen => {
            "warning: this kernel has no Landlock: workers are kept from system calls, not from files\n"
                .to_owned()
        }
        Event::Reloading => "reading the settings again\n".to_owned(),
        Event::Reloaded { generation, kept, .. } => {
            let kept = match &kept[..] {
                [] => String::new(),
                names => format!(
                    "warning: sockets that stay are as they were bound: {} differs only after a restart\n",
                    names.join(", ")
                ),
            };
            format!("{kept}reloaded: generation {generation} serves, and the one before it finishes\n")
        }
        Event::NotReloaded { why } => {
            format!("error: not reloaded, the settings of before stay in force: {why}\n")
        }
        Event::Retired { generation, drained: Drained::Wholly } => {
            format!("generation {generation} has finished\n")
        }
        Event::Retired { generation, drained: Drained::Cut } => {
            format!(
                "warning: generation {generation} did not finish in time: its last connections were closed\n"
            )
        }
        Event::HandingOver { pid } => format!("process {pid} is to take over\n"),
        Event::HandedOver { pid } => format!("process {pid} serves; this one finishes\n"),
        Event::NotHandedOver { why } => {
            format!("error: no other program has taken over, this one goes on: {why}\n")
        }
    }
}

fn soon(pause_ns: u64) -> String {
    match pause_ns / 1_000_000 {
        0 => "at once".to_owned(),
        pause_ms => format!("in {pause_ms} ms"),
    }
}

/// How it all ended.
pub(super) fn end(report: &ExitReport) -> String {
    let lost = match report.counts.log_drops {
        0 => String::new(),
        1 => "warning: 1 line of the access log was lost\n".to_owned(),
        lines => format!("warning: {lines} lines of the access log were lost\n"),
    };
    lost + &drained(report)
}

fn drained(report: &ExitReport) -> String {
    let requests = report.counts.requests;
    let noun = if requests == 1 { "request" } else { "requests" };
    match report.drained {
        Drained::Wholly => format!("drained after {requests} {noun}\n"),
        Drained::Cut => {
            format!(
                "warning: the drain was cut short: open connections were closed, after {requests} {noun}\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::child;

    #[test]
    fn events_are_told_in_a_line_each() {
        let addrs = vec!["127.0.0.1:8080".parse().unwrap(), "unix:/tmp/x".parse().unwrap()];
        let listening = told(&Event::Listening { addrs, pids: vec![7, 8] });
        assert_eq!(listening, "listening on http://127.0.0.1:8080\nlistening on unix:/tmp/x\nworkers 7 8\n");
        let died = Event::WorkerDied { pid: 7, exit: child::Exit::Signal(9), replaced_in_ns: 20_000_000 };
        // Fault: a warning at every start of whoever set nothing.
        let fitted = |asked| told(&Event::Fitted { asked, fitting: 19_968 });
        assert_eq!(fitted(1_000_000), "a worker can hold 19,968 connections (ulimit -n)\n");
        assert!(fitted(50_000).starts_with("warning: a worker can hold 19,968 connections, not 50,000"));
        assert_eq!(told(&died), "warning: worker 7 died (killed by SIGKILL); it is replaced in 20 ms\n");
    }
}
