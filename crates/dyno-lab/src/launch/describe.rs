//! A setting as commands that anyone can run.

use dyno_climb::dial::{Dial, How, Setting};
use dyno_climb::meter::Described;
use dyno_climb::plan::Plan;

use super::server::Filling;

/// The port that is written into commands for people.
const PORT: &str = "8080";

/// Command line, environment and shell commands of a setting, without what only the climb needs.
pub(crate) fn described(plan: &Plan, setting: &Setting) -> Described {
    let fixed = vec![
        ("address", "127.0.0.1".to_owned()),
        ("port", PORT.to_owned()),
        ("dir", ".".to_owned()),
        ("plan", ".".to_owned()),
        ("scratch", ".".to_owned()),
    ];
    let filling = Filling::new(plan, setting, fixed);
    let argv = without_control(filling.argv());
    let env: Vec<String> = filling.env().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut apply: Vec<String> =
        filling.files().iter().map(|(name, text)| write_command(name, text)).collect();
    apply.extend(knob_commands(plan, setting));
    apply.extend(network_line(plan, setting));
    let words = env.iter().map(|pair| assignment(pair)).chain(argv.iter().map(|word| quoted(word)));
    apply.push(words.collect::<Vec<_>>().join(" "));
    Described { argv, env, apply }
}

/// Drops `--control-fd {control}`: the socket exists only under a climb.
fn without_control(argv: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for word in argv {
        if word.contains("{control}") {
            kept.pop();
        } else {
            kept.push(word);
        }
    }
    kept
}

/// Host settings that the setting wants other than they were found.
fn knob_commands(plan: &Plan, setting: &Setting) -> Vec<String> {
    let command = |dial: &Dial| {
        let How::Knob { path } = &dial.how else { return None };
        let wanted = &plan.value(setting, dial).text;
        (!wanted.is_empty()).then(|| format!("echo {} | sudo tee {}", quoted(wanted), quoted(path)))
    };
    plan.dials.iter().filter_map(command).collect()
}

/// Where the laboratory's network stands, to be read: whoever applies it has a network of another kind.
fn network_line(plan: &Plan, setting: &Setting) -> Option<String> {
    let of_lab = plan.dials.iter().filter(|dial| matches!(dial.how, How::Lab { .. }));
    let words: Vec<String> =
        of_lab.map(|dial| format!("{}={}", dial.name, setting.get(&dial.name))).collect();
    (!words.is_empty()).then(|| format!("# the laboratory's network: {}", words.join(" ")))
}

fn write_command(name: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("cat > {} <<'DYNO_END'\n{text}{end}DYNO_END", quoted(name))
}

fn assignment(pair: &str) -> String {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    format!("{name}={}", quoted(value))
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_only_where_they_must_be() {
        assert_eq!(quoted("--listen"), "--listen");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
        assert_eq!(assignment("LD_PRELOAD=/usr/lib/a b.so"), "LD_PRELOAD='/usr/lib/a b.so'");
    }

    #[test]
    fn the_control_socket_is_no_part_of_a_command_for_people() {
        let argv = ["dyno", "serve", "--control-fd", "{control}", "--naive"].map(str::to_owned).to_vec();
        assert_eq!(without_control(argv), ["dyno", "serve", "--naive"]);
    }
}
