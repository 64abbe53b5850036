//! A setting as commands that anyone can run.

use dyno_climb::dial::{Dial, How, Setting};
use dyno_climb::meter::Described;
use dyno_climb::plan::{BuildStep, Plan};

use super::server::Filling;

/// The folder that a build fills, in commands for people.
const OUT: &str = "./built";
/// The port that is written into commands for people.
const PORT: &str = "8080";

/// Command line, environment and shell commands of a setting, without what only the climb needs.
pub(crate) fn described(plan: &Plan, setting: &Setting) -> Described {
    let mut fixed = vec![
        ("address", "127.0.0.1".to_owned()),
        ("port", PORT.to_owned()),
        ("dir", ".".to_owned()),
        ("plan", ".".to_owned()),
        ("scratch", ".".to_owned()),
    ];
    if !plan.launch.build.is_empty() {
        fixed.push(("out", OUT.to_owned()));
    }
    let start = plan.start();
    let of_start = Filling::new(plan, &start, fixed.clone());
    let filling = Filling::new(plan, setting, fixed);
    let argv = without_control(filling.argv());
    let env: Vec<String> = filling.env().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut apply = build_commands(&plan.build_of(setting), &filling, &of_start);
    let mut files = files_of(&filling);
    files.retain(|file| !apply.contains(file));
    apply.extend(files);
    apply.extend(knob_commands(plan, setting));
    apply.extend(network_line(plan, setting));
    let words = env.iter().map(|pair| assignment(pair)).chain(argv.iter().map(|word| quoted(word)));
    apply.push(words.collect::<Vec<_>>().join(" "));
    Described { argv, env, apply }
}

/// The steps of its build. A training is the user's: who applies it has a load that is like the real one. It is of the server
/// of the start, with its files and its environment.
fn build_commands(steps: &[BuildStep], filling: &Filling<'_>, of_start: &Filling<'_>) -> Vec<String> {
    let is_training = |step: &BuildStep| step.run.is_empty();
    let files = if steps.iter().any(is_training) { files_of(of_start) } else { Vec::new() };
    let command = |step: &BuildStep| match is_training(step) {
        true => format!(
            "{}  # load it for a while, then end it with SIGTERM",
            line(step, of_start, &of_start.env())
        ),
        false => line(step, filling, &[]),
    };
    let folder = (!steps.is_empty()).then(|| format!("mkdir -p {OUT}"));
    folder.into_iter().chain(files).chain(steps.iter().map(command)).collect()
}

/// A step as a line of a shell. Its own variables count where both name one, as they do when it is run.
fn line(step: &BuildStep, filling: &Filling<'_>, env: &[(String, String)]) -> String {
    let own = step.env.iter().map(|(name, text)| (name.clone(), filling.fill(text)));
    let env = env.iter().cloned().chain(own).map(|(name, text)| assignment(&format!("{name}={text}")));
    let argv = without_control(step.argv().iter().map(|word| filling.fill(word)).collect());
    env.chain(argv.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
}

fn files_of(filling: &Filling<'_>) -> Vec<String> {
    filling.files().iter().map(|(name, text)| write_command(name, text)).collect()
}

/// Drops `--control-fd {control}`, or `--control-fd={control}`: the socket exists only under a climb.
fn without_control(argv: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for word in argv {
        match word.as_str() {
            "{control}" => drop(kept.pop()),
            word if word.contains("{control}") => {}
            _ => kept.push(word),
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

    /// Planted fault: whatever names the socket takes the word before it along.
    #[test]
    fn the_control_socket_leaves_a_command_with_its_own_words_only() {
        let left = |words: &[&str]| without_control(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(left(&["s", "--workers", "4", "--control-fd={control}"]), ["s", "--workers", "4"]);
        assert_eq!(
            left(&["s", "--workers", "4", "--control-fd", "{control}", "-q"]),
            ["s", "--workers", "4", "-q"]
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell_only_where_they_must_be() {
        assert_eq!(quoted("--listen"), "--listen");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
        assert_eq!(assignment("LD_PRELOAD=/usr/lib/a b.so"), "LD_PRELOAD='/usr/lib/a b.so'");
    }

    #[test]
    fn a_setting_that_is_built_says_how_before_it_says_what_to_start() {
        let plan = Plan::from_toml(
            r#"
name = "built"
[launch]
argv = ["{out}/s", "{port}"]
build = [{ run = ["cc", "{opt}", "-o", "{out}/s", "{plan}/s.c"], env = { LC_ALL = "C" } }, { train = ["{out}/s"] }]
[dial.opt]
how = "build"
start = "O2"
values = [{ name = "O2", words = ["-O2"] }, { name = "O3", words = ["-O3", "-flto"] }]
[[rung]]
id = "O3"
set = "opt=O3"
claim = "faster"
proof = [{ kind = "built", file = "s" }]
"#,
        );
        let plan = plan.expect("the sample");
        let told = described(&plan, &plan.start().with("opt", "O3"));
        assert_eq!(
            told.apply,
            [
                "mkdir -p ./built",
                "LC_ALL=C cc -O3 -flto -o ./built/s ./s.c",
                "./built/s  # load it for a while, then end it with SIGTERM",
                "./built/s 8080"
            ]
        );
    }

    /// Planted fault: files are written behind the build; then the server that is trained does not find its own.
    #[test]
    fn a_training_comes_after_the_files_of_the_start_and_has_its_environment() {
        let plan = Plan::from_toml(
            r#"
name = "trained"
[launch]
argv = ["{out}/s"]
env = { MODE = "on" }
files = { "s.conf" = "port {port}\nlog {log}", "same" = "x" }
build = [{ train = ["{out}/s", "--control-fd", "{control}"], env = { GCOV = "1" } }, { run = ["cc", "{opt}", "{plan}/s.c"] }]
[dial.opt]
how = "build"
start = "O2"
values = [{ name = "O2", words = ["-O2"] }, { name = "O3", words = ["-O3"] }]
[dial.log]
how = "template"
start = "on"
values = [{ name = "on", text = "on" }, { name = "off", text = "off" }]
[[rung]]
id = "off"
set = "log=off"
claim = "faster"
proof = [{ kind = "built", file = "s" }]
"#,
        );
        let plan = plan.expect("the sample");
        let told = described(&plan, &plan.start().with("log", "off"));
        let of_log = |state: &str| format!("cat > s.conf <<'DYNO_END'\nport 8080\nlog {state}\nDYNO_END");
        assert_eq!(
            told.apply,
            [
                "mkdir -p ./built",
                &of_log("on"),
                "cat > same <<'DYNO_END'\nx\nDYNO_END",
                "MODE=on GCOV=1 ./built/s  # load it for a while, then end it with SIGTERM",
                "cc -O2 ./s.c",
                &of_log("off"),
                "MODE=on ./built/s",
            ]
        );
    }

    #[test]
    fn the_control_socket_is_no_part_of_a_command_for_people() {
        let argv = ["dyno", "serve", "--control-fd", "{control}", "--naive"].map(str::to_owned).to_vec();
        assert_eq!(without_control(argv), ["dyno", "serve", "--naive"]);
    }
}
