//! Files that make changes outlive a boot: what would be in them, by what kind each change is.
//!
//! The verb shows them and has them written as changes of their own, so that a rollback removes them. A boot loader is never
//! touched. What cannot be made to last says why.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use dyno_record::change::{ChangeSpec, Network, What};
use dyno_record::commands::command;
use dyno_sys::proc;
use dyno_sys::setting::{FOLDER, MARK};

use crate::place;

/// The files, below the root that they are for.
const SYSCTL: &str = "etc/sysctl.d/90-dyno.conf";
const UDEV: &str = "etc/udev/rules.d/90-dyno.rules";
const TABLES: &str = "etc/nftables.d/dyno.nft";
const UNIT: &str = "etc/systemd/system/dyno-tune.service";
const WANTS: &str = "etc/systemd/system/multi-user.target.d/90-dyno.conf";
/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup/";
/// Where interrupts say who asked for them.
const INTERRUPTS: &str = "/sys/kernel/irq";
const PROFILE: &str = "etc/tuned/dyno/tuned.conf";

/// How changes are made to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// sysctl.d, udev rules, nftables, systemd units.
    Files,
    /// One profile for TuneD, and what it cannot hold as files.
    Tuned,
}

/// What would be written, and what not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lasting {
    /// Files by path below the root, with their contents.
    pub files: BTreeMap<String, String>,
    /// Changes that cannot be made to last, and why.
    pub not: Vec<(String, String)>,
    /// What a person has to do besides.
    pub besides: Vec<String>,
}

/// Makes the files for these changes.
#[must_use]
pub fn lasting(changes: &[(What, String)], form: Form) -> Lasting {
    let mut lines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut lasting = Lasting::default();
    for (what, value) in changes {
        match of(what, value, form) {
            Ok((file, line)) => {
                lines.entry(file).or_default().insert(line);
            }
            Err(why) => lasting.not.push((what.to_string(), why)),
        }
    }
    for (file, lines) in lines {
        lasting.files.insert(file.clone(), contents(&file, &lines));
    }
    if lasting.files.contains_key(UNIT) {
        lasting.files.insert(WANTS.into(), format!("# {MARK}\n[Unit]\nWants=dyno-tune.service\n"));
    }
    lasting.besides = besides(&lasting.files);
    lasting
}

fn besides(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut besides = Vec::new();
    if files.keys().any(|file| file.starts_with("etc/systemd/")) {
        besides.push("sudo systemctl daemon-reload".to_owned());
    }
    if files.contains_key(TABLES) {
        besides.push(
            "include \"/etc/nftables.d/dyno.nft\" in /etc/nftables.conf, where it is not yet".to_owned(),
        );
    }
    if files.contains_key(PROFILE) {
        besides.push("sudo tuned-adm profile dyno".to_owned());
    }
    besides
}

/// The file and the line for a change.
fn of(what: &What, value: &str, form: Form) -> Result<(String, String), String> {
    let own = place::network().map_err(|error| error.to_string())?;
    let here = |network: &Network| match network.inode == own.inode {
        true => Ok(()),
        false => Err("it is of another network namespace, which whoever makes it has to set".to_owned()),
    };
    if value.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err("its value has characters that no such file holds".into());
    }
    match what {
        What::File(path) if path.starts_with("/proc/sys/") => Ok(sysctl(path, value, form)),
        What::NetworkFile { network, path } => here(network).map(|()| sysctl(path, value, form)),
        What::File(path) if path.starts_with(GROUPS) => quota(path, value),
        What::File(path) if form == Form::Tuned => Ok((PROFILE.into(), format!("[sysfs]{path}={value}"))),
        What::File(path) => {
            Ok((UNIT.into(), shell_line(&format!("echo {} > {}", plain(value)?, plain(path)?))))
        }
        What::DeviceFile { device, file } => {
            here(&device.network)?;
            Ok((
                UDEV.into(),
                format!("{}, ATTR{{{}}}=\"{}\"", added(&device.name)?, plain(file)?, plain(value)?),
            ))
        }
        What::Feature { device, .. } | What::Hardware { device, .. } | What::Qdisc { device } => {
            here(&device.network)?;
            let told = command(what, value);
            match value.contains(" options ") {
                true => Err("its options are known in the kernel's own form alone".into()),
                false => Ok((UDEV.into(), format!("{}, RUN+=\"{}\"", added(&device.name)?, by_path(&told)?))),
            }
        }
        What::Table { network, family, name } => {
            here(network)?;
            Ok((TABLES.into(), format!("table {family} {name} {{\n{value}\n}}")))
        }
        What::FirstRule { .. } => {
            Err("the chain is somebody's: put the rule first in the file that loads it (/etc/nftables.conf)"
                .into())
        }
        What::Interrupt { name, .. } => Ok((UNIT.into(), interrupt_line(plain(name)?, plain(value)?))),
        What::Affinity(task) => unit_of(task.pid).map(|file| (file, format!("CPUAffinity={value}"))),
        What::Scheduler(task) => unit_of(task.pid).and_then(|file| Ok((file, scheduling(value)?))),
        What::OwnFile { .. } | What::OwnFolder { .. } => Err("it lasts already".into()),
    }
}

/// A group is made by who starts its service, and its quota with it.
fn quota(path: &str, value: &str) -> Result<(String, String), String> {
    let unit = path.rsplit('/').nth(1);
    let unit = unit.filter(|unit| unit.ends_with(".service"));
    let unit = unit.ok_or_else(|| "its control group is no service's".to_owned())?;
    match value.starts_with("max") || value == "-1" {
        // Nothing at all takes an earlier line back (systemd.resource-control(5)).
        true => Ok((format!("etc/systemd/system/{}.d/90-dyno.conf", plain(unit)?), "CPUQuota=".to_owned())),
        false => Err("only a quota that is lifted is known to a unit in the same words".into()),
    }
}

fn sysctl(path: &str, value: &str, form: Form) -> (String, String) {
    let name = path.trim_start_matches("/proc/sys/");
    // A slash in place of dots is read alike, and a device's name may hold a dot (sysctl.d(5)).
    let name = if name.contains('.') { name.to_owned() } else { name.replace('/', ".") };
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    match form {
        Form::Files => (SYSCTL.into(), format!("{name} = {value}")),
        Form::Tuned => (PROFILE.into(), format!("[sysctl]{name}={value}")),
    }
}

fn added(device: &str) -> Result<String, String> {
    Ok(format!("ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"{}\"", plain(device)?))
}

/// Words that neither udev nor a unit or shell reads as anything else.
fn plain(word: &str) -> Result<&str, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@+ ".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Ok(word),
        false => Err("its name or value has characters that no such file holds safely".into()),
    }
}

/// The command with its tool's path, as udev wants it.
fn by_path(told: &str) -> Result<String, String> {
    let told = told.strip_prefix("sudo ").unwrap_or(told);
    Ok(format!("/usr/sbin/{}", plain(told)?))
}

fn shell_line(command: &str) -> String {
    format!("ExecStart=/bin/sh -c '{command}'")
}

/// An interrupt by its name, for its number may be another one after a boot. `$$` is a `$` to systemd.
fn interrupt_line(name: &str, cpus: &str) -> String {
    shell_line(&format!(
        "for d in {INTERRUPTS}/*; do [ \"$$(cat $$d/actions)\" != \"{name}\" ] || echo {cpus} > /proc/irq/$${{d##*/}}/smp_affinity_list; done"
    ))
}

/// The drop-in of the service that a process belongs to.
fn unit_of(pid: i32) -> Result<String, String> {
    let groups =
        proc::text(&format!("/proc/{pid}/cgroup")).map_err(|_| "its process has ended".to_owned())?;
    let unit =
        groups.lines().filter_map(|line| line.rsplit('/').next()).find(|name| name.ends_with(".service"));
    let unit = unit.ok_or_else(|| "its process belongs to no service".to_owned())?;
    Ok(format!("etc/systemd/system/{}.d/90-dyno.conf", plain(unit)?))
}

fn scheduling(value: &str) -> Result<String, String> {
    let words: Vec<&str> = value.split_whitespace().collect();
    match words[..] {
        [class, "nice", nice, ..] => Ok(format!("CPUSchedulingPolicy={class}\nNice={nice}")),
        [class, "priority", priority, ..] => {
            Ok(format!("CPUSchedulingPolicy={class}\nCPUSchedulingPriority={priority}"))
        }
        _ => Err("it has no class".into()),
    }
}

fn contents(file: &str, lines: &BTreeSet<String>) -> String {
    let head = format!("# {MARK}; dyno tune rollback removes it\n");
    let joined =
        |lines: &mut dyn Iterator<Item = &String>| lines.fold(String::new(), |text, line| text + line + "\n");
    if file == PROFILE {
        let section = |name: &str| -> String {
            let own = lines.iter().filter_map(|line| line.strip_prefix(name));
            let own: String = own.map(|line| format!("{line}\n")).collect();
            if own.is_empty() { own } else { format!("\n{name}\n{own}") }
        };
        return format!(
            "{head}[main]\nsummary=What dyno tune found\n{}{}",
            section("[sysctl]"),
            section("[sysfs]")
        );
    }
    if file == UNIT {
        let unit = "[Unit]\nDescription=Settings of dyno tune\nAfter=systemd-modules-load.service\n";
        // Most drivers ask for a device's interrupts when it goes up; before that nothing has their names.
        let has_interrupts = lines.iter().any(|line| line.contains(INTERRUPTS));
        let online = "Wants=network-online.target\nAfter=network-online.target\n";
        let after = if has_interrupts { online } else { "" };
        let service = "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n";
        return format!("{head}{unit}{after}{service}{}", joined(&mut lines.iter()));
    }
    if file.ends_with(".service.d/90-dyno.conf") {
        return format!("{head}[Service]\n{}", joined(&mut lines.iter()));
    }
    format!("{head}{}", joined(&mut lines.iter()))
}

/// The changes that write the files: missing folders first, each of its own.
#[must_use]
pub fn changes(files: &BTreeMap<String, String>, root: &Path) -> Vec<ChangeSpec> {
    let mut specs: Vec<ChangeSpec> = Vec::new();
    for (file, contents) in files {
        let path = root.join(file);
        let mut missing: Vec<PathBuf> =
            path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        missing.reverse();
        for folder in missing {
            let what = What::OwnFolder { path: folder.display().to_string() };
            if !specs.iter().any(|spec| spec.what == what) {
                specs.push(ChangeSpec { what, wanted: FOLDER.into(), why: "for the files in it".into() });
            }
        }
        let what = What::OwnFile { path: path.display().to_string() };
        specs.push(ChangeSpec { what, wanted: contents.clone(), why: "to outlive a boot".into() });
    }
    specs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::change::Device;

    fn device(name: &str) -> Device {
        Device { network: place::network().unwrap(), index: 2, name: name.into() }
    }

    fn all() -> Vec<(What, String)> {
        let network = place::network().unwrap();
        vec![
            (What::File("/proc/sys/vm/swappiness".into()), "10".into()),
            (What::NetworkFile { network, path: "/proc/sys/net/ipv4/tcp_rmem".into() }, "1\t2\t3".into()),
            (What::File("/sys/kernel/mm/ksm/run".into()), "0".into()),
            (What::DeviceFile { device: device("eth0"), file: "queues/rx-0/rps_cpus".into() }, "0".into()),
            (What::Feature { device: device("eth0"), name: "rx-gro".into() }, "on".into()),
            (What::Qdisc { device: device("eth0") }, "default".into()),
            (What::Table { network, family: "ip".into(), name: "dyno_x".into() }, "chain a { }".into()),
            (What::Interrupt { irq: 41, name: "eth0-rx-0".into() }, "1".into()),
        ]
    }

    #[test]
    fn every_kind_has_its_file_and_every_file_says_that_it_is_ours() {
        let lasting = lasting(&all(), Form::Files);
        assert_eq!(lasting.not, []);
        assert!(lasting.files.values().all(|text| text.contains(MARK)));
        let has =
            |file: &str, line: &str| assert!(lasting.files[file].contains(line), "{}", lasting.files[file]);
        has(SYSCTL, "net.ipv4.tcp_rmem = 1 2 3\nvm.swappiness = 10\n");
        has(UNIT, "ExecStart=/bin/sh -c 'echo 0 > /sys/kernel/mm/ksm/run'\n");
        has(WANTS, "Wants=dyno-tune.service");
        has(UNIT, "!= \"eth0-rx-0\" ] || echo 1 > /proc/irq/$${d##*/}/smp_affinity_list; done'\n");
        has(UDEV, "NAME==\"eth0\", ATTR{queues/rx-0/rps_cpus}=\"0\"\n");
        has(UDEV, "RUN+=\"/usr/sbin/ethtool -K eth0 rx-gro on\"\n");
        has(UDEV, "RUN+=\"/usr/sbin/tc qdisc del dev eth0 root\"\n");
        has(TABLES, "table ip dyno_x {\nchain a { }\n}\n");
        assert_eq!(lasting.besides.len(), 2, "{:?}", lasting.besides);
    }

    #[test]
    fn a_profile_has_sections_and_the_rest_stays_files() {
        let lasting = lasting(&all(), Form::Tuned);
        let profile = &lasting.files[PROFILE];
        assert!(profile.contains("\n[sysctl]\nnet.ipv4.tcp_rmem=1 2 3\nvm.swappiness=10\n"), "{profile}");
        assert!(profile.contains("\n[sysfs]\n/sys/kernel/mm/ksm/run=0\n"), "{profile}");
        assert!(lasting.files.contains_key(UDEV) && !lasting.files.contains_key(SYSCTL));
    }

    /// Planted fault: the unit runs as soon as modules are loaded; then no interrupt has the name that is looked for.
    #[test]
    fn interrupts_are_placed_when_the_network_is_up_and_nothing_else_waits_for_it() {
        let unit =
            |what: What, value: &str| lasting(&[(what, value.to_owned())], Form::Files).files[UNIT].clone();
        let interrupt = unit(What::Interrupt { irq: 41, name: "eth0-rx-0".into() }, "1");
        for line in ["Wants=network-online.target", "After=network-online.target"] {
            let head = interrupt.split("[Service]").next().unwrap();
            assert!(head.lines().any(|one| one == line), "{interrupt}");
        }
        assert!(!unit(What::File("/sys/kernel/mm/ksm/run".into()), "0").contains("network-online"));
    }

    #[test]
    fn a_quota_that_was_lifted_is_its_services_and_no_other_groups() {
        let of = |path: &str| {
            let what = What::File(format!("{GROUPS}{path}"));
            lasting(&[(what, "max 100000".to_owned())], Form::Tuned)
        };
        let files = of("system.slice/web.service/cpu.max").files;
        let unit = &files["etc/systemd/system/web.service.d/90-dyno.conf"];
        assert!(unit.contains("[Service]\nCPUQuota=\n"), "{unit}");
        assert!(of("user.slice/cpu.max").files.is_empty());
    }

    /// Planted fault: `plain` takes every word; then a device's name ends udev's quotes and runs what follows.
    #[test]
    fn hostile_names_and_values_are_told_and_never_written() {
        let evil = "x\", RUN+=\"/bin/reboot";
        let network = place::network().unwrap();
        let other = Network { inode: 1, cookie: 0 };
        for (what, value) in [
            (What::DeviceFile { device: device(evil), file: "threaded".into() }, "0"),
            (What::DeviceFile { device: device("eth0"), file: "threaded".into() }, "0\", RUN+=\"x"),
            (What::Feature { device: device("<img src=x>"), name: "rx-gro".into() }, "on"),
            (What::File("/sys/kernel/mm/ksm/run".into()), "0'; reboot; '"),
            (What::NetworkFile { network, path: "/proc/sys/net/ipv4/x".into() }, "\u{1b}[2J"),
            (What::NetworkFile { network: other, path: "/proc/sys/net/ipv4/x".into() }, "1"),
        ] {
            let lasting = lasting(&[(what, value.to_owned())], Form::Files);
            assert!(lasting.files.is_empty() && lasting.not.len() == 1, "{lasting:?}");
        }
    }

    #[test]
    fn folders_that_are_missing_are_made_before_their_files() {
        let root = std::env::temp_dir().join(format!("dyno-persist-{}", std::process::id()));
        let files =
            [("etc/a/one".to_owned(), "1".to_owned()), ("etc/a/two".to_owned(), "2".to_owned())].into();
        let names: Vec<String> = changes(&files, &root).iter().map(|spec| spec.what.to_string()).collect();
        let below = |name: &str| root.join(name).display().to_string();
        assert_eq!(
            names,
            [below(""), below("etc"), below("etc/a"), below("etc/a/one"), below("etc/a/two")]
                .map(|name| name.trim_end_matches('/').to_owned())
        );
    }
}
