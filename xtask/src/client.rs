//! The client of a counted run: one connection, one batch of requests at a time, each answer read to its end.
//!
//! One batch in flight makes the server's turns, and so its counts, the same in every run. The budget drives with it,
//! the bench checks answers with it before it measures.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::shapes::Shape;
use crate::trouble::Trouble;

/// Under callgrind a reply takes a millisecond; a server that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Room for a batch of answers.
const BUFFER_BYTES: usize = 64 << 10;

/// Sends `requests` (a multiple of the pipeline) and reads as many answers.
pub(crate) fn drive(stream: &mut TcpStream, shape: &Shape, requests: u64) -> Result<(), Trouble> {
    let cannot = |what: &'static str| Trouble::cannot::<std::io::Error>(what);
    stream.set_nodelay(true).map_err(cannot("set TCP_NODELAY"))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(cannot("set a timeout"))?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let answer_bytes = first_answer(stream, shape.requests[0].as_bytes(), &mut buffer)?;
    let batch = shape.batch();
    let wanted = answer_bytes * shape.pipeline();
    for _ in 0..requests / shape.pipeline() as u64 {
        stream.write_all(batch.as_bytes()).map_err(cannot("send a request"))?;
        let answers =
            buffer.get_mut(..wanted).ok_or_else(|| Trouble::new("a batch of answers is too long"))?;
        stream.read_exact(answers).map_err(cannot("read an answer"))?;
        check(answers, answer_bytes)?;
    }
    Ok(())
}

/// Reads one answer whole and says how long it is: every later one is as long.
fn first_answer(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> Result<usize, Trouble> {
    stream.write_all(request).map_err(Trouble::cannot("send a request"))?;
    let mut have = 0;
    loop {
        let got = read(stream, &mut buffer[have..])?;
        have += got;
        match answer_bytes(&buffer[..have]) {
            Some(whole) if whole <= have => return Ok(whole),
            _ if got == 0 => return Err(Trouble::new("the server closed the connection")),
            _ => {}
        }
    }
}

/// What has come. With a timeout the kernel does not go on by itself after a signal, or after the machine stood still.
fn read(stream: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Trouble> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            got => return got.map_err(Trouble::cannot("read an answer")),
        }
    }
}

/// Head and body together, once the head is there.
fn answer_bytes(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).ok()?.to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    Some(head + length.trim().parse::<usize>().ok()?)
}

fn check(answers: &[u8], answer_bytes: usize) -> Result<(), Trouble> {
    match answers.chunks(answer_bytes).all(|answer| answer.starts_with(b"HTTP/1.1 200 ")) {
        true => Ok(()),
        false => Err(Trouble::new("an answer is not a 200 of the first one's length")),
    }
}

/// Asks once on a connection of its own: the whole answer, as the floor repeats it and the bench checks it.
pub(crate) fn fetch(addr: SocketAddr, request: &str) -> Result<Vec<u8>, Trouble> {
    let mut stream = TcpStream::connect(addr).map_err(Trouble::cannot(format!("connect to {addr}")))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(Trouble::cannot("set a timeout"))?;
    stream.write_all(request.as_bytes()).map_err(Trouble::cannot("send a request"))?;
    let (mut answer, mut buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
    loop {
        match read(&mut stream, &mut buffer)? {
            0 => return Err(Trouble::new("the server closed the connection")),
            got => answer.extend_from_slice(&buffer[..got]),
        }
        if let Some(whole) = answer_bytes(&answer).filter(|whole| *whole <= answer.len()) {
            answer.truncate(whole);
            return Ok(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// Answers each request head of one connection with `answer`, until its client is gone.
    fn server(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = Vec::new();
            let mut byte = [0];
            while matches!(stream.read(&mut byte), Ok(1)) {
                seen.push(byte[0]);
                if seen.ends_with(b"\r\n\r\n") && stream.write_all(answer).is_err() {
                    return;
                }
            }
        });
        addr
    }

    /// A batch of so many requests.
    fn shape(pipeline: usize) -> Shape {
        let requests = (0..pipeline).map(|index| format!("GET /x?{index} HTTP/1.1\r\n\r\n")).collect();
        Shape { name: "x", path: "/x", body: "ok", requests }
    }

    /// Planted fault: the first interruption ends it.
    #[test]
    fn a_read_that_is_interrupted_goes_on() {
        struct Interrupted(bool);
        impl Read for Interrupted {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                if std::mem::replace(&mut self.0, false) {
                    return Err(ErrorKind::Interrupted.into());
                }
                buffer[0] = b'x';
                Ok(1)
            }
        }
        assert_eq!(read(&mut Interrupted(true), &mut [0; 4]).unwrap(), 1);
    }

    #[test]
    fn every_batch_is_read_to_its_end() {
        let mut stream = TcpStream::connect(server(ANSWER)).unwrap();
        drive(&mut stream, &shape(4), 12).unwrap();
        stream.set_nonblocking(true).unwrap();
        assert!(stream.read(&mut [0; 8]).is_err(), "nothing is left over");
    }

    #[test]
    fn a_wrong_answer_is_trouble() {
        let mut stream = TcpStream::connect(server(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n")).unwrap();
        assert!(drive(&mut stream, &shape(1), 2).is_err());
    }

    #[test]
    fn fetching_gives_the_whole_answer() {
        assert_eq!(fetch(server(ANSWER), &shape(1).requests[0]).unwrap(), ANSWER);
    }
}
