//! Starting a server: fill in the plan's texts, hold it before exec, open its clock, wait for its first right answer.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;

use dyno_climb::dial::{How, Setting};
use dyno_climb::load::LoadSpec;
use dyno_climb::meter::{ArmSpec, Trouble};
use dyno_climb::plan::Plan;
use dyno_load::{Body, Expect, OpenError, SessionPlan, Target};
use dyno_sys::affinity::CpuSet;
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::keeper::{KeeperError, Launch as KeeperLaunch};
use dyno_sys::socket;
use dyno_sys::{Pid, proc};

use super::arm::{Arm, placement, tail};
use super::clock::Clock;
use super::driver::Driver;
use super::exits::FINE;
use super::listeners::foreign_listener;
use super::world::{STOP_GRACE_NS, World};
use crate::failure::chain;

/// Number of the control socket in the server.
const CONTROL_FD: i32 = 3;
/// Between two tries to connect to a server that is starting.
const RETRY_NS: u64 = 1_000_000;
/// A request that takes longer is a time-out: nothing on loopback does.
pub(crate) const TIMEOUT_NS: u64 = 2_000_000_000;

/// What is put in place of the names in braces.
pub(crate) struct Filling<'f> {
    plan: &'f Plan,
    setting: &'f Setting,
    fixed: Vec<(&'static str, String)>,
}

impl<'f> Filling<'f> {
    pub(crate) fn new(plan: &'f Plan, setting: &'f Setting, fixed: Vec<(&'static str, String)>) -> Self {
        Self { plan, setting, fixed }
    }

    /// Template dials first, so that their texts may name `{dir}` and `{port}` too.
    pub(crate) fn fill(&self, text: &str) -> String {
        let templates = self.plan.dials.iter().filter(|dial| dial.how == How::Template);
        let mut text = templates.fold(text.to_owned(), |text, dial| {
            text.replace(&format!("{{{}}}", dial.name), &self.plan.value(self.setting, dial).text)
        });
        for (name, value) in &self.fixed {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    /// The command line with the words of every dial that is turned from where it started.
    pub(crate) fn argv(&self) -> Vec<String> {
        let launch = self.plan.launch.argv.iter().map(|word| self.fill(word));
        let dials = self.plan.dials.iter().filter(|dial| matches!(dial.how, How::Arg | How::Live));
        let words = dials
            .flat_map(|dial| self.plan.value(self.setting, dial).words.iter().map(|word| self.fill(word)));
        launch.chain(words).collect()
    }

    /// Variables for its environment; an empty value is no variable.
    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let launch = self.plan.launch.env.iter().map(|(name, value)| (name.clone(), self.fill(value)));
        let dials = self.plan.dials.iter().filter_map(|dial| match &dial.how {
            How::Env { variable } => {
                Some((variable.clone(), self.fill(&self.plan.value(self.setting, dial).text)))
            }
            _ => None,
        });
        launch.chain(dials).filter(|(_, value)| !value.is_empty()).collect()
    }

    /// The files of the plan, rendered.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        self.plan.launch.files.iter().map(|(name, text)| (name.clone(), self.fill(text))).collect()
    }
}

/// A text with the names of folders filled in.
pub(crate) fn filled(text: &str, folders: &[(&'static str, String)]) -> String {
    folders.iter().fold(text.to_owned(), |text, (name, folder)| text.replace(&format!("{{{name}}}"), folder))
}

/// What is to be started.
pub(crate) struct Run<'r> {
    pub(crate) argv: &'r [String],
    pub(crate) env: &'r [(String, String)],
    pub(crate) cwd: &'r Path,
    /// Where it may run; everywhere this program may when `None`.
    pub(crate) cpus: Option<CpuSet>,
}

/// A process under the keeper, with its clock.
struct Started {
    pid: Pid,
    warden: Pid,
    clock: Clock,
    control: Option<OwnedFd>,
    output: File,
}

impl World<'_> {
    pub(crate) fn open_server(&mut self, spec: &ArmSpec) -> Result<Arm, Trouble> {
        let expect = self.right_answer(&spec.load)?;
        self.stand(&spec.setting)?;
        let arm = self.started(spec, &expect)?;
        self.warm_up(arm, self.plan.launch.warm_up_ms)
    }

    /// A server of this setting that has answered rightly on all connections, and is cold.
    pub(crate) fn started(&mut self, spec: &ArmSpec, expect: &Expect) -> Result<Arm, Trouble> {
        let built = self.built(&spec.setting)?;
        let words = |filling: &Filling<'_>| (filling.argv(), filling.env());
        self.launch((spec, expect), &spec.setting, built.as_deref(), words)
    }

    /// Starts a server and waits until it answers. What its texts say where is chosen by `setting`, what is started by `words`.
    pub(crate) fn launch(
        &mut self,
        (spec, expect): (&ArmSpec, &Expect),
        setting: &Setting,
        built: Option<&Path>,
        words: impl FnOnce(&Filling<'_>) -> (Vec<String>, Vec<(String, String)>),
    ) -> Result<Arm, Trouble> {
        let port = free_port(self.address())?;
        let target = target(&spec.load, self.address(), port)?;
        let dir = self.next_folder();
        let mut fixed = vec![
            ("address", self.address().to_string()),
            ("port", port.to_string()),
            ("dir", dir.display().to_string()),
            ("control", CONTROL_FD.to_string()),
        ];
        fixed.extend(self.folders(built));
        let plan = self.plan;
        let filling = Filling::new(plan, setting, fixed);
        let files: Vec<_> =
            filling.files().into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
        self.folder_with(&dir, &files)?;
        let (argv, env) = words(&filling);
        let run = Run { argv: &argv, env: &env, cwd: &dir, cpus: Some(self.ground.server_cpus.clone()) };
        let started = self.start(&run, plan.launch.control)?;
        self.ready(started, spec.clone(), (target, expect), port, dir)
    }

    /// Folders that texts may name, whatever is started.
    pub(crate) fn folders(&self, built: Option<&Path>) -> Vec<(&'static str, String)> {
        let mut folders = vec![
            ("plan", self.ground.plan_dir.display().to_string()),
            ("scratch", self.build_folder().display().to_string()),
        ];
        folders.extend(built.map(|folder| ("out", folder.display().to_string())));
        folders
    }

    pub(crate) fn open_floor_of(&mut self, like: &Arm, load: &LoadSpec) -> Result<Arm, Trouble> {
        let answer = like.driver.sample_answer().to_vec();
        if answer.is_empty() {
            return Err(launch_error(
                "dyno floor",
                "the answer is longer than the floor can repeat (256 KiB)",
            ));
        }
        let address = self.address();
        let (port, dir) = (free_port(address)?, self.next_folder());
        self.folder_with(&dir, &[("answer".to_owned(), answer)])?;
        let program =
            std::env::current_exe().map_err(|error| launch_error("dyno floor", &error.to_string()))?;
        let target = target(load, address, port)?;
        let request_bytes = target.request().len().to_string();
        let (listen, file) = (format!("{address}:{port}"), dir.join("answer").display().to_string());
        let program = program.display().to_string();
        let argv =
            [&program, "floor", "--listen", &listen, "--answer", &file, "--request-bytes", &request_bytes];
        let argv = argv.map(str::to_owned);
        let run = Run { argv: &argv, env: &[], cwd: &dir, cpus: Some(self.ground.server_cpus.clone()) };
        let started = self.start(&run, false)?;
        let spec = ArmSpec { setting: like.spec.setting.clone(), load: load.clone() };
        let arm = self.ready(started, spec, (target, &expect(load)), port, dir)?;
        self.warm_up(arm, self.plan.launch.warm_up_ms)
    }

    /// Runs the plan's preparation to its end, and builds what the start is.
    ///
    /// # Errors
    /// When it does not end, or ends badly.
    pub fn prepare(&mut self) -> Result<(), Trouble> {
        let build = self.build_folder();
        self.folder_with(&build, &[])?;
        if let Some(argv) = self.plan.launch.prepare.clone() {
            let folders = self.folders(None);
            let fill = |word: &String| filled(word, &folders);
            let argv: Vec<String> = argv.iter().map(fill).collect();
            let cwd = self.ground.plan_dir.clone();
            let run = Run { argv: &argv, env: &[], cwd: &cwd, cpus: Some(self.ground.server_cpus.clone()) };
            let (status, text) = self.run_to_end(&run, PREPARE_NS_MAX)?;
            if status != FINE {
                return Err(launch_error(&argv.join(" "), &format!("{status}: {text}")));
            }
        }
        self.built(&self.plan.start()).map(|_| ())
    }

    /// Runs a command under the keeper until it ends; how it ended, and the end of what it printed. What it leaves running
    /// ends with it: it would take time from what is measured next.
    pub(crate) fn run_to_end(&mut self, run: &Run<'_>, ns_max: u64) -> Result<(String, String), Trouble> {
        let started = self.start(run, false)?;
        let deadline = mono_ns() + ns_max;
        loop {
            if let Some(status) = self.exit_of(started.pid) {
                let stopped = self.keeper.stop(started.pid, 0);
                stopped.map_err(|error| launch_trouble(&run.argv[0], &error))?;
                return Ok((status, tail(&started.output)));
            }
            if mono_ns() > deadline || self.check_interrupt().is_err() {
                let _ = self.keeper.stop(started.pid, 0);
                self.check_interrupt()?;
                let why = format!("it did not end within {} s", ns_max.div_ceil(1_000_000_000));
                return Err(launch_error(&run.argv.join(" "), &why));
            }
            sleep_ns(RETRY_NS);
        }
    }

    fn start(&mut self, run: &Run<'_>, control: bool) -> Result<Started, Trouble> {
        let program = &run.argv[0];
        let failed = |error: KeeperError| launch_trouble(program, &error);
        let output = self.output_file()?;
        let copy = output.try_clone().map_err(|error| launch_error(program, &error.to_string()))?;
        let (ours, inherit) = match control {
            true => {
                let (ours, theirs) =
                    socket::pair().map_err(|error| launch_error(program, &error.to_string()))?;
                (Some(ours), vec![(theirs, CONTROL_FD)])
            }
            false => (None, Vec::new()),
        };
        let launch = KeeperLaunch {
            argv: run.argv.iter().map(Into::into).collect(),
            env: run.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: Some(run.cwd.to_owned()),
            cpus: run.cpus.clone(),
            output: copy.into(),
            inherit,
            user: self.ground.user,
        };
        let held = self.keeper.hold(&launch).map_err(failed)?;
        let warden = proc::stat(held.pid())
            .map_err(|error| launch_error(program, &format!("it is not there: {error}")))?
            .parent;
        let clock = Clock::open(held.pid(), warden);
        self.exits.begin(&self.keeper, held.pid());
        let pid = self.keeper.release(held).map_err(failed)?;
        Ok(Started { pid, warden, clock, control: ours, output })
    }

    /// Waits until the server answers rightly on all connections.
    fn ready(
        &mut self,
        started: Started,
        spec: ArmSpec,
        (target, expect): (Target, &Expect),
        port: u16,
        dir: std::path::PathBuf,
    ) -> Result<Arm, Trouble> {
        let deadline = mono_ns() + self.plan.launch.ready_ms * 1_000_000;
        let addr = target.addr().clone();
        let session = SessionPlan {
            target,
            expect: expect.clone(),
            connections: spec.load.connections,
            pipeline: spec.load.pipeline,
            timeout_ns: TIMEOUT_NS,
        };
        let driver = match self.connect(&started, &session, deadline) {
            Ok(driver) => driver,
            Err(trouble) => {
                let _ = self.keeper.stop(started.pid, 0);
                return Err(trouble);
            }
        };
        let Started { pid, warden, clock, control, output } = started;
        let arm = Arm {
            spec,
            pid,
            warden,
            addr,
            port,
            dir,
            clock,
            driver,
            control,
            output,
            family: None,
            last_end_ns: None,
            seen_ns: 0,
        };
        match foreign_listener(&proc::listeners(&arm.addr), &arm.processes(), &arm.addr) {
            Some(why) => {
                self.stop(arm);
                Err(launch_error("the server", &why))
            }
            None => Ok(arm),
        }
    }

    fn connect(
        &mut self,
        started: &Started,
        session: &SessionPlan,
        deadline: u64,
    ) -> Result<Driver, Trouble> {
        let placement = placement(&self.ground.load_cpus, session.connections);
        loop {
            self.check_interrupt()?;
            if let Some(status) = self.death_of(started.pid, started.warden) {
                return Err(Trouble::Died { status, stderr_tail: tail(&started.output) });
            }
            match Driver::open(session, &placement, self.client()) {
                Ok(driver) => return Ok(driver),
                Err(error) if mono_ns() < deadline && is_not_ready(&error) => {}
                Err(OpenError::WrongAnswer { expected, got, .. }) => {
                    return Err(Trouble::WrongAnswer { expected, got });
                }
                Err(OpenError::NotHttp { why, got, .. }) => {
                    return Err(Trouble::WrongAnswer {
                        expected: format!("an HTTP/1.1 answer ({why})"),
                        got,
                    });
                }
                Err(OpenError::Refused { addr, .. }) => {
                    let stderr_tail = tail(&started.output);
                    let waited_ms = self.plan.launch.ready_ms;
                    return Err(Trouble::NotListening { address: addr.to_string(), waited_ms, stderr_tail });
                }
                Err(OpenError::TimedOut { answered, .. }) => {
                    let began_ns = deadline.saturating_sub(self.plan.launch.ready_ms * 1_000_000);
                    let waited_ns = if answered == 0 { mono_ns() - began_ns } else { TIMEOUT_NS };
                    return Err(Trouble::Hung { waited_ms: waited_ns / 1_000_000 });
                }
                Err(error) => return Err(launch_error("the load", &chain(&error))),
            }
            sleep_ns(RETRY_NS);
        }
    }

    fn warm_up(&mut self, mut arm: Arm, warm_up_ms: u64) -> Result<Arm, Trouble> {
        match self.load_for(&mut arm, warm_up_ms * 1_000_000) {
            Ok(()) => Ok(arm),
            Err(trouble) => {
                self.stop(arm);
                Err(trouble)
            }
        }
    }

    /// Ends a server and removes its folder: an access log can be large.
    pub(crate) fn stop(&mut self, arm: Arm) {
        self.stop_within(arm, STOP_GRACE_NS);
    }

    /// The same, with another time that it may take to end by itself.
    pub(crate) fn stop_within(&mut self, arm: Arm, grace_ns: u64) {
        // The connections first: a server that drains has nothing to wait for then.
        drop(arm.driver);
        if self.keeper.stop(arm.pid, grace_ns).is_err() {
            // The keeper is gone or the process will not end; the next call says so, and the keeper's end cleans up.
            return;
        }
        let _ = fs::remove_dir_all(&arm.dir);
    }

    /// A folder of one server with its files. It is given to the server's user last, when nothing more is written in it:
    /// root never works in a folder where somebody else can put a link.
    pub(crate) fn folder_with(&self, dir: &Path, files: &[(String, Vec<u8>)]) -> Result<(), Trouble> {
        let failed = |path: &Path, error: std::io::Error| {
            launch_error(&path.display().to_string(), &error.to_string())
        };
        fs::create_dir(dir).map_err(|error| failed(dir, error))?;
        for (name, bytes) in files {
            let path = dir.join(name);
            let write = || {
                let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
                file.write_all(bytes)?;
                self.ground
                    .user
                    .map_or(Ok(()), |(uid, gid)| std::os::unix::fs::fchown(&file, Some(uid), Some(gid)))
            };
            write().map_err(|error| failed(&path, error))?;
        }
        if let Some((uid, gid)) = self.ground.user {
            std::os::unix::fs::lchown(dir, Some(uid), Some(gid)).map_err(|error| failed(dir, error))?;
        }
        Ok(())
    }

    /// Where the plan's preparation puts what it builds: `{scratch}` in its texts.
    pub(crate) fn build_folder(&self) -> std::path::PathBuf {
        self.ground.scratch.join("build")
    }

    pub(crate) fn next_folder(&mut self) -> std::path::PathBuf {
        self.started += 1;
        self.ground.scratch.join(format!("server-{}", self.started))
    }

    pub(crate) fn output_file(&mut self) -> Result<File, Trouble> {
        self.started += 1;
        let path = self.ground.scratch.join(format!("output-{}", self.started));
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create_new(true).open(&path);
        let file = opened.map_err(|error| launch_error(&path.display().to_string(), &error.to_string()))?;
        // The name is not needed any more: the file lives as long as somebody holds it.
        let _ = fs::remove_file(&path);
        Ok(file)
    }
}

/// Longest build of a plan's server.
const PREPARE_NS_MAX: u64 = 600_000_000_000;

/// Whether a server that is starting may yet answer rightly: it does not listen, or it does before it has loaded what it
/// serves, and keeps its first client waiting or tells it to come back.
fn is_not_ready(error: &OpenError) -> bool {
    match error {
        OpenError::Refused { .. } | OpenError::Broken { .. } | OpenError::Closed { .. } => true,
        OpenError::TimedOut { answered, .. } => *answered == 0,
        OpenError::WrongAnswer { expected, .. } => expected.starts_with("status "),
        _ => false,
    }
}

/// A port that nobody listens on now. Whoever takes it before the server does is found by the listeners' check.
fn free_port(address: Ipv4Addr) -> Result<u16, Trouble> {
    let bound = TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr());
    bound
        .map(|addr| addr.port())
        .map_err(|error| launch_error(&format!("a port on {address}"), &error.to_string()))
}

pub(crate) fn target(load: &LoadSpec, address: Ipv4Addr, port: u16) -> Result<Target, Trouble> {
    request_of(load, &format!("{address}:{port}")).map_err(|why| launch_error("the load", &why))
}

/// Why a load cannot be sent as one request of HTTP/1.1, if it cannot.
#[must_use]
pub fn load_fault(load: &LoadSpec) -> Option<String> {
    request_of(load, "127.0.0.1:80").err()
}

fn request_of(load: &LoadSpec, host: &str) -> Result<Target, String> {
    let mut builder = Target::builder(&format!("http://{host}{}", load.path)).method(&load.method);
    for (name, value) in &load.headers {
        builder = builder.header(name, value);
    }
    if !load.body.is_empty() {
        builder = builder.body(load.body.clone().into_bytes());
    }
    builder.build().map_err(|error| chain(&error))
}

/// What the plan says of a right answer.
pub(crate) fn expect(load: &LoadSpec) -> Expect {
    let body = match &load.expect_body {
        Some(text) => Body::Bytes(text.clone().into_bytes()),
        None => Body::Same,
    };
    Expect { status: Some(load.expect_status), body: Some(body) }
}

fn launch_error(command: &str, why: &str) -> Trouble {
    Trouble::Launch { command: command.to_owned(), why: why.to_owned() }
}

fn launch_trouble(command: &str, error: &KeeperError) -> Trouble {
    match error {
        KeeperError::Gone => {
            Trouble::Lost("the keeper process is gone: nothing can be started any more".into())
        }
        other => launch_error(command, &chain(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_sys::socket::Addr;

    /// Planted fault: only a refused connection is tried again; then a server that loads its data after it listens has hung
    /// within two seconds, whatever its plan gives it.
    #[test]
    fn a_server_that_listens_before_it_can_answer_is_asked_again() {
        let addr = || Addr::Tcp(([127, 0, 0, 1], 80).into());
        let silent =
            |answered| OpenError::TimedOut { addr: addr(), timeout_ns: 1, answered, connections: 64 };
        let wrong = |expected: &str| OpenError::WrongAnswer {
            addr: addr(),
            expected: expected.into(),
            got: "503".into(),
        };
        assert!(is_not_ready(&silent(0)) && is_not_ready(&wrong("status 200")));
        assert!(!is_not_ready(&silent(1)), "it serves fewer connections than the plan opens");
        assert!(!is_not_ready(&wrong("a body of 4 bytes: \"null\"")), "its answers are others");
        assert!(!is_not_ready(&OpenError::Plan { why: "it makes no sense" }));
    }
}
