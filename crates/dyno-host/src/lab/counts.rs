//! What the laboratory counted: read where the work is done, so that a part that is set and not in force shows as nothing.

use std::io;

use dyno_record::lab::{Count, Part};
use dyno_sys::proc;
use serde_json::Value;

use super::cable::SERVER_DEVICE;
use super::error::LabError;
use super::{Lab, tables, tool};

impl Lab {
    pub(super) fn read(&mut self, count: Count) -> Result<u64, LabError> {
        let what = count.words();
        match count {
            Count::RulesPassed => {
                let ruleset = ruleset()?;
                let packets = tables::packets(&ruleset, tables::RULES, tables::PASSED);
                Ok(packets * tables::rules_before(&ruleset))
            }
            Count::Tracked => Ok(tables::packets(&ruleset()?, tables::TRACKING, tables::TRACKED)),
            Count::Asked => {
                let ruleset = ruleset()?;
                let of = |counter| tables::packets(&ruleset, tables::TRACKING, counter);
                Ok(of(tables::TRACKED) + of(tables::UNTRACKED))
            }
            Count::Queued => queued(),
            Count::HandedOver => Ok(proc::net_cpus().iter().map(|cpu| cpu.handed_over).sum()),
            Count::Tapped => {
                let mut all = 0;
                for tap in &mut self.taps {
                    all += tap.seen().map_err(LabError::Tap)?;
                }
                Ok(all)
            }
            Count::ThreadUs => Ok(threads_us()),
            Count::Polls => Ok(proc::net_cpus().iter().map(|cpu| cpu.net_rx).sum()),
            Count::BusyPolled => {
                let text = proc::text("/proc/thread-self/net/netstat");
                let text = text.map_err(|source| LabError::Count { what, source })?;
                busy_polled(&text).ok_or(LabError::Count { what, source: io::ErrorKind::NotFound.into() })
            }
            Count::Sent => {
                let path = format!("/sys/class/net/{SERVER_DEVICE}/statistics/tx_packets");
                let text = proc::text(&path).map_err(|source| LabError::Count { what, source })?;
                text.parse().map_err(|_| LabError::Count { what, source: io::ErrorKind::InvalidData.into() })
            }
        }
    }
}

/// The counter of this name: names stand in one line, numbers in the next, both behind `TcpExt:`.
fn busy_polled(netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let at = lines.next()?.split_whitespace().position(|name| name == "BusyPollRxPackets")?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

fn ruleset() -> Result<Value, LabError> {
    let text = tool::run("nft", Part::Rules.name(), &["-j", "list", "ruleset"], "")?;
    serde_json::from_str(&text).map_err(|error| LabError::Tool { tool: "nft", said: error.to_string() })
}

/// Packets through the root where it holds packets; `noqueue` holds none.
fn queued() -> Result<u64, LabError> {
    let words = ["-j", "-s", "qdisc", "show", "dev", SERVER_DEVICE];
    let text = tool::run("tc", Part::Qdisc.name(), &words, "")?;
    let all: Value = serde_json::from_str(&text)
        .map_err(|error| LabError::Tool { tool: "tc", said: error.to_string() })?;
    let roots = all.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let holding = roots.filter(|qdisc| qdisc["root"] == true && qdisc["kind"] != "noqueue");
    Ok(holding.filter_map(|qdisc| qdisc["packets"].as_u64()).sum())
}

/// CPU time of the kernel's threads that poll the server's end. Their names are cut at 15 bytes.
fn threads_us() -> u64 {
    let start: String = format!("napi/{SERVER_DEVICE}").chars().take(15).collect();
    let is_ours = |pid: &i32| proc::name(*pid).is_ok_and(|name| name.starts_with(&start));
    proc::all_ticks().into_keys().filter(is_ours).filter_map(|pid| proc::run_ns(pid).ok()).sum::<u64>()
        / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_below_a_name_is_its_count() {
        let text = "TcpExt: A BusyPollRxPackets C\nTcpExt: 1 22 3\nIpExt: BusyPollRxPackets\nIpExt: 9";
        assert_eq!(busy_polled(text), Some(22));
        assert_eq!(busy_polled("TcpExt: A\nTcpExt: 1"), None);
        let own = proc::text("/proc/self/net/netstat").ok();
        assert!(own.is_some_and(|own| busy_polled(&own).is_some()), "this kernel has it");
    }
}
