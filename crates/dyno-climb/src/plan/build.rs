//! Building the server: what a plan's steps say, and what they come to in a setting.
//!
//! The plan's check, the dry run and the lab read it. Nothing is run here.

use super::step::{BuildStep, in_braces};
use super::{Plan, PlanError, sense};
use crate::dial::{Dial, How, Setting};

/// Most steps: a build is a compiler or two and a training run; what is longer is a script's work.
const STEPS_MAX: usize = 50;
/// Longest training, and longest step, ms.
const MS_MAX: u64 = 3_600_000;

impl Plan {
    /// The dials that a build depends on.
    fn build_dials(&self) -> impl Iterator<Item = &Dial> {
        self.dials.iter().filter(|dial| dial.how == How::Build)
    }

    /// The steps that build the server of a setting, with the words of its build dials in their places. Equal steps make
    /// equal servers, so that each is built once.
    #[must_use]
    pub fn build_of(&self, setting: &Setting) -> Vec<BuildStep> {
        let steps = self.launch.build.iter().filter(|step| step.stands(setting));
        steps.map(|step| self.filled(step, setting)).collect()
    }

    fn filled(&self, step: &BuildStep, setting: &Setting) -> BuildStep {
        let words = |texts: &[String]| texts.iter().flat_map(|text| self.spliced(text, setting)).collect();
        BuildStep {
            run: words(&step.run),
            train: words(&step.train),
            env: step.env.iter().map(|(name, text)| (name.clone(), self.joined(text, setting))).collect(),
            when: None,
            for_ms: step.for_ms,
        }
    }

    /// A word that is a dial's name and nothing else becomes all words of its value, or none.
    fn spliced(&self, text: &str, setting: &Setting) -> Vec<String> {
        match self.build_dials().find(|dial| text == in_braces(&dial.name)) {
            Some(dial) => self.value(setting, dial).words.clone(),
            None => vec![self.joined(text, setting)],
        }
    }

    /// Within a longer word they stand behind one another, with a blank between them: `CFLAGS={opt} {cpu}`.
    fn joined(&self, text: &str, setting: &Setting) -> String {
        self.build_dials().fold(text.to_owned(), |text, dial| {
            text.replace(&in_braces(&dial.name), &self.value(setting, dial).words.join(" "))
        })
    }

    /// Finds what makes no sense in how the server is built.
    pub(super) fn check_build(&self) -> Result<(), PlanError> {
        let steps = &self.launch.build;
        if let (true, Some(dial)) = (steps.is_empty(), self.build_dials().next()) {
            let what = "how is \"build\", and launch.build has no step that could use it";
            return Err(sense(format!("dial \"{}\"", dial.name), what));
        }
        if steps.is_empty() {
            return Ok(());
        }
        if steps.len() > STEPS_MAX {
            return Err(sense("launch.build", format!("more than {STEPS_MAX} steps")));
        }
        if !(1..=MS_MAX).contains(&self.launch.build_ms) {
            return Err(sense("launch", format!("build_ms must be between 1 and {MS_MAX}")));
        }
        steps.iter().enumerate().try_for_each(|(at, step)| self.check_step(at + 1, step))?;
        if let Some(dial) = self.build_dials().find(|dial| !steps.iter().any(|step| step.names(&dial.name))) {
            let what = format!("no step of launch.build names {{{}}} or has it in when", dial.name);
            return Err(sense(format!("dial \"{}\"", dial.name), what));
        }
        if !self.launch_texts().any(|text| text.contains("{out}")) {
            let what = "nothing that is launched names {out}, the folder of the build";
            return Err(sense("launch", what));
        }
        Ok(())
    }

    fn check_step(&self, number: usize, step: &BuildStep) -> Result<(), PlanError> {
        let place = format!("launch.build, step {number}");
        if step.run.is_empty() == step.train.is_empty() {
            return Err(sense(place, "a step has either run or train, and a program in it"));
        }
        if !(1..=MS_MAX).contains(&step.for_ms) {
            return Err(sense(place, format!("for_ms must be between 1 and {MS_MAX}")));
        }
        let Some(when) = &step.when else { return Ok(()) };
        let split = when.split_once('=').filter(|(dial, value)| !dial.is_empty() && !value.is_empty());
        let (dial, value) =
            split.ok_or_else(|| sense(&place, format!("when \"{when}\" is not dial=value")))?;
        self.known(&place, dial, value)?;
        match self.dial(dial).how {
            How::Build => Ok(()),
            _ => Err(sense(place, format!("when \"{when}\": how of dial \"{dial}\" is not \"build\""))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
name = "built"
[launch]
argv = ["{out}/server"]
build = [
    { run = ["cc", "{opt}", "{cpu}", "-o", "{out}/trained", "s.c"], when = "pgo=on", env = { FLAGS = "{opt} {cpu}" } },
    { train = ["{out}/trained"], when = "pgo=on" },
    { run = ["cc", "{opt}", "{cpu}", "{pgo}", "-DFLAGS={opt}", "-o", "{out}/server", "s.c"] },
]
[dial.opt]
how = "build"
start = "O2"
values = [{ name = "O2", words = ["-O2"] }, { name = "O3", words = ["-O3", "-fno-math-errno"] }]
[dial.cpu]
how = "build"
start = "any"
values = [{ name = "any" }, { name = "this", words = ["-march=native"] }]
[dial.pgo]
how = "build"
start = "off"
values = [{ name = "off" }, { name = "on", words = ["-fprofile-use"] }]
[[rung]]
id = "O3"
set = "opt=O3"
claim = "faster"
proof = [{ kind = "built", file = "server" }]
"#;

    fn plan() -> Plan {
        Plan::from_toml(PLAN).expect("the sample")
    }

    #[test]
    fn the_words_of_each_build_dial_stand_where_its_name_stood() {
        let plan = plan();
        let start = plan.build_of(&plan.start());
        assert_eq!(start.len(), 1, "the steps of a dial that stands elsewhere are left out: {start:?}");
        assert_eq!(start[0].run, ["cc", "-O2", "-DFLAGS=-O2", "-o", "{out}/server", "s.c"]);
        let turned = plan.start().with("opt", "O3").with("cpu", "this").with("pgo", "on");
        let steps = plan.build_of(&turned);
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[0].env["FLAGS"], "-O3 -fno-math-errno -march=native");
        assert_eq!(
            steps[2].run[..6],
            ["cc", "-O3", "-fno-math-errno", "-march=native", "-fprofile-use", "-DFLAGS=-O3 -fno-math-errno"]
        );
    }

    #[test]
    fn settings_that_differ_in_other_dials_only_are_built_once() {
        let with_log = PLAN.replace(
            "[dial.opt]",
            "[dial.log]\nhow = \"arg\"\nstart = \"on\"\nvalues = [{ name = \"on\" }, { name = \"off\", words = [\"-q\"] }]\n[dial.opt]",
        );
        let plan = Plan::from_toml(&with_log).expect("the sample with a flag");
        let start = plan.start();
        assert_eq!(plan.build_of(&start), plan.build_of(&start.with("log", "off")));
        assert_ne!(plan.build_of(&start), plan.build_of(&start.with("opt", "O3")));
    }

    #[test]
    fn a_build_that_makes_no_sense_is_named_with_its_place() {
        for (from, to, wanted) in [
            (
                "argv = [\"{out}/server\"]",
                "argv = [\"server\"]",
                "launch: nothing that is launched names {out}",
            ),
            (", \"{cpu}\", \"{pgo}\"", ", \"{pgo}\"", ""),
            ("when = \"pgo=on\" }", "when = \"pgo=yes\" }", "step 2: dial \"pgo\" has no value \"yes\""),
            ("train = [\"{out}/trained\"]", "for_ms = 5", "step 2: a step has either run or train"),
            ("train = [\"{out}/trained\"]", "for_ms = 0, train = [\"a\"]", "step 2: for_ms must be between"),
            ("[launch]", "[launch]\nbuild_ms = 0", "launch: build_ms must be between 1 and"),
        ] {
            assert!(PLAN.contains(from), "the sample has no {from}");
            let read = Plan::from_toml(&PLAN.replacen(from, to, 1));
            match wanted {
                // The other step still names it.
                "" => assert!(read.is_ok(), "{to}: {read:?}"),
                _ => {
                    let text = read.expect_err(to).to_string();
                    assert!(text.contains(wanted), "{to}: {text}");
                }
            }
        }
    }

    /// Planted fault: a dial whose words no step ever uses builds the same server at each value.
    #[test]
    fn a_build_dial_that_no_step_names_is_refused() {
        let unused =
            Plan::from_toml(&PLAN.replace("{cpu}", "")).expect_err("cpu is used nowhere").to_string();
        assert!(unused.contains("dial \"cpu\": no step of launch.build names {cpu}"), "{unused}");
        let begin = PLAN.find("build = [").expect("steps");
        let end = PLAN.find("[dial.opt]").expect("dials");
        let without = format!("{}{}", &PLAN[..begin], &PLAN[end..]).replace("{out}/", "");
        let none = Plan::from_toml(&without).expect_err("nothing is built").to_string();
        assert!(none.contains("launch.build has no step"), "{none}");
        let kind = PLAN.replace("how = \"build\"\nstart = \"any\"", "how = \"arg\"\nstart = \"any\"");
        assert!(Plan::from_toml(&kind).is_ok(), "its name in braces stays as it is");
    }

    #[test]
    fn a_proof_of_a_build_needs_one() {
        let begin = PLAN.find("build = [").expect("steps");
        let end = PLAN.find("[dial.opt]").expect("dials");
        let without = format!("{}{}", &PLAN[..begin], &PLAN[end..]).replace("{out}/", "");
        let text =
            Plan::from_toml(&without.replace("how = \"build\"", "how = \"arg\"")).expect_err("no build");
        assert!(text.to_string().contains("rung \"O3\": a proof \"built\" needs launch.build"), "{text}");
    }
}
