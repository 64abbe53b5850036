//! What is written for machines is what docs/schema says: every `--json` of the binary, live and from recorded inputs.
//!
//! Schemas allow no field that they do not name, so that a field that is new, gone or of another type turns a test red: then
//! docs/schema and docs/records.md are changed with it. Readers of records should pass over what they do not know.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/schema.rs"]
mod schema;

use common::{Ended, Server, dyno, run};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// Runs it among the recorded inputs; 1 says "the answer is no".
fn said(words: &str) -> String {
    let mut command = dyno(words.split_whitespace());
    command.current_dir(FOLDER).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Ended::of(command.spawn().unwrap());
    assert!(ended.code.is_some_and(|code| code < 2), "dyno {words}: {}", ended.err);
    ended.out
}

/// A schema, and a command that prints such a record.
const WRITTEN: [(&str, &str); 17] = [
    ("climb", "report climb-1.json -o /dev/null --json"),
    ("climb", "report history/climb-4.json -o /dev/null --format json"),
    ("judged", "judge climb-1.json --json"),
    ("numbers", "judge numbers-a.txt numbers-b.txt --json"),
    ("difference", "judge history/climb-2.json history/climb-5.json --json"),
    ("difference", "judge before.json after.json --json"),
    ("difference", "judge load-a.json load-b.json --json"),
    ("history", "compare history --json"),
    ("profile", "flame stacks.folded --format json -o -"),
    ("diagnosis", "diagnose --from seen-disk.json --json"),
    ("diagnosis", "diagnose --from seen-lock.json --json"),
    ("audit", "audit --from facts-planted.json --json"),
    ("facts", "audit facts"),
    ("doctor", "doctor --json"),
    ("plan", "tune plan --json"),
    ("snapshot", "tune snapshot"),
    ("specimens", "specimen list --json"),
];

#[test]
fn everything_that_is_printed_for_machines_is_what_its_schema_says() {
    for (name, words) in WRITTEN {
        schema::holds(name, &said(words));
    }
}

/// As a recorded one was written; those that are made anew are held by the tests that make them.
#[test]
fn a_causal_profile_is_what_its_schema_says() {
    schema::holds("causal", &std::fs::read_to_string(format!("{FOLDER}/causal.json")).unwrap());
}

#[test]
fn a_load_is_what_its_schema_says() {
    let server = Server::serve(&[]);
    let pid = server.pid().to_string();
    let url = format!("http://{}/json", server.place);
    schema::holds("load", run(["load", "-d", "300ms", "--json", &url]).done());
    schema::holds("load", run(["load", "-d", "300ms", "--json", "--pid", &pid, &url]).done());
}

/// Answers the first request of two connections; what comes then is left to `after`, with the listener and both.
fn answering_twice(after: impl FnOnce(TcpListener, Vec<TcpStream>) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut answered = |_| {
            let mut stream = listener.accept().unwrap().0;
            assert!(stream.read(&mut [0; 4_096]).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            stream
        };
        let both = (0..2).map(&mut answered).collect();
        after(listener, both);
    });
    url
}

/// Planted faults: fields of a load that ends in the midst of its requests, or without a server, that no schema names; and
/// requests of two seconds that may take thirty are errors.
#[test]
fn a_load_that_ends_oddly_is_what_its_schema_says() {
    let words = ["load", "-d300ms", "-T30s", "-t1", "-c2", "--json"];
    let silent = answering_twice(|_listener, _both| {
        loop {
            std::thread::park();
        }
    });
    let ended = run(words.iter().chain([&silent.as_str()]));
    schema::holds("load", &ended.out);
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    assert!(value["errors"].as_object().unwrap().values().all(|count| count == 0), "{value:#}");
    assert_eq!((&value["unfinished"], &value["timed_out"]), (&2.into(), &Value::Null), "{value:#}");
    assert!(value["at_least_us"]["p50"].as_f64().unwrap() > 2e6, "{value:#}");
    assert!(ended.code == Some(2) && ended.err.contains("2 were unfinished at the end"), "{}", ended.err);
    let gone = answering_twice(|listener, both| drop((listener, both)));
    let ended = run(words.iter().chain([&gone.as_str()]));
    schema::holds("load", &ended.out);
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    assert!(value["down_s"].as_f64().unwrap() > 0.1, "{value:#}");
}

#[test]
fn snapshots_and_the_journal_are_what_their_schemas_say() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let before = folder.join("schema-snapshot.json");
    std::fs::write(&before, said("tune snapshot")).unwrap();
    schema::holds("settings", &said(&format!("tune diff {} --json", before.display())));
    schema::holds("changes", &said("tune status --json"));
}

/// Every object that a schema describes, with its place.
fn objects<'s>(schema: &'s Value, at: String, found: &mut Vec<(String, &'s Value)>) {
    if let Some(fields) = schema.as_object() {
        if schema["properties"].is_object() {
            found.push((at.clone(), schema));
        }
        fields.iter().for_each(|(name, inner)| objects(inner, format!("{at}/{name}"), found));
    }
    for (k, inner) in schema.as_array().into_iter().flatten().enumerate() {
        objects(inner, format!("{at}/{k}"), found);
    }
}

#[test]
fn a_schema_is_closed_and_names_itself() {
    let mut names = 0;
    for entry in std::fs::read_dir(schema::folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let schema = schema::named(&name);
        names += 1;
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        let id = schema["properties"]["schema"]["const"].as_str().unwrap();
        let (family, number) = id.split_once('/').unwrap();
        assert_eq!(family, format!("dyno.{name}"), "a file is named after its schema");
        assert_eq!(schema["$id"], format!("https://dyno.invalid/schema/{family}-{number}.json"));
        let mut all = Vec::new();
        objects(&schema, String::new(), &mut all);
        for (at, one) in all {
            // A kind of several is closed by the object that it is a part of.
            let of_kind = at.contains("/oneOf/") && one["type"].is_null();
            let closed = one["additionalProperties"] == false || one["unevaluatedProperties"] == false;
            assert!(closed || of_kind, "{name}{at} lets fields in that it does not name");
        }
    }
    assert!(names >= 20, "{names} schemas");
}

/// Planted faults: a validator that passes over missing fields, or over fields that nobody named.
#[test]
fn a_field_that_is_missing_or_new_is_found_wherever_it_stands() {
    for (name, words) in [("climb", WRITTEN[1].1), ("difference", WRITTEN[4].1), ("audit", WRITTEN[11].1)] {
        let (schema, value): (_, Value) = (schema::named(name), serde_json::from_str(&said(words)).unwrap());
        for field in schema["required"].as_array().unwrap() {
            let mut without = value.clone();
            without.as_object_mut().unwrap().remove(field.as_str().unwrap()).unwrap();
            assert!(!schema::wrong(&schema, &without).is_empty(), "{name} without {field}");
        }
        for place in ["", "/machine", "/rungs/0", "/figures/0", "/findings/0", "/total"] {
            let mut with = value.clone();
            let Some(object) = with.pointer_mut(place).and_then(Value::as_object_mut) else { continue };
            object.insert("new".into(), Value::Null);
            assert_eq!(schema::wrong(&schema, &with).len(), 1, "{name}{place}");
        }
    }
}
