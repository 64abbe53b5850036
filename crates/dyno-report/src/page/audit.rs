//! The page of an audit: one file, no network, readable without scripts.

use dyno_record::audit::Audit;

use super::draw::{SCRIPT, page};
use crate::view::audit::{Depth, view};

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn render(audit: &Audit) -> String {
    page(&view(audit, Depth::Full), None, STYLE, SCRIPT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::audit::AuditFinding;

    #[test]
    fn a_hostile_name_is_shown_and_never_obeyed() {
        let hostile = "<img src=x onerror=alert(1)>\"'&";
        let finding = AuditFinding {
            id: "tap.packet".into(),
            object: hostile.into(),
            title: hostile.into(),
            found: hostile.into(),
            apply: vec![hostile.into()],
            ..AuditFinding::default()
        };
        let text =
            render(&Audit { findings: vec![finding], server: Some(hostile.into()), ..Audit::default() });
        assert!(!text.contains("<img") && text.contains("&lt;img"), "a name became a tag");
    }
}
