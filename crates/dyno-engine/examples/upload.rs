//! Uploads of any size in little memory: `cargo run --release -p dyno-engine --example upload -- DIR`, then
//! `curl -T FILE http://127.0.0.1:8080/files/NAME`. A thread writes to the disk; while it is behind, the client is held
//! back by TCP.

use dyno_engine::{
    Answer, BodyError, EngineError, Flow, Method, Reply, Responder, Response, Server, Upload, Waker,
};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Bytes of one upload that may wait for the disk.
const WAITING_BYTES_MAX: usize = 4 << 20;

fn main() -> Result<(), EngineError> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    server(folder.into()).listen("127.0.0.1:8080").run()
}

pub(crate) fn server(folder: PathBuf) -> Server {
    Server::new().upload(Method::Put, "/files/{name}", move |request, waker| {
        let name = request.param("name").filter(|name| !name.contains('/') && !name.starts_with('.'));
        let path = folder.join(name.ok_or(400_u16)?);
        Ok(Box::new(ToDisk::new(path, waker)) as Box<dyn Upload>)
    })
}

/// What the writing thread is told.
enum Step {
    Bytes(Vec<u8>),
    End(Responder),
    Failed,
}

/// One upload: hands its bytes to a thread.
struct ToDisk {
    steps: Sender<Step>,
    waiting: Arc<AtomicUsize>,
}

impl ToDisk {
    fn new(path: PathBuf, waker: Waker) -> ToDisk {
        let (steps, receiver) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let behind = Arc::clone(&waiting);
        thread::spawn(move || write(&path, &receiver, &behind, &waker));
        ToDisk { steps, waiting }
    }
}

impl Upload for ToDisk {
    fn data(&mut self, bytes: &[u8]) -> Flow {
        let waiting = self.waiting.fetch_add(bytes.len(), Ordering::SeqCst) + bytes.len();
        // A thread that has ended could not write; it says so when the body is whole.
        let _ = self.steps.send(Step::Bytes(bytes.to_vec()));
        if waiting > WAITING_BYTES_MAX { Flow::Pause } else { Flow::More }
    }

    fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
        reply.later(move |responder| {
            // Nobody there: the responder is dropped, which answers 500.
            let _ = self.steps.send(Step::End(responder));
        })
    }

    fn failed(self: Box<Self>, _why: BodyError) {
        let _ = self.steps.send(Step::Failed);
    }
}

fn write(path: &Path, steps: &Receiver<Step>, waiting: &AtomicUsize, waker: &Waker) {
    let mut draft = Draft::beside(path);
    for step in steps {
        match step {
            Step::Bytes(bytes) => {
                draft = draft.and_then(|draft| draft.append(&bytes));
                waiting.fetch_sub(bytes.len(), Ordering::SeqCst);
                waker.wake();
            }
            Step::End(responder) => {
                return responder.answer(told(draft.and_then(|draft| draft.become_file(path))));
            }
            Step::Failed => return,
        }
    }
}

/// A file on its way: whoever reads the folder sees the old file or the new one, never a part.
struct Draft {
    file: File,
    part: PathBuf,
    written: usize,
}

impl Draft {
    fn beside(path: &Path) -> io::Result<Draft> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let part = path.with_file_name(format!(".upload-{}-{number}", std::process::id()));
        let file = File::create_new(&part)?;
        Ok(Draft { file, part, written: 0 })
    }

    fn append(mut self, bytes: &[u8]) -> io::Result<Draft> {
        self.file.write_all(bytes)?;
        self.written += bytes.len();
        Ok(self)
    }

    fn become_file(self, path: &Path) -> io::Result<usize> {
        std::fs::rename(&self.part, path)?;
        Ok(self.written)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Half a file is of no use to anybody; a whole one has another name by now.
        let _ = std::fs::remove_file(&self.part);
    }
}

fn told(outcome: io::Result<usize>) -> Answer {
    match outcome {
        Ok(written) => Answer::text(format!("{written} bytes written\n")).status(201),
        Err(error) => Answer::text(format!("cannot write: {error}\n")).status(500),
    }
}
