//! The two text forms of metrics: Prometheus text 0.0.4 and OpenMetrics 1.0.
//!
//! They differ in what a family is called (`…_total` or not), in units, and in how they end. A family is begun once and its
//! samples follow; names come from this crate, so they are asserted and not escaped.

use std::fmt::{Display, Write};

/// Which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Prometheus,
    OpenMetrics,
}

impl Form {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Form::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    /// A gauge of 1 whose labels tell.
    Info,
}

/// A family of samples. Its name has no `_total` and no `_info`; its unit, if any, ends the name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Option<&'static str>,
    pub(super) help: &'static str,
}

/// A page in the making.
pub(super) struct Page {
    form: Form,
    text: String,
}

impl Page {
    pub(super) fn new(form: Form) -> Page {
        Page { form, text: String::with_capacity(8 << 10) }
    }

    /// A family with its samples: labels, as `worker="0"`, and a value.
    pub(super) fn family<V: Display>(
        &mut self,
        family: Family,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        let Family { name, kind, unit, help } = family;
        debug_assert!(unit.is_none_or(|unit| name.ends_with(unit)), "{name}: a unit ends the name");
        debug_assert!(!help.contains(['\\', '\n', '"']), "{name}: nothing in a help text needs escaping");
        let sample = match kind {
            Kind::Counter => format!("{name}_total"),
            Kind::Gauge => name.to_owned(),
            Kind::Info => format!("{name}_info"),
        };
        let (of, kind) = match (self.form, kind) {
            (Form::OpenMetrics, Kind::Counter) => (name, "counter"),
            (Form::OpenMetrics, Kind::Gauge) => (name, "gauge"),
            (Form::OpenMetrics, Kind::Info) => (name, "info"),
            (Form::Prometheus, Kind::Counter) => (&*sample, "counter"),
            (Form::Prometheus, _) => (&*sample, "gauge"),
        };
        let mut lines = format!("# HELP {of} {help}\n# TYPE {of} {kind}\n");
        if let (Form::OpenMetrics, Some(unit)) = (self.form, unit) {
            lines = format!("# TYPE {of} {kind}\n# UNIT {of} {unit}\n# HELP {of} {help}\n");
        }
        self.text.push_str(&lines);
        for (labels, value) in samples {
            let braced = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            // Writing into a string cannot fail.
            let _ = writeln!(self.text, "{sample}{braced} {value}");
        }
    }

    /// The page's text.
    pub(super) fn end(mut self) -> String {
        if self.form == Form::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}
