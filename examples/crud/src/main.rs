//! Notes as JSON over SQLite: `cargo run --release -p crud -- notes.db`, then
//!
//! ```sh
//! curl -i -H 'Content-Type: application/json' -d '{"title":"milk","text":"two bottles"}' http://127.0.0.1:8080/notes
//! curl http://127.0.0.1:8080/notes http://127.0.0.1:8080/notes/1
//! curl -X PUT -H 'Content-Type: application/json' -d '{"title":"milk","text":"one"}' http://127.0.0.1:8080/notes/1
//! curl -X DELETE http://127.0.0.1:8080/notes/1
//! ```
//!
//! A worker never waits for the disk: each request is handed to a thread of the pool, which has a connection of its own.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).unwrap_or_else(|| "notes.db".into());
    Ok(crud::server(PathBuf::from(file))?.listen("127.0.0.1:8080").run()?)
}
