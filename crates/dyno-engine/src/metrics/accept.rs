//! Which form a scraper wants, by its Accept field (RFC 9110 §12.5.1).

use super::page::Form;
use dyno_proto::semantics::coding;

/// The form for an Accept field; without one, or where nothing fits, the one that everything reads.
pub(super) fn form(accept: Option<&str>) -> Form {
    let Some(accept) = accept else { return Form::Prometheus };
    let open = highest(accept, "application", "openmetrics-text");
    // A wildcard asks for no form by name: who does not know OpenMetrics is not given it.
    match open {
        Some(open) if open > 0 && open >= highest(accept, "text", "plain").unwrap_or(0) => Form::OpenMetrics,
        _ => Form::Prometheus,
    }
}

/// The highest weight, in thousandths, that the field gives to this very media type in a version that is spoken here.
fn highest(accept: &str, kind: &str, subtype: &str) -> Option<u16> {
    accept.split(',').filter_map(|range| weight(range, kind, subtype)).max()
}

fn weight(range: &str, kind: &str, subtype: &str) -> Option<u16> {
    let mut parts = range.split(';').map(str::trim);
    let (a, b) = parts.next()?.split_once('/')?;
    if !a.trim().eq_ignore_ascii_case(kind) || !b.trim().eq_ignore_ascii_case(subtype) {
        return None;
    }
    let mut weight = 1_000;
    for parameter in parts {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => weight = coding::quality(value.trim().as_bytes())?,
            "version" if subtype == "openmetrics-text" && value.trim() != "1.0.0" => return None,
            _ => {}
        }
    }
    Some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_form_that_it_prefers() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, wanted) in [
            (None, Form::Prometheus),
            (Some(""), Form::Prometheus),
            (Some("*/*"), Form::Prometheus),
            (Some("text/html, */*;q=0.8"), Form::Prometheus),
            (Some("text/plain"), Form::Prometheus),
            (Some(prometheus), Form::OpenMetrics),
            (Some("application/openmetrics-text"), Form::OpenMetrics),
            (Some("Application/OpenMetrics-Text; Q=0.5"), Form::OpenMetrics),
            (Some("application/openmetrics-text;q=0"), Form::Prometheus),
            (Some("application/openmetrics-text;q=0.4, text/plain;q=0.5"), Form::Prometheus),
            (Some("application/openmetrics-text;version=0.0.1"), Form::Prometheus),
            (Some("application/openmetrics-text;q=2"), Form::Prometheus),
            (Some("application/openmetrics-text;q=0.5555"), Form::Prometheus),
            (Some("application"), Form::Prometheus),
        ] {
            assert_eq!(form(accept), wanted, "{accept:?}");
        }
    }
}
