//! What is made once and used many times, made anew each time: compiled expressions, TLS handshakes, prepared statements, parsed
//! templates, libraries, locales, entries of the user table.
//!
//! Making it takes many times as long as using it, and spends that in allocation, comparisons, copies: each of them looks harmless by
//! itself. What is made is known by the function that makes it. A program that begins makes all that too, once: so it must be
//! seen in nearly all of the time.

use dyno_record::finding::{Class, Confidence};
use dyno_record::profile::{Frame, Origin};

use super::draft::{Draft, Outcome, percent};
use super::facts::Facts;
use super::frames::{leaf_first, own_frame, place};
use super::makes::KINDS;
use super::names;

/// A fifth of the CPU: what is kept is free.
const SHARE_MIN: f64 = 0.20;
/// Half of it is no accident.
const SURE_MIN: f64 = 0.50;
/// The time that the CPU was watched, in so many parts, and in how many of them it must be seen.
const PARTS: usize = 10;
const PARTS_MIN: usize = 8;

/// What could be kept takes the CPU.
pub(super) fn repeated_setup(facts: &Facts<'_>) -> Outcome {
    let Some(on) = &facts.on else { return facts.no_profile() };
    let shares = KINDS.iter().map(|kind| (on.share_with(kind.makes), kind));
    let Some((share, kind)) = shares.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return facts.no_profile();
    };
    if share < SHARE_MIN && on.lacks_names() {
        return Outcome::Unseen(super::cpu::NO_NAMES);
    }
    if share <= 0.0 {
        return Outcome::Against("nothing was made that could be kept".to_owned());
    }
    let text = format!("{} of the CPU {}", percent(share), kind.does);
    if share < SHARE_MIN {
        return Outcome::near(&[(share, SHARE_MIN)], text);
    }
    let parts = parts(facts, kind.makes);
    if parts.is_some_and(|parts| parts < PARTS_MIN) {
        return Outcome::Against(format!("{text}, but for a while only, as where a program begins"));
    }
    let seen: Vec<String> = on.seen_of(kind.makes).into_iter().take(3).collect();
    let sure = if share >= SURE_MIN { Confidence::High } else { Confidence::Medium };
    let spread = parts.map(|parts| format!("it was seen in {parts} of {PARTS} parts of the time"));
    Outcome::Found(
        Draft::new(Class::RepeatedSetup, share, format!("{text}, again and again: it could be kept"))
            .sure(sure)
            .fact(format!("in {}", seen.join(", ")), share, "share")
            .sign_if(spread)
            .next(kind.next)
            .at(caller(facts, kind.makes))
            .specimen("pattern-per-line"),
    )
}

/// In how many parts of the time a function of this table was seen; `None` where nobody knows when samples fell.
fn parts(facts: &Facts<'_>, table: names::Table) -> Option<usize> {
    let profile = facts.seen.on_cpu.as_ref()?;
    let all = profile.stacks.iter().flat_map(|stack| &stack.slices).map(|(slice, _)| *slice);
    let (first, last) = all.fold((u32::MAX, 0), |(first, last), slice| (first.min(slice), last.max(slice)));
    let length = u64::from(last.checked_sub(first)?) + 1;
    let mut seen = [false; PARTS];
    for stack in &profile.stacks {
        if leaf_first(profile, stack).iter().any(|frame| names::is(&frame.name, table)) {
            for (slice, _) in &stack.slices {
                seen[(u64::from(slice - first) * PARTS as u64 / length) as usize] = true;
            }
        }
    }
    Some(seen.iter().filter(|seen| **seen).count())
}

/// The program's own place from which most of it is made: outside of all that makes it.
fn caller(facts: &Facts<'_>, table: names::Table) -> Option<String> {
    let profile = facts.seen.on_cpu.as_ref()?;
    let mut sums = std::collections::BTreeMap::<String, u64>::new();
    for stack in &profile.stacks {
        let frames = leaf_first(profile, stack);
        let made = |frame: &&Frame| frame.origin == Origin::User && names::is(&frame.name, table);
        let Some(outermost) = frames.iter().rposition(made) else { continue };
        if let Some(own) = own_frame(profile, &frames[outermost + 1..]) {
            *sums.entry(place(own)).or_default() += stack.weight_ns;
        }
    }
    sums.into_iter().max_by_key(|(_, ns)| *ns).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;

    use crate::scene::Scene;

    fn made(stack: &str, hundredths: u64) -> Scene {
        Scene::new(&[9.0, 9.0]).on(stack, hundredths).on("main;serve;rest", 100 - hundredths)
    }

    /// Planted faults: the line at a half; what is beneath a compiler of expressions counted as memory (`cost` without `SetUp`); the
    /// innermost function of the library named as the place (`caller` that looks from the leaf).
    #[test]
    fn what_could_be_kept_and_is_made_each_time_is_told_with_who_makes_it() {
        for (stack, does) in [
            ("main;handle;regcomp;re_compile_internal;malloc", "regular expressions"),
            (
                "main;handle;std::__cxx11::basic_regex<char, T>::_M_compile(char const*);std::vector<char>::~vector();free",
                "regular expressions",
            ),
            ("main.main.func1;regexp.MustCompile;regexp.compile;runtime.mallocgc", "regular expressions"),
            ("main;handle;SSL_do_handshake;0x1234;RSA_sign", "TLS handshakes"),
            ("main;store;sqlite3_prepare_v2;0x2345", "SQL statements"),
            (
                "main.main.func1;compress/gzip.NewWriterLevel;compress/flate.NewWriter;runtime.mallocgc",
                "makes compressors",
            ),
            ("main;store;deflateInit2_;calloc", "makes compressors"),
            ("main;handle;getpwnam_r;openat;do_syscall_64_[k];do_sys_openat2_[k]", "users and names"),
        ] {
            let said = made(stack, 30).diagnosed();
            let classes: Vec<Class> = said.findings.iter().map(|one| one.class).collect();
            assert_eq!(classes, [Class::RepeatedSetup], "{stack}");
            let finding = &said.findings[0];
            assert!(finding.summary.contains(does), "{}", finding.summary);
            let code = finding.next[0].code.as_deref().unwrap();
            assert!(["handle", "main.main.func1", "store"].contains(&code), "{code}");
        }
        assert_eq!(made("main;handle;regcomp;malloc", 19).classes(), []);
        // Using it is no making of it.
        for uses in [
            "main;handle;regexec;malloc",
            "main.main.func1;regexp.(*Regexp).doExecute",
            "main;SSL_read",
            "main;deflate",
        ] {
            assert_eq!(made(uses, 24).classes(), [], "{uses}");
        }
    }

    /// Planted fault: when it was seen is not asked (`PARTS_MIN` of zero).
    #[test]
    fn what_is_made_while_a_program_begins_is_no_fault() {
        let at = |slices: std::ops::Range<u32>| {
            let mut scene = made("main;handle;regcomp;malloc", 30);
            let profile = scene.seen.on_cpu.as_mut().unwrap();
            profile.slice_ns = Some(10_000_000);
            for stack in &mut profile.stacks {
                let name = &profile.frames[stack.frames[stack.frames.len() - 2] as usize].name;
                let when = if name == "regcomp" { slices.clone() } else { 0..1_000 };
                stack.slices = when.map(|slice| (slice, 1)).collect();
            }
            scene.classes()
        };
        assert_eq!(at(0..1_000), [Class::RepeatedSetup]);
        assert_eq!(at(0..300), []);
    }
}
