//! Which crate may depend on which: the table of ARCHITECTURE.md, checked against what cargo says.
//!
//! The engine and the lab never touch; proto, measure and sys depend on none of ours; only the binary knows both halves.

use serde_json::Value;

use super::finding::Finding;

/// A crate of ours and those of ours that it may depend on; an empty list means none.
const ALLOWED: [(&str, &[&str]); 16] = [
    ("dyno-measure", &[]),
    ("dyno-sys", &[]),
    ("dyno-proto", &[]),
    ("dyno-record", &["dyno-measure"]),
    ("dyno-json-derive", &[]),
    ("dyno-engine", &["dyno-proto", "dyno-sys", "dyno-measure", "dyno-json-derive"]),
    ("dyno-load", &["dyno-proto", "dyno-sys", "dyno-measure"]),
    ("dyno-profile", &["dyno-sys", "dyno-record", "dyno-measure"]),
    ("dyno-host", &["dyno-sys", "dyno-record"]),
    ("dyno-climb", &["dyno-record", "dyno-measure"]),
    ("dyno-diagnose", &["dyno-record"]),
    ("dyno-lab", &LAB),
    ("dyno-report", &["dyno-record", "dyno-measure", "dyno-profile", "dyno-proto"]),
    ("dyno", &ALL),
    ("xtask", &["dyno-measure"]),
    ("crud", &["dyno-engine"]),
];

/// What the lab's top knows: all of the lab but those who draw, and nothing of the engine.
const LAB: [&str; 8] = [
    "dyno-measure",
    "dyno-record",
    "dyno-sys",
    "dyno-load",
    "dyno-profile",
    "dyno-host",
    "dyno-climb",
    "dyno-diagnose",
];

/// What the binary knows: both halves.
const ALL: [&str; 12] = [
    "dyno-measure",
    "dyno-record",
    "dyno-sys",
    "dyno-proto",
    "dyno-engine",
    "dyno-load",
    "dyno-profile",
    "dyno-host",
    "dyno-climb",
    "dyno-diagnose",
    "dyno-lab",
    "dyno-report",
];

/// Tests of any crate may draw from the seeded generator.
const ALLOWED_IN_TESTS: &str = "dyno-measure";

/// And these of one more: simulated climbs change a host in memory.
const ALSO_IN_TESTS: [(&str, &str); 1] = [("dyno-climb", "dyno-host")];

/// Everything that `cargo metadata` shows to be against the table.
pub(crate) fn findings(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    packages.iter().flat_map(|package| of_package(package, &ours)).collect()
}

fn of_package(package: &Value, ours: &[&str]) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let manifest = place(package, name);
    let finding = |text: String| Finding { path: manifest.clone(), line: 1, text };
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![finding(format!("{name} is not in the table of crates: say what it may depend on"))];
    };
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let wrong = dependencies.iter().filter_map(|dependency| {
        let on = dependency["name"].as_str().filter(|on| ours.contains(on))?;
        let for_tests = on == ALLOWED_IN_TESTS || ALSO_IN_TESTS.contains(&(name, on));
        let in_tests = dependency["kind"] == "dev" && for_tests;
        (!allowed.contains(&on) && !in_tests).then_some(on)
    });
    wrong.map(|on| finding(format!("{name} depends on {on}: {}", reason(allowed)))).collect()
}

/// The manifest's path from the root, as far as it is known.
fn place(package: &Value, name: &str) -> String {
    let path = package["manifest_path"].as_str().unwrap_or_default();
    let start = path.rfind("/crates/").or_else(|| path.rfind("/xtask/"));
    start.map_or_else(|| name.to_owned(), |at| path[at + 1..].to_owned())
}

fn reason(allowed: &[&str]) -> String {
    match allowed {
        [] => "it stands under everything and knows nothing of ours".to_owned(),
        some => format!("it may know {} only; the engine and the lab never touch", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect();
        let manifest = format!("/somewhere/crates/{name}/Cargo.toml");
        json!({ "name": name, "manifest_path": manifest, "dependencies": dependencies })
    }

    fn texts(packages: &[Value]) -> Vec<String> {
        findings(&json!({ "packages": packages })).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_engine_may_not_know_the_lab_not_even_in_tests() {
        let load = package("dyno-load", &[("dyno-sys", None), ("serde", None)]);
        for kind in [None, Some("dev"), Some("build")] {
            let engine = package("dyno-engine", &[("dyno-load", kind)]);
            let found = texts(&[engine, load.clone()]);
            assert_eq!(found.len(), 1, "{found:?}");
            let start = "crates/dyno-engine/Cargo.toml:1: dyno-engine depends on dyno-load";
            assert!(found[0].starts_with(start), "{found:?}");
        }
    }

    #[test]
    fn proto_knows_nobody_but_the_generator_of_its_tests() {
        let measure = package("dyno-measure", &[("serde", None)]);
        let tested = package("dyno-proto", &[("dyno-measure", Some("dev")), ("httparse", Some("dev"))]);
        assert_eq!(texts(&[tested, measure.clone()]), Vec::<String>::new());
        let linked = package("dyno-proto", &[("dyno-measure", None)]);
        assert_eq!(texts(&[linked, measure]).len(), 1);
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        assert!(texts(&[package("dyno-extra", &[])])[0].contains("not in the table"));
    }
}
