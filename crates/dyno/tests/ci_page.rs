//! The workflow that stands in docs/manual/ci.md: read as YAML, and each of its steps run in bash as a runner would.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use yaml_rust2::{Yaml, YamlLoader};

const DYNO: &str = env!("CARGO_BIN_EXE_dyno");

/// The page's workflow.
fn workflow() -> Yaml {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/manual/ci.md")).unwrap();
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (text, behind) = rest.split_once("```").unwrap();
    assert!(!behind.contains("```yaml"), "the page has one workflow");
    let mut all = YamlLoader::load_from_str(text).unwrap();
    assert_eq!(all.len(), 1, "a workflow is one document");
    all.remove(0)
}

/// What a step runs, by its name.
fn scripts(workflow: &Yaml) -> Vec<(String, String)> {
    let steps = workflow["jobs"]["climb"]["steps"].as_vec().unwrap();
    let script = |step: &Yaml| {
        let text = step["run"].as_str()?;
        Some((step["name"].as_str().unwrap().to_owned(), text.to_owned()))
    };
    steps.iter().filter_map(script).collect()
}

#[test]
fn the_workflow_of_the_page_is_one_that_a_runner_reads() {
    let workflow = workflow();
    assert_eq!(workflow["on"].as_str(), Some("pull_request"));
    let job = &workflow["jobs"]["climb"];
    assert!(job["runs-on"].as_str().is_some() && job["env"]["TIME"].as_str() == Some("2m"));
    assert_eq!(job["defaults"]["run"]["shell"].as_str(), Some("bash"));
    for step in job["steps"].as_vec().unwrap() {
        let has = |key: &str| !step[key].is_badvalue();
        assert!(has("uses") != has("run"), "a step uses or runs: {step:?}");
        let known = ["name", "uses", "with", "run", "if"];
        assert!(step.as_hash().unwrap().keys().all(|key| known.contains(&key.as_str().unwrap())), "{step:?}");
    }
    assert_eq!(scripts(&workflow).len(), 3);
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn git(folder: &Path, words: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").args(identity).args(words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A project whose server is measured: a program to build, and a plan with a rung that is worth much.
fn project(folder: &Path) {
    let plan = r#"
name = "speed"
[launch]
argv = ["dyno", "serve", "--listen", "127.0.0.1:{port}", "--workers", "1"]
[load]
path = "/json"
[dial.way]
how = "arg"
start = "naive"
values = [{ name = "naive", words = ["--naive"] }, { name = "fast", words = ["--idle-timeout", "61s"] }]
[[rung]]
id = "fast"
set = "way=fast"
claim = "what an ordinary first version does is left out"
proof = [{ kind = "command", argv = ["xargs", "-0n1", "-a", "/proc/{pid}/cmdline"], expect = "61s" }]
"#;
    fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = "[package]\nname = \"speed\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    for (name, text) in [("speed.toml", plan), ("Cargo.toml", manifest), ("src/main.rs", "fn main() {}\n")] {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::write(folder.join(".gitignore"), "target\nclimbs\nCargo.lock\n").unwrap();
    git(folder, &["init", "-q"]);
    git(folder, &["add", "."]);
    git(folder, &["commit", "-q", "-m", "a server"]);
}

/// As GitHub's runners run a step with `shell: bash`.
fn step(script: &str, workspace: &Path, tools: &Path, summary: &Path) -> Output {
    let file = tools.join("step.sh");
    fs::write(&file, script).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    Command::new("bash")
        .args(["--noprofile", "--norc", "-e", "-o", "pipefail"])
        .arg(&file)
        .current_dir(workspace)
        .env("PATH", path)
        .env("TIME", "30s")
        .env("GITHUB_BASE_REF", "main")
        .env("GITHUB_WORKSPACE", workspace)
        .env("GITHUB_STEP_SUMMARY", summary)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap()
}

/// How many conditions the commands of a step set.
fn conditions(script: &str) -> usize {
    script
        .split("--fail-under '")
        .skip(1)
        .map(|rest| rest.split('\'').next().unwrap().split(',').count())
        .sum()
}

/// What each step says is looked at, and not what was measured: that is the machine's.
///
/// Planted faults: a condition that is refused, a file that no step has written, a word that YAML takes for another thing.
#[test]
fn each_step_of_the_page_runs_as_it_stands() {
    let folder = Folder(std::env::temp_dir().join(format!("dyno-ci-page-{}", std::process::id())));
    let _ = fs::remove_dir_all(&folder.0);
    let [origin, workspace, tools] = ["origin", "checkout", "tools"].map(|name| folder.0.join(name));
    fs::create_dir_all(&tools).unwrap();
    symlink(DYNO, tools.join("dyno")).unwrap();
    project(&origin);
    git(&folder.0, &["clone", "-q", origin.to_str().unwrap(), "checkout"]);
    git(&workspace, &["checkout", "-q", "-b", "branch"]);
    let summary = folder.0.join("summary.md");
    for (name, script) in scripts(&workflow()) {
        let output = step(&script, &workspace, &tools, &summary);
        let [out, err] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let code = output.status.code();
        let told = fs::read_to_string(&summary).unwrap_or_default();
        let wanted = conditions(&script);
        let lines = |begin: &str| err.lines().filter(|line| line.starts_with(begin)).count();
        let (met, unmet) = (lines("met: "), lines("not met: "));
        // Two climbs of one program may differ by chance, and on a busy machine a limit may be missed: both are answers.
        let is_told = match code {
            Some(0) => unmet == 0,
            Some(1) => unmet > 0 || told.contains("worse"),
            _ => false,
        };
        assert!(is_told, "{name}: {code:?}\n{out}\n{err}");
        assert_eq!(met + unmet, wanted, "{name}: each condition is told once\n{err}");
        if name == "climb" {
            assert!(out.contains("::notice title=dyno climb speed::"), "{out}");
            assert!(err.contains("met: total is ") && err.contains("met: noise is "), "{err}");
        }
    }
    let summary = fs::read_to_string(&summary).unwrap();
    assert!(summary.contains("high(total)") && summary.contains("| condition | found |"), "{summary}");
    for file in ["branch.json", "branch.html", "base.json", "judge.html"] {
        assert!(workspace.join("climbs").join(file).exists(), "{file}");
    }
}
