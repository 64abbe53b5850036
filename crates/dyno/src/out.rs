//! Data on standard output, talk on standard error, and how wide the terminal is.
//!
//! Every verb writes through this. Nobody here panics because somebody stopped reading.

use std::io::{self, Write};

use dyno_lab::Failure;

/// What a terminal has had since the punched card, where nothing tells its width.
const WIDTH_DEFAULT: usize = 80;

/// Columns beyond which lines are hard to read; tables stop there.
const WIDTH_MAX: usize = 160;

/// Says something on standard error. When nobody can hear it there is nobody to tell.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// What a pipe takes at once where it takes anything (PIPE_BUF, pipe(7)).
const PIPE_BYTES: usize = 4_096;

/// The same where nobody may be waited for: what a reader does not take now (a pipe that is full, a terminal that was stopped) is gone.
pub(crate) fn mention(text: &str) {
    let stderr = io::stderr();
    for piece in text.as_bytes().chunks(PIPE_BYTES) {
        if !dyno_sys::socket::is_writable(&stderr) {
            return;
        }
        let _ = stderr.lock().write_all(piece);
    }
}

/// Writes data to standard output, at once.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same for data that is no text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(bytes).and_then(|()| out.flush()))
}

/// What a write to standard output came to. A reader who has seen enough (`| head`) is no error.
pub(crate) fn written(outcome: io::Result<()>) -> Result<(), Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(dyno_lab::file::refused("cannot write to standard output", &error))
        }
        _ => Ok(()),
    }
}

/// Columns for tables: at most what is still easy to read, and the narrowest usual ones where nothing tells them.
pub(crate) fn terminal_width() -> usize {
    columns().unwrap_or(WIDTH_DEFAULT).min(WIDTH_MAX)
}

/// Columns for paragraphs that a pipe takes whole, a line each: none where nobody looks.
pub(crate) fn paragraph_width() -> Option<usize> {
    columns_told().or_else(|| dyno_sys::tty::columns(io::stdout())).map(|columns| columns.min(WIDTH_MAX))
}

fn columns_told() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.filter(|columns| *columns > 0)
}

/// What `COLUMNS` says, else the terminal itself.
pub(crate) fn columns() -> Option<usize> {
    let asked = || dyno_sys::tty::columns(io::stdout()).or_else(|| dyno_sys::tty::columns(io::stderr()));
    columns_told().or_else(asked)
}
