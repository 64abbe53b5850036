//! Every page that is written is opened in a browser: at both widths and in both themes it complains of nothing, asks no
//! network, fits the window and can be read; and the flame graph does what its buttons say.
//!
//! The pages are those that `golden.rs` compares word for word. Planted faults stand beside the tests.
#![allow(clippy::unwrap_used)]

#[path = "common/browser.rs"]
mod browser;
mod common;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use browser::{Browser, Window};

const PAGES: [&str; 11] = [
    "report-climb.html",
    "report-climb-1.html",
    "report-causal.html",
    "report-load.html",
    "flame-waiting.html",
    "flame-diff.html",
    "audit-planted.html",
    "diagnose-lock.html",
    "diagnose-nothing.html",
    "compare.html",
    "judge-two-climbs.html",
];

const LAPTOP: Window = Window { width: 1280, height: 800, theme: "light", medium: "screen" };
const PHONE: Window = Window { width: 390, height: 844, ..LAPTOP };

/// One browser at a time: it takes as much memory as everything else together.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/out").join(name)
}

fn windows() -> [Window; 4] {
    [LAPTOP, PHONE, Window { theme: "dark", ..LAPTOP }, Window { theme: "dark", ..PHONE }]
}

/// Planted faults: an image from elsewhere, a script that throws, a box of 500 pixels.
#[test]
fn a_page_complains_of_nothing_asks_nobody_and_fits_the_window() {
    let _alone = alone();
    let mut browser = Browser::start("fits");
    for name in PAGES {
        for window in windows() {
            let complaints = browser.open(&page(name), window);
            assert!(complaints.is_empty(), "{name} {window:?}: {complaints:?}");
            let over = browser.evaluate(OVERFLOWS).to_string();
            assert_eq!(over, "[]", "{name} {window:?}");
            let landmarks = browser.evaluate(
                "document.querySelectorAll('main, h1').length >= 2 && document.documentElement.lang !== ''",
            );
            assert_eq!(landmarks, true, "{name} has no main part, no heading or no language");
        }
    }
}

/// What is wider than the window and does not scroll in a place of its own.
const OVERFLOWS: &str = r"(() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  const scrolls = (element) => element && (/(auto|scroll|hidden)/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  return [...document.querySelectorAll('body *')].filter((element) => element.getBoundingClientRect().right > wide + 1 && !scrolls(element.parentElement)).map((element) => element.outerHTML.slice(0, 120)).slice(0, 5);
})()";

/// WCAG's 4.5:1, for every text against what lies behind it. Planted fault: `--soft` a shade paler.
#[test]
fn text_can_be_read_in_both_themes() {
    let _alone = alone();
    let mut browser = Browser::start("contrast");
    for name in PAGES {
        for window in [LAPTOP, Window { theme: "dark", ..LAPTOP }] {
            browser.open(&page(name), window);
            let pale = browser.evaluate(PALE).to_string();
            assert_eq!(pale, "[]", "{name} {window:?}");
        }
    }
}

const PALE: &str = r"(() => {
  const channels = (text) => (/rgba?\(([^)]*)\)/.exec(text)?.[1] ?? '0 0 0 / 0').split(/[ ,/]+/).map(Number);
  const over = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const opacity = (element) => (element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1);
  const behind = (element) => {
    if (!element) return channels(getComputedStyle(document.documentElement).backgroundColor).slice(0, 3);
    const own = channels(getComputedStyle(element).backgroundColor);
    return (own[3] ?? 1) === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement));
  };
  // A text in a picture stands on the box before it in its group, if it has one.
  const rect = (text) => (text.closest('.flame-boxes') ? text.closest('g')?.querySelector(':scope > rect') : null);
  const shown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility === 'visible';
  const pale = [];
  for (const element of document.querySelectorAll('body *')) {
    const says = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    if (!says || !shown(element) || element.closest('script, style, title')) continue;
    const style = getComputedStyle(element);
    const inPicture = element instanceof SVGElement;
    const box = inPicture && rect(element);
    const back = box ? channels(getComputedStyle(box).fill).slice(0, 3) : behind(inPicture ? element.ownerSVGElement.parentElement : element);
    const ink = channels(inPicture ? style.fill : style.color);
    const found = contrast(over([ink[0], ink[1], ink[2], (ink[3] ?? 1) * opacity(element)], back), back);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (found < (large ? 3 : 4.5)) pale.push(`${found.toFixed(2)} ${element.textContent.trim().slice(0, 40)}`);
  }
  return pale.slice(0, 8);
})()";

/// A finger is no pointer. Planted fault: buttons of 20 pixels.
#[test]
fn what_is_pressed_on_a_phone_is_large_enough() {
    let _alone = alone();
    let mut browser = Browser::start("touch");
    for name in PAGES {
        browser.open(&page(name), PHONE);
        let small = browser.evaluate(
            "[...document.querySelectorAll('button, summary, input, nav a')].filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML.slice(0, 90)).slice(0, 5)",
        );
        assert_eq!(small.to_string(), "[]", "{name}");
    }
}

/// A climb without profiles. Planted fault: every raw point in the open.
#[test]
fn a_climbs_page_is_small_and_short() {
    let _alone = alone();
    let mut browser = Browser::start("short");
    for name in ["report-climb.html", "report-climb-1.html"] {
        let bytes = std::fs::metadata(page(name)).unwrap().len();
        assert!(bytes <= 250_000, "{name}: {bytes} bytes");
        browser.open(&page(name), PHONE);
        let screens =
            browser.evaluate("document.documentElement.scrollHeight / innerHeight").as_f64().unwrap();
        assert!(screens <= 12.0, "{name}: {screens:.1} screens of a phone");
    }
}

/// Planted fault: every rung's card opened for the printer.
#[test]
fn a_climb_prints_on_six_sheets() {
    let _alone = alone();
    let mut browser = Browser::start("sheets");
    for name in ["report-climb.html", "report-climb-1.html"] {
        browser.open(&page(name), Window { medium: "print", ..LAPTOP });
        let sheets = browser.sheets();
        assert!(sheets <= 6, "{name}: {sheets} sheets");
    }
}

fn text(browser: &mut Browser, selector: &str) -> String {
    browser
        .evaluate(&format!("document.querySelector('{selector}')?.textContent ?? ''"))
        .as_str()
        .unwrap()
        .to_owned()
}

fn press(browser: &mut Browser, label: &str) {
    let pressed = format!(
        "[...document.querySelectorAll('.tools button')].find((b) => b.textContent === '{label}').click()"
    );
    browser.evaluate(&pressed);
}

/// A profile whose stacks all stand on twelve frames, then part: two thirds in `parse`, a third in the kernel below `send`.
const FOLDED: &str = "main;a;b;c;d;e;f;g;h;i;j;serve;parse 60\nmain;a;b;c;d;e;f;g;h;i;j;serve;parse;copy 6\n\
                      main;a;b;c;d;e;f;g;h;i;j;serve;send;tcp_sendmsg_[k] 33\n";

fn flame(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (stacks, page) = (folder.join(format!("{name}.folded")), folder.join(format!("{name}.html")));
    std::fs::write(&stacks, FOLDED).unwrap();
    let drawn = common::run(["flame", stacks.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    drawn.done();
    page
}

/// Planted faults: a fork that is taken to be the root, and matches that are counted but not walked.
#[test]
fn a_flame_graph_begins_at_its_fork_and_can_be_turned_searched_and_sent() {
    let _alone = alone();
    let page = flame("pages");
    let mut browser = Browser::start("flame");
    assert_eq!(browser.open(&page, LAPTOP), Vec::<String>::new());
    let bar = text(&mut browser, "#trunk");
    assert!(bar.contains("frames that 100.0 % of all stand on: main → … → j"), "{bar}");
    let named = |browser: &mut Browser| {
        browser
            .evaluate("[...document.querySelectorAll('.boxes g[id^=box] text')].map((t) => t.textContent)")
            .to_string()
    };
    assert!(
        named(&mut browser).contains("parse") && !named(&mut browser).contains("\"main\""),
        "{}",
        named(&mut browser)
    );
    browser.evaluate(
        "document.querySelector('#trunk').dispatchEvent(new MouseEvent('click', { bubbles: true }))",
    );
    assert!(named(&mut browser).contains("\"main\""), "{}", named(&mut browser));
    press(&mut browser, "From the fork");

    press(&mut browser, "Callees first");
    let first = named(&mut browser);
    assert!(first.contains("parse") && first.contains("tcp_sendmsg"), "{first}");
    press(&mut browser, "Callees first");

    browser.evaluate("(() => { const s = document.querySelector('input[type=search]'); s.value = 'parse'; s.dispatchEvent(new Event('input')); s.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })); })()");
    assert!(text(&mut browser, ".found").starts_with("1 of 1 · 66"), "{}", text(&mut browser, ".found"));
    assert!(text(&mut browser, ".detail").contains("parse"));

    // The view stands in the address: opened again it is the same.
    browser.evaluate(
        "document.querySelector('.boxes .chosen').dispatchEvent(new MouseEvent('click', { bubbles: true }))",
    );
    let address = browser.evaluate("location.hash").as_str().unwrap().to_owned();
    assert!(address.contains("zoom=") && address.contains("find=parse"), "{address}");
    let again = PathBuf::from(format!("{}{address}", page.display()));
    browser.open(&PathBuf::from("/dev/null"), LAPTOP);
    browser.open(&again, LAPTOP);
    let zoomed = named(&mut browser);
    assert!(zoomed.contains("copy") && !zoomed.contains("send"), "{zoomed}");
}

/// Planted fault: figures that stand below the picture only.
#[test]
fn figures_stand_at_the_pointer_and_at_the_finger() {
    let _alone = alone();
    let page = flame("pointer");
    let mut browser = Browser::start("pointer");
    for window in [LAPTOP, PHONE] {
        browser.open(&page, window);
        let at = browser.evaluate("(() => { const box = [...document.querySelectorAll('.boxes g[id^=box]')].find((g) => g.textContent.includes('parse')); box.scrollIntoView({ block: 'center' }); const r = box.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()");
        let at = [at[0].as_f64().unwrap(), at[1].as_f64().unwrap()];
        if window.width == LAPTOP.width {
            browser.point("mouseMoved", at);
        } else {
            browser.evaluate(&format!("document.elementFromPoint({}, {}).dispatchEvent(new PointerEvent('click', {{ bubbles: true, pointerType: 'touch', clientX: {}, clientY: {} }}))", at[0], at[1], at[0], at[1]));
        }
        let tip = text(&mut browser, ".tip");
        assert!(tip.contains("parse") && tip.contains("66.7 % of all"), "{window:?}: {tip}");
        let inside = browser.evaluate("(() => { const r = document.querySelector('.tip').getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth && r.top >= 0 && r.bottom <= innerHeight && r.height > 0; })()");
        assert_eq!(inside, true, "{window:?}");
    }
}
