//! `--show-config`: every setting as it is in force and where it comes from, as a file that `dyno serve` reads.

use std::fmt::Write;

use super::layers::{Effective, LaidHost};
use super::settings::{Kind, Setting};
use dyno_engine::Config;

/// The column in which origins stand, where a setting leaves room for it.
const ORIGIN_COLUMN: usize = 44;

/// The file's text. `config` is what the settings come to, which says where dials stand that nobody set.
pub(super) fn shown(effective: &Effective, config: &Config) -> String {
    let mut text = String::new();
    let mut table = None;
    for (setting, words, origin) in &effective.settings {
        if setting.table != table {
            table = setting.table;
            let _ = writeln!(text, "\n[{}]", table.unwrap_or_default());
        }
        let words = in_force(setting, words, config);
        let line = match &words[..] {
            [] => format!("# {} =", setting.key),
            words => format!("{} = {}", setting.key, value(setting.kind, words)),
        };
        let from = match (&words[..], setting.otherwise()) {
            ([], Some(otherwise)) => format!("default: {otherwise}"),
            ([], None) => "not set".to_owned(),
            _ => origin.to_string(),
        };
        let _ = writeln!(text, "{line:<ORIGIN_COLUMN$} # {from}");
    }
    effective.hosts.iter().for_each(|host| text.push_str(&shown_host(host)));
    text
}

/// A host of the file.
fn shown_host(host: &LaidHost) -> String {
    let names = format!("names = {}", value(Kind::List, &host.names));
    let mut text = format!("\n[[host]]\n{names:<ORIGIN_COLUMN$} # {}\n", host.origin);
    for (setting, words, origin) in &host.settings {
        let line = format!("{} = {}", setting.key, value(setting.kind, words));
        let _ = writeln!(text, "{line:<ORIGIN_COLUMN$} # {origin}");
    }
    text
}

/// What the engine made of a setting that nobody set, or the words that were given.
fn in_force(setting: &Setting, words: &[String], config: &Config) -> Vec<String> {
    if let Some(word) = config.dials.get(&setting.id) {
        return vec![word];
    }
    match setting.id.as_str() {
        "buffer_bytes_max" => vec![config.limits.buffer_bytes_max.to_string()],
        _ => words.to_vec(),
    }
}

fn value(kind: Kind, words: &[String]) -> String {
    match kind {
        Kind::Switch => words.concat(),
        Kind::Word => scalar(&words[0]),
        Kind::List => format!("[{}]", words.iter().map(|word| scalar(word)).collect::<Vec<_>>().join(", ")),
    }
}

/// A whole number as it is, all else as a string of TOML.
fn scalar(word: &str) -> String {
    let is_number = word.len() < 19 && word.bytes().all(|byte| byte.is_ascii_digit());
    match is_number && (word == "0" || !word.starts_with('0')) {
        true => word.to_owned(),
        false => toml::Value::from(word).to_string(),
    }
}
