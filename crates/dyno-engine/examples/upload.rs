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
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    Server::new()
        .listen("127.0.0.1:8080")
        .upload(Method::Put, "/files/{name}", move |request, waker| {
            let name = request.param("name").filter(|name| !name.contains('/') && !name.starts_with('.'));
            let path = folder.join(name.ok_or(400_u16)?);
            Ok(Box::new(ToDisk::new(path, waker)) as Box<dyn Upload>)
        })
        .run()
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
    let mut file = File::create(path);
    let mut outcome = Ok(0);
    for step in steps {
        match step {
            Step::Bytes(bytes) => {
                outcome =
                    outcome.and_then(|written| append(&mut file, &bytes).map(|()| written + bytes.len()));
                waiting.fetch_sub(bytes.len(), Ordering::SeqCst);
                waker.wake();
            }
            Step::End(responder) => return responder.answer(told(&outcome)),
            Step::Failed => {
                // Half a file is of no use to anybody; it may not have been made.
                let _ = std::fs::remove_file(path);
                return;
            }
        }
    }
}

fn append(file: &mut io::Result<File>, bytes: &[u8]) -> io::Result<()> {
    match file {
        Ok(file) => file.write_all(bytes),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

fn told(outcome: &io::Result<usize>) -> Answer {
    match outcome {
        Ok(written) => Answer::text(format!("{written} bytes written\n")).status(201),
        Err(error) => Answer::text(format!("cannot write: {error}\n")).status(500),
    }
}
