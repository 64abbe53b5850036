//! What holds of every page: closed to strangers' markup, to the network, and to what its own policy would block.
#![allow(clippy::unwrap_used)]

use super::flame::{Format, Look, write};
use super::html::tests::{assert_balanced, tags};
use super::{causal, climb};
use crate::samples::causal::sample;
use crate::samples::climb::sample_climb;

/// A name that would like to be markup.
pub(super) const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\u{202e}\u{0}";

/// Panics where a name of a record became more than text. A page has this many scripts of its own.
pub(super) fn assert_shown_and_never_run(page: &str, scripts: usize) {
    assert_balanced(page);
    let count = |wanted: &str| tags(page).iter().filter(|(name, _)| name == wanted).count();
    assert_eq!((count("script"), count("img")), (scripts, 0));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<!--"), "shown");
    for c in ['\0', '\u{1b}', '\u{202e}', '\u{2066}'] {
        assert!(!page.contains(c), "{c:?}");
    }
    for (name, attributes) in tags(page) {
        assert!(!attributes.contains(" on") || attributes.contains("&quot;"), "{name} {attributes}");
    }
}

/// A page of each kind.
fn pages() -> [(&'static str, String); 3] {
    let waiting = write(&super::flame::tests::waiting(), Format::Html, Look::default());
    let profile = String::from_utf8(waiting).unwrap();
    [("climb", climb::render(&sample_climb(6))), ("causal", causal::render(&sample(5))), ("profile", profile)]
}

#[test]
fn nothing_on_a_page_asks_the_network_or_is_blocked_by_its_own_policy() {
    for (kind, page) in pages() {
        assert!(page.contains("default-src &#39;none&#39;"), "{kind}");
        for (name, attributes) in tags(&page) {
            let asks = ["link", "img", "iframe", "object", "form", "base"];
            assert!(!asks.contains(&name.as_str()), "{kind}: {name}");
            for (key, _) in attributes.split(' ').filter_map(|pair| pair.split_once('=')) {
                assert!(key != "style" && key != "src" && !key.starts_with("on"), "{kind}: {name} {key}");
            }
        }
    }
    let style = concat!(include_str!("style.css"), include_str!("causal/causal.css"));
    let style = format!("{style}{}{}", include_str!("boxes/flame.css"), include_str!("flame/page.css"));
    assert!(!style.contains("url(") && !style.contains("@import"), "the policy blocks both");
    let script = concat!(include_str!("page.js"), include_str!("flame/flame.js"));
    // A property of a style can be set by a script; a whole one, as a text, is what the policy blocks.
    for blocked in ["innerHTML", ".style =", "cssText", "\"style\""] {
        assert!(!script.contains(blocked), "the policy blocks {blocked}");
    }
}

/// For eyes: `cargo test -p dyno-report pages_to_look_at -- --ignored --nocapture` names the files.
#[test]
#[ignore = "writes pages to look at"]
fn pages_to_look_at() {
    for (kind, page) in pages() {
        let path = std::env::temp_dir().join(format!("dyno-sample-{kind}.html"));
        std::fs::write(&path, page).unwrap();
        println!("{}", path.display());
    }
}
