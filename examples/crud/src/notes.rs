//! Notes in a file of SQLite. A thread of the pool has one of these; nothing here knows HTTP.

use rusqlite::{Connection, Error, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// How long a statement waits for another connection's.
const BUSY: Duration = Duration::from_secs(2);

/// What a client says of a note.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) text: String,
}

/// A note.
#[derive(Serialize)]
pub(crate) struct Note {
    pub(crate) id: i64,
    title: String,
    text: String,
}

/// A connection.
pub(crate) struct Notes {
    connection: Connection,
}

impl Notes {
    pub(crate) fn open(file: &Path) -> Result<Notes, Error> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(BUSY)?;
        // Readers go on while one writes, and a crash of the machine loses the last writes at most, not the file.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.execute_batch(
            "create table if not exists notes (id integer primary key, title text not null, text text not null)",
        )?;
        Ok(Notes { connection })
    }

    pub(crate) fn list(&mut self, most: u32) -> Result<Vec<Note>, Error> {
        let mut statement =
            self.connection.prepare_cached("select id, title, text from notes order by id limit ?")?;
        statement.query_map([most], note)?.collect()
    }

    pub(crate) fn get(&mut self, id: i64) -> Result<Option<Note>, Error> {
        let mut statement =
            self.connection.prepare_cached("select id, title, text from notes where id = ?")?;
        statement.query_row([id], note).optional()
    }

    pub(crate) fn add(&mut self, wanted: &Wanted) -> Result<Note, Error> {
        let text = "insert into notes (title, text) values (?, ?) returning id, title, text";
        self.connection.prepare_cached(text)?.query_row((&wanted.title, &wanted.text), note)
    }

    pub(crate) fn set(&mut self, id: i64, wanted: &Wanted) -> Result<Option<Note>, Error> {
        let text = "update notes set title = ?, text = ? where id = ? returning id, title, text";
        let mut statement = self.connection.prepare_cached(text)?;
        statement.query_row((&wanted.title, &wanted.text, id), note).optional()
    }

    pub(crate) fn remove(&mut self, id: i64) -> Result<bool, Error> {
        Ok(self.connection.prepare_cached("delete from notes where id = ?")?.execute([id])? > 0)
    }
}

fn note(row: &Row<'_>) -> Result<Note, Error> {
    Ok(Note { id: row.get(0)?, title: row.get(1)?, text: row.get(2)? })
}
