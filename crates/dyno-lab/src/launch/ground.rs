//! The ground of a climb: where servers and load run, and what may be done.

use std::path::PathBuf;

use dyno_host::changes::HostChanges;
use dyno_sys::affinity::CpuSet;

/// Where servers and load run, and what the climb may do.
#[derive(Debug, Clone)]
pub struct Ground {
    /// CPUs of the servers.
    pub server_cpus: CpuSet,
    /// CPUs of the load.
    pub load_cpus: Vec<usize>,
    /// A folder of this climb's own.
    pub scratch: PathBuf,
    /// The folder of the plan: `{plan}` in its texts.
    pub plan_dir: PathBuf,
    /// Whether host settings may be written; those of a laboratory's network always may.
    pub host_changes: HostChanges,
    /// The user that servers run as, when the climb runs under sudo.
    pub user: Option<(u32, u32)>,
}
