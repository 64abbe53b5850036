//! `dyno climb`: from a naive start to the machine's limit, every step proved.
//!
//! Reads the plan, prepares the ground (CPUs, keeper, scratch folder), lets `dyno_climb::climb` climb through the real
//! meter, and writes record and report, also when it was cut short.

mod dry_run;
mod host_here;
mod mistaken;

use crate::failed;
use crate::out;
use crate::this_run;
use dyno_host::machine::machine;
use dyno_lab::file;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use dyno_climb::built_in::built_in;
use dyno_climb::climb::{ClimbError, Event, Options, Order, Profiles, Suffices, climb, not_begun};
use dyno_climb::meter::Trouble;
use dyno_climb::plan::Plan;
use dyno_climb::rung::{NetworkHere, Rung, Surroundings};
use dyno_host::lab::{CLIENT, Lab, SERVER};
use dyno_record::climb::{
    CLIMB_SCHEMA, Climb as Record, Network, Rung as RungRecord, RungVerdict, is_a_risk,
};
use dyno_record::condition::{Held, Known};
use dyno_record::figure::{Better, Figure, Unit};
use dyno_record::lab::Part;
use dyno_record::machine::Machine;
use dyno_record::sheet::{RUNG, STEP, of_climb};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::keeper::Keeper;
use dyno_sys::proc;

use super::{exit, gate};
use crate::cli::{self, Format};
use crate::live::Place;
use dyno_host::changes::HostChanges;
use dyno_lab::Failure;
use dyno_lab::launch::scratch::Scratch;
use dyno_lab::launch::{Ground, Interrupt, World, alone, laboratory};
use dyno_report::export::{self, Subject};
use dyno_report::number::{self, NAME_COLUMNS_MAX, visible};
use dyno_report::text::{self, Progress};

/// Stolen and foreign CPU from here up is worth a warning.
const UNQUIET_PERCENT: f64 = 10.0;

/// Runs the verb.
pub(crate) fn run(args: &cli::Climb) -> Result<ExitCode, Failure> {
    let conditions = gate::Conditions::read(&args.gate)?;
    let (server_cpus, load_cpus, shared) = cpus(args)?;
    let (plan, plan_dir) = plan(args, &server_cpus)?;
    for name in &args.rung {
        plan.rung(name).map_err(|error| mistaken::rung(&error))?;
    }
    let known = figures(&plan, &args.rung);
    conditions.check(&known)?;
    if args.list {
        out::print(&list(&plan, &args.rung, out::paragraph_width()))?;
        return Ok(exit::DONE);
    }
    let order = order(&args.order)?;
    if args.dry_run {
        let columns = out::paragraph_width();
        out::print(&dry_run::text(&plan, &chosen(&plan, &args.rung), &server_cpus, &load_cpus, columns))?;
        return Ok(exit::DONE);
    }
    let names = OutputNames::new(args)?;
    let host_changes = if args.allow_host_changes { HostChanges::Allowed } else { HostChanges::Refused };
    let lock = if args.allow_host_changes { Some(alone::lock()?) } else { None };
    // Best effort: the load says clearly when descriptors are too few.
    let _ = proc::raise_nofile_to_hard();
    // While this process is on the host: what a dead climb left there is looked for there.
    let mut scratch = Scratch::new(host_changes, &mut |warning| out::say(&format!("warning: {warning}\n")))?;
    let lab = if args.netns { Some(laboratory::entered_for(&plan)?) } else { None };
    let locks: Vec<_> = lock.iter().map(AsFd::as_fd).collect();
    let keeper = Keeper::start_with(&locks)
        .map_err(|error| Failure::error("cannot start the keeper").because(&error))?;
    let interrupt =
        Interrupt::listen().map_err(|error| Failure::error("cannot receive signals").because(&error))?;
    if let [cpu] = load_cpus[..] {
        let _ = affinity::set_current(&CpuSet::single(cpu));
    }
    keeper
        .remove_at_end(scratch.path())
        .map_err(|error| Failure::error("cannot start the keeper").because(&error))?;
    let user = scratch.caller();
    let ground = Ground {
        server_cpus: server_cpus.clone(),
        load_cpus: load_cpus.clone(),
        scratch: scratch.path().to_owned(),
        plan_dir,
        host_changes,
        user,
    };
    let mut record = new_record(&server_cpus, &load_cpus);
    record.network = lab.as_ref().map(described);
    let world = World::new(&plan, ground, keeper, interrupt);
    let mut world = match lab {
        Some(lab) => world.in_lab(lab),
        None => world,
    };
    if shared {
        record.warnings.push(
            "one CPU for server and load: each steals the other's time, throughput means little".into(),
        );
    }
    let seed = args.seed.unwrap_or_else(this_run::seed_of_the_day);
    let time_ns = u64::try_from(args.time.as_nanos()).unwrap_or(u64::MAX);
    let options = Options {
        time_ns,
        order,
        seed,
        instances: usize::from(args.instances),
        server_cpus: server_cpus.len(),
        only: args.rung.clone(),
        worthwhile_percent: args.worthwhile,
        profiles: if args.profile { Profiles::Sides } else { Profiles::None },
    };
    let outcome = match world.prepare() {
        Err(trouble) => {
            let ends = trouble.ends_the_climb();
            let error = if ends { ClimbError::Ended(trouble) } else { ClimbError::Start(trouble) };
            not_begun(&plan, &options, &mut record, &error);
            Err(error)
        }
        Ok(()) => {
            let mut screen = Screen::new();
            let outcome = climb(&plan, &options, &mut world, &mut record, &mut |event| screen.show(event));
            screen.clear();
            outcome
        }
    };
    finish_machine(&mut record, &world);
    let mut told = Told::default();
    // The host first: whatever else goes wrong, this must be heard.
    if let Err(trouble) = world.finish() {
        scratch.keep();
        told.failure(&Failure::not_restored(trouble.to_string()));
    }
    drop(lock);
    told.all(args, &record, &names, user, &outcome, &held(&conditions, &record, &known));
    Ok(ExitCode::from(told.code))
}

/// What went wrong at the end of a climb, each told at once; the exit code is the weightiest.
#[derive(Default)]
struct Told {
    code: u8,
}

impl Told {
    fn failure(&mut self, failure: &Failure) {
        failed::told(failure);
        self.weigh(exit::number(failure));
    }

    /// A host that is not as it was outweighs all; an interrupt outweighs what it led to.
    fn weigh(&mut self, code: u8) {
        let weight = |code| match code {
            exit::NOT_RESTORED => 3,
            exit::INTERRUPTED => 2,
            0 => 0,
            _ => 1,
        };
        if weight(code) > weight(self.code) {
            self.code = code;
        }
    }

    /// The table before the record: a full disk must not take away what was measured.
    fn all(
        &mut self,
        args: &cli::Climb,
        record: &Record,
        names: &OutputNames,
        user: Option<(u32, u32)>,
        outcome: &Result<(), ClimbError>,
        held: &Result<Vec<Held>, Failure>,
    ) {
        let held = held.as_deref().unwrap_or_default();
        let format = args.format.wanted(cli::Json::of(args.json));
        let shown = show(args, record, format, held);
        let written = names.write(record, user);
        let kept = matches!(written, Ok(Written::Anew));
        if kept && format == Format::Table && shown.is_ok() {
            self.outcome(out::print(&names.line()));
        }
        self.outcome(shown);
        let measured = words_of_record(&written, record, names);
        self.outcome(written.map(|_| ()));
        if !gate::told(held) {
            self.weigh(exit::NO);
        }
        if matches!(outcome, Err(ClimbError::Ended(Trouble::Interrupted))) {
            out::say(&format!("interrupted: {measured}\n"));
            self.weigh(exit::INTERRUPTED);
        } else if let Err(error) = outcome {
            self.failure(&ended_badly(error, record));
            if record.series.trials.is_empty() {
                out::say(&format!("{measured}\n"));
            }
        } else if !record.has_answers() {
            self.failure(&nothing_measured(record));
        }
    }

    fn outcome(&mut self, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            self.failure(&failure);
        }
    }
}

/// What the record of a climb holds that ended early.
fn words_of_record(written: &Result<Written, Failure>, record: &Record, names: &OutputNames) -> String {
    match written {
        Ok(Written::Anew) if record.series.trials.is_empty() => "nothing was measured".to_owned(),
        Ok(Written::Anew) => "the record holds what was measured before".to_owned(),
        Ok(Written::OlderStays) => {
            format!("nothing was measured; {} stays as it was", names.record.display())
        }
        Err(_) => "no record was written".to_owned(),
    }
}

/// A climb that reached its end and has no answer.
fn nothing_measured(record: &Record) -> Failure {
    let failure = Failure::no("nothing was measured");
    let out_of_time = |rung: &&RungRecord| rung.attempt.verdict == RungVerdict::NotMeasured;
    match record.rungs.iter().find(out_of_time).or(record.rungs.first()) {
        Some(rung) => failure
            .likely(format!("{}: {}", visible(&rung.id), visible(&rung.attempt.why)))
            .try_this("more --time, or fewer rungs with --rung; dyno climb --list names them"),
        None => failure.likely("no rung was asked for").try_this("dyno climb --list"),
    }
}

/// The error to print for a climb that ended before its time, and not by the user's wish.
fn ended_badly(error: &ClimbError, record: &Record) -> Failure {
    if matches!(error, ClimbError::Noise(_)) {
        let failure = Failure::no(error.to_string());
        return failure.try_this("stop what else runs on these CPUs, or give it more --time");
    }
    let steal = record.machine.steal_percent;
    let failure = Failure::error(error.to_string()).because(error);
    let failure =
        if steal > UNQUIET_PERCENT { failure.likely(format!("steal is {steal:.0} %")) } else { failure };
    failure.try_this("start the server by hand with the plan's command, and ask it with curl")
}

fn show(args: &cli::Climb, record: &Record, format: Format, held: &[Held]) -> Result<(), Failure> {
    if let Some(exporter) = format.exporter() {
        return out::print(&export::write(exporter, Subject::Climb(record), held));
    }
    if format == Format::Table {
        return out::print(&text::climb_table(record, out::terminal_width(), args.color.on_stdout()));
    }
    let mut out = std::io::stdout().lock();
    let written =
        serde_json::to_writer(&mut out, record).map_err(std::io::Error::from).and_then(|()| writeln!(out));
    out::written(written)
}

/// The split of the CPUs: the generator on the last half of the physical cores, SMT siblings never apart.
fn cpus(args: &cli::Climb) -> Result<(CpuSet, Vec<usize>, bool), Failure> {
    split(args.server_cpus.as_ref(), args.load_cpus.as_ref())
}

/// CPUs of the servers, those of the load, and whether they share one; what is not given is chosen.
pub(crate) fn split(
    servers: Option<&CpuSet>,
    loads: Option<&CpuSet>,
) -> Result<(CpuSet, Vec<usize>, bool), Failure> {
    let allowed = affinity::allowed();
    let mut cores: Vec<Vec<usize>> = Vec::new();
    for cpu in allowed.iter() {
        let siblings = affinity::siblings(cpu);
        match cores.iter_mut().find(|core| siblings.contains(core[0])) {
            Some(core) => core.push(cpu),
            None => cores.push(vec![cpu]),
        }
    }
    let load: Vec<usize> = match loads {
        Some(set) => set.iter().collect(),
        None => load_by_default(&cores, servers),
    };
    let server: Vec<usize> = match servers {
        Some(set) => set.iter().collect(),
        None => cores.concat().into_iter().filter(|cpu| !load.contains(cpu)).collect(),
    };
    // One CPU, or all of them given to the load: both share what there is.
    let server = if server.is_empty() { load.clone() } else { server };
    if let Some(cpu) = load.iter().chain(&server).find(|cpu| !allowed.contains(**cpu)) {
        return Err(Failure::usage(format!("CPU {cpu} cannot be used: this process may run on {allowed}")));
    }
    let shared = server.iter().any(|cpu| load.contains(cpu));
    let mut server_set = CpuSet::empty();
    server.iter().for_each(|cpu| server_set.insert(*cpu));
    Ok((server_set, load, shared))
}

/// As many cores as half of all, the last ones that the servers were not given. Where servers have them all it is the
/// CPUs beside theirs, and else the last half, which both share.
fn load_by_default(cores: &[Vec<usize>], server: Option<&CpuSet>) -> Vec<usize> {
    let is_free = |cpu: &usize| server.is_none_or(|set| !set.contains(*cpu));
    let count = (cores.len() / 2).max(1);
    let last = |cores: Vec<&Vec<usize>>| -> Vec<usize> {
        cores.iter().skip(cores.len().saturating_sub(count)).flat_map(|core| core.iter().copied()).collect()
    };
    let free = last(cores.iter().filter(|core| core.iter().all(is_free)).collect());
    if !free.is_empty() {
        return free;
    }
    let beside: Vec<usize> = cores.iter().flatten().copied().filter(is_free).collect();
    if beside.is_empty() { last(cores.iter().collect()) } else { beside }
}

fn plan(args: &cli::Climb, server_cpus: &CpuSet) -> Result<(Plan, PathBuf), Failure> {
    let Some(path) = &args.plan else {
        let network = args.netns.then(|| NetworkHere {
            server_mask: laboratory::mask(server_cpus.iter()),
            host: host_here::host_here(),
        });
        let surroundings = Surroundings { network, ..surroundings(server_cpus)? };
        return Ok((built_in(&surroundings), PathBuf::from("/")));
    };
    let name = path.display();
    let text = plan_text(path)?;
    let plan = Plan::from_toml(&text).map_err(|error| mistaken::plan(&path.display().to_string(), &error))?;
    mistaken::calls(&plan, &name.to_string())?;
    mistaken::loads(&plan, &name.to_string())?;
    suits(&plan, args, &name.to_string())?;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Ok((plan, absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)))
}

fn plan_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(dyno_lab::file::read(path)?).map_err(|error| {
        Failure::error(format!("{} is no plan: it is not text", dyno_lab::file::name(path)))
            .because(&error.utf8_error())
            .likely("another file is meant: a plan is TOML")
            .try_this("docs/manual/plans.md, or examples/nginx.toml")
    })
}

/// Whether the plan can be climbed where it is to be.
fn suits(plan: &Plan, args: &cli::Climb, name: &str) -> Result<(), Failure> {
    match (args.netns, plan.lab_dial(), plan.loopback_text()) {
        (false, Some(dial), _) => {
            let what =
                format!("{name}: dial \"{}\" is a part of the laboratory's network", visible(&dial.name));
            Err(Failure::error(what)
                .likely("it is there with --netns only")
                .try_this("sudo dyno climb PLAN --netns"))
        }
        (true, _, Some(text)) => {
            let what = format!("{name}: the load of --netns cannot come to \"{}\"", visible(text));
            Err(Failure::error(what)
                .likely("in another namespace that address is another machine's")
                .try_this("write {address}, which is 127.0.0.1 without --netns"))
        }
        _ => Ok(()),
    }
}

/// The laboratory, for the record.
pub(crate) fn described(lab: &Lab) -> Network {
    Network {
        server: SERVER.to_string(),
        load: CLIENT.to_string(),
        queues: lab.queues(),
        polled: lab.stands(Part::Napi) == Part::Napi.fresh(),
    }
}

fn surroundings(server_cpus: &CpuSet) -> Result<Surroundings, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::error("cannot find this program").because(&error))?;
    let allowed =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    let root = dyno_lab::user::is_root();
    let available =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let controls = if root { available } else { allowed };
    Ok(Surroundings {
        program: program.display().to_string(),
        server_cpus: server_cpus.len(),
        congestion_controls: controls.split_whitespace().map(str::to_owned).collect(),
        allocators: allocators(),
        network: None,
    })
}

/// Allocators that a distribution puts where the loader looks.
fn allocators() -> Vec<String> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
    ];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut paths: Vec<String> = files.map(|file| file.path().display().to_string()).collect();
    paths.sort();
    let wanted =
        |name: &str| paths.iter().find(|path| path.contains(name) && !path.contains("secure")).cloned();
    ["/libmimalloc.so", "/libjemalloc.so", "/libtcmalloc_minimal.so"]
        .iter()
        .filter_map(|name| wanted(name))
        .collect()
}

fn order(text: &str) -> Result<Order, Failure> {
    match text {
        "default" | "given" => Ok(Order::Given),
        "reverse" => Ok(Order::Reverse),
        _ => match text.strip_prefix("shuffle:").and_then(|seed| seed.parse().ok()) {
            Some(seed) => Ok(Order::Shuffle(seed)),
            None => Err(Failure::usage(format!(
                "--order cannot be \"{text}\"; it takes default, given, reverse, shuffle:SEED"
            ))),
        },
    }
}

/// The rungs that `--rung` chose, or all but those that must be chosen.
fn chosen<'p>(plan: &'p Plan, only: &[String]) -> Vec<&'p Rung> {
    plan.rungs.iter().filter(|rung| rung.is_wanted(only)).collect()
}

/// Figures that a climb of this plan will have, by name.
fn figures(plan: &Plan, only: &[String]) -> Vec<Known> {
    let known = |name: String, unit| Known { name, unit, alone: unit };
    let rungs = chosen(plan, only).into_iter();
    let rungs = rungs
        .flat_map(|rung| [RUNG, STEP].map(|prefix| known(format!("{prefix}{}", rung.id), Unit::Percent)));
    Known::of(&of_climb(&Record::default())).into_iter().chain(rungs).collect()
}

/// What came of the conditions. A rung that the climb never came to is a figure that was not measured, and no unknown name.
fn held(conditions: &gate::Conditions, record: &Record, known: &[Known]) -> Result<Vec<Held>, Failure> {
    let mut sheet = of_climb(record);
    for one in known.iter().filter(|one| record.rungs.is_empty() || one.name.contains('.')) {
        if sheet.figure(&one.name).is_none() {
            let figure = Figure::new(&one.name, "", (one.unit, Better::Neither), None);
            sheet.figures.push(figure.basis("the climb did not come to it"));
        }
    }
    conditions.hold(&sheet)
}

fn list(plan: &Plan, only: &[String], columns: Option<usize>) -> String {
    let listed = |rung: &&Rung| only.is_empty() || rung.is_wanted(only);
    let rungs: Vec<&Rung> = plan.rungs.iter().filter(listed).collect();
    let width = rungs.iter().map(|rung| rung.id.chars().count()).max().unwrap_or(0).min(NAME_COLUMNS_MAX);
    let set = |rung: &Rung| format!("{}={}", visible(&rung.dial), visible(&rung.to));
    let widest = rungs.iter().map(|rung| set(rung).chars().count()).max().unwrap_or(0).min(NAME_COLUMNS_MAX);
    let line = |rung: &&Rung| {
        let [id, claim] = [&rung.id, &rung.claim].map(|text| visible(text));
        let set = set(rung);
        let only = if rung.only_named { format!("; only with --rung {id}") } else { String::new() };
        let risk = Some(&rung.risk).filter(|risk| is_a_risk(risk));
        let risk = risk.map(|risk| format!("; risk: {}", visible(risk))).unwrap_or_default();
        let when = only + &risk;
        let lead = format!("{id:width$}  {set:widest$}  ");
        // Beside a lead of half the line a claim would be a pillar of words.
        match columns.filter(|columns| lead.chars().count() * 2 > *columns) {
            None => text::beside(&lead, &format!("{claim}{when}"), columns),
            Some(_) => {
                text::beside("", lead.trim_end(), columns)
                    + &text::beside("    ", &format!("{claim}{when}"), columns)
            }
        }
    };
    rungs.iter().map(line).collect()
}

pub(crate) fn new_record(server_cpus: &CpuSet, load_cpus: &[usize]) -> Record {
    let mut load = CpuSet::empty();
    load_cpus.iter().for_each(|cpu| load.insert(*cpu));
    Record {
        schema: CLIMB_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: dyno_sys::clock::real_coarse_s(),
        command: this_run::command_line(),
        machine: Machine { server_cpus: server_cpus.to_string(), load_cpus: load.to_string(), ..machine() },
        ..Record::default()
    }
}

pub(crate) fn finish_machine(record: &mut Record, world: &World<'_>) {
    let tally = world.tally();
    let spent = tally.spent();
    let percent = |ns: u64| 100.0 * ns as f64 / spent.all_ns.max(1) as f64;
    record.machine.steal_percent = percent(spent.steal_ns);
    record.machine.foreign_percent = percent(tally.foreign_ns(&spent));
    record.machine.generator_us_per_request = tally.generator_ns as f64 / 1e3 / tally.replies.max(1) as f64;
    let unquiet = record.machine.steal_percent + record.machine.foreign_percent;
    if unquiet > UNQUIET_PERCENT {
        let what = "steal and foreign CPU";
        let means = "intervals are wider; the order of rungs is still sound";
        record.warnings.push(format!("{what} {unquiet:.0} %: {means}"));
    }
}

/// What became of the record's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Anew,
    /// An older record is there, and this climb measured nothing.
    OlderStays,
}

/// Where record and report go.
struct OutputNames {
    record: PathBuf,
    /// `None` where the record goes to a device or a pipe.
    page: Option<PathBuf>,
}

impl OutputNames {
    fn new(args: &cli::Climb) -> Result<Self, Failure> {
        let record = args.output.clone().unwrap_or_else(|| PathBuf::from("climb.json"));
        if record.as_os_str() == "-" {
            return Err(Failure::usage("-o - is no file, and a climb writes two")
                .likely("the record was to go to standard output")
                .try_this("dyno climb --json"));
        }
        // Beside a device or a pipe there is no place for a page.
        let is_file = std::fs::metadata(&record).map_or(true, |file| file.is_file() || file.is_dir());
        let page = is_file.then(|| record.with_extension("html"));
        if page.as_ref() == Some(&record) {
            return Err(Failure::usage(format!(
                "-o {} would be both record and report; name a .json",
                record.display()
            )));
        }
        for path in std::iter::once(&record).chain(&page) {
            file::can_be_written(path)?;
        }
        Ok(Self { record, page })
    }

    fn write(&self, record: &Record, owner: Option<(u32, u32)>) -> Result<Written, Failure> {
        // What was measured once is worth more than that nothing was this time.
        if record.series.trials.is_empty() && self.record.is_file() {
            return Ok(Written::OlderStays);
        }
        let json = serde_json::to_vec(record)
            .map_err(|error| Failure::error("the record cannot be written").because(&error))?;
        file::write_file(&self.record, &json, owner)?;
        if let Some(page) = &self.page {
            file::write_file(page, dyno_report::page::climb::render(record).as_bytes(), owner)?;
        }
        Ok(Written::Anew)
    }

    /// Where they lie, for the end of the table.
    fn line(&self) -> String {
        let page = self.page.as_ref().map(|page| format!("report    {}      ", page.display()));
        format!("\n{}record  {}\n", page.unwrap_or_default(), self.record.display())
    }
}

/// Live progress on stderr: one line that rewrites itself on a terminal, a line per finished rung elsewhere.
pub(crate) struct Screen {
    place: Place,
    width: usize,
    shown_ns: u64,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { place: Place::of_stderr(), width: out::terminal_width(), shown_ns: 0 }
    }

    pub(crate) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Pair { stage, name, pair, of, estimate, left_ns }
                if self.place == Place::Terminal && self.due() =>
            {
                let effect = estimate.map(|e| {
                    let [low, high] = e.interval_percent();
                    (e.percent(), (high - low) / 2.0)
                });
                let left = Duration::from_nanos(*left_ns);
                let line = Progress { stage, rung: name, pair: *pair, pairs_max: *of, effect, left }
                    .line(self.width);
                self.place.rewrite(&line);
            }
            Event::Pair { .. } => {}
            Event::Noise(noise) => {
                self.clear();
                let aa = number::effect(noise.aa_percent, noise.interval_percent);
                let least = noise.visible_percent;
                let starts = noise.starts_percent.map(|percent| format!(", starts differ by {percent:.1} %"));
                let starts = starts.unwrap_or_default();
                out::say(&format!(
                    "noise: A against A {aa}{starts}; effects from {least:.1} % up are visible\n"
                ));
            }
            Event::Begins(suffices) => out::say(&suffices_words(suffices)),
            Event::Rung(rung) => {
                self.clear();
                out::say(&rung_line(rung));
            }
            Event::Confirmed(rung) => {
                self.clear();
                out::say(&confirmed_line(rung));
            }
        }
    }

    /// Ten times a second is as fast as anyone reads, and costs the generator nothing.
    fn due(&mut self) -> bool {
        let now_ns = dyno_sys::clock::mono_ns();
        let due = now_ns - self.shown_ns > 100_000_000;
        if due {
            self.shown_ns = now_ns;
        }
        due
    }

    pub(crate) fn clear(&self) {
        self.place.clear();
    }
}

/// What the time suffices for, before anything is measured.
fn suffices_words(suffices: &Suffices) -> String {
    let Suffices { rungs, measured, pairs, needed_ns } = *suffices;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let each = format!("some {pairs} pairs each");
    match rungs == measured {
        true => format!("time: enough for {rungs} rung{}, {each}\n", plural(rungs)),
        false => {
            let seconds = needed_ns.div_ceil(1_000_000_000).next_multiple_of(10);
            format!(
                "time: enough for {measured} of {rungs} rungs, {each}; all need --time {seconds}s or more\n"
            )
        }
    }
}

/// What a step came to. It may hold what a plan or a server said: nothing in it is for the terminal to obey.
fn rung_line(rung: &RungRecord) -> String {
    let attempt = &rung.attempt;
    let effect = match (attempt.effect_percent, attempt.interval_percent) {
        (Some(effect), Some(interval)) => format!("{}  ", number::effect(effect, interval)),
        _ => String::new(),
    };
    let word = match attempt.verdict {
        RungVerdict::Kept => "better so far",
        other => other.words(),
    };
    format!("{}: {effect}{word} ({})\n", visible(&rung.id), visible(&attempt.why))
}

/// What it came to when it was turned back on fresh data.
fn confirmed_line(rung: &RungRecord) -> String {
    let (id, verdict) = (visible(&rung.id), rung.attempt.verdict);
    let gain = rung.leave_one_out.map(|gain| number::effect(gain.effect_percent, gain.interval_percent));
    let gain = gain.map(|gain| format!("{gain}  ")).unwrap_or_default();
    match verdict {
        RungVerdict::Kept => format!("{id}: {gain}confirmed\n"),
        other => format!("{id}: {gain}{} ({})\n", other.words(), visible(&rung.attempt.why)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_step_is_better_so_far_until_it_is_confirmed() {
        let climb = Record::from_json(include_str!("../../tests/golden/climb.json")).unwrap();
        let kept = climb.rungs.iter().find(|rung| rung.attempt.verdict == RungVerdict::Kept).unwrap();
        let mut rung = kept.clone();
        rung.attempt.why = "the interval excludes zero".into();
        assert!(
            rung_line(&rung).ends_with("better so far (the interval excludes zero)\n"),
            "{}",
            rung_line(&rung)
        );
        assert!(confirmed_line(&rung).ends_with("confirmed\n") && !rung_line(&rung).contains("kept"));
        let mut gone = rung.clone();
        (gone.attempt.verdict, gone.attempt.why) = (RungVerdict::Unconfirmed, "gone \u{1b}[2J".into());
        assert!(confirmed_line(&gone).contains("unconfirmed (gone"), "{}", confirmed_line(&gone));
        assert!(!confirmed_line(&gone).contains('\u{1b}'));
    }

    #[test]
    fn the_load_goes_where_the_servers_are_not() {
        let two = [vec![0], vec![1]];
        let on = |cpus: &str| Some(cpus.parse::<CpuSet>().unwrap());
        assert_eq!(load_by_default(&two, None), [1]);
        assert_eq!(load_by_default(&two, on("0").as_ref()), [1]);
        assert_eq!(load_by_default(&two, on("1").as_ref()), [0]);
        assert_eq!(load_by_default(&two, on("0-1").as_ref()), [1], "both share it");
        let siblings = [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]];
        assert_eq!(load_by_default(&siblings, on("3").as_ref()), [1, 5, 2, 6]);
        assert_eq!(load_by_default(&siblings, on("0-3").as_ref()), [4, 5, 6, 7]);
    }

    #[test]
    fn a_host_that_is_not_back_outweighs_whatever_else_went_wrong() {
        let mut told = Told::default();
        for (code, wanted) in [(1, 1), (2, 1), (exit::INTERRUPTED, 130), (2, 130), (3, 3), (130, 3), (2, 3)] {
            told.weigh(code);
            assert_eq!(told.code, wanted, "after {code}");
        }
    }
}
