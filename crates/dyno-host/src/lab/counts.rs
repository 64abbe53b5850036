//! What the laboratory counted: read where the work is done, so that a part that is set and not in force shows as nothing.

use std::io;

use dyno_record::lab::{Count, Part};
use dyno_sys::proc;
use dyno_sys::setting::Device;
use serde_json::Value;

use super::cable::SERVER_DEVICE;
use super::error::LabError;
use super::{Lab, tables, tool};
use crate::counted;

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
            Count::Queued => {
                let device = Device::here(SERVER_DEVICE).and_then(|device| counted::queued(device.index));
                device.map_err(|source| LabError::Count { what, source })
            }
            Count::HandedOver => Ok(counted::handed_over()),
            Count::Tapped => {
                let mut all = 0;
                for tap in &mut self.taps {
                    all += tap.seen().map_err(LabError::Tap)?;
                }
                Ok(all)
            }
            Count::ThreadUs => Ok(counted::threads_us(SERVER_DEVICE).unwrap_or(0)),
            Count::Polls => Ok(proc::net_cpus().iter().map(|cpu| cpu.net_rx).sum()),
            Count::BusyPolled => counted::busy_polled().map_err(|source| LabError::Count { what, source }),
            Count::Sent => {
                let path = format!("/sys/class/net/{SERVER_DEVICE}/statistics/tx_packets");
                let text = proc::text(&path).map_err(|source| LabError::Count { what, source })?;
                text.parse().map_err(|_| LabError::Count { what, source: io::ErrorKind::InvalidData.into() })
            }
        }
    }
}

fn ruleset() -> Result<Value, LabError> {
    let text = tool::run("nft", Part::Rules.name(), &["-j", "list", "ruleset"], "")?;
    serde_json::from_str(&text).map_err(|error| LabError::Tool { tool: "nft", said: error.to_string() })
}
