//! A strict reader of both text forms, for tests: what it takes, a scraper takes.
//!
//! Its rules, from "Exposition formats" of Prometheus (text 0.0.4) and from OpenMetrics 1.0:
//! 1. Lines end with a line feed, the last one too; there are no empty lines and no other control characters.
//! 2. A comment is `# HELP name text`, `# TYPE name kind` or, in OpenMetrics, `# UNIT name unit`, each at most once for a
//!    name and before its samples.
//! 3. A name is `[a-zA-Z_:][a-zA-Z0-9_:]*`, a label's name `[a-zA-Z_][a-zA-Z0-9_]*`.
//! 4. A sample is a name, labels in braces if any, a blank, and a number; a label's value escapes `\`, `"` and line feeds.
//! 5. All lines of one family stand together, and no two samples have the same name and labels.
//! 6. A counter's samples are called `…_total` and are not negative; in Prometheus's form TYPE has that name too, in
//!    OpenMetrics the name without `_total`. An info's samples are called `…_info` and are 1.
//! 7. A unit ends its family's name.
//! 8. OpenMetrics ends with `# EOF`, and nothing follows; the other form does not have it.

use super::page::Form;
use std::collections::BTreeSet;

/// Names and values, in their order.
pub(super) type Labels = Vec<(String, String)>;

/// A sample: name, labels, value.
pub(super) type Sample = (String, Labels, f64);

#[derive(Default)]
struct Reader {
    families: BTreeSet<String>,
    /// The family at hand: its name, kind, and whether samples were seen.
    name: String,
    kind: Option<String>,
    comments: BTreeSet<&'static str>,
    has_samples: bool,
    samples: Vec<Sample>,
}

/// Reads a page, or says which rule it breaks and where.
pub(super) fn read(form: Form, text: &str) -> Result<Vec<Sample>, String> {
    let text = match form {
        Form::Prometheus => text,
        Form::OpenMetrics => text.strip_suffix("# EOF\n").ok_or("rule 8: no # EOF at the end")?,
    };
    let lines = text.strip_suffix('\n').ok_or("rule 1: the last line does not end")?;
    let mut reader = Reader::default();
    for (at, line) in lines.split('\n').enumerate() {
        reader.line(form, line).map_err(|rule| format!("line {}: {rule}: {line}", at + 1))?;
    }
    let distinct: BTreeSet<String> =
        reader.samples.iter().map(|(name, labels, _)| format!("{name}{labels:?}")).collect();
    if distinct.len() != reader.samples.len() {
        return Err("rule 5: two samples have the same name and labels".to_owned());
    }
    Ok(reader.samples)
}

impl Reader {
    fn line(&mut self, form: Form, line: &str) -> Result<(), &'static str> {
        if line.is_empty() || line.chars().any(char::is_control) {
            return Err("rule 1: an empty line or a control character");
        }
        match line.strip_prefix("# ") {
            Some(comment) => self.comment(form, comment),
            None if line.starts_with('#') => Err("rule 2: a comment of no known kind"),
            None => self.sample(form, line),
        }
    }

    fn comment(&mut self, form: Form, comment: &str) -> Result<(), &'static str> {
        let mut parts = comment.splitn(3, ' ');
        let (what, name, rest) = (parts.next(), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let what = ["HELP", "TYPE", "UNIT"].into_iter().find(|known| Some(*known) == what);
        let what = what.ok_or("rule 2: a comment of no known kind")?;
        if !is_name(name, ":") {
            return Err("rule 3: no name");
        }
        if name != self.name {
            if !self.families.insert(name.to_owned()) {
                return Err("rule 5: a family stands in two places");
            }
            *self = Reader {
                name: name.to_owned(),
                kind: None,
                comments: BTreeSet::new(),
                has_samples: false,
                ..std::mem::take(self)
            };
        }
        if self.has_samples || !self.comments.insert(what) {
            return Err("rule 2: said twice, or after samples");
        }
        match what {
            "UNIT" if form == Form::Prometheus => Err("rule 2: this form has no units"),
            "UNIT" if !name.ends_with(&format!("_{rest}")) => Err("rule 7: the unit does not end the name"),
            "TYPE" => self.kind(form, rest),
            _ => Ok(()),
        }
    }

    fn kind(&mut self, form: Form, kind: &str) -> Result<(), &'static str> {
        let known: &[&str] = match form {
            Form::Prometheus => &["counter", "gauge", "histogram", "summary", "untyped"],
            Form::OpenMetrics => &["counter", "gauge", "info", "histogram", "summary", "stateset", "unknown"],
        };
        if !known.contains(&kind) {
            return Err("rule 2: a type of no known kind");
        }
        if kind == "counter" && self.name.ends_with("_total") != (form == Form::Prometheus) {
            return Err("rule 6: a counter's TYPE has the wrong name");
        }
        self.kind = Some(kind.to_owned());
        Ok(())
    }

    fn sample(&mut self, form: Form, line: &str) -> Result<(), &'static str> {
        let end = line.find(['{', ' ']).ok_or("rule 4: a sample without a value")?;
        let (name, mut rest) = line.split_at(end);
        if !is_name(name, ":") {
            return Err("rule 3: no name");
        }
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            (labels, rest) = read_labels(inner)?;
        }
        let value =
            rest.strip_prefix(' ').filter(|value| !value.contains(' ')).ok_or("rule 4: no single value")?;
        let value: f64 = value.parse().map_err(|_| "rule 4: no number")?;
        self.check(form, name, value)?;
        self.has_samples = true;
        self.samples.push((name.to_owned(), labels, value));
        Ok(())
    }

    fn check(&self, form: Form, name: &str, value: f64) -> Result<(), &'static str> {
        let kind = self.kind.as_deref().ok_or("rule 2: samples before their TYPE")?;
        let suffix = match (form, kind) {
            (Form::OpenMetrics, "counter") => "_total",
            (Form::OpenMetrics, "info") => "_info",
            _ => "",
        };
        if name.strip_suffix(suffix) != Some(&self.name) {
            return Err("rule 5: a sample of another family");
        }
        match kind {
            "counter" if value < 0.0 => Err("rule 6: a negative counter"),
            "info" if value != 1.0 => Err("rule 6: an info that is not 1"),
            _ => Ok(()),
        }
    }
}

fn read_labels(mut text: &str) -> Result<(Labels, &str), &'static str> {
    let mut labels = Vec::new();
    loop {
        let (name, rest) = text.split_once("=\"").ok_or("rule 4: a label without a value")?;
        if !is_name(name, "") {
            return Err("rule 3: no label's name");
        }
        let (value, rest) = read_value(rest)?;
        labels.push((name.to_owned(), value));
        text = match rest.split_at_checked(1) {
            Some((",", more)) => more,
            Some(("}", after)) => return Ok((labels, after)),
            _ => return Err("rule 4: labels that do not end"),
        };
    }
}

fn read_value(text: &str) -> Result<(String, &str), &'static str> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                Some((_, 'n')) => value.push('\n'),
                _ => return Err("rule 4: no such escape"),
            },
            c => value.push(c),
        }
    }
    Err("rule 4: a value that does not end")
}

fn is_name(name: &str, also: &str) -> bool {
    let may_start = |c: char| c.is_ascii_alphabetic() || c == '_' || also.contains(c);
    name.starts_with(may_start) && name.chars().all(|c| may_start(c) || c.is_ascii_digit())
}

mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::board::Board;
    use super::super::figures;
    use super::super::page::{Family, Kind, Page};
    use super::*;
    use crate::meter::{Meter, Meters};
    use crate::stats::{Counters, RunsIn, Tally};

    const FORMS: [Form; 2] = [Form::Prometheus, Form::OpenMetrics];

    #[test]
    fn the_page_keeps_to_every_rule_of_both_forms() {
        let (counters, meters) = (Counters::new(2, 0).unwrap(), Meters::new(2).unwrap());
        let mut tally = Tally::new(counters, 1, RunsIn::Process);
        (tally.counts.accepts, tally.counts.closes) = (5, 2);
        tally.publish();
        let mut meter = Meter::new(meters, 1);
        meter.replied(404, 90, 9);
        meter.publish(7);
        meters.set_pid(0, Some(dyno_sys::child::this()));
        let board =
            Board { counters, meters, buffer_bytes_max: 9, started_s: 1, started_ns: 0, version: "0.1.0" };
        for form in FORMS {
            let mut page = Page::new(form);
            figures::write(&mut page, board);
            let samples = read(form, &page.end()).unwrap_or_else(|rule| panic!("{form:?}: {rule}"));
            let value = |wanted: &str, label: &str| {
                let is_it = |(name, labels, _): &&Sample| {
                    name == wanted
                        && labels.iter().all(|(_, value)| label.split(' ').any(|part| part == value))
                };
                samples.iter().find(is_it).map(|(_, _, value)| *value)
            };
            assert_eq!(value("dyno_connections_open", "1"), Some(3.0));
            assert_eq!(value("dyno_http_requests_total", "1 4xx"), Some(1.0));
            assert_eq!(value("dyno_http_requests_total", "0 4xx"), Some(0.0));
            assert_eq!(value("dyno_buffered_bytes", "1"), Some(7.0));
            assert_eq!(value("dyno_build_info", "0.1.0"), Some(1.0));
            assert!(value("dyno_worker_cpu_seconds_total", "0 user").is_some());
            assert!(value("dyno_worker_cpu_seconds_total", "1 user").is_none(), "nobody works there");
            assert!(samples.iter().all(|(name, ..)| name.starts_with("dyno_")));
        }
    }

    #[test]
    fn the_forms_differ_in_names_units_and_end() {
        let family = Family { name: "x_bytes", kind: Kind::Counter, unit: Some("bytes"), help: "Help." };
        let text = |form| {
            let mut page = Page::new(form);
            page.family(family, [("a=\"b\"".to_owned(), 1), (String::new(), 2)]);
            page.end()
        };
        assert_eq!(
            text(Form::Prometheus),
            "# HELP x_bytes_total Help.\n# TYPE x_bytes_total counter\nx_bytes_total{a=\"b\"} 1\nx_bytes_total 2\n"
        );
        assert_eq!(
            text(Form::OpenMetrics),
            "# TYPE x_bytes counter\n# UNIT x_bytes bytes\n# HELP x_bytes Help.\nx_bytes_total{a=\"b\"} 1\nx_bytes_total 2\n# EOF\n"
        );
    }

    #[test]
    fn the_reader_sees_each_rule_broken() {
        for (text, rule) in [
            ("# TYPE a gauge\na 1", "rule 1"),
            ("# TYPE a gauge\n\na 1\n", "rule 1"),
            ("# TYPE a gauge\na 1\r\n", "rule 1"),
            ("# NOTE a b\n", "rule 2"),
            ("# TYPE a gauge\n# TYPE a gauge\n", "rule 2"),
            ("# TYPE a gauge\na 1\n# HELP a b\n", "rule 2"),
            ("a 1\n", "rule 2"),
            ("# TYPE a gouge\n", "rule 2"),
            ("# TYPE 1a gauge\n", "rule 3"),
            ("# TYPE a gauge\na{b-c=\"d\"} 1\n", "rule 3"),
            ("# TYPE a gauge\na{b=\"d\" 1\n", "rule 4"),
            ("# TYPE a gauge\na{b=\"\\d\"} 1\n", "rule 4"),
            ("# TYPE a gauge\na one\n", "rule 4"),
            ("# TYPE a gauge\na\n", "rule 4"),
            ("# TYPE a gauge\na 1\na 2\n", "rule 5"),
            ("# TYPE a gauge\nb 1\n", "rule 5"),
            ("# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n", "rule 5"),
            ("# TYPE a counter\na 1\n", "rule 6"),
            ("# TYPE a_total counter\na_total -1\n", "rule 6"),
        ] {
            let said = read(Form::Prometheus, text).unwrap_err();
            assert!(said.contains(rule), "{text:?}: {said}");
        }
        for (text, rule) in [
            ("# TYPE a gauge\na 1\n", "rule 8"),
            ("# TYPE a_total counter\na_total 1\n# EOF\n", "rule 6"),
            ("# TYPE a info\na_info 2\n# EOF\n", "rule 6"),
            ("# TYPE a_bytes gauge\n# UNIT a_bytes seconds\n# EOF\n", "rule 7"),
            ("# TYPE a gauge\na 1\n# EOF\n# EOF\n", "rule"),
        ] {
            let said = read(Form::OpenMetrics, text).unwrap_err();
            assert!(said.contains(rule), "{text:?}: {said}");
        }
    }
}
