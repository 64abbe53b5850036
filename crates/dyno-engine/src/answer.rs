//! An answer made away from the worker: owned from its status to its last byte, so that it can cross threads.
//!
//! A `Responder` carries it to the worker, which makes a reply of it as of any other.

use crate::field::{OWN_BYTES_MAX, is_settable, is_value};
use crate::file::FilePart;
use crate::shared::Shared;
use dyno_proto::json::{self, Encode};

/// A whole reply as a value that any thread can make.
///
/// ```
/// # use dyno_engine::*;
///
/// let answer = Answer::text("made elsewhere\n").status(201).header("Location", "/made/1");
/// # let _ = answer;
/// ```
#[derive(Debug)]
pub struct Answer {
    pub(crate) status: u16,
    /// Lines of the head that the maker added, each with its line end.
    pub(crate) fields: Vec<u8>,
    pub(crate) content: AnswerContent,
    pub(crate) is_refused: bool,
}

/// What stands in an answer.
#[derive(Debug)]
pub(crate) enum AnswerContent {
    Empty,
    Bytes { content_type: String, bytes: Shared },
    File { content_type: String, file: FilePart },
}

impl Answer {
    /// No content: `Content-Length: 0`, or no such header where the status forbids one.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let answer = Answer::empty().status(204);
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn empty() -> Answer {
        Answer { status: 200, fields: Vec::new(), content: AnswerContent::Empty, is_refused: false }
    }

    /// Any bytes. A content type that could not stand in a header turns the answer into a 500.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let answer = Answer::bytes("image/gif", b"GIF89a".to_vec());
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn bytes(content_type: &str, bytes: impl Into<Shared>) -> Answer {
        let content = AnswerContent::Bytes { content_type: content_type.to_owned(), bytes: bytes.into() };
        Answer::with(content, content_type)
    }

    /// A text (`text/plain`).
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let answer = Answer::text(format!("{} bytes\n", 5));
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn text(text: impl Into<String>) -> Answer {
        Answer::bytes("text/plain", text.into().into_bytes())
    }

    /// A value as JSON.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let answer = Answer::json(&vec![1, 2, 3]);
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn json(value: &impl Encode) -> Answer {
        Answer::bytes("application/json", json::to_vec(value))
    }

    /// A part of a file, sent without being read into memory.
    ///
    /// ```no_run
    /// # use dyno_engine::*;
    ///
    /// let part = FilePart::whole(std::fs::File::open("Cargo.toml")?)?;
    /// let answer = Answer::file("text/plain", part);
    /// # let _ = answer;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn file(content_type: &str, file: FilePart) -> Answer {
        Answer::with(AnswerContent::File { content_type: content_type.to_owned(), file }, content_type)
    }

    /// Sets the status; 200 unless told otherwise. A number outside 200..=599 turns the answer into a 500.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let answer = Answer::text("not here\n").status(404);
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn status(mut self, status: u16) -> Answer {
        self.is_refused |= !(200..=599).contains(&status);
        self.status = status;
        self
    }

    /// Adds a header, under the rules of [`Reply::header`](crate::Reply::header).
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let answer = Answer::empty().header("Cache-Control", "no-store");
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Answer {
        let fits = self.fields.len() + name.len() + value.len() <= OWN_BYTES_MAX;
        self.is_refused |= !fits || !is_settable(name) || !is_value(value);
        if !self.is_refused {
            for piece in [name, ": ", value, "\r\n"] {
                self.fields.extend_from_slice(piece.as_bytes());
            }
        }
        self
    }

    fn with(content: AnswerContent, content_type: &str) -> Answer {
        let is_refused = content_type.is_empty() || !is_value(content_type);
        Answer { content, is_refused, ..Answer::empty() }
    }
}
