//! What a frame is called in pictures and exports, and how a long name is said in short.

use dyno_record::profile::{Frame, Profile, WaitClass};

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
    use dyno_record::profile::Module;

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
