//! How to get the names of functions that a runtime made while it ran, and their callers, where one was seen that does not
//! tell them.
//!
//! The recorder asks at the end. A hint is not given where they are there.

use dyno_record::profile::Profile;

/// Share of the samples whose stacks were cut from which on callers are missing.
const CUT_MIN: f64 = 0.1;

/// What to do for each runtime that was seen and told no names, or kept no frame pointers.
pub(crate) fn hints(profile: &Profile) -> Vec<String> {
    let is_named = profile.modules.iter().any(|module| module.path == "[jit]" && module.symbols);
    let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let files: Vec<String> = profile.modules.iter().map(|module| file(&module.path)).collect();
    let pid = profile.target.pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    let mut hints = Vec::new();
    let is_java = files.iter().any(|file| file == "libjvm.so");
    if is_java && profile.sampling.truncated as f64 > CUT_MIN * profile.sampling.samples as f64 {
        hints.push(
            "Java's compiled functions lose their callers: java -XX:+PreserveFramePointer keeps what leads to them"
                .to_owned(),
        );
    }
    if !is_named && is_java {
        hints.push(format!(
            "Java's compiled functions have no names: jcmd {pid} Compiler.perfmap writes them down (JDK 17 and later), \
             before the profile ends"
        ));
    }
    if !is_named && files.iter().any(|file| file == "node" || file.starts_with("libnode.so")) {
        hints.push("JavaScript's functions have no names: start it with node --perf-basic-prof".to_owned());
    }
    match files.iter().find_map(|file| python(file)) {
        Some(minor) if minor < 12 => hints.push(format!(
            "Python's functions are not in it: Python 3.{minor} does not tell them, 3.12 and later do (python3 -X perf)"
        )),
        Some(_) if !is_named => {
            hints.push("Python's functions are not in it: start it with python3 -X perf".to_owned());
        }
        _ => {}
    }
    hints
}

/// The second number of CPython's version, by the name of its program or library.
fn python(file: &str) -> Option<u32> {
    let version = file.strip_prefix("libpython3.").or_else(|| file.strip_prefix("python3."))?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::Module;

    fn hints_of(paths: &[(&str, bool)]) -> Vec<String> {
        let module = |(path, symbols): &(&str, bool)| Module {
            path: (*path).to_owned(),
            symbols: *symbols,
            ..Module::default()
        };
        hints(&Profile { modules: paths.iter().map(module).collect(), ..Profile::default() })
    }

    /// Fault: a hint wherever Java is. One whose stacks are whole then has it too.
    #[test]
    fn java_without_frame_pointers_is_told_how_to_keep_them() {
        let of = |truncated| {
            let module = Module { path: "/x/libjvm.so".to_owned(), symbols: true, ..Module::default() };
            let jit = Module { path: "[jit]".to_owned(), symbols: true, ..Module::default() };
            let mut profile = Profile { modules: vec![module, jit], ..Profile::default() };
            (profile.sampling.samples, profile.sampling.truncated) = (1_000, truncated);
            hints(&profile)
        };
        assert!(of(650).first().is_some_and(|hint| hint.contains("-XX:+PreserveFramePointer")));
        assert_eq!(of(20), [""; 0]);
    }

    /// Fault: `is_named` that is always false. A profile with all names then has a hint.
    #[test]
    fn a_runtime_without_a_map_gets_the_hint_that_helps_and_one_with_a_map_none() {
        let only = |paths: &[(&str, bool)], words: &str| {
            let found = hints_of(paths);
            assert!(found.len() == 1 && found[0].contains(words), "{paths:?}: {found:?}");
        };
        only(&[("/usr/lib/jvm/x/lib/server/libjvm.so", true), ("[jit]", false)], "Compiler.perfmap");
        only(&[("/usr/bin/node", true), ("[jit]", false)], "--perf-basic-prof");
        only(&[("/usr/bin/python3.13", true)], "start it with python3 -X perf");
        only(&[("/usr/lib/libpython3.11.so.1.0", true)], "3.12 and later");
        for file in ["/x/libjvm.so", "/usr/bin/node", "/usr/bin/python3.12"] {
            assert_eq!(hints_of(&[(file, true), ("[jit]", true)]), [""; 0], "{file}");
        }
        assert_eq!(hints_of(&[("/usr/bin/pythonista", true), ("[jit]", false)]), [""; 0]);
    }
}
