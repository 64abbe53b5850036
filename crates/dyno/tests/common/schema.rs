//! A small validator of JSON Schema (draft 2020-12): the keywords that docs/schema uses, and no other.
//!
//! A keyword that it does not know fails the test, so that nothing in a schema goes unchecked.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::{Map, Value};

/// Keywords that say something to people alone.
const WORDS: [&str; 5] = ["$schema", "$id", "$defs", "title", "description"];
/// Keywords that are checked.
const CHECKED: [&str; 16] = [
    "$ref",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "allOf",
];

/// Where schemas lie.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// A schema by the name of its file.
pub(crate) fn named(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Panics where a text is not what the schema of this name says.
#[track_caller]
pub(crate) fn holds(name: &str, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    let wrong = wrong(&named(name), &value);
    assert!(wrong.is_empty(), "docs/schema/{name}.json: {}", wrong[..wrong.len().min(5)].join("\n"));
}

/// What is wrong with a value, with places as in a JSON pointer.
pub(crate) fn wrong(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Checker { root: schema, found: &mut found }.check(schema, value, "");
    found
}

struct Checker<'s, 'f> {
    root: &'s Value,
    found: &'f mut Vec<String>,
}

impl<'s> Checker<'s, '_> {
    fn says(&mut self, at: &str, what: impl Into<String>) {
        self.found.push(format!("{at}: {}", what.into()));
    }

    fn fits(&self, schema: &'s Value, value: &Value) -> bool {
        let mut found = Vec::new();
        Checker { root: self.root, found: &mut found }.check(schema, value, "");
        found.is_empty()
    }

    fn check(&mut self, schema: &'s Value, value: &Value, at: &str) {
        let schema = schema.as_object().expect("a schema is an object");
        for (keyword, rule) in schema {
            assert!(
                WORDS.contains(&keyword.as_str()) || CHECKED.contains(&keyword.as_str()),
                "{keyword} is not checked"
            );
            self.keyword(keyword, rule, value, at);
        }
        if let Some(object) = value.as_object() {
            self.members(schema, object, at);
        }
        if let Some(items) = value.as_array() {
            self.items(schema, items, at);
        }
    }

    fn keyword(&mut self, keyword: &str, rule: &'s Value, value: &Value, at: &str) {
        match keyword {
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                let target = &self.root["$defs"][name];
                assert!(target.is_object(), "{name} is not defined");
                self.check(target, value, at);
            }
            "type" => self.types(rule, value, at),
            "enum" if !rule.as_array().unwrap().contains(value) => {
                self.says(at, format!("{value} is none of {rule}"));
            }
            "const" if rule != value => self.says(at, format!("{value} is not {rule}")),
            "minimum" if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) => {
                self.says(at, format!("{value} is below {rule}"));
            }
            "minItems"
                if value.as_array().is_some_and(|items| (items.len() as u64) < rule.as_u64().unwrap()) =>
            {
                self.says(at, "too few items");
            }
            "maxItems"
                if value.as_array().is_some_and(|items| items.len() as u64 > rule.as_u64().unwrap()) =>
            {
                self.says(at, "too many items");
            }
            "allOf" => rule.as_array().unwrap().iter().for_each(|one| self.check(one, value, at)),
            "anyOf" if !rule.as_array().unwrap().iter().any(|one| self.fits(one, value)) => {
                self.says(at, format!("{value} fits none of its kinds"));
            }
            "oneOf" if rule.as_array().unwrap().iter().filter(|one| self.fits(one, value)).count() != 1 => {
                self.says(at, format!("{value} does not fit one of its kinds"));
            }
            _ => {}
        }
    }

    fn types(&mut self, rule: &Value, value: &Value, at: &str) {
        let is = |name: &Value| match name.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("{other} is no type"),
        };
        let fits = rule.as_array().map_or_else(|| is(rule), |names| names.iter().any(is));
        if !fits {
            self.says(at, format!("{value} is no {rule}"));
        }
    }

    fn members(&mut self, schema: &'s Map<String, Value>, object: &Map<String, Value>, at: &str) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !object.contains_key(name.as_str().unwrap()) {
                self.says(at, format!("{name} is missing"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in object {
            let place = format!("{at}/{name}");
            match properties.and_then(|all| all.get(name)) {
                Some(rule) => self.check(rule, value, &place),
                None => self.other(schema, object, (name, value), &place),
            }
        }
    }

    /// A member that the schema does not name itself.
    fn other(
        &mut self,
        schema: &'s Map<String, Value>,
        object: &Map<String, Value>,
        (name, value): (&str, &Value),
        at: &str,
    ) {
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => self.says(at, "is not in the schema"),
            Some(rule @ Value::Object(_)) => self.check(rule, value, at),
            _ => {}
        }
        let whole = Value::Object(object.clone());
        let kinds = schema.get("oneOf").and_then(Value::as_array);
        let named = kinds
            .into_iter()
            .flatten()
            .any(|one| one["properties"].get(name).is_some() && self.fits(one, &whole));
        if schema.get("unevaluatedProperties") == Some(&Value::Bool(false)) && !named {
            self.says(at, "is not in the schema");
        }
    }

    fn items(&mut self, schema: &'s Map<String, Value>, items: &[Value], at: &str) {
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (k, item) in items.iter().enumerate() {
            let rule = first.get(k).or(schema.get("items"));
            if let Some(rule) = rule {
                self.check(rule, item, &format!("{at}/{k}"));
            }
        }
    }
}
