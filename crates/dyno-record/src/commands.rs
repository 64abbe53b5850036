//! The command that makes a setting stand at a value: to be pasted by people who would rather do it themselves.
//!
//! Plans, journals and failures show them. Every word is quoted as a shell reads it back: names of devices and processes are
//! whatever their makers chose.

use crate::change::What;
use crate::visible::obeyed;

/// The command, for a shell in the namespace of the setting.
#[must_use]
pub fn command(what: &What, value: &str) -> String {
    match what {
        What::File(path) => write(path, value),
        What::NetworkFile { path, .. } => write(path, value),
        What::DeviceFile { device, file } => write(&format!("/sys/class/net/{}/{file}", device.name), value),
        What::Feature { device, name } => {
            format!("sudo ethtool -K {} {} {}", quoted(&device.name), quoted(name), quoted(value))
        }
        What::Hardware { device, field } => hardware(&device.name, field, value),
        What::Qdisc { device } => qdisc(&quoted(&device.name), value),
        What::Table { family, name, .. } => table(family, name, value),
        What::FirstRule { family, table, chain, .. } => first_rule([family, table, chain], value),
        What::Interrupt { irq, .. } => write(&format!("/proc/irq/{irq}/smp_affinity_list"), value),
        What::Affinity(task) => format!("sudo taskset -pc {} {}", quoted(value), task.tid),
        What::Scheduler(task) => scheduler(task.tid, value),
        What::OwnFile { path } | What::OwnFolder { path } if value.is_empty() => {
            format!("sudo rm -d {}", quoted(path))
        }
        What::OwnFile { path } => format!("printf %s {} | sudo tee {}", quoted(value), quoted(path)),
        What::OwnFolder { path } => format!("sudo mkdir {}", quoted(path)),
    }
}

fn write(path: &str, value: &str) -> String {
    format!("echo {} | sudo tee {}", quoted(value), quoted(path))
}

fn hardware(device: &str, field: &str, value: &str) -> String {
    let (group, name) = field.split_once(' ').unwrap_or(("", field));
    let flag = match group {
        "channels" => "-L",
        "ring" => "-G",
        _ => "-C",
    };
    let value = match (name.starts_with("adaptive"), value) {
        (true, "0") => "off",
        (true, _) => "on",
        (false, value) => value,
    };
    format!("sudo ethtool {flag} {} {} {}", quoted(device), quoted(name), quoted(value))
}

fn qdisc(device: &str, value: &str) -> String {
    if value.starts_with("default") {
        return format!("sudo tc qdisc del dev {device} root");
    }
    let mut words = value.split_whitespace();
    let kind = quoted(words.next().unwrap_or_default());
    let handle = words.skip_while(|word| *word != "handle").nth(1);
    let handle = handle.map_or_else(String::new, |handle| format!(" handle {}:", quoted(handle)));
    let options =
        if value.contains(" options ") { "  # with the options that tc qdisc show told" } else { "" };
    format!("sudo tc qdisc replace dev {device} root{handle} {kind}{options}")
}

fn table(family: &str, name: &str, value: &str) -> String {
    match value {
        "" => format!("sudo nft delete table {} {}", quoted(family), quoted(name)),
        rules => format!(
            "sudo nft {}",
            quoted(&format!("table {family} {name} {{ {} }}", rules.replace('\n', " ")))
        ),
    }
}

/// Its comment tells it from the others when it is to be taken away; its number is known once it is there.
fn first_rule(chain: [&str; 3], value: &str) -> String {
    let chain = chain.map(quoted).join(" ");
    let comment = "dyno: standing connections first";
    match value {
        "" => format!(
            "sudo nft delete rule {chain} handle $(sudo nft -a list chain {chain} | sed -n '/{comment}/s/.*handle //p')"
        ),
        rule => format!("sudo nft {}", quoted(&format!("insert rule {chain} {rule} comment \"{comment}\""))),
    }
}

fn scheduler(tid: i32, value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    match words[..] {
        ["other", "nice", nice, ..] => {
            format!("sudo chrt -o -p 0 {tid} && sudo renice -n {} -p {tid}", quoted(nice))
        }
        [class, "nice", nice, ..] => {
            let class = quoted(class);
            format!("sudo chrt --{class} -p 0 {tid} && sudo renice -n {} -p {tid}", quoted(nice))
        }
        [class, "priority", priority, ..] => {
            format!("sudo chrt --{} -p {} {tid}", quoted(class), quoted(priority))
        }
        [class, ..] => format!("sudo chrt --{} -p 0 {tid}", quoted(class)),
        [] => format!("sudo chrt -p {tid}"),
    }
}

/// A word as a shell reads it back, with nothing in it that a terminal would obey.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(obeyed) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let escaped = |byte: u8| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("$'{}'", word.bytes().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Device, Task};

    fn device(name: &str) -> Device {
        Device { name: name.into(), ..Device::default() }
    }

    #[test]
    fn every_kind_has_a_command() {
        let told = |what: What, value: &str| command(&what, value);
        assert_eq!(told(What::File("/proc/sys/a".into()), "1 2"), "echo '1 2' | sudo tee /proc/sys/a");
        assert_eq!(
            told(What::Qdisc { device: device("vS") }, "default noqueue"),
            "sudo tc qdisc del dev vS root"
        );
        assert_eq!(
            told(What::Qdisc { device: device("vS") }, "tbf handle 77 options 00"),
            "sudo tc qdisc replace dev vS root handle 77: tbf  # with the options that tc qdisc show told"
        );
        let adaptive = What::Hardware { device: device("eth0"), field: "coalesce adaptive-rx".into() };
        assert_eq!(told(adaptive, "1"), "sudo ethtool -C eth0 adaptive-rx on");
        assert_eq!(
            told(What::Affinity(Task { pid: 1, tid: 2, started: 3 }), "0-1"),
            "sudo taskset -pc 0-1 2"
        );
        assert!(told(What::OwnFile { path: "/etc/x".into() }, "").starts_with("sudo rm"));
    }

    /// Planted fault: the word is quoted with double quotes; then the shell runs what the name says.
    #[test]
    fn hostile_names_and_values_are_words_and_nothing_else() {
        let feature = What::Feature { device: device("<img src=x>"), name: "$(reboot)".into() };
        assert_eq!(command(&feature, "on"), "sudo ethtool -K '<img src=x>' '$(reboot)' on");
        let escape = command(&What::File("/proc/sys/a".into()), "\u{1b}[2J'x");
        assert_eq!(escape, r"echo $'\x1b[2J\'x' | sudo tee /proc/sys/a");
        assert_eq!(quoted("a'b"), r"'a'\''b'");
    }
}
