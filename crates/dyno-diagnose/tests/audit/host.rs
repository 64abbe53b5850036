//! The host on which all is well, and edits of it.

use std::collections::BTreeSet;

use dyno_diagnose::audit::audit;
use dyno_record::audit::Goal;
use dyno_record::facts::Facts;
use serde_json::Value;

/// A host with a server, hardware, and two memory nodes, where every check has looked and found nothing.
const WELL: &str = include_str!("../data/well.json");

/// Places in the facts, each with what stands there then, as JSON. `@` shortens them ([`place`]); rules may be given by their number.
pub(crate) type Edits = &'static [(&'static str, &'static str)];

/// A place with its short beginning written out.
fn place(short: &str) -> String {
    let long = [
        ("@eth0/", "/network/devices/value/0/"),
        ("@server/", "/server/"),
        ("@set/", "/sysctls/"),
        ("@tcp/", "/sysctls/net.ipv4."),
    ];
    let found = long.iter().find_map(|(from, to)| Some(format!("{to}{}", short.strip_prefix(from)?)));
    found.unwrap_or_else(|| short.to_owned())
}

/// As many rules as a number says, each of which drops an address and has met nothing.
fn with_rules(mut value: Value) -> Value {
    let drop = serde_json::json!({ "tests": ["address"], "action": "drop", "packets": 0 });
    for chain in value.as_array_mut().into_iter().flatten() {
        let count = chain.get("rules").and_then(Value::as_u64);
        if let Some(count) = count {
            chain["rules"] = vec![drop.clone(); usize::try_from(count).unwrap()].into();
        }
    }
    value
}

/// The host on which all is well, with these edits.
pub(crate) fn edited(edits: Edits) -> Facts {
    let mut facts: Value = serde_json::from_str(WELL).unwrap();
    for (short, text) in edits {
        let place = place(short);
        let (above, name) = place.rsplit_once('/').unwrap();
        let value = with_rules(serde_json::from_str(text).unwrap_or_else(|error| panic!("{short}: {error}")));
        match facts.pointer_mut(above).unwrap_or_else(|| panic!("there is no {above}")) {
            Value::Object(fields) => drop(fields.insert(name.to_owned(), value)),
            other => panic!("{above} is no object: {other}"),
        }
    }
    Facts::from_json(&facts.to_string()).unwrap()
}

/// Ids that find something, whatever is wanted of the host.
pub(crate) fn speaking(facts: &Facts) -> BTreeSet<String> {
    let all = Goal::ALL.into_iter().flat_map(|goal| audit(facts, goal).findings);
    all.map(|finding| finding.id).collect()
}
