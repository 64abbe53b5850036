//! What this process may do: root's tests and the installer of packages ask before they try.

use std::collections::BTreeSet;

/// Capabilities by name and number, as in linux/capability.h: those that tests may ask for.
const CAPABILITIES: [(&str, u32); 14] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_ADMIN", 12),
    ("CAP_IPC_LOCK", 14),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_SYS_RESOURCE", 24),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

/// What this process may do.
pub(crate) struct Rights {
    user: Option<u32>,
    capabilities: u64,
}

impl Rights {
    /// Read from procfs: no library call is needed for it.
    pub(crate) fn ours() -> Rights {
        Rights::of_status(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    pub(crate) fn of_status(text: &str) -> Rights {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        // The second number is the effective one (proc_pid_status(5)).
        let user = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        let capabilities = field("CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        Rights { user, capabilities: capabilities.unwrap_or(0) }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.user == Some(0)
    }

    /// What a root test with this source would need beyond this.
    pub(crate) fn lacking(&self, source: &str) -> Vec<String> {
        let mut lacks: Vec<String> = (!self.is_root()).then(|| "root".to_owned()).into_iter().collect();
        for name in capability_names(source) {
            let number = CAPABILITIES.iter().find(|(known, _)| *known == name).map(|(_, number)| number);
            match number {
                Some(number) if self.capabilities >> number & 1 == 1 => {}
                Some(_) => lacks.push(name.to_owned()),
                None => lacks.push(format!("{name}, which this task does not know")),
            }
        }
        lacks
    }
}

fn capability_names(source: &str) -> BTreeSet<&str> {
    let words = source.split(|c: char| !c.is_ascii_uppercase() && c != '_');
    words.filter(|word| word.starts_with("CAP_") && word.len() > 4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_with_the_named_capabilities_lacks_nothing() {
        let root = Rights::of_status("Name:\tx\nUid:\t1000\t0\t0\t0\nCapEff:\t00000000000000c0\n");
        assert!(root.lacking("needs CAP_SETUID and CAP_SETGID: becomes another user").is_empty());
        assert_eq!(root.lacking("needs CAP_BPF, CAP_SETUID"), ["CAP_BPF"]);
        assert_eq!(root.lacking("needs CAP_FLYING").len(), 1);
    }

    #[test]
    fn anybody_else_lacks_root() {
        let user = Rights::of_status("Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
        assert_eq!(user.lacking(""), ["root"]);
        assert!(!Rights::of_status("").is_root());
    }
}
