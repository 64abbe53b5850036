//! Requests that two servers could read differently, and valid ones that look odd: bytes in, and what must become of them.
//!
//! One table, from the grammar of RFC 9110, RFC 9112 and RFC 3986 and from the classes of attack that are known. Two runners
//! read it: `core` cuts each row at every place before the engine's core, `main` sends each over a socket. Nothing here knows
//! how the engine works. What is not refused and not served is told apart: a request that is not whole is waited for, one that
//! the engine answers by itself is declined.

#[path = "table/chunks.rs"]
mod chunks;
#[path = "table/fields.rs"]
mod fields;
#[path = "table/framing.rs"]
mod framing;
#[path = "table/lines.rs"]
mod lines;
#[path = "table/valid.rs"]
mod valid;

/// Limits of the server that the rows are for: small, so that a row that reaches one is short.
pub(crate) const LINE_BYTES_MAX: usize = 200;
pub(crate) const HEAD_BYTES_MAX: usize = 700;
pub(crate) const HEADERS_MAX: usize = 12;
pub(crate) const BODY_BYTES_MAX: usize = 60;

/// What must become of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// One reply with this status, then the end: no handler is called, and nothing that follows is executed.
    Refused(u16),
    /// One call, with this body; what follows is executed.
    Served(&'static str),
    /// One call, with this body; then the end.
    ServedLast(&'static str),
    /// The engine's own answer with this status; what follows is executed.
    Declined(u16),
    /// The engine's own answer with this status; then the end.
    DeclinedLast(u16),
    /// It is not whole: no answer and no call while it is waited for, and none when the client has gone.
    Awaited,
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) class: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) want: Want,
}

/// All of them.
pub(crate) fn rows() -> Vec<Row> {
    let mut table = Table { class: "", rows: Vec::new() };
    lines::add(&mut table);
    fields::add(&mut table);
    framing::add(&mut table);
    chunks::add(&mut table);
    valid::add(&mut table);
    table.rows
}

/// The table while it is written down.
struct Table {
    class: &'static str,
    rows: Vec<Row>,
}

impl Table {
    /// The rows that follow are of this class.
    fn class(&mut self, class: &'static str) -> &mut Table {
        self.class = class;
        self
    }

    fn row(&mut self, want: Want, bytes: impl Into<Vec<u8>>) -> &mut Table {
        self.rows.push(Row { class: self.class, bytes: bytes.into(), want });
        self
    }

    /// Whole inputs.
    fn raw(&mut self, want: Want, inputs: &[&[u8]]) -> &mut Table {
        for input in inputs {
            self.row(want, *input);
        }
        self
    }

    /// Request lines, each with the rest of a request.
    fn lines(&mut self, want: Want, lines: &[&str]) -> &mut Table {
        for line in lines {
            self.row(want, format!("{line}\r\nHost: a\r\n\r\n"));
        }
        self
    }

    /// Field lines of a POST besides Host; `behind` follows the head.
    fn fields(&mut self, want: Want, behind: &str, fields: &[&str]) -> &mut Table {
        for field in fields {
            self.row(want, format!("POST /p HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n{behind}"));
        }
        self
    }

    /// Field lines of a GET, Host among them.
    fn heads(&mut self, want: Want, fields: &[&str]) -> &mut Table {
        for field in fields {
            self.row(want, format!("GET /h HTTP/1.1\r\n{field}\r\n\r\n"));
        }
        self
    }

    /// The same of HTTP/1.0.
    fn old(&mut self, want: Want, behind: &str, fields: &[&str]) -> &mut Table {
        for field in fields {
            self.row(want, format!("POST /o HTTP/1.0\r\n{field}\r\n\r\n{behind}"));
        }
        self
    }

    /// Chunked bodies.
    fn bodies(&mut self, want: Want, bodies: &[&str]) -> &mut Table {
        for body in bodies {
            self.row(
                want,
                format!("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}"),
            );
        }
        self
    }
}

/// Each byte that is none of `but`, between `before` and `after`.
fn with_each_byte(before: &[u8], after: &[u8], but: &[u8]) -> Vec<Vec<u8>> {
    let others = (0..=u8::MAX).filter(|byte| !but.contains(byte));
    others.map(|byte| [before, &[byte], after].concat()).collect()
}
