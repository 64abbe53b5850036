//! Pictures as a whole: well-formed, closed to strangers' names, readable without a script, and the same every time.
#![allow(clippy::unwrap_used)]

use dyno_record::profile::*;

use super::*;
use crate::page::html::tests::{assert_balanced, tags};
use crate::page::tests::assert_shown_and_never_run;

fn frame(name: &str, origin: Origin) -> Frame {
    Frame { name: name.to_owned(), origin, module: Some(0), ..Frame::default() }
}

fn stack(frames: &[u32], weight_ns: u64) -> Stack {
    Stack { frames: frames.to_vec(), samples: weight_ns / 1_000_000, weight_ns, ..Stack::default() }
}

fn small() -> Profile {
    let user = ["main", "serve", "parse"].map(|name| frame(name, Origin::User));
    let kernel = [frame("sys_write", Origin::Kernel)];
    Profile {
        schema: PROFILE_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        duration_s: 2.0,
        target: Target { pid: Some(7), name: "server".to_owned(), ..Target::default() },
        requests: Some(Requests { count: 100_000, source: "load".to_owned() }),
        threads: vec![Thread { pid: 7, tid: 7, name: "server".to_owned() }],
        modules: vec![Module { path: "/srv/server".to_owned(), ..Module::default() }],
        frames: user.into_iter().chain(kernel).collect(),
        stacks: vec![
            stack(&[0, 1], 100_000_000),
            stack(&[0, 1, 2], 600_000_000),
            stack(&[0, 1, 3], 300_000_000),
        ],
        sampling: Sampling { samples: 1_000, frequency_hz: Some(999.0), ..Sampling::default() },
        ..Profile::default()
    }
}

pub(in crate::page) fn waiting() -> Profile {
    let mut profile = small();
    profile.kind = Kind::OffCpu;
    let wait = |class, object: &str| Some(Wait { class, system_call: None, object: Some(object.to_owned()) });
    profile.wakers = vec![Waker { pid: 7, tid: 8, name: "writer".to_owned(), frames: vec![0, 3] }];
    profile.stacks[1].wait = wait(WaitClass::Lock, "0x7f00");
    profile.stacks[1].waker = Some(0);
    profile.stacks[2].wait = wait(WaitClass::Disk, "/var/log/server.log");
    let span = |from_ns, to_ns, state, class| Span { thread: 0, from_ns, to_ns, state, class };
    profile.timeline = vec![
        span(0, 1_000_000, ThreadState::Running, None),
        span(1_000_000, 2_000_000, ThreadState::Waiting, Some(WaitClass::Lock)),
    ];
    let call = SystemCall { count: 10, errors: 1, total_ns: 5_000, max_ns: 900, log2_ns: vec![0, 0, 10] };
    profile.system_calls.insert("write".to_owned(), call);
    profile
}

fn text(profile: &Profile, format: Format) -> String {
    String::from_utf8(write(profile, format, Look::default())).unwrap()
}

fn page(profile: &Profile) -> String {
    text(profile, Format::Html)
}

#[test]
fn the_picture_of_a_small_profile_is_what_it_was() {
    let svg = text(&small(), Format::Svg);
    let drawn: String = svg[svg.find("</style>").unwrap()..].replace("<g>", "\n<g>");
    let found = drawn.replace("<text", "\n<text");
    let wanted = include_str!("small.svg.txt");
    assert_eq!(found.trim(), wanted.trim(), "if this is meant, put it into small.svg.txt:\n{found}");
}

#[test]
fn a_page_is_well_formed_and_says_its_figures() {
    for profile in [small(), waiting(), Profile::default()] {
        let page = page(&profile);
        assert_balanced(&page);
        assert!(!page.contains("NaN") && !page.contains(">inf"), "{page}");
    }
    let page = page(&small());
    for owed in
        ["10.0", "µs of CPU per request", "kernel 30.0\u{a0}%", "100,000 (counted by load)", "parse: 6.00 µs"]
    {
        assert!(page.contains(owed), "{owed} is missing");
    }
}

#[test]
fn what_is_off_the_cpu_has_its_wakers_kinds_lanes_and_calls() {
    let page = page(&waiting());
    for owed in [
        "woken by writer",
        "waits: lock 0x7f00",
        "/var/log/server.log",
        "id=\"timeline\"",
        "running 50.0 %, lock 50.0 %",
        "System calls",
    ] {
        assert!(page.contains(owed), "{owed} is missing");
    }
}

const HOSTILE: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "]]></text><svg onload=alert(3)>",
    "a\0b\u{1b}[31m",
    "\u{202e}evil\u{2066}",
    "</script><script>alert(4)</script>",
    "<!--",
];

fn hostile() -> Profile {
    let mut profile = waiting();
    let all = HOSTILE.join(" ");
    profile.frames.iter_mut().for_each(|frame| frame.name.push_str(&all));
    profile.threads[0].name.clone_from(&all);
    profile.modules[0].path.clone_from(&all);
    profile.target.name.clone_from(&all);
    profile.wakers[0].name.clone_from(&all);
    profile.version.clone_from(&all);
    profile.warnings = vec![all.clone()];
    profile.cut_short = Some(all.clone());
    profile.command = vec![all.clone()];
    profile.stacks[1].wait.as_mut().unwrap().object = Some(all.clone());
    profile.system_calls.insert(all.clone(), SystemCall::default());
    profile.requests = Some(Requests { count: 10, source: all });
    profile
}

#[test]
fn hostile_names_are_shown_and_never_run() {
    assert_shown_and_never_run(&page(&hostile()), 2);
    let picture = text(&hostile(), Format::Svg).replace("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "");
    assert_shown_and_never_run(&picture, 0);
    assert!(!picture.contains("]]>"), "{picture}");
}

#[test]
fn the_data_of_a_page_is_read_back_with_hostile_names_in_it() {
    let page = page(&hostile());
    let start = page.find("id=\"flame-data\">").unwrap() + "id=\"flame-data\">".len();
    let data = &page[start..start + page[start..].find("</script>").unwrap()];
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["depth"].as_array().unwrap().len(), data["width"].as_array().unwrap().len());
    let names: Vec<&str> =
        data["names"].as_array().unwrap().iter().map(|name| name[0].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains("<script>alert(1)</script>")), "{names:?}");
    assert!(names.iter().all(|name| !name.contains('\0') && !name.contains('\u{202e}')), "{names:?}");
}

#[test]
fn a_profile_of_a_hundred_thousand_stacks_is_a_page_that_opens() {
    let mut chance = dyno_measure::Prng::new(11);
    let mut large = small();
    large.frames = (0..5_000).map(|k| frame(&format!("module::function_{k}"), Origin::User)).collect();
    large.stacks = (0..100_000)
        .map(|_| {
            // A random walk that mostly stays on common ways, as programs do.
            let frames: Vec<u32> =
                (0..20).map(|depth| (chance.below(1 + depth * 8) * 7 % 5_000) as u32).collect();
            stack(&frames, 1_000_000)
        })
        .collect();
    let page = page(&large);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(page.contains("are folded away"), "what was left out is said");
    assert!(!page.contains("\"totals\":[]"), "a search knows what was left out");
    let boxes = tags(&page).iter().filter(|(name, _)| name == "rect").count();
    assert!(boxes < 3_200, "{boxes} boxes without a script");
}

fn changed() -> Profile {
    let mut after = small();
    after.requests = Some(Requests { count: 200_000, source: "load".to_owned() });
    after.stacks = vec![stack(&[0, 1], 200_000_000), stack(&[0, 1, 2], 600_000_000)];
    after
}

#[test]
fn a_comparison_says_what_it_divided_by_and_hides_nothing() {
    let page = write_diff(&small(), &changed(), Format::Html, Look::default()).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_balanced(&page);
    for owed in [
        "divided by the requests they answered (100,000 and 200,000)",
        "−6.00",
        "10.0 → 4.00 µs of CPU per request",
        "parse: 6.00 → 3.00",
        "sys_write: 3.00 → 0.00",
        "shrank",
    ] {
        assert!(page.contains(owed), "{owed} is missing");
    }
    let mut unknown = changed();
    unknown.requests = None;
    let page = write_diff(&small(), &unknown, Format::Svg, Look::default()).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("divided by the time they were watched (2.0 s and 2.0 s)"), "{page}");
}

/// Planted fault: the kernel's time counted to the outermost function of the program says "below main".
#[test]
fn the_headline_says_what_the_profile_says() {
    let mut profile = small();
    profile.requests = None;
    let page = page(&profile);
    assert!(page.contains("of its CPU time is in parse itself"), "{page}");
    assert!(page.contains("30.0\u{a0}% below serve · 60.0\u{a0}% in parse itself"), "{page}");
    profile.stacks[2].weight_ns = 3_000_000_000;
    let page = super::tests::page(&profile);
    assert!(page.contains("of its CPU time is in the kernel; 81.1\u{a0}% below serve"), "{page}");
}

#[test]
fn an_icicle_has_its_root_at_the_top() {
    let of = |orientation| {
        let look = Look { orientation, ..Look::default() };
        String::from_utf8(write(&small(), Format::Svg, look)).unwrap()
    };
    let root = |svg: &str| {
        let at = svg.find("class=\"mark\"").unwrap();
        let rect = &svg[svg[..at].rfind("<rect").unwrap()..at];
        rect.split(" y=\"").nth(1).unwrap().split('"').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(root(&of(Orientation::Icicle)), 52);
    assert_eq!(root(&of(Orientation::Flame)), 52 + 3 * boxes::ROW);
}

#[test]
fn a_function_has_its_colour_in_every_picture() {
    let class = |svg: &str, name: &str| {
        let at = svg.find(&format!("<title>{name}:")).unwrap();
        let rest = &svg[at..];
        rest[rest.find("class=\"").unwrap() + 7..].split('"').next().unwrap().to_owned()
    };
    let (one, other) = (text(&small(), Format::Svg), text(&changed(), Format::Svg));
    for name in ["main", "serve", "parse"] {
        assert_eq!(class(&one, name), class(&other, name));
        assert!(class(&one, name).starts_with('u'));
    }
    assert!(class(&one, "sys_write").starts_with('k'));
}
