//! What a frame is called in pictures and exports, and how a long name is said in short.

use crate::profile::{Frame, Origin, Profile, WaitClass};

/// What a frame is called: its function, or its file and address where it has no symbol, so that two files' addresses
/// are never taken for one function.
pub fn of_frame(profile: &Profile, frame: &Frame) -> String {
    let module = frame.module.and_then(|at| profile.modules.get(at as usize));
    match module {
        Some(module) if frame.name.starts_with("0x") => format!("{}!{}", file_name(&module.path), frame.name),
        _ if frame.name.is_empty() => format!("0x{:x}", frame.address),
        _ => frame.name.clone(),
    }
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// The last two parts of a qualified name (`Worker::turn`); what is no path stays whole.
///
/// A `::` within angle brackets belongs to a type argument and separates nothing.
pub fn short(name: &str) -> &str {
    let (mut open, mut cuts) = (0_i32, Vec::new());
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => open += 1,
            // The arrow of a function type closes nothing.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => open -= 1,
            b':' if open == 0 && bytes.get(at + 1) == Some(&b':') && cuts.last() != Some(&(at + 1)) => {
                cuts.push(at + 2);
            }
            _ => {}
        }
    }
    match cuts.len() {
        0 | 1 => name,
        many => &name[cuts[many - 2]..],
    }
}

/// Whether a function came with the compiler: its source lies in the tree of Rust's library, or of Go's.
pub fn of_toolchain(frame: &Frame) -> bool {
    let trees = ["/rustc/", "/go/src/", "golang.org/toolchain@", "/lib/rustlib/src/rust/library/"];
    frame.file.as_ref().is_some_and(|file| trees.iter().any(|tree| file.contains(tree)))
}

/// Whether a frame is none of the program's own: the kernel's, a shared library's, or a language's own library's. What
/// waits or runs there was called by somebody, and that is who is asked about.
pub fn is_library(profile: &Profile, frame: &Frame) -> bool {
    const OWN: [&str; 14] = [
        "std::",
        "core::",
        "alloc::",
        "<std::",
        "<core::",
        "<alloc::",
        "runtime.",
        "sync.",
        "syscall.",
        "internal/",
        "0x",
        "_",
        "start_thread",
        "clone3",
    ];
    let module = frame.module.and_then(|at| profile.modules.get(at as usize));
    let shared = module.is_some_and(|module| module.path.contains(".so") || module.path.starts_with('['));
    frame.origin != Origin::User
        || shared
        || of_toolchain(frame)
        || OWN.iter().any(|beginning| frame.name.starts_with(beginning))
}

/// A name as people say it: without type arguments, parameters and the C library's own prefixes.
///
/// `<T as Trait>::call` is `T::call`, `Vec<u8>::push` is `Vec::push`, `__GI___libc_write` is `write`. What it cannot make
/// sense of stays as it is: the whole name is always one look away.
pub fn plain(name: &str) -> String {
    within(name, SUBJECTS_MAX)
}

/// Types within types at the beginning of a name, `<<<T as A>::B as C>::D`: compilers write a few. A name of a stranger that
/// has more stays as it is from there on.
const SUBJECTS_MAX: u32 = 32;

/// As [`plain`], with so many subjects at most.
fn within(name: &str, subjects_left: u32) -> String {
    let Some(inner_left) = subjects_left.checked_sub(1) else { return name.to_owned() };
    let name = libc_call(name);
    let (opened, rest) = subject(name, inner_left);
    let mut said = opened;
    let mut depth = 0_u32;
    let bytes = rest.as_bytes();
    for (at, letter) in rest.char_indices() {
        let is_operator =
            said.ends_with("operator") || said.ends_with("operator<") || said.ends_with("operator-");
        match letter {
            '<' if !is_operator => depth += 1,
            // The arrow of a function type closes nothing.
            '>' if depth > 0 && (at == 0 || bytes[at - 1] != b'-') => depth -= 1,
            _ if depth == 0 => said.push(letter),
            _ => {}
        }
    }
    if depth > 0 {
        return name.to_owned();
    }
    let said = without_parameters(said.replace("::::", "::").trim_end_matches("::")).to_owned();
    if said.is_empty() { name.to_owned() } else { said }
}

/// The call that a wrapper of the C library is about.
fn libc_call(name: &str) -> &str {
    let inner = name.strip_prefix("__GI_").unwrap_or(name);
    let call = inner.strip_prefix("__libc_").unwrap_or(inner);
    let is_call = !call.is_empty() && !call.starts_with("start") && !call.starts_with('_');
    if is_call { call } else { inner }
}

/// Whose function it is, where the name begins with `<T>` or `<T as Trait>`, and what follows.
fn subject(name: &str, subjects_left: u32) -> (String, &str) {
    let whole = (String::new(), name);
    let Some(inside) = name.strip_prefix('<') else { return whole };
    let mut depth = 1_u32;
    for (at, letter) in inside.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if !inside[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let subject = &inside[..at];
            let end = outermost_as(subject).unwrap_or(subject.len());
            let subject = subject[..end]
                .trim_start_matches(['&', '*'])
                .trim_start_matches("mut ")
                .trim_start_matches("dyn ");
            return (within(subject, subjects_left), &inside[at + 1..]);
        }
    }
    whole
}

/// Where ` as ` stands outside of any brackets.
fn outermost_as(subject: &str) -> Option<usize> {
    let mut depth = 0_i32;
    subject.char_indices().find_map(|(at, letter)| {
        depth += i32::from(matches!(letter, '<' | '(' | '[')) - i32::from(matches!(letter, '>' | ')' | ']'));
        (depth == 0 && subject[at..].starts_with(" as ")).then_some(at)
    })
}

/// Without a list of parameters at its end; Go's `main.(*T).f` and `(anonymous namespace)` have none.
fn without_parameters(name: &str) -> &str {
    let bare = name.strip_suffix(" const").unwrap_or(name);
    if !bare.ends_with(')') {
        return name;
    }
    let mut depth = 0_i32;
    let open = bare.char_indices().rev().find(|(_, letter)| {
        depth += i32::from(*letter == ')') - i32::from(*letter == '(');
        depth == 0
    });
    match open {
        Some((at, _)) if at > 0 && !bare[..at].ends_with(['.', ':', ' ']) => &bare[..at],
        _ => name,
    }
}

/// A wait's kind in words.
pub fn of_wait(class: WaitClass) -> &'static str {
    match class {
        WaitClass::RunQueue => "run queue",
        WaitClass::Lock => "lock",
        WaitClass::Disk => "disk",
        WaitClass::Network => "network",
        WaitClass::Sleep => "sleep",
        WaitClass::PageFault => "page fault",
        WaitClass::Other => "other",
    }
}

/// Every kind of wait, in the order in which tables and keys show them.
pub const WAITS: [WaitClass; 7] = [
    WaitClass::RunQueue,
    WaitClass::Lock,
    WaitClass::Disk,
    WaitClass::Network,
    WaitClass::Sleep,
    WaitClass::PageFault,
    WaitClass::Other,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Module;

    #[test]
    fn a_long_path_is_said_by_its_last_two_parts() {
        for (whole, wanted) in [
            ("dyno_engine::worker::Worker::turn", "Worker::turn"),
            ("main", "main"),
            ("std::move", "std::move"),
            ("a::b::Vec<c::d::E>::push", "Vec<c::d::E>::push"),
            ("<a::B as c::D>::call", "<a::B as c::D>::call"),
            ("f(fn() -> x::Y)::g::h", "g::h"),
            ("", ""),
            ("::::", "::"),
            ("é::ü::ö", "ü::ö"),
        ] {
            assert_eq!(short(whole), wanted, "{whole}");
        }
    }

    #[test]
    fn a_name_is_said_without_what_nobody_says() {
        for (whole, wanted) in [
            ("main", "main"),
            ("__GI___libc_write", "write"),
            ("__libc_send", "send"),
            ("__libc_start_main_impl", "__libc_start_main_impl"),
            ("__x64_sys_write", "__x64_sys_write"),
            ("alloc::vec::Vec<u8, A>::push", "alloc::vec::Vec::push"),
            ("core::mem::swap::<alloc::string::String>", "core::mem::swap"),
            ("<a::B<C> as d::E<F>>::call", "a::B::call"),
            ("<&dyn core::ops::Fn() as core::ops::FnOnce<()>>::call_once", "core::ops::Fn::call_once"),
            ("try_fold<Range<usize>, fn() -> X<Y>>", "try_fold"),
            ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back"),
            ("N::Tree::find(unsigned long) const", "N::Tree::find"),
            ("operator<(A const&, B const&)", "operator<"),
            ("std::operator<<(A const&)", "std::operator<<"),
            ("T::operator->(int)", "T::operator->"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("main.(*Server).serve", "main.(*Server).serve"),
            ("a::{closure#0}", "a::{closure#0}"),
            ("<unbalanced", "<unbalanced"),
            ("a < b", "a < b"),
            ("", ""),
            ("<>", "<>"),
            ("é<ü>::ö", "é::ö"),
        ] {
            assert_eq!(plain(whole), wanted, "{whole}");
        }
    }

    /// Fault: `subject` without a limit, which ends the process.
    #[test]
    fn a_name_of_a_hundred_thousand_brackets_ends_nothing() {
        let nested = |levels: usize| format!("{}a::T{}::f", "<".repeat(levels), " as b::C>".repeat(levels));
        assert_eq!(plain(&nested(8)), "a::T::f");
        assert!(plain(&nested(100_000)).len() > 100_000, "it stays as it is");
    }

    #[test]
    fn an_address_without_a_symbol_is_named_with_its_file() {
        let module = Module { path: "/usr/lib/libc.so.6".to_owned(), ..Module::default() };
        let profile = Profile { modules: vec![module], ..Profile::default() };
        let frame = Frame { name: "0x1f".to_owned(), module: Some(0), ..Frame::default() };
        assert_eq!(of_frame(&profile, &frame), "libc.so.6!0x1f");
        assert_eq!(of_frame(&profile, &Frame { address: 31, ..Frame::default() }), "0x1f");
        let named = Frame { name: "read".to_owned(), module: Some(0), ..Frame::default() };
        assert_eq!(of_frame(&profile, &named), "read");
    }
}
