//! Every setting of the laboratory at the server's end, to be compared: what stood before and what stands after.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dyno_record::lab::Part;
use dyno_sys::netlink::ethtool;
use dyno_sys::proc;

use super::cable::SERVER_DEVICE;
use super::error::LabError;
use super::{Lab, tool};

/// Parts of paths whose values move by themselves: counts, keys that a server's first connection makes, ages.
pub const MOVING: [&str; 6] =
    ["/statistics/", "/nf_conntrack_count", "/tcp_fastopen_key", "/carrier", "/uevent", "/route/"];

/// Folders below /sys/class/net/NAME that are looked into, and their folders.
const DEPTH_MAX: usize = 8;
/// Files at most: a namespace has some hundreds of sysctls.
const FILES_MAX: usize = 20_000;
const DEVICES_MAX: usize = 100;

impl Lab {
    /// The settings by name.
    ///
    /// # Errors
    /// When a tool cannot be asked.
    pub fn snapshot(&self) -> Result<BTreeMap<String, String>, LabError> {
        let mut all = BTreeMap::new();
        walk(Path::new("/proc/sys/net"), DEPTH_MAX, &mut all);
        let device = format!("/sys/class/net/{SERVER_DEVICE}");
        // The device is a link; what lies behind its own links is not the device's.
        if let Ok(folder) = fs::canonicalize(device) {
            walk(&folder, DEPTH_MAX, &mut all);
        }
        let rules = tool::run("nft", Part::Rules.name(), &["-s", "list", "ruleset"], "")?;
        all.insert("nft ruleset".into(), rules);
        all.insert("qdisc".into(), self.qdisc()?);
        all.insert("offloads".into(), self.offloads()?);
        all.insert("taps".into(), taps());
        Ok(all)
    }

    fn offloads(&self) -> Result<String, LabError> {
        let cannot = |source| LabError::Cable { what: "read the offloads", source };
        let mut all = ethtool::settings(DEVICES_MAX).map_err(cannot)?;
        let features = all.remove(&self.device).and_then(|settings| settings.features);
        Ok(features.unwrap_or_default().join(" "))
    }
}

/// Sockets that hear packets, with what they ask for.
fn taps() -> String {
    let text = proc::text("/proc/thread-self/net/packet").unwrap_or_default();
    let mut lines: Vec<String> = proc::parse_packet(&text)
        .iter()
        // One that waits for what nobody sends costs nothing, and may stay.
        .filter(|line| line.protocol == 3)
        .map(|line| format!("protocol {} device {}", line.protocol, line.device))
        .collect();
    lines.sort();
    lines.join(", ")
}

fn walk(folder: &Path, depth: usize, all: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        let name = path.display().to_string();
        let Ok(kind) = kind else { continue };
        if MOVING.iter().any(|part| format!("{name}/").contains(part)) || all.len() >= FILES_MAX {
            continue;
        }
        if kind.is_dir() && depth > 0 {
            walk(&path, depth - 1, all);
        } else if kind.is_file() {
            // What cannot be read is not there now, and must not be there then.
            if let Ok(text) = proc::text(&name) {
                all.insert(name, text);
            }
        }
    }
}
