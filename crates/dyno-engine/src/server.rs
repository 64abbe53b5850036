//! The server as a library: the same workers as `dyno serve`, each in a thread of the embedding program.
//!
//! `Server::run` blocks until the server ends; `Server::start` hands back a `Running` that can be asked and stopped.
//! No signal is touched: the program that embeds a server decides what ends it.

mod scraped;

use crate::clients::Clients;
use crate::config::{Config, Limits};
use crate::content::{Builders, Built, Content, Mount, Tables, sites, table_of};
use crate::dials::{Dials, Log, Spin};
use crate::error::{EngineError, refused};
use crate::gate::Gate;
use crate::host::{self, Host};
use crate::kernel::Extras;
use crate::listen::{self, SocketFile};
use crate::log::{self, AccessLog, LogFormat, Rings, Until};
use crate::mailbox::{Mailbox, Message, Waker};
use crate::neighbours::Neighbours;
use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use crate::route::Router;
use crate::stats::{Accepting, Counters, Counts, RunsIn};
use crate::supervisor::Drained;
use crate::table::{Site, Table};
use crate::upload::Upload;
use crate::worker::{Input, Leaving, Left, Worker};
use dyno_proto::http1::request::Method;
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::event::EventFd;
use dyno_sys::socket::{self, Addr};
use scraped::{Scraped, Scraping};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// A server in the making.
///
/// The first thing that goes wrong while it is built is kept and told by `start` or `run`.
///
/// ```no_run
/// # use dyno_engine::*;
/// Server::new()
///     .listen("127.0.0.1:8080")
///     .route(Method::Get, "/", |_request, reply| reply.text("Hello!\n"))
///     .run()?;
/// # Ok::<(), EngineError>(())
/// ```
#[must_use = "a server serves when it is run"]
pub struct Server {
    config: Config,
    router: Router,
    error: Option<EngineError>,
}

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

impl Server {
    /// A server with the climbed dials, the default limits and no routes.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new();
    /// # let _ = server;
    /// ```
    pub fn new() -> Server {
        let config = Config { listen: Vec::new(), ..Config::default() };
        Server { config, router: Router::new(), error: None }
    }

    /// Listens there too: `127.0.0.1:8080`, `[::1]:8080`, `unix:/run/x.sock`; port 0 lets the kernel choose.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().listen("127.0.0.1:8080").listen("unix:/run/site.sock");
    /// # let _ = server;
    /// ```
    pub fn listen(mut self, addr: &str) -> Server {
        match addr.parse() {
            Ok(addr) => self.config.listen.push(addr),
            Err(source) => self.fail(EngineError::Address { source }),
        }
        self
    }

    /// Adds a route; see [`Router::route`].
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().route(Method::Get, "/hello/{name}", |request, reply| {
    ///     reply.text(&format!("Hello, {}!\n", request.param("name").unwrap_or("nobody")))
    /// });
    /// # let _ = server;
    /// ```
    pub fn route<F>(mut self, method: Method<'_>, pattern: &str, handler: F) -> Server
    where
        F: for<'r, 'w> Fn(&Request<'r>, Reply<'w>) -> Response + Send + Sync + 'static,
    {
        if let Err(source) = self.router.route(method, pattern, handler) {
            self.fail(EngineError::Route { source });
        }
        self
    }

    /// Adds a route that takes request bodies piece by piece; see [`Router::upload`].
    ///
    /// ```
    /// # use dyno_engine::*;
    /// struct Count(usize);
    ///
    /// impl Upload for Count {
    ///     fn data(&mut self, bytes: &[u8]) -> Flow {
    ///         self.0 += bytes.len();
    ///         Flow::More
    ///     }
    ///     fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
    ///         reply.text(&format!("{} bytes\n", self.0))
    ///     }
    /// }
    ///
    /// let server = Server::new()
    ///     .upload(Method::Put, "/count", |_request, _waker| Ok(Box::new(Count(0)) as Box<dyn Upload>));
    /// # let _ = server;
    /// ```
    pub fn upload<F>(mut self, method: Method<'_>, pattern: &str, begin: F) -> Server
    where
        F: for<'r> Fn(&Request<'r>, Waker) -> Result<Box<dyn Upload>, u16> + Send + Sync + 'static,
    {
        if let Err(source) = self.router.upload(method, pattern, begin) {
            self.fail(EngineError::Route { source });
        }
        self
    }

    /// Serves the files of a folder under `path`, `/` or `/static`, where no route is: each with its encoded forms, entity
    /// tag and header lines made once. GET and HEAD, conditions and ranges are answered; a folder by its `index.html`.
    ///
    /// ```no_run
    /// # use dyno_engine::{Content, Server};
    /// Server::new()
    ///     .listen("127.0.0.1:8080")
    ///     .content("/", "public")
    ///     .content("/static", Content::new("build/static").maxage_max_s(86_400))
    ///     .run()?;
    /// # Ok::<(), dyno_engine::EngineError>(())
    /// ```
    pub fn content(mut self, path: &str, content: impl Into<Content>) -> Server {
        match Mount::new(path, content) {
            Ok(mount) => self.config.content.push(mount),
            Err(source) => self.fail(EngineError::Content { source }),
        }
        self
    }

    /// Adds a host: names, and what is served and said under them. See [`Host`].
    ///
    /// ```no_run
    /// # use dyno_engine::{Host, Server};
    /// Server::new()
    ///     .listen("127.0.0.1:8080")
    ///     .host(Host::new(["example.org"])?.content("/", "sites/example")?.error_page(404, "404.html")?)
    ///     .host(Host::new(["*.example.net"])?.content("/", "sites/net")?)
    ///     .run()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn host(mut self, host: Host) -> Server {
        self.config.hosts.push(host);
        self
    }

    /// Takes a whole router instead of the routes added so far.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().router(Router::new());
    /// # let _ = server;
    /// ```
    pub fn router(mut self, router: Router) -> Server {
        self.router = router;
        self
    }

    /// Sets the dials.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().dials(Dials { log: Log::Ring, ..Dials::default() });
    /// # let _ = server;
    /// ```
    pub fn dials(mut self, dials: Dials) -> Server {
        self.config.dials = dials;
        self
    }

    /// Sets the limits.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().limits(Limits { body_bytes_max: 4_096, ..Limits::default() });
    /// # let _ = server;
    /// ```
    pub fn limits(mut self, limits: Limits) -> Server {
        self.config.limits = limits;
        self
    }

    /// Sets the access log's file; without one the log goes to standard output.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().dials(Dials { log: Log::Ring, ..Dials::default() }).log_file("access.log");
    /// # let _ = server;
    /// ```
    pub fn log_file(mut self, path: impl Into<std::path::PathBuf>) -> Server {
        self.config.log_file = Some(path.into());
        self
    }

    /// Sets what a line of the access log says.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().log_format(LogFormat::default());
    /// # let _ = server;
    /// ```
    pub fn log_format(mut self, format: LogFormat) -> Server {
        self.config.log_format = format;
        self
    }

    /// Serves `/metrics` (Prometheus, OpenMetrics) and `/healthz` there, by a thread of its own. Workers count more then than
    /// without. Everybody who reaches the address may read the figures.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// # use std::io::{Read, Write};
    /// let running = Server::new().listen("127.0.0.1:0").metrics("127.0.0.1:0").start()?;
    /// let Some(Addr::Tcp(addr)) = running.metrics_addr() else { unreachable!("it was asked for") };
    /// let mut stream = std::net::TcpStream::connect(addr)?;
    /// stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    /// let mut reply = String::new();
    /// stream.read_to_string(&mut reply)?;
    /// assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("ok\n"));
    /// # running.stop();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn metrics(mut self, addr: &str) -> Server {
        match addr.parse() {
            Ok(addr) => self.config.metrics = Some(addr),
            Err(source) => self.fail(EngineError::Address { source }),
        }
        self
    }

    /// Sets how it is known who asks, where proxies stand between.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let trusted = vec!["10.0.0.0/8".parse()?];
    /// let server = Server::new().clients(Clients { told_by: ToldBy::Forwarded, trusted, trusts_unix: false });
    /// # let _ = server;
    /// # Ok::<(), NetworkError>(())
    /// ```
    pub fn clients(mut self, clients: Clients) -> Server {
        self.config.clients = clients;
        self
    }

    /// Sets how long a drain may take, in nanoseconds.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().drain_ns(2_000_000_000);
    /// # let _ = server;
    /// ```
    pub fn drain_ns(mut self, drain_ns: u64) -> Server {
        self.config.drain_ns = drain_ns;
        self
    }

    /// Serves on this thread's behalf for as long as the program lives.
    ///
    /// ```no_run
    /// # use dyno_engine::*;
    /// Server::new().listen("127.0.0.1:8080").run()?;
    /// # Ok::<(), EngineError>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError`] when the server cannot start.
    pub fn run(self) -> Result<(), EngineError> {
        let running = self.start()?;
        running.wait();
        Ok(())
    }

    /// Starts the workers; connections are accepted when this returns.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let running = Server::new().listen("127.0.0.1:0").start()?;
    /// println!("it listens on {:?}", running.addrs());
    /// # running.stop();
    /// # Ok::<(), EngineError>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError`] when the server cannot start.
    pub fn start(mut self) -> Result<Running, EngineError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let scraped = self.config.metrics.take();
        let workers = self.config.dials.workers.get();
        let scraped = scraped.map(|addr| Scraped::bind(addr, &self.config, workers)).transpose()?;
        let Config { listen, dials, socket_mode, limits, drain_ns, content, hosts, clients, .. } =
            self.config;
        let Config { log_file, log_format, log_fsync, .. } = self.config;
        limits.check(dials.workers.get())?;
        let (mounts, hosts) = host::prepare(content, hosts)?;
        let mut folders = Folders::open(mounts)?;
        let bound = listen::bind(&listen, &dials, socket_mode)?;
        let counters =
            Counters::new(bound.by_worker.len(), dials.spin.us()).map_err(refused("make counters"))?;
        let mut logs = Logs::open(&dials, log_file, (log_format, log_fsync), bound.by_worker.len())?;
        let router = Arc::new(self.router);
        let mut running = Running {
            addrs: bound.addrs,
            files: bound.files,
            counters,
            workers: Vec::new(),
            orders: Vec::new(),
            writer: None,
            builder: None,
            scraping: None,
        };
        let full = Arc::new(EventFd::new().map_err(refused("make a signal for full workers"))?);
        let others = (0..bound.by_worker.len()).map(|own| listen::of_others(&bound.by_worker, own, &dials));
        let others = others.collect::<io::Result<Vec<_>>>().map_err(refused("share the listeners"))?;
        for (number, (listeners, others)) in bound.by_worker.into_iter().zip(others).enumerate() {
            let neighbours = Neighbours::new(number, counters, others, Arc::clone(&full));
            let (orders, order) = socket::pipe().map_err(refused("open a pipe"))?;
            let log = logs.of(number, counters).map_err(refused("share the access log"))?;
            let (router, runs_in) = (Arc::clone(&router), RunsIn::Thread);
            let input = Input {
                number,
                runs_in,
                listeners,
                neighbours,
                orders,
                signals: None,
                router,
                sites: folders.sites(),
                mounts: Vec::new(),
                log,
                errors: None,
                counters,
                extras: Extras {
                    meter: scraped.as_ref().map(|scraped| scraped.meter(number)),
                    gate: Gate::new(&limits.address, &clients),
                    hosts: hosts.clone(),
                },
            };
            let worker = Worker::new(input, &dials, &limits, Leaving::soon(drain_ns))
                .map_err(refused("start a worker"))?;
            folders.mailboxes.push(worker.mailbox());
            let stop = logs.stop_of_worker().map_err(refused("share the end of the log"))?;
            let ends = Ends { number, counters, full: Arc::clone(&full), _stop: stop };
            running.workers.push(spawn_worker(ends, &dials, worker)?);
            running.orders.push(order);
        }
        running.writer = logs.spawn_writer(running.counters.lost())?;
        running.builder = folders.spawn_builder()?;
        running.scraping = scraped.map(|scraped| scraped.start(running.counters, &limits)).transpose()?;
        Ok(running)
    }

    fn fail(&mut self, error: EngineError) {
        self.error.get_or_insert(error);
    }
}

/// A server that serves. Dropping it drains it without waiting: workers answer what they have accepted, and the log's writer
/// ends behind the last of them, for as long as the program lives.
///
/// ```
/// # use dyno_engine::*;
/// let running = Server::new().listen("127.0.0.1:0").start()?;
/// assert_eq!(running.stop(), Drained::Wholly);
/// # Ok::<(), EngineError>(())
/// ```
pub struct Running {
    addrs: Vec<Addr>,
    files: Vec<SocketFile>,
    counters: Counters,
    workers: Vec<JoinHandle<Left>>,
    /// Closing them tells the workers to drain.
    orders: Vec<OwnedFd>,
    writer: Option<(OwnedFd, JoinHandle<()>)>,
    /// Closing it tells the thread that makes images to end, when it has done what it is at.
    builder: Option<OwnedFd>,
    scraping: Option<Scraping>,
}

impl Running {
    /// Where it listens, with the ports that the kernel chose.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let running = Server::new().listen("127.0.0.1:0").start()?;
    /// assert!(matches!(running.addrs(), [Addr::Tcp(addr)] if addr.port() > 0));
    /// # Ok::<(), EngineError>(())
    /// ```
    #[must_use]
    pub fn addrs(&self) -> &[Addr] {
        &self.addrs
    }

    /// Where metrics are served, with the port that the kernel chose; `None` where nobody asked for them.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let running = Server::new().listen("127.0.0.1:0").metrics("127.0.0.1:0").start()?;
    /// assert!(matches!(running.metrics_addr(), Some(Addr::Tcp(addr)) if addr.port() > 0));
    /// # running.stop();
    /// # Ok::<(), EngineError>(())
    /// ```
    #[must_use]
    pub fn metrics_addr(&self) -> Option<&Addr> {
        self.scraping.as_ref().map(|scraping| &scraping.addr)
    }

    /// What all workers have counted.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let running = Server::new().listen("127.0.0.1:0").start()?;
    /// assert_eq!(running.counts().requests, 0);
    /// # Ok::<(), EngineError>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.total()
    }

    /// Turns the spin dial, in microseconds; workers see it at their next turn.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let running = Server::new().listen("127.0.0.1:0").start()?;
    /// running.set_spin(20);
    /// # Ok::<(), EngineError>(())
    /// ```
    pub fn set_spin(&self, spin_us: u32) {
        self.counters.set_spin(Spin::from_us(spin_us).us());
    }

    /// Drains and waits until every worker has ended.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let running = Server::new().listen("127.0.0.1:0").start()?;
    /// assert_eq!(running.stop(), Drained::Wholly);
    /// # Ok::<(), EngineError>(())
    /// ```
    pub fn stop(mut self) -> Drained {
        self.begin_drain();
        self.join()
    }

    fn begin_drain(&mut self) {
        if let Some(scraping) = &self.scraping {
            scraping.begin_drain();
        }
        self.orders.clear();
    }

    fn wait(mut self) {
        self.join();
    }

    fn join(&mut self) -> Drained {
        let left: Vec<_> = self.workers.drain(..).map(JoinHandle::join).collect();
        // Not before: folders are followed for as long as anybody serves them.
        self.builder = None;
        if let Some((stop, writer)) = self.writer.take() {
            drop(stop);
            // A writer that panicked has nothing more to say.
            let _ = writer.join();
        }
        self.remove_files();
        if let Some(scraping) = self.scraping.take() {
            scraping.end();
        }
        let wholly = left.iter().all(|left| matches!(left, Ok(Left::Drained)));
        if wholly { Drained::Wholly } else { Drained::Cut }
    }

    fn remove_files(&mut self) {
        self.files.drain(..).for_each(|file| file.remove());
    }
}

impl Drop for Running {
    /// Of one that was stopped nothing is left to do.
    fn drop(&mut self) {
        self.begin_drain();
        self.remove_files();
        if let Some(scraping) = &self.scraping {
            scraping.remove_files();
        }
    }
}

/// How a worker's thread ends: of one that panics nobody else would know that it accepts no more.
struct Ends {
    number: usize,
    counters: Counters,
    full: Arc<EventFd>,
    /// Lets the log's writer end, when the worker's last line is in its ring.
    _stop: Option<OwnedFd>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        if thread::panicking() {
            self.counters.set_accepting(self.number, Accepting::Leaving);
            self.full.signal();
        }
    }
}

fn spawn_worker(ends: Ends, dials: &Dials, worker: Worker) -> Result<JoinHandle<Left>, EngineError> {
    let number = ends.number;
    let cpu = listen::home(number, dials, &listen::cpus());
    let life = move || {
        if let Some(cpu) = cpu {
            // A CPU taken away meanwhile is no reason not to serve.
            let _ = affinity::set_current(&CpuSet::single(cpu));
        }
        let _ends = ends;
        worker.run()
    };
    let thread = thread::Builder::new().name(format!("dyno-{number}"));
    thread.spawn(life).map_err(refused("start a worker's thread"))
}

/// The folders of an embedded server.
struct Folders {
    mounts: Vec<Mount>,
    tables: Vec<Arc<Table>>,
    builders: Option<Builders>,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl Folders {
    fn open(mounts: Vec<Mount>) -> Result<Folders, EngineError> {
        let (mut builders, mut tables) = (None, Vec::new());
        if !mounts.is_empty() {
            let images = builders.insert(Builders::open(&mounts)?).first()?;
            for (built, mount) in images.into_iter().zip(&mounts) {
                tables.push(Arc::new(table_of(built.image, mount)?));
            }
        }
        Ok(Folders { mounts, tables, builders, mailboxes: Vec::new() })
    }

    fn sites(&self) -> Vec<Site> {
        sites(self.mounts.iter().zip(self.tables.iter().cloned()))
    }

    fn spawn_builder(self) -> Result<Option<OwnedFd>, EngineError> {
        let Folders { mounts, tables, builders, mailboxes } = self;
        let Some(builders) = builders else { return Ok(None) };
        let (stopped, stop) = socket::pipe().map_err(refused("open a pipe"))?;
        let put = move |number, table: Arc<Table>| {
            for mailbox in &mailboxes {
                mailbox.put(Message::Table(number, Arc::clone(&table)));
            }
        };
        let tables =
            Tables::start(mounts, tables, put).map_err(refused("start the thread that makes tables"))?;
        let life = move || {
            let mut deliver = |number: usize, built: Built| tables.make(number, built.image);
            // Without an epoll instance there are no changes; what was there at the start is served.
            let _ = builders.run(&stopped, &mut deliver);
        };
        let thread = thread::Builder::new().name("dyno-content".to_owned());
        thread.spawn(life).map_err(refused("start the thread that reads folders"))?;
        Ok(Some(stop))
    }
}

/// The access log of an embedded server.
struct Logs {
    file: Option<OwnedFd>,
    rings: Option<Rings>,
    format: LogFormat,
    /// The writer hears of the end of the first when every copy of the second is closed.
    stop: Option<(OwnedFd, OwnedFd)>,
}

impl Logs {
    fn open(
        dials: &Dials,
        path: Option<std::path::PathBuf>,
        (format, fsync): (LogFormat, bool),
        workers: usize,
    ) -> Result<Logs, EngineError> {
        if dials.log == Log::Off {
            return Ok(Logs { file: None, rings: None, format, stop: None });
        }
        let file = log::open(path.as_deref()).map_err(|source| EngineError::Log { path, source })?;
        let until = if fsync { Until::OnDisk } else { Until::Written };
        let rings = Rings::new(dials.log, until, workers).map_err(refused("make a ring for the log"))?;
        let stop = rings.as_ref().map(|_| socket::pipe()).transpose().map_err(refused("open a pipe"))?;
        Ok(Logs { file: Some(file), rings, format, stop })
    }

    fn stop_of_worker(&self) -> io::Result<Option<OwnedFd>> {
        self.stop.as_ref().map(|(_, stop)| stop.try_clone()).transpose()
    }

    fn of(&self, number: usize, counters: Counters) -> io::Result<AccessLog> {
        let format = self.format.clone();
        Ok(match (&self.rings, &self.file) {
            (Some(rings), _) => AccessLog::ring(format, rings.end(number)),
            (None, Some(file)) => AccessLog::sync(format, file.try_clone()?, counters),
            (None, None) => AccessLog::off(),
        })
    }

    fn spawn_writer(
        &mut self,
        lost: &'static AtomicU64,
    ) -> Result<Option<(OwnedFd, JoinHandle<()>)>, EngineError> {
        let Some(rings) = self.rings.take() else { return Ok(None) };
        let Some(file) = self.file.take() else { return Ok(None) };
        let Some((stopped, stop)) = self.stop.take() else { return Ok(None) };
        let job = rings.job(file, stopped, None, lost, log::WRITER_NS_MAX);
        let life = move || {
            // Without an epoll instance there is no writer; the rings fill up and count what they drop.
            let _ = log::write_rings(job);
            lost.fetch_add(rings.left(), Ordering::Relaxed);
        };
        let thread = thread::Builder::new().name("dyno-log".to_owned());
        Ok(Some((stop, thread.spawn(life).map_err(refused("start the log's writer"))?)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_worker_whose_thread_panics_is_known_to_accept_no_more() {
        let counters = Counters::new(2, 0).unwrap();
        let full = Arc::new(EventFd::new().unwrap());
        let end = |number: usize, panics: bool| {
            let ends = Ends { number, counters, full: Arc::clone(&full), _stop: None };
            let ended = thread::spawn(move || {
                let _ends = ends;
                assert!(!panics, "it was asked to");
            });
            assert_eq!(ended.join().is_err(), panics);
            counters.accepting(number)
        };
        assert_eq!((end(0, false), end(1, true)), (Accepting::Open, Accepting::Leaving));
        assert_eq!(socket::wait_readable(&*full, 0).unwrap(), socket::Ready::Yes, "the others hear of it");
    }
}
