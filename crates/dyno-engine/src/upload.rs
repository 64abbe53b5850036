//! Request bodies that are taken piece by piece, by routes that ask for it. Other routes get whole, sane bodies.

use crate::reply::Reply;
use crate::response::Response;

/// What an upload says to a piece of its body.
///
/// ```
/// # use dyno_engine::*;
/// fn judge(so_far: u64) -> Flow {
///     if so_far > 1 << 30 { Flow::Refuse(413) } else { Flow::More }
/// }
/// assert_eq!(judge(5), Flow::More);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    More,
    /// Read no more until the upload's [`Waker`](crate::Waker) is woken: the client is held back by TCP.
    Pause,
    /// Answer with this status and close: the rest of the body is not wanted.
    Refuse(u16),
}

/// Why a body ended before its end.
///
/// ```
/// # use dyno_engine::*;
/// assert_eq!(BodyError::Cut.to_string(), "the connection ended in the middle of the body");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The client closed the connection, or it broke.
    #[error("the connection ended in the middle of the body")]
    Cut,
    /// The client sent too little for too long.
    #[error("the body made no progress in the time that it had")]
    TimedOut,
    /// The framing cannot be understood in one way only; the status that was answered.
    #[error("the body's framing is malformed (answered {0})")]
    Malformed(u16),
    /// The upload itself refused the rest.
    #[error("the upload refused the rest of the body")]
    Refused,
    /// The server ends, or had no memory for more.
    #[error("the server closed the connection")]
    Closed,
}

/// One request body on its way in. It lives on its worker's thread and must not block.
///
/// ```
/// # use dyno_engine::*;
/// struct Count(usize);
///
/// impl Upload for Count {
///     fn data(&mut self, bytes: &[u8]) -> Flow {
///         self.0 += bytes.len();
///         Flow::More
///     }
///     fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
///         reply.text(&format!("{} bytes\n", self.0))
///     }
/// }
///
/// Server::new().upload(Method::Put, "/count", |_request, _waker| Ok(Box::new(Count(0)) as Box<dyn Upload>));
/// ```
pub trait Upload: Send {
    /// Takes the next bytes of the body, without its framing; never empty.
    fn data(&mut self, bytes: &[u8]) -> Flow;
    /// The body is whole: answers the request.
    fn end(self: Box<Self>, reply: Reply<'_>) -> Response;
    /// The body will not become whole. The engine has answered, or there is nobody to answer.
    fn failed(self: Box<Self>, why: BodyError) {
        let _ = why;
    }
}
