//! scratch
pub(crate) mod apply;
pub(crate) mod html;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) fn render(_climb: &dyno_measure::record::Climb) -> String { html::document("t", html::tag("body"), "", "") }
