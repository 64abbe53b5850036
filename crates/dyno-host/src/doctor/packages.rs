//! Which tools are installed, and which command installs one on this distribution.

use std::path::Path;

/// Where tools lie. The caller's PATH may lack the folders of an administrator's.
const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A tool's package on Debian, Fedora, Arch, Alpine and SUSE.
const PACKAGES: [(&str, [&str; 5]); 11] = [
    ("ip", ["iproute2", "iproute", "iproute2", "iproute2", "iproute2"]),
    ("tc", ["iproute2", "iproute-tc", "iproute2", "iproute2-tc", "iproute2"]),
    ("ss", ["iproute2", "iproute", "iproute2", "iproute2-ss", "iproute2"]),
    ("nft", ["nftables", "nftables", "nftables", "nftables", "nftables"]),
    ("ethtool", ["ethtool", "ethtool", "ethtool", "ethtool", "ethtool"]),
    ("sysctl", ["procps", "procps-ng", "procps-ng", "procps-ng", "procps"]),
    ("auditctl", ["auditd", "audit", "audit", "audit", "audit"]),
    ("cc", ["gcc", "gcc", "gcc", "gcc musl-dev", "gcc"]),
    ("c++", ["g++", "gcc-c++", "gcc", "g++", "gcc-c++"]),
    ("rustc", ["rustc", "rust", "rust", "rust", "rust"]),
    ("go", ["golang", "golang", "go", "go", "go"]),
];

/// Words of os-release that name a family, and its installer.
const FAMILIES: [(&[&str], &str); 5] = [
    (&["debian", "ubuntu"], "sudo apt-get install"),
    (&["fedora", "rhel", "centos", "amzn"], "sudo dnf install"),
    (&["arch"], "sudo pacman -S"),
    (&["alpine"], "sudo apk add"),
    (&["suse", "sles"], "sudo zypper install"),
];

/// Whether a tool is there, in the caller's PATH or in the usual folders.
pub(super) fn is_installed(tool: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(FOLDERS).any(|folder| Path::new(folder).join(tool).is_file())
}

/// The command that installs a tool where os-release says this.
pub(super) fn installs(release: &str, tool: &str) -> String {
    let names = PACKAGES.iter().find(|(name, _)| *name == tool).map(|(_, packages)| packages);
    let is_family =
        |line: &str| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")).map(str::to_owned);
    let ids: Vec<String> = release.lines().filter_map(is_family).collect();
    let has = |words: &[&str]| words.iter().any(|word| ids.iter().any(|id| id.contains(word)));
    let family = FAMILIES.iter().position(|(words, _)| has(words));
    match (family, names) {
        (Some(at), Some(names)) => format!("{} {}", FAMILIES[at].1, names[at]),
        _ => format!("your distribution's package with {tool}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installer_is_the_distributions() {
        assert_eq!(installs("NAME=Debian\nID=debian\n", "tc"), "sudo apt-get install iproute2");
        assert_eq!(
            installs("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "tc"),
            "sudo dnf install iproute-tc"
        );
        // Planted fault: SUSE takes Fedora's command and names.
        let suse = "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n";
        assert_eq!(installs(suse, "tc"), "sudo zypper install iproute2");
        assert_eq!(installs("ID=alpine\n", "c++"), "sudo apk add g++");
        assert_eq!(installs("", "go"), "your distribution's package with go");
    }

    #[test]
    fn a_tool_is_found_where_it_lies() {
        assert!(is_installed("sh") && !is_installed("no-tool-of-this-name"));
    }
}
