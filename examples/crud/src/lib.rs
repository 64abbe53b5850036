//! Routes from requests to statements and back. `main` runs them, a test asks them.

mod notes;

use dyno_engine::{Answer, Json, JsonError, Method, Pool, PoolSize, Reply, Request, Response, Server};
use notes::{Notes, Wanted};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// How many notes a list has at most.
const LIST_MAX: u32 = 1_000;

/// Bytes of a note as JSON.
const NOTE_BYTES_MAX: usize = 64 << 10;

/// The routes over the notes in a file, which is made if it is not there.
///
/// # Errors
/// When the file is none of notes, or a thread cannot be started.
pub fn server(file: PathBuf) -> Result<Server, Box<dyn Error>> {
    // Told here, not by the first request.
    Notes::open(&file)?;
    // 500 requests a second, of which each takes SQLite about 2 ms where it writes: two threads by Little's law. SQLite
    // writes one at a time, whatever the threads; readers go on beside it.
    let size = PoolSize::for_load(500.0, Duration::from_millis(2), Duration::from_secs(1));
    let pool = Pool::with(size, move || Notes::open(&file).map_err(|error| error.to_string()))?;
    let routes = Routes { pool };
    let (list, add, get, set, remove) =
        (routes.clone(), routes.clone(), routes.clone(), routes.clone(), routes);
    Ok(Server::new()
        .route(Method::Get, "/notes", move |_, reply| {
            list.ask(reply, |notes| Ok(Json(notes.list(LIST_MAX)?).answer()))
        })
        .route(Method::Post, "/notes", move |request, reply| match wanted(request) {
            Err(mistake) => mistake.reply(reply),
            Ok(wanted) => add.ask(reply, move |notes| {
                let note = notes.add(&wanted)?;
                let place = format!("/notes/{}", note.id);
                Ok(Json(note).answer().status(201).header("Location", &place))
            }),
        })
        .route(Method::Get, "/notes/{id}", move |request, reply| match id(request) {
            Err(mistake) => mistake.reply(reply),
            Ok(id) => get.ask(reply, move |notes| Ok(found(notes.get(id)?))),
        })
        .route(Method::Put, "/notes/{id}", move |request, reply| {
            match id(request).and_then(|id| Ok((id, wanted(request)?))) {
                Err(mistake) => mistake.reply(reply),
                Ok((id, wanted)) => set.ask(reply, move |notes| Ok(found(notes.set(id, &wanted)?))),
            }
        })
        .route(Method::Delete, "/notes/{id}", move |request, reply| match id(request) {
            Err(mistake) => mistake.reply(reply),
            Ok(id) => remove.ask(reply, move |notes| {
                Ok(match notes.remove(id)? {
                    true => Answer::empty().status(204),
                    false => missing().answer(),
                })
            }),
        }))
}

/// What a thread of the pool has: its connection, or why it has none.
type Connection = Result<Notes, String>;

#[derive(Clone)]
struct Routes {
    pool: Pool<Connection>,
}

impl Routes {
    /// Has a thread ask the notes.
    fn ask(
        &self,
        reply: Reply<'_>,
        work: impl FnOnce(&mut Notes) -> Result<Answer, rusqlite::Error> + Send + 'static,
    ) -> Response {
        self.pool.answer(reply, move |connection| match connection {
            Ok(notes) => work(notes).unwrap_or_else(|error| refused(&error)),
            Err(why) => JsonError::refused(503, format!("the notes cannot be opened: {why}")).answer(),
        })
    }
}

/// A file that is locked for too long is too much work; all else is ours to mend, and not the client's to read.
fn refused(error: &rusqlite::Error) -> Answer {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy) => {
            JsonError::refused(503, "the notes are busy").answer().header("Retry-After", "1")
        }
        _ => {
            eprintln!("crud: {error}");
            JsonError::refused(500, "the notes cannot be used").answer()
        }
    }
}

fn wanted(request: &Request<'_>) -> Result<Wanted, JsonError> {
    let Json(wanted) = Json::<Wanted>::read_up_to(request, NOTE_BYTES_MAX)?;
    match wanted.title.is_empty() {
        true => Err(JsonError::refused(422, "a note has a title")),
        false => Ok(wanted),
    }
}

fn id(request: &Request<'_>) -> Result<i64, JsonError> {
    request.param("id").and_then(|id| id.parse().ok()).ok_or_else(missing)
}

fn found(note: Option<notes::Note>) -> Answer {
    note.map_or_else(|| missing().answer(), |note| Json(note).answer())
}

fn missing() -> JsonError {
    JsonError::refused(404, "there is no such note")
}
