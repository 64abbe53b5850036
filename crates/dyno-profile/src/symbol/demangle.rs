//! Names as their languages write them. Called for symbols and for functions of debug information.
//!
//! Names come from strangers, and a mangled one may stand for far more than it holds: it names its parts again by their
//! numbers, and each of forty parts can be the one before it twice. What grows beyond a limit keeps its mangled name.

use std::fmt::{self, Write};

use gimli::{DwLang, constants as dw};

/// A name that is longer names nothing: the longest templates of C++ have some ten thousand letters.
pub(super) const NAME_BYTES_MAX: usize = 64 << 10;

/// A symbol's name as its language writes it; what is no mangled name stays.
pub(crate) fn demangled(name: &str) -> String {
    // `name@@GLIBC_2.2.5` in some tables: which version of a library made it is no part of a function's name.
    let plain = name.split_once("@@").map_or(name, |(plain, _)| plain);
    rust(plain).or_else(|| cpp(plain)).unwrap_or_else(|| plain.to_owned())
}

/// A name of debug information, whose language is known.
pub(super) fn of_language(name: &str, language: Option<DwLang>) -> String {
    let found = match language {
        Some(dw::DW_LANG_Rust) => rust(name),
        Some(
            dw::DW_LANG_C_plus_plus
            | dw::DW_LANG_C_plus_plus_03
            | dw::DW_LANG_C_plus_plus_11
            | dw::DW_LANG_C_plus_plus_14
            | dw::DW_LANG_C_plus_plus_17
            | dw::DW_LANG_C_plus_plus_20,
        ) => cpp(name),
        Some(_) => None,
        None => rust(name).or_else(|| cpp(name)),
    };
    found.unwrap_or_else(|| name.to_owned())
}

/// Without the hash at its end.
fn rust(name: &str) -> Option<String> {
    let parsed = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Limited(String::new());
    write!(out, "{parsed:#}").ok()?;
    Some(out.0)
}

/// The parser also takes bare types, which one letter may stand for: a function of C called `w` is no `wchar_t`.
fn cpp(name: &str) -> Option<String> {
    let is_mangled = name.strip_prefix('_').is_some_and(|rest| {
        let rest = rest.trim_start_matches('_');
        rest.starts_with('Z') || rest.starts_with("GLOBAL_")
    });
    if !is_mangled {
        return None;
    }
    let parsed = cpp_demangle::BorrowedSymbol::new(name.as_bytes()).ok()?;
    let mut out = Limited(String::new());
    parsed.structured_demangle(&mut out, &cpp_demangle::DemangleOptions::default()).ok()?;
    Some(out.0)
}

/// Answers with an error when the name grows too long: the writer then stops.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > NAME_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_and_cpp_are_written_as_in_their_source() {
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangled("_ZN3app5serveEi"), "app::serve(int)");
        assert_eq!(demangled("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangled("main.(*Server).serve"), "main.(*Server).serve");
        assert_eq!(demangled("memcpy@@GLIBC_2.14"), "memcpy");
    }

    /// Planted fault: whatever the parser of C++ takes is a mangled name.
    #[test]
    fn short_names_of_c_are_no_types_of_cpp() {
        for name in ["w", "i", "f", "Pc", "PKc", "St", "d"] {
            assert_eq!(demangled(name), name);
            assert_eq!(of_language(name, Some(dw::DW_LANG_C_plus_plus)), name);
        }
        assert_eq!(demangled("__ZN3app5serveEi"), "app::serve(int)");
    }

    #[test]
    fn a_language_that_is_told_is_believed() {
        assert_eq!(of_language("_ZN3app5serveEi", Some(dw::DW_LANG_C_plus_plus_14)), "app::serve(int)");
        assert_eq!(of_language("_ZN3app5serveEi", Some(dw::DW_LANG_C99)), "_ZN3app5serveEi");
        assert_eq!(of_language("_ZN3app5serveEi", Some(dw::DW_LANG_Rust)), "_ZN3app5serveEi");
        assert_eq!(of_language("_ZN3app5serveEi", None), "app::serve(int)");
    }

    /// A pair of a pair of a pair: each names the one before it twice, by its number.
    #[test]
    fn a_name_that_stands_for_gigabytes_keeps_its_own() {
        let doubled = |levels: usize| {
            let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
            let twice = (1..=levels).map(|level| digits[level] as char).map(|n| format!("S0_IS{n}_S{n}_E"));
            format!("_Z1f1a1pIS_S_E{}", twice.collect::<String>())
        };
        assert!(demangled(&doubled(3)).starts_with("f(a, p<a, a>, p<p<a, a>, p<a, a> >"));
        assert_eq!(demangled(&doubled(30)), doubled(30));
    }
}
