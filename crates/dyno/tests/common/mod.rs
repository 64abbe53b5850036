//! What the tests of the binary share: starting it, hearing it, and ending it, all with deadlines.
#![allow(dead_code, clippy::unwrap_used)]

#[path = "../../../dyno-profile/tests/common/watching.rs"]
pub(crate) mod watching;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use dyno_sys::Pid;
use dyno_sys::signal::{self, Signal};

/// Nothing here takes longer unless it is broken. Less than a minute, which is what many limits of a server are by default.
pub(crate) const DEADLINE: Duration = Duration::from_secs(45);

/// So long what measures with probes may take.
pub(crate) const PROBES_OUT: Duration = Duration::from_secs(150);

/// The binary, deaf to what the caller's environment says about terminals.
pub(crate) fn dyno<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(words).env_remove("NO_COLOR").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Ended {
    run_within(DEADLINE, words)
}

fn run_within<S: AsRef<OsStr>>(limit: Duration, words: impl IntoIterator<Item = S>) -> Ended {
    Ended::within(limit, dyno(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Runs what measures with probes of the kernel: before one is out the kernel waits, on a full machine for seconds.
pub(crate) fn run_with_probes<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Ended {
    run_within(PROBES_OUT, words)
}

/// A copy of a program, made by a process of its own: a child that another test forks meanwhile would hold a file that this one
/// writes, which cannot be run before that child is another program.
pub(crate) fn copy(program: &str, to: &Path) {
    assert!(Command::new("cp").arg(program).arg(to).status().unwrap().success());
}

/// Runs it to its end with something on its standard input.
pub(crate) fn run_with_input<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>, input: &str) -> Ended {
    let mut command = dyno(words);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Who refuses its words reads nothing.
    let written = stdin.write_all(input.as_bytes());
    assert!(written.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::BrokenPipe), "{written:?}");
    drop(stdin);
    Ended::of(child)
}

/// A process beside the test; a test that fails ends it too.
pub(crate) struct Background(pub(crate) Child);

impl Background {
    /// One that sleeps until it is ended.
    pub(crate) fn sleeper() -> Background {
        let mut command = Command::new("sleep");
        Background(command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already: then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Of each thread of a process its name, its state and, for root, where it waits in the kernel.
fn where_it_stands(pid: i32) -> String {
    let mut all = String::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let stat = read("stat");
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| &rest[..rest.len().min(1)]);
        all += &format!("{} {state}\n{}", read("comm").trim(), read("stack"));
    }
    all
}

impl Ended {
    /// Waits for a child whose output is piped.
    pub(crate) fn of(child: Child) -> Ended {
        Ended::within(DEADLINE, child)
    }

    /// The same, of one that may take longer.
    pub(crate) fn within(limit: Duration, child: Child) -> Ended {
        let pid = child.id().cast_signed();
        let (sender, receiver) = channel();
        let waiter = std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(limit) else {
            let stands = where_it_stands(pid);
            // Only this thread's child has this number: it was not waited for.
            signal::kill(pid, Signal::Kill).unwrap();
            let output = receiver.recv_timeout(DEADLINE).unwrap().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            panic!("the process did not end; it said: {said}\n{stands}");
        };
        waiter.join().unwrap().unwrap();
        Ended::from(output.unwrap())
    }

    /// Asserts that it failed with an error in three lines, and nothing on standard output; returns the lines.
    #[track_caller]
    pub(crate) fn failed(&self) -> Vec<&str> {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{}", self.err);
        let lines: Vec<&str> = self.err.lines().collect();
        let starts = ["error: ", "  likely: ", "  try:    "];
        assert!(
            lines.len() == 3 && lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)),
            "{}",
            self.err
        );
        lines
    }

    /// Asserts that it did what it was asked, without a word of complaint; returns what it printed.
    #[track_caller]
    pub(crate) fn done(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}", self.err);
        &self.out
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A running `dyno serve` or `dyno floor`; killed when dropped.
pub(crate) struct Server {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
    /// Where it listens, as it said.
    pub(crate) place: String,
}

impl Server {
    /// `dyno serve` with one worker on a port that the kernel chooses.
    pub(crate) fn serve(words: &[&str]) -> Server {
        let one = ["serve", "--listen", "127.0.0.1:0", "--workers", "1"];
        Server::start(&mut dyno(one.iter().chain(words)))
    }

    /// Any of the two, up to the line that says where it listens.
    pub(crate) fn start(command: &mut Command) -> Server {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut server = Server { child, lines, heard: Vec::new(), place: String::new() };
        let line = server.hear("listening on ");
        server.place = line["listening on ".len()..].trim_start_matches("http://").to_owned();
        server
    }

    /// The next line on standard error that begins like this.
    #[track_caller]
    pub(crate) fn hear(&mut self, start: &str) -> String {
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => {
                    self.heard.push(line.clone());
                    if line.starts_with(start) {
                        return line;
                    }
                }
                Err(_) => panic!("it never said \"{start}\", but {:#?}", self.heard),
            }
        }
    }

    /// A line that begins like this, heard before or still to come.
    #[track_caller]
    pub(crate) fn hear_again(&mut self, start: &str) -> String {
        let heard = self.heard.iter().find(|line| line.starts_with(start)).cloned();
        heard.unwrap_or_else(|| self.hear(start))
    }

    pub(crate) fn pid(&self) -> Pid {
        self.child.id().cast_signed()
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.place.parse().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.place)
    }

    pub(crate) fn signal(&self, what: Signal) {
        signal::kill(self.pid(), what).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the end of the server", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already where a test waited for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition; `what` says what did not come true.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come");
        std::thread::yield_now();
    }
}

/// Sends bytes and returns as many bytes as wanted of what comes back.
pub(crate) fn ask(addr: SocketAddr, request: &[u8], wanted: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = vec![0; wanted];
    stream.read_exact(&mut answer).unwrap();
    answer
}

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("dyno-cli-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file into it; its path as a word.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        word(&path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A path for a command line.
pub(crate) fn word(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A test that cannot be made here. In CI it can, or it would say nothing for ever.
pub(crate) fn not_tested(without: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI has {without}, or this says nothing");
    println!("not tested: this needs {without}");
}
