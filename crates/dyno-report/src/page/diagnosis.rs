//! The page of a diagnosis: one file, no network, readable without scripts.
//!
//! `dyno diagnose --html` writes it with the profiles that were taken, `dyno report` without them. It measures nothing.

use dyno_record::diagnosis::Diagnosis;
use dyno_record::profile::Profile;

use super::draw::{SCRIPT, page};
use crate::view::diagnosis::view;

const STYLE: &str = include_str!("style.css");
const STYLE_WITH_FLAMES: &str = concat!(include_str!("style.css"), include_str!("boxes/flame.css"));

/// The whole page, with a picture of each profile.
pub fn render(record: &Diagnosis, profiles: &[&Profile]) -> String {
    let style = if profiles.is_empty() { STYLE } else { STYLE_WITH_FLAMES };
    page(&view(record, profiles), None, style, SCRIPT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::profile::Target;

    #[test]
    fn a_hostile_name_is_shown_and_never_obeyed() {
        let hostile = "<img src=x onerror=alert(1)>\"'&";
        let target =
            Target { name: hostile.into(), argv: vec![hostile.into()], pid: Some(7), ..Target::default() };
        let record = Diagnosis { target, warnings: vec![hostile.into()], ..Diagnosis::default() };
        let text = render(&record, &[]);
        assert!(!text.contains("<img") && text.contains("&lt;img"), "a name became a tag");
    }
}
