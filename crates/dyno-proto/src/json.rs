//! JSON out of plain data (RFC 8259): the engine's handlers write replies with it, straight into a buffer.
//!
//! A value first says how long it will be, then writes itself: so Content-Length stands before the body
//! and nothing is copied twice. Reading JSON is not done here, and floating-point numbers are not written.

mod plain;

use crate::http1::encode;
use plain::plain_end;

/// A value that can be written as JSON.
pub trait Encode {
    /// Exactly how many bytes [`json_write`](Self::json_write) appends.
    fn json_len(&self) -> usize;
    /// Appends the value.
    fn json_write(&self, out: &mut Vec<u8>);
}

/// Implements [`Encode`] for a struct: pairs of a key and a field, in the order of the output.
///
/// Keys are literals that need no escape, which is checked when the program is compiled.
///
/// ```
/// use dyno_proto::json::{self, Encode};
///
/// struct Message<'a> { message: &'a str, sizes: Vec<u64> }
/// dyno_proto::json_object!(Message<'_> { "message": message, "sizes": sizes });
///
/// let message = Message { message: "Hello, World!", sizes: vec![1, 2] };
/// assert_eq!(json::to_vec(&message), br#"{"message":"Hello, World!","sizes":[1,2]}"#);
/// assert_eq!(message.json_len(), 41);
/// ```
#[macro_export]
macro_rules! json_object {
    ($object:ty { $first_key:literal: $first:ident $(, $key:literal: $field:ident)* $(,)? }) => {
        const _: () = {
            assert!($crate::json::is_plain($first_key), "a key must not need escapes");
            $(assert!($crate::json::is_plain($key), "a key must not need escapes");)*
        };
        impl $crate::json::Encode for $object {
            #[inline]
            fn json_len(&self) -> usize {
                concat!("{\"", $first_key, "\":").len()
                    + $crate::json::Encode::json_len(&self.$first)
                    $(+ concat!(",\"", $key, "\":").len() + $crate::json::Encode::json_len(&self.$field))*
                    + 1
            }
            #[inline(always)] // It has few callers, and texts that the compiler knows cost nothing to check then.
            fn json_write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(concat!("{\"", $first_key, "\":").as_bytes());
                $crate::json::Encode::json_write(&self.$first, out);
                $(
                    out.extend_from_slice(concat!(",\"", $key, "\":").as_bytes());
                    $crate::json::Encode::json_write(&self.$field, out);
                )*
                out.push(b'}');
            }
        }
    };
}

/// The value as bytes of its own.
pub fn to_vec(value: &(impl Encode + ?Sized)) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.json_len());
    value.json_write(&mut out);
    out
}

/// Whether a text can stand between quotation marks as it is.
pub const fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] < 0x20 || bytes[at] == b'"' || bytes[at] == b'\\' {
            return false;
        }
        at += 1;
    }
    true
}

impl Encode for str {
    #[inline]
    fn json_len(&self) -> usize {
        let (bytes, mut length, mut at) = (self.as_bytes(), self.len() + 2, 0);
        loop {
            at = plain_end(bytes, at);
            let Some(&byte) = bytes.get(at) else { return length };
            length += escape(byte).as_bytes().len() - 1;
            at += 1;
        }
    }

    #[inline]
    fn json_write(&self, out: &mut Vec<u8>) {
        let bytes = self.as_bytes();
        if plain_end(bytes, 0) < bytes.len() {
            return write_escaped(bytes, out);
        }
        out.reserve(bytes.len() + 2);
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
    }
}

/// Writes a text that has bytes which need an escape.
#[inline(never)]
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut start = 0;
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    loop {
        let end = plain_end(bytes, start);
        out.extend_from_slice(&bytes[start..end]);
        let Some(&byte) = bytes.get(end) else { break };
        out.extend_from_slice(escape(byte).as_bytes());
        start = end + 1;
    }
    out.push(b'"');
}

/// `\n` or `\u001f`.
enum Escape {
    Short([u8; 2]),
    Long([u8; 6]),
}

impl Escape {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(bytes) => bytes,
            Self::Long(bytes) => bytes,
        }
    }
}

/// The short forms of RFC 8259 §7 where there are any. The slash needs none.
fn escape(byte: u8) -> Escape {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => Escape::Short([b'\\', byte]),
        0x08 => Escape::Short(*b"\\b"),
        b'\t' => Escape::Short(*b"\\t"),
        b'\n' => Escape::Short(*b"\\n"),
        0x0c => Escape::Short(*b"\\f"),
        b'\r' => Escape::Short(*b"\\r"),
        _ => Escape::Long([b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), DIGITS[usize::from(byte & 15)]]),
    }
}

impl Encode for bool {
    #[inline]
    fn json_len(&self) -> usize {
        if *self { 4 } else { 5 }
    }

    #[inline]
    fn json_write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

macro_rules! unsigned {
    ($($number:ty)*) => {$(
        #[allow(clippy::cast_lossless, reason = "usize and isize have no lossless conversion to write")]
        impl Encode for $number {
            #[inline]
            fn json_len(&self) -> usize {
                encode::decimal_len(*self as u64)
            }

            #[inline]
            fn json_write(&self, out: &mut Vec<u8>) {
                encode::decimal(out, *self as u64);
            }
        }
    )*};
}

macro_rules! signed {
    ($($number:ty)*) => {$(
        #[allow(clippy::cast_lossless, reason = "usize and isize have no lossless conversion to write")]
        impl Encode for $number {
            #[inline]
            fn json_len(&self) -> usize {
                usize::from(*self < 0) + encode::decimal_len(self.unsigned_abs() as u64)
            }

            #[inline]
            fn json_write(&self, out: &mut Vec<u8>) {
                if *self < 0 {
                    out.push(b'-');
                }
                encode::decimal(out, self.unsigned_abs() as u64);
            }
        }
    )*};
}

unsigned!(u8 u16 u32 u64 usize);
signed!(i8 i16 i32 i64 isize);

impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn json_len(&self) -> usize {
        self.as_ref().map_or(4, T::json_len)
    }

    #[inline]
    fn json_write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.json_write(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl<T: Encode> Encode for [T] {
    fn json_len(&self) -> usize {
        // Brackets, and a comma between each two elements.
        2 + self.len().saturating_sub(1) + self.iter().map(T::json_len).sum::<usize>()
    }

    fn json_write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, element) in self.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            element.json_write(out);
        }
        out.push(b']');
    }
}

impl<T: Encode, const N: usize> Encode for [T; N] {
    fn json_len(&self) -> usize {
        self.as_slice().json_len()
    }

    fn json_write(&self, out: &mut Vec<u8>) {
        self.as_slice().json_write(out);
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn json_len(&self) -> usize {
        self.as_slice().json_len()
    }

    fn json_write(&self, out: &mut Vec<u8>) {
        self.as_slice().json_write(out);
    }
}

impl Encode for String {
    #[inline]
    fn json_len(&self) -> usize {
        self.as_str().json_len()
    }

    #[inline]
    fn json_write(&self, out: &mut Vec<u8>) {
        self.as_str().json_write(out);
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn json_len(&self) -> usize {
        T::json_len(self)
    }

    #[inline]
    fn json_write(&self, out: &mut Vec<u8>) {
        T::json_write(self, out);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(value: &(impl Encode + ?Sized)) -> String {
        let bytes = to_vec(value);
        assert_eq!(bytes.len(), value.json_len(), "the length that was announced");
        String::from_utf8(bytes).unwrap()
    }

    /// Reads a JSON string by the grammar of RFC 8259 §7, apart from everything that writes one.
    fn decoded(json: &str) -> String {
        let inner = json.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
        let (mut text, mut chars) = (String::new(), inner.chars());
        while let Some(char) = chars.next() {
            assert!(char >= ' ' && char != '"', "{char:?} stands bare in {json}");
            match (char, if char == '\\' { chars.next() } else { None }) {
                ('\\', Some(escape @ ('"' | '\\' | '/'))) => text.push(escape),
                ('\\', Some('b')) => text.push('\u{8}'),
                ('\\', Some('f')) => text.push('\u{c}'),
                ('\\', Some('n')) => text.push('\n'),
                ('\\', Some('r')) => text.push('\r'),
                ('\\', Some('t')) => text.push('\t'),
                ('\\', Some('u')) => {
                    let digits: String = chars.by_ref().take(4).collect();
                    assert_eq!(digits.len(), 4, "{json}");
                    text.push(char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap());
                }
                ('\\', other) => panic!("{other:?} is no escape in {json}"),
                (plain, _) => text.push(plain),
            }
        }
        text
    }

    #[test]
    fn every_character_comes_back_from_every_place() {
        for char in
            (0..0x100).chain([0x2028, 0x2029, 0xfffd, 0xffff, 0x1_f600, 0x10_ffff]).filter_map(char::from_u32)
        {
            for place in 0..20 {
                let string = format!("{}{char}{}", "x".repeat(place), "y".repeat(19 - place));
                assert_eq!(decoded(&text(string.as_str())), string);
            }
        }
    }

    #[test]
    fn every_character_comes_back_from_texts_of_every_length() {
        for char in (0..0x100).filter_map(char::from_u32) {
            for length in 1..40 {
                for place in [0, length / 2, length - 1] {
                    let mut chars = vec!['x'; length];
                    chars[place] = char;
                    let string: String = chars.into_iter().collect();
                    assert_eq!(decoded(&text(&string)), string);
                }
            }
        }
    }

    #[test]
    fn any_mixture_of_characters_comes_back() {
        const CHARS: [char; 12] =
            ['a', '"', '\\', '\n', '\0', '\u{1f}', '\u{7f}', '/', 'é', '\u{2028}', '😀', ' '];
        let mut state = 0x5eed_u64;
        println!("seed {state:#x}");
        for _ in 0..5_000 {
            // Knuth's MMIX constants: enough chance to mix twelve characters.
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize
            };
            let length = next() % 40;
            let string: String = (0..length).map(|_| CHARS[next() % CHARS.len()]).collect();
            assert_eq!(decoded(&text(&string)), string);
        }
    }

    #[test]
    fn escapes_are_the_short_ones_where_there_are_any() {
        assert_eq!(
            text("\"\\/\u{8}\u{c}\n\r\t\0\u{1f}\u{7f}"),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\""
        );
        assert_eq!(text(""), "\"\"");
    }

    #[test]
    fn numbers_and_words_are_written_as_formatting_writes_them() {
        for number in [0, 1, -1, 9, 10, -10, i64::MAX, i64::MIN] {
            assert_eq!(text(&number), number.to_string());
        }
        assert_eq!((text(&u64::MAX), text(&i8::MIN)), (u64::MAX.to_string(), "-128".to_string()));
        assert_eq!((text(&0usize), text(&-5isize), text(&255u8)), ("0".into(), "-5".into(), "255".into()));
        assert_eq!((text(&true), text(&false)), ("true".into(), "false".into()));
        assert_eq!((text(&Some(1u8)), text(&None::<u8>)), ("1".into(), "null".into()));
    }

    #[test]
    fn sequences_have_commas_between_their_elements() {
        assert_eq!(text(&[1u8; 0]), "[]");
        assert_eq!(text(&[1u8]), "[1]");
        assert_eq!(text(&vec![Some("a"), None]), "[\"a\",null]");
        assert_eq!(text(&[vec![true], vec![]][..]), "[[true],[]]");
    }

    struct Inner<'a> {
        name: &'a str,
    }
    struct Outer<'a> {
        id: u32,
        inner: Inner<'a>,
        tags: Vec<String>,
    }
    crate::json_object!(Inner<'_> { "name": name });
    crate::json_object!(Outer<'_> { "id": id, "inner value": inner, "tags": tags, });

    #[test]
    fn objects_hold_their_fields_in_order() {
        let outer = Outer { id: 7, inner: Inner { name: "a\"b" }, tags: vec!["x".into(), "y".into()] };
        assert_eq!(text(&outer), r#"{"id":7,"inner value":{"name":"a\"b"},"tags":["x","y"]}"#);
    }

    #[test]
    fn a_key_that_needs_escapes_is_not_plain() {
        assert!(is_plain("a b é") && !is_plain("a\"b") && !is_plain("a\\b") && !is_plain("a\nb"));
    }
}
