//! One look at a server: its /metrics, asked for and read.
//!
//! Figures that this program does not know are passed over, so that it can look at a newer server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use dyno_lab::Failure;
use dyno_sys::clock::mono_ns;
use dyno_sys::socket::Addr;

/// How long an answer may take: the server reads memory and a file of /proc for each worker.
const WAIT: Duration = Duration::from_secs(5);

/// Bytes of an answer: thirty figures of a thousand workers are 2 MB.
const BYTES_MAX: u64 = 8 << 20;

/// What one worker has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Worker {
    /// Replies by class, from 2xx on.
    pub(super) replies: [f64; 4],
    pub(super) accepted: f64,
    pub(super) closed: f64,
    pub(super) open: f64,
    pub(super) received: f64,
    pub(super) sent: f64,
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) buffered: f64,
}

/// What a server has counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Look {
    pub(super) at_ns: u64,
    pub(super) uptime_s: f64,
    pub(super) workers: Vec<Worker>,
    pub(super) restarts: f64,
    pub(super) lines_lost: f64,
}

/// Asks the server.
pub(super) fn look(addr: &Addr) -> Result<Look, Failure> {
    let refused = |error: io::Error| {
        Failure::error(format!("{addr} does not answer"))
            .because(&error)
            .likely("the server has ended, or serves no metrics there")
            .try_this(format!("dyno serve --metrics {addr}"))
    };
    let answer = ask(addr).map_err(refused)?;
    let at_ns = mono_ns();
    let page = answer.strip_prefix("HTTP/1.1 200 ").and_then(|rest| rest.split_once("\r\n\r\n"));
    let look = page.and_then(|(_, page)| read(page, at_ns));
    look.ok_or_else(|| {
        Failure::error(format!("{addr} answers with something else than dyno's metrics"))
            .likely("another server listens there, or it is where the server serves its visitors")
            .try_this("the address that dyno serve says after \"metrics on\"")
    })
}

fn ask(addr: &Addr) -> io::Result<String> {
    let mut answer = String::new();
    match addr {
        Addr::Tcp(addr) => {
            let stream = TcpStream::connect_timeout(addr, WAIT)?;
            stream.set_read_timeout(Some(WAIT))?;
            exchange(stream, &mut answer)?;
        }
        Addr::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(WAIT))?;
            exchange(stream, &mut answer)?;
        }
    }
    Ok(answer)
}

fn exchange(mut stream: impl Read + Write, answer: &mut String) -> io::Result<()> {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: dyno\r\nConnection: close\r\n\r\n")?;
    stream.take(BYTES_MAX).read_to_string(answer)?;
    Ok(())
}

/// Reads a page; `None` when it is not a dyno's.
fn read(page: &str, at_ns: u64) -> Option<Look> {
    let mut look = Look { at_ns, ..Look::default() };
    let mut is_dynos = false;
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let value: f64 = value.parse().ok()?;
        is_dynos |= name == "dyno_build_info";
        match label(labels, "worker") {
            Some(worker) => look.take(worker.parse().ok()?, name, labels, value)?,
            None => match name {
                "dyno_uptime_seconds" => look.uptime_s = value,
                "dyno_worker_restarts_total" => look.restarts = value,
                "dyno_log_lines_lost_total" => look.lines_lost = value,
                _ => {}
            },
        }
    }
    is_dynos.then_some(look)
}

impl Look {
    /// A worker's figure; `None` where no server has so many workers.
    fn take(&mut self, worker: usize, name: &str, labels: &str, value: f64) -> Option<()> {
        const WORKERS_MAX: usize = 4_096;
        if worker >= self.workers.len() {
            self.workers
                .resize(worker.checked_add(1).filter(|count| *count <= WORKERS_MAX)?, Worker::default());
        }
        let worker = &mut self.workers[worker];
        match name {
            "dyno_http_requests_total" => {
                let class = ["2xx", "3xx", "4xx", "5xx"]
                    .iter()
                    .position(|code| label(labels, "code") == Some(code))?;
                worker.replies[class] = value;
            }
            "dyno_connections_open" => worker.open = value,
            "dyno_connections_accepted_total" => worker.accepted = value,
            "dyno_connections_closed_total" => worker.closed += value,
            "dyno_received_bytes_total" => worker.received = value,
            "dyno_sent_bytes_total" => worker.sent = value,
            "dyno_buffered_bytes" => worker.buffered = value,
            "dyno_worker_cpu_seconds_total" => match label(labels, "mode") {
                Some("user") => worker.user_s = value,
                _ => worker.system_s = value,
            },
            _ => {}
        }
        Some(())
    }
}

/// The value of a label. None of those that are asked for has a quote in it.
fn label<'l>(labels: &'l str, name: &str) -> Option<&'l str> {
    labels.trim_end_matches('}').split(',').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| value.trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_page_is_read_by_worker_and_what_is_unknown_is_passed_over() {
        let page = "# HELP x y\ndyno_build_info{version=\"9\"} 1\ndyno_new_thing{a=\"b\"} 7\n\
            dyno_uptime_seconds 1.5\ndyno_http_requests_total{worker=\"1\",code=\"4xx\"} 3\n\
            dyno_connections_closed_total{worker=\"1\",reason=\"peer\"} 2\n\
            dyno_connections_closed_total{worker=\"1\",reason=\"done\"} 3\n\
            dyno_worker_cpu_seconds_total{worker=\"0\",mode=\"system\"} 0.25\n";
        let look = read(page, 7).unwrap();
        assert_eq!((look.at_ns, look.uptime_s, look.workers.len()), (7, 1.5, 2));
        assert_eq!((look.workers[1].replies, look.workers[1].closed), ([0.0, 0.0, 3.0, 0.0], 5.0));
        assert_eq!(look.workers[0].system_s, 0.25);
    }

    #[test]
    fn what_is_no_page_of_a_dyno_is_none() {
        for page in [
            "",
            "node_load1 0.5\n",
            "dyno_build_info one\n",
            "dyno_build_info 1\ndyno_connections_open{worker=\"99999999999\"} 1\n",
            "dyno_build_info 1\ndyno_http_requests_total{worker=\"0\",code=\"9xx\"} 1\n",
        ] {
            assert_eq!(read(page, 0), None, "{page}");
        }
    }
}
