//! The access log's format: what a line says, in which order, read once at the start from the words of the setting.
//!
//! `line` makes lines of it. The fields have the names that nginx gives them, so that a format of nginx can be taken over;
//! a field that is not here is refused by name, never passed over.

use std::fmt;
use std::str::FromStr;

/// Bytes of a line at most, its end included: what a pipe takes wholly or not at all (PIPE_BUF, pipe(7)).
pub(crate) const RECORD_BYTES_MAX: usize = 4_096;

/// What a value from a client is sure to get of a line, where the line has room for that.
const VALUE_BYTES: usize = 256;

/// A format that leaves its values less than this is refused.
const VALUE_BYTES_LEAST: usize = 32;

/// The member of an object of JSON in which a value was cut.
pub(super) const CUT_MEMBER: &[u8] = b",\"truncated\":true";

/// The text of a format at most; a longer one leaves no room for what it says.
const FORMAT_BYTES_MAX: usize = 2_048;

const COMMON: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent"#;
const COMBINED: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;
const JSON: &str = "time_iso8601,remote_addr,request_method,request_uri,server_protocol,status,body_bytes_sent,http_host,http_referer,http_user_agent";

/// What the name of a request's header field begins with.
const HEADER: &str = "http_";

/// What a line tells at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    RemoteAddr,
    RemoteUser,
    TimeLocal,
    TimeIso8601,
    Request,
    RequestMethod,
    RequestUri,
    Uri,
    Args,
    ServerProtocol,
    Scheme,
    Host,
    Status,
    BodyBytesSent,
    Pid,
    /// A header field of the request, by its place in [`LogFormat::headers`].
    Header(usize),
}

/// The fields by their names; those of the request's header come besides, as `http_` and their name.
const FIELDS: [(&str, Field); 16] = [
    ("remote_addr", Field::RemoteAddr),
    ("remote_user", Field::RemoteUser),
    ("time_local", Field::TimeLocal),
    ("time_iso8601", Field::TimeIso8601),
    ("request", Field::Request),
    ("request_method", Field::RequestMethod),
    ("request_uri", Field::RequestUri),
    ("uri", Field::Uri),
    ("args", Field::Args),
    ("query_string", Field::Args),
    ("server_protocol", Field::ServerProtocol),
    ("scheme", Field::Scheme),
    ("host", Field::Host),
    ("status", Field::Status),
    ("body_bytes_sent", Field::BodyBytesSent),
    ("pid", Field::Pid),
];

/// How values stand in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As text: visible ASCII, all else as `\xHH`, `-` where there is none.
    Text,
    /// As values of JSON.
    Json,
}

/// A field, and the text that stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) before: Box<[u8]>,
    pub(crate) field: Field,
    /// Bytes of a line that are kept for what comes after this field.
    pub(crate) reserve: usize,
}

/// The format of the access log.
///
/// `common` (the default) and `combined` are what the tools of three decades read; `json` is an object in each line;
/// `json:FIELD,FIELD` are chosen fields; and a text with `$fields` is what nginx calls a log format.
///
/// ```
/// # use dyno_engine::LogFormat;
/// let format: LogFormat = "$remote_addr \"$request\" $status \"$http_referer\"".parse()?;
/// assert!("$remote_adr".parse::<LogFormat>().is_err());
/// # Ok::<(), dyno_engine::LogFormatError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    text: String,
    pub(crate) style: Style,
    pub(crate) pieces: Vec<Piece>,
    /// What stands after the last field, without the end of the line.
    pub(crate) after: Box<[u8]>,
    /// The names of the header fields that are told, as they are compared: with dashes.
    pub(crate) headers: Vec<Box<[u8]>>,
}

/// Why a text is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFormatError {
    /// It is none of the words, and has no field.
    #[error("it is common, combined, json, json:FIELD,FIELD or a text with $fields")]
    Unknown,
    /// A field that there is not.
    #[error(
        "character {at}: there is no field \"{name}\"; there are {known}, and http_NAME for a header field of the request"
    )]
    Field {
        /// Where its name begins, counted in characters from 1.
        at: usize,
        /// The name.
        name: String,
        /// The names of all fields.
        known: String,
    },
    /// A `$` without a name behind it, or `${` without its end.
    #[error("character {at}: a name follows $, as in $status or ${{status}}; $$ stands for $ itself")]
    Name {
        /// Where the dollar stands, counted in characters from 1.
        at: usize,
    },
    /// A character that would break lines.
    #[error("character {at}: a line has no control characters but the tab")]
    Control {
        /// Where, counted in characters from 1.
        at: usize,
    },
    /// It says too much for a line.
    #[error("it leaves no room for what it tells: a line has {RECORD_BYTES_MAX} bytes at most")]
    Long,
}

impl Default for LogFormat {
    fn default() -> LogFormat {
        "common".parse().expect("a word that a test of this module reads")
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl FromStr for LogFormat {
    type Err = LogFormatError;

    fn from_str(text: &str) -> Result<LogFormat, LogFormatError> {
        if text.len() > FORMAT_BYTES_MAX {
            return Err(LogFormatError::Long);
        }
        let making = match text {
            "common" => Making::of_text(COMMON)?,
            "combined" => Making::of_text(COMBINED)?,
            "json" => Making::of_names(JSON, 0)?,
            text => match text.strip_prefix("json:") {
                Some(names) => Making::of_names(names, "json:".len())?,
                None if text.contains('$') => Making::of_text(text)?,
                None => return Err(LogFormatError::Unknown),
            },
        };
        making.end(text)
    }
}

/// A format in the making.
struct Making {
    style: Style,
    pieces: Vec<Piece>,
    /// What stands before the next field.
    before: Vec<u8>,
    headers: Vec<Box<[u8]>>,
}

impl Making {
    fn new(style: Style) -> Making {
        Making { style, pieces: Vec::new(), before: Vec::new(), headers: Vec::new() }
    }

    /// Of a text with `$field` and `${field}` in it.
    fn of_text(text: &str) -> Result<Making, LogFormatError> {
        let mut making = Making::new(Style::Text);
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let at = place(text, rest);
            if first == '$' {
                rest = making.dollar(&rest[1..], at)?;
                continue;
            }
            if first.is_control() && first != '\t' {
                return Err(LogFormatError::Control { at });
            }
            making.before.extend_from_slice(first.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[first.len_utf8()..];
        }
        Ok(making)
    }

    /// What follows a dollar at the character `at`; what is left behind it.
    fn dollar<'t>(&mut self, rest: &'t str, at: usize) -> Result<&'t str, LogFormatError> {
        if let Some(rest) = rest.strip_prefix('$') {
            self.before.push(b'$');
            return Ok(rest);
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let bare = rest.strip_prefix('{').unwrap_or(rest);
        let length = bare.bytes().position(|byte| !is_name(byte)).unwrap_or(bare.len());
        let (name, after) = bare.split_at(length);
        let (begin, after) = match bare.len() < rest.len() {
            true => (at + 2, after.strip_prefix('}').ok_or(LogFormatError::Name { at })?),
            false => (at + 1, after),
        };
        if name.is_empty() {
            return Err(LogFormatError::Name { at });
        }
        self.field(name, begin)?;
        Ok(after)
    }

    /// Of names with commas between, each of which becomes a member of an object.
    fn of_names(names: &str, before: usize) -> Result<Making, LogFormatError> {
        let mut making = Making::new(Style::Json);
        let mut at = before + 1;
        for word in names.split(',') {
            let name = word.trim();
            let begin = at + word.chars().take_while(|c| c.is_whitespace()).count();
            let open = if making.pieces.is_empty() { "{" } else { "," };
            making.before = format!("{open}\"{name}\":").into_bytes();
            making.field(name, begin)?;
            at += word.chars().count() + 1;
        }
        making.before.push(b'}');
        Ok(making)
    }

    fn field(&mut self, name: &str, at: usize) -> Result<(), LogFormatError> {
        let known = FIELDS.iter().find(|(known, _)| *known == name).map(|(_, field)| *field);
        let field = match (known, name.strip_prefix(HEADER)) {
            (Some(field), _) => field,
            (None, Some(header)) if is_header(header) => self.header(header),
            (None, _) => {
                return Err(LogFormatError::Field { at, name: name.to_owned(), known: known_fields() });
            }
        };
        let before = std::mem::take(&mut self.before).into_boxed_slice();
        self.pieces.push(Piece { before, field, reserve: 0 });
        Ok(())
    }

    /// The place of a header field among those that are told.
    fn header(&mut self, name: &str) -> Field {
        let name = name.to_ascii_lowercase().replace('_', "-").into_bytes().into_boxed_slice();
        let known = self.headers.iter().position(|header| *header == name);
        Field::Header(known.unwrap_or_else(|| {
            self.headers.push(name);
            self.headers.len() - 1
        }))
    }

    /// Shares out the room of a line.
    fn end(mut self, text: &str) -> Result<LogFormat, LogFormatError> {
        let after = self.before.into_boxed_slice();
        let fixed: usize =
            self.pieces.iter().map(|piece| piece.before.len() + self.style.fixed_bytes(piece.field)).sum();
        let fixed = fixed + after.len() + self.style.end_bytes();
        let values = self.pieces.iter().filter(|piece| is_value(piece.field)).count();
        let left = RECORD_BYTES_MAX.checked_sub(fixed).ok_or(LogFormatError::Long)?;
        let least = (left / values.max(1)).min(VALUE_BYTES);
        if least < VALUE_BYTES_LEAST {
            return Err(LogFormatError::Long);
        }
        let mut reserve = after.len() + self.style.end_bytes();
        for piece in self.pieces.iter_mut().rev() {
            piece.reserve = reserve;
            let value = if is_value(piece.field) { least } else { 0 };
            reserve += piece.before.len() + self.style.fixed_bytes(piece.field) + value;
        }
        debug_assert!(reserve <= RECORD_BYTES_MAX, "every value gets its least");
        let Making { style, pieces, headers, .. } = self;
        Ok(LogFormat { text: text.to_owned(), style, pieces, after, headers })
    }
}

impl Style {
    /// Bytes that a field takes besides its value, if it has one that a client chooses: at most.
    fn fixed_bytes(self, field: Field) -> usize {
        let quotes = if self == Style::Json { 2 } else { 0 };
        quotes
            + match field {
                // The longest addresses have 45 bytes: those of IPv4 within IPv6.
                Field::RemoteAddr => 45,
                Field::TimeLocal => 26,
                Field::TimeIso8601 => 25,
                Field::ServerProtocol => 8,
                // 32 of a method, two blanks, the version.
                Field::Request => 42,
                Field::RequestMethod => 32,
                Field::BodyBytesSent => 20,
                Field::Pid => 10,
                Field::Status => 5,
                Field::RemoteUser | Field::Scheme => 4,
                Field::RequestUri | Field::Uri | Field::Args | Field::Host | Field::Header(_) => 4,
            }
    }

    /// Bytes behind the last field and its text: the end of the line, and where JSON says that it was cut.
    fn end_bytes(self) -> usize {
        match self {
            Style::Text => 1,
            Style::Json => 1 + CUT_MEMBER.len(),
        }
    }
}

/// Whether a client chooses how long it is.
fn is_value(field: Field) -> bool {
    matches!(
        field,
        Field::Request | Field::RequestUri | Field::Uri | Field::Args | Field::Host | Field::Header(_)
    )
}

fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn known_fields() -> String {
    FIELDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The place of `rest` in the text that it is the end of, in characters from 1.
fn place(text: &str, rest: &str) -> usize {
    text[..text.len() - rest.len()].chars().count() + 1
}

impl LogFormat {
    /// The names of the fields, without those of header fields.
    pub fn fields() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn fails(text: &str) -> String {
        text.parse::<LogFormat>().unwrap_err().to_string()
    }

    #[test]
    fn every_word_and_every_field_is_a_format() {
        for word in ["common", "combined", "json"] {
            assert_eq!(word.parse::<LogFormat>().unwrap().to_string(), word);
        }
        for name in LogFormat::fields() {
            for text in [format!("${name}"), format!("a ${{{name}}}b"), format!("json:{name}")] {
                assert_eq!(text.parse::<LogFormat>().unwrap().pieces.len(), 1, "{text}");
            }
        }
        assert_eq!(LogFormat::default().to_string(), "common");
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let first = "character 2: there is no field \"remote_adr\"; there are remote_addr, ";
        assert!(fails("$remote_adr").starts_with(first), "{}", fails("$remote_adr"));
        assert!(fails("ü $status ${nope}").starts_with("character 13: there is no field \"nope\""));
        assert!(fails("json:status, http_").starts_with("character 14: there is no field \"http_\""));
        for (text, at) in [("$status $", 9), ("${status", 1), ("a $-", 3), ("${}", 1)] {
            assert!(
                fails(text).starts_with(&format!("character {at}: a name follows $")),
                "{text}: {}",
                fails(text)
            );
        }
        assert!(fails("$status\n").starts_with("character 8: a line has no control"));
        for text in ["", "Common", "combined json", "status"] {
            assert!(fails(text).starts_with("it is common, combined, json"), "{text}");
        }
        assert!(fails(&"$http_x ".repeat(200)).starts_with("it leaves no room"));
        assert!(fails(&format!("$status{}", "x".repeat(5_000))).starts_with("it leaves no room"));
    }

    #[test]
    fn a_header_field_is_told_of_once_however_often_it_is_named() {
        let format: LogFormat = "$http_x_forwarded_for $http_Referer ${http_referer}".parse().unwrap();
        let names: Vec<&[u8]> = format.headers.iter().map(|name| &**name).collect();
        assert_eq!(names, [&b"x-forwarded-for"[..], b"referer"]);
        let fields: Vec<Field> = format.pieces.iter().map(|piece| piece.field).collect();
        assert_eq!(fields, [Field::Header(0), Field::Header(1), Field::Header(1)]);
    }

    #[test]
    fn dollars_tabs_and_other_letters_stand_for_themselves() {
        let format: LogFormat = "$$1\tü${status}€".parse().unwrap();
        assert_eq!(&*format.pieces[0].before, "$1\tü".as_bytes());
        assert_eq!(&*format.after, "€".as_bytes());
    }
}
