//! JSON by serde, for ordinary use: a request's body as a type, a type as a reply, and mistakes in words.
//!
//! Handlers call it. Where every nanosecond counts, [`Reply::json`] writes an [`Encode`](crate::Encode) straight into the
//! send buffer instead.

use crate::answer::Answer;
use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use serde::de::{Deserialize, DeserializeOwned};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::error::Category;

/// Letters of a message that are told: a reader's word may hold what was sent.
const DETAIL_LETTERS_MAX: usize = 200;

/// The media type of a mistake (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// A value that is JSON on the wire.
///
/// ```no_run
/// use dyno_engine::{Json, Method, Server};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize)]
/// struct Wanted<'b> { name: &'b str }
///
/// #[derive(Serialize)]
/// struct Made { id: u64, name: String }
///
/// Server::new().listen("127.0.0.1:8080").route(Method::Post, "/users", |request, reply| {
///     match Json::<Wanted<'_>>::read(request) {
///         Ok(Json(wanted)) => Json(Made { id: 1, name: wanted.name.to_owned() }).reply(reply.status(201)),
///         Err(mistake) => mistake.reply(reply),
///     }
/// });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json<T>(
    /// The value.
    pub T,
);

impl<'r, T: Deserialize<'r>> Json<T> {
    /// Reads the whole body, which may be borrowed from. Its `Content-Type` must be `application/json`, or end in `+json`.
    ///
    /// ```no_run
    /// # use dyno_engine::{Json, Method, Server};
    /// Server::new().route(Method::Post, "/sum", |request, reply| match Json::<Vec<i64>>::read(request) {
    ///     Ok(Json(numbers)) => Json(numbers.iter().sum::<i64>()).reply(reply),
    ///     Err(mistake) => mistake.reply(reply),
    /// });
    /// ```
    ///
    /// # Errors
    /// [`JsonError`]: another media type, no JSON, or JSON of another form.
    pub fn read(request: &Request<'r>) -> Result<Json<T>, JsonError> {
        Json::read_up_to(request, usize::MAX)
    }

    /// The same for a body of at most so many bytes, where a route wants less than
    /// [`Limits::body_bytes_max`](crate::Limits::body_bytes_max).
    ///
    /// ```no_run
    /// # use dyno_engine::{Json, Method, Server};
    /// Server::new().route(Method::Put, "/name", |request, reply| match Json::<String>::read_up_to(request, 100) {
    ///     Ok(Json(name)) => reply.text(&name),
    ///     Err(mistake) => mistake.reply(reply),
    /// });
    /// ```
    ///
    /// # Errors
    /// [`JsonError`]: [`JsonError::TooLong`] too.
    pub fn read_up_to(request: &Request<'r>, bytes_max: usize) -> Result<Json<T>, JsonError> {
        let media = request.header("Content-Type").unwrap_or_default();
        if !is_json(media) {
            return Err(JsonError::MediaType { found: cut(media) });
        }
        let body = request.body();
        if body.len() > bytes_max {
            return Err(JsonError::TooLong { bytes: body.len(), bytes_max });
        }
        serde_json::from_slice(body).map(Json).map_err(|error| of_reader(&error))
    }
}

impl<T: Serialize> Json<T> {
    /// Finishes a reply with the value. One that cannot be JSON (a map whose keys are no texts) is a 500.
    ///
    /// ```no_run
    /// # use dyno_engine::{Json, Method, Server};
    /// # use std::collections::BTreeMap;
    /// Server::new().route(Method::Get, "/sizes", |_request, reply| {
    ///     Json(BTreeMap::from([("small", 1), ("large", 100)])).reply(reply)
    /// });
    /// ```
    pub fn reply(&self, reply: Reply<'_>) -> Response {
        reply.written("application/json", |out| serde_json::to_writer(out, &self.0).is_ok())
    }

    /// The value as an answer that any thread can make.
    ///
    /// ```
    /// use dyno_engine::{Answer, Json};
    ///
    /// let answer: Answer = Json([1, 2, 3]).answer().status(201);
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn answer(&self) -> Answer {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => Answer::bytes("application/json", bytes),
            Err(_) => Answer::text("the value is no JSON\n").status(500),
        }
    }
}

/// Why a request's JSON is not taken, or what a handler refuses; each has its status and is told as a problem (RFC 9457):
/// `{"title":"Unprocessable Content","status":422,"detail":"missing field `name` at line 1 column 2"}`.
///
/// ```
/// use dyno_engine::JsonError;
///
/// let mistake = JsonError::refused(404, "there is no such user");
/// assert_eq!((mistake.status(), mistake.to_string()), (404, "there is no such user".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The body is said to be something else, or nothing is said: 415.
    #[error("the body must be application/json, and is {}", if found.is_empty() { "of no type" } else { found })]
    MediaType {
        /// What is said.
        found: String,
    },
    /// The body is longer than this route takes: 413.
    #[error("the body has {bytes} bytes, and {bytes_max} are taken")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// The body is no JSON: 400.
    #[error("{why}")]
    Syntax {
        /// What is wrong, and where.
        why: String,
    },
    /// The body is JSON, but not of the form that is asked for: 422.
    #[error("{why}")]
    Form {
        /// What is wrong, and where.
        why: String,
    },
    /// A handler's own word.
    #[error("{why}")]
    Refused {
        /// The status.
        status: u16,
        /// The reason.
        why: String,
    },
}

impl JsonError {
    /// A handler's own word. A status that is no error's, 400 to 599, is told as 500.
    ///
    /// ```
    /// # use dyno_engine::JsonError;
    /// assert_eq!(JsonError::refused(409, "the name is taken").status(), 409);
    /// assert_eq!(JsonError::refused(200, "no error").status(), 500);
    /// ```
    #[must_use]
    pub fn refused(status: u16, why: impl Into<String>) -> JsonError {
        let status = if (400..=599).contains(&status) { status } else { 500 };
        JsonError::Refused { status, why: why.into() }
    }

    /// The status that goes with it.
    ///
    /// ```
    /// # use dyno_engine::JsonError;
    /// assert_eq!(JsonError::TooLong { bytes: 11, bytes_max: 10 }.status(), 413);
    /// ```
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            JsonError::MediaType { .. } => 415,
            JsonError::TooLong { .. } => 413,
            JsonError::Syntax { .. } => 400,
            JsonError::Form { .. } => 422,
            JsonError::Refused { status, .. } => *status,
        }
    }

    /// Finishes a reply with it.
    ///
    /// ```no_run
    /// # use dyno_engine::{JsonError, Method, Server};
    /// Server::new().route(Method::Get, "/users/{id}", |_request, reply| {
    ///     JsonError::refused(404, "there is no such user").reply(reply)
    /// });
    /// ```
    pub fn reply(&self, reply: Reply<'_>) -> Response {
        let reply = reply.status(self.status());
        reply.written(PROBLEM, |out| serde_json::to_writer(out, self).is_ok())
    }

    /// It as an answer that any thread can make.
    ///
    /// ```
    /// # use dyno_engine::{Answer, JsonError};
    /// let answer: Answer = JsonError::refused(409, "the name is taken").answer();
    /// # let _ = answer;
    /// ```
    #[must_use]
    pub fn answer(&self) -> Answer {
        let text = serde_json::to_vec(self).unwrap_or_default();
        Answer::bytes(PROBLEM, text).status(self.status())
    }
}

impl Serialize for JsonError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut problem = serializer.serialize_struct("Problem", 3)?;
        problem.serialize_field("title", dyno_proto::http1::encode::reason(self.status()))?;
        problem.serialize_field("status", &self.status())?;
        problem.serialize_field("detail", &self.to_string())?;
        problem.end()
    }
}

/// A handler from a type to a type: the body is read, what comes of it written, and a mistake told with its status.
///
/// ```no_run
/// use dyno_engine::{JsonError, Method, Server, json};
///
/// Server::new()
///     .listen("127.0.0.1:8080")
///     .route(Method::Post, "/mean", json(|_request, numbers: Vec<f64>| match numbers.len() {
///         0 => Err(JsonError::refused(422, "the mean of nothing is not known")),
///         count => Ok(numbers.iter().sum::<f64>() / count as f64),
///     }))
///     .run()?;
/// # Ok::<(), dyno_engine::EngineError>(())
/// ```
pub fn json<I, O, H>(
    handler: H,
) -> impl for<'r, 'w> Fn(&Request<'r>, Reply<'w>) -> Response + Send + Sync + 'static
where
    I: DeserializeOwned,
    O: Serialize,
    H: Fn(&Request<'_>, I) -> Result<O, JsonError> + Send + Sync + 'static,
{
    move |request: &Request<'_>, reply: Reply<'_>| {
        let made = Json::<I>::read(request).and_then(|Json(input)| handler(request, input));
        match made {
            Ok(output) => Json(output).reply(reply),
            Err(mistake) => mistake.reply(reply),
        }
    }
}

/// `application/json`, or a type that is JSON with more said of it, as `application/problem+json`.
fn is_json(media: &str) -> bool {
    let bare = media.split(';').next().unwrap_or_default().trim_ascii();
    let tail = bare.len().checked_sub("+json".len()).and_then(|at| bare.get(at..));
    bare.eq_ignore_ascii_case("application/json")
        || (bare.len() > "application/+json".len()
            && bare.get(.."application/".len()).is_some_and(|head| head.eq_ignore_ascii_case("application/"))
            && tail.is_some_and(|tail| tail.eq_ignore_ascii_case("+json")))
}

fn of_reader(error: &serde_json::Error) -> JsonError {
    let why = cut(&error.to_string());
    match error.classify() {
        Category::Data => JsonError::Form { why },
        Category::Syntax | Category::Eof | Category::Io => JsonError::Syntax { why },
    }
}

fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(DETAIL_LETTERS_MAX).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_known_by_its_media_type() {
        for media in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/json ;x",
            "application/problem+json",
            "application/ld+JSON",
        ] {
            assert!(is_json(media), "{media}");
        }
        for media in [
            "",
            "text/json",
            "text/plain",
            "application/jsonx",
            "application/+json",
            "+json",
            "é+json",
            "json",
        ] {
            assert!(!is_json(media), "{media}");
        }
    }

    #[test]
    fn a_mistake_is_cut_before_it_repeats_all_that_was_sent() {
        let long = format!("\"{}\"", "é".repeat(10_000));
        let error = serde_json::from_str::<u8>(&long).expect_err("a text is no number");
        let mistake = of_reader(&error);
        assert_eq!(mistake.status(), 422);
        assert!(mistake.to_string().chars().count() <= DETAIL_LETTERS_MAX + 1);
    }
}
