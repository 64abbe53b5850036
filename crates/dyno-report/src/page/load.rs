//! The page of a load: one file, no network, readable without scripts.

use dyno_record::load::LoadRun;

use super::draw::{SCRIPT, page};
use crate::view;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn render(run: &LoadRun) -> String {
    page(&view::load::view(run), None, STYLE, SCRIPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_shown_and_never_obeyed() {
        let hostile = "<img src=x onerror=alert(1)>\"'&";
        let text = render(&LoadRun { request: hostile.into(), ..LoadRun::default() });
        assert!(!text.contains("<img") && text.contains("&lt;img"), "a name became a tag");
    }
}
