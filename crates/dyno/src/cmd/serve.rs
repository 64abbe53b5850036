//! `dyno serve`: the engine's supervisor with its configuration from flags, environment and file.
//!
//! Started as root its workers become somebody else, see [`user`]. Standard output is the access log's; everything that happens is told on standard error. It forks, so nothing here
//! starts a thread.

mod bytes;
mod clients;
mod content;
mod file;
mod hosts;
mod layers;
mod logs;
mod manager;
mod settings;
mod show;
mod told;
mod trouble;
mod upgrade;
mod user;
mod variables;
mod voice;
mod what;

use crate::out;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use dyno_engine::master::{self, Setup};
use dyno_engine::supervisor;
use dyno_engine::{Addr, Config, DialError, Dials, EngineError, Limits, Router, handler};
use dyno_sys::child;

use super::exit;
use crate::cli;
use dyno_lab::Failure;
use dyno_record::alike;
use layers::{Effective, Origin};
use manager::Manager;
pub(crate) use trouble::{engine_failure, url};
use voice::{Voice, Voices};

/// Runs the verb.
pub(crate) fn run(args: &cli::Serve) -> Result<ExitCode, Failure> {
    // First of all, before anything else could be opened under these numbers.
    let control = match args.control_fd {
        Some(number) => Some(child::take_inherited(number).map_err(|error| {
            let what = format!("cannot take orders on descriptor {number}");
            let likely = "whoever started it left nothing open under that number";
            Failure::error(what).because(&error).likely(likely).try_this("dyno serve, without --control-fd")
        })?),
        None => None,
    };
    let own = upgrade::own(|name| std::env::var_os(name))?;
    let effective = effective().map_err(all_but_one)?;
    let args = &effective.args;
    if args.show_config {
        out::print(&show::shown(&effective, &sane(args)?))?;
        return Ok(exit::DONE);
    }
    if args.bytes.bytes_report.is_some() {
        let Config { content, hosts, .. } = whole(&effective)?;
        let replies = dyno_engine::account(content, hosts).map_err(|error| engine_failure(&error))?;
        out::print(&bytes::report(&args.bytes, &replies)?)?;
        return Ok(exit::DONE);
    }
    if args.check {
        user::of_workers(args.user.as_deref())?;
        return check(args, &whole(&effective)?);
    }
    let mut manager = Manager::of(|name| std::env::var_os(name), child::this())?;
    let (first, voice) = setup(&effective, &manager)?;
    let inherited = manager.take_listeners()?;
    let is_set = effective
        .settings
        .iter()
        .any(|(setting, _, origin)| setting.id == "listen" && *origin != Origin::Default);
    if !inherited.is_empty() && is_set {
        out::say("warning: it is listened where the service manager says, not where listen is set\n");
    }
    let first = Setup { config: Config { control, inherited, ..first.config }, ..first };
    let voices = Voices::new(voice);
    let mut again = || again(&manager, &voices);
    let report = master::run(first, own, &mut again, &mut |event| {
        manager.tell(&event);
        voices.tell(&event);
    });
    match report {
        Ok(report) => voices.say(&told::end(&report)),
        // It was told where it happened.
        Err(EngineError::NotStarted { .. }) => return Ok(ExitCode::from(exit::ERROR)),
        Err(error) => return Err(engine_failure(&error)),
    }
    Ok(exit::DONE)
}

/// The settings as the command line, the environment and the file have them at this moment.
fn effective() -> Result<Effective, Vec<Failure>> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let variables: Vec<_> = std::env::vars_os().collect();
    layers::effective(&line, settings::all(), &variables)
}

/// The engine's configuration, where the settings agree with each other.
fn sane(args: &cli::Serve) -> Result<Config, Failure> {
    let config = config(args).map_err(|error| unknown_word(&error))?;
    private(args)?;
    clients::check(&args.clients)?;
    logs::check(&args.logs, &config)?;
    Ok(config)
}

/// The settings with what they say of folders and hosts.
fn whole(effective: &Effective) -> Result<Config, Failure> {
    let args = &effective.args;
    let config = sane(args)?;
    let hosts = hosts::of(effective)?;
    let content = content::mounts(&args.content, hosts::roots(effective))?;
    Ok(Config { content, hosts, ..config })
}

/// What is to be served, and how is told of it.
fn setup(effective: &Effective, manager: &Manager) -> Result<(Setup, Voice), Failure> {
    let args = &effective.args;
    let config = whole(effective)?;
    let is_demo = config.content.is_empty() && !hosts::answer(effective);
    let user = user::of_workers(args.user.as_deref())?;
    logs::warn_of_none(&config);
    let who = user.as_ref().map_or_else(String::new, |user| format!("as user {}\n", user.name));
    let dials = config.dials.clone();
    let routes = move || match is_demo {
        true => handler::demo(&dials).expect("the routes are fixed, and a test of the engine adds them all"),
        false => Router::new(),
    };
    let errors = logs::open_errors(&args.logs)?;
    let (user, alive_ns) = (user.map(|user| user.identity), manager.alive_ns());
    let error_log = Some(errors.clone());
    let config = Config { user, alive_ns, error_log, ..config };
    Ok((Setup { config, routes: Box::new(routes) }, Voice { who, errors }))
}

/// New settings, or everything that is wrong with them in one line.
fn again(manager: &Manager, voices: &Voices) -> Result<Setup, String> {
    let in_lines =
        |mistakes: Vec<Failure>| mistakes.iter().map(Failure::in_one_line).collect::<Vec<_>>().join("; ");
    let effective = effective().map_err(in_lines)?;
    if effective.args.what.as_deref().is_some_and(|what| what.as_os_str() == "-") {
        return Err("they came from standard input, which cannot be read again".to_owned());
    }
    let (setup, voice) = setup(&effective, manager).map_err(|failure| failure.in_one_line())?;
    voices.prepare(voice);
    Ok(setup)
}

/// Says whether these settings would serve.
fn check(args: &cli::Serve, config: &Config) -> Result<ExitCode, Failure> {
    logs::check_errors(&args.logs)?;
    logs::warn_of_none(config);
    let busy = supervisor::check(config).map_err(|error| engine_failure(&error))?;
    for addr in busy {
        let place = url(&addr);
        out::say(&format!(
            "warning: {place} is in use now; that is as it should be if this server runs there\n"
        ));
    }
    let what = args.what.as_deref().map_or_else(|| "it".to_owned(), dyno_lab::file::name);
    out::print(&format!("{what} would serve\n"))?;
    Ok(exit::DONE)
}

/// Metrics are nobody else's business, unless that is said.
fn private(args: &cli::Serve) -> Result<(), Failure> {
    match &args.metrics {
        Some(Addr::Tcp(addr)) if !addr.ip().is_loopback() && !args.metrics_public => {
            Err(Failure::usage(format!("others than this machine could read the metrics on {addr}"))
                .likely("it is no address of this machine's own (127.0.0.1, [::1] or unix:/path)")
                .try_this(format!("--metrics 127.0.0.1:{}, or --metrics-public", addr.port())))
        }
        _ => Ok(()),
    }
}

/// Says every mistake but the last, which is the failure's to say.
fn all_but_one(mut mistakes: Vec<Failure>) -> Failure {
    let last = mistakes.pop().expect("who fails has a reason");
    mistakes.iter().for_each(|mistake| out::say(&mistake.lines()));
    last
}

/// The engine's configuration for these flags.
///
/// # Errors
/// When a dial does not know its word.
pub(crate) fn config(args: &cli::Serve) -> Result<Config, DialError> {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let usual = Limits::default();
    let limits = Limits {
        buffer_bytes_max: args.buffer_bytes_max.unwrap_or(usual.buffer_bytes_max),
        line_bytes_max: args.line_bytes_max.get(),
        head_bytes_max: args.head_bytes_max.get(),
        body_bytes_max: args.body_bytes_max,
        connections_max: args.connections_max.get(),
        head_ns: ns(args.header_timeout),
        idle_ns: ns(args.idle_timeout),
        body_ns: ns(args.body_timeout),
        write_ns: ns(args.write_timeout),
        address: clients::limits(&args.clients),
        ..usual
    };
    Ok(Config {
        listen: args.listen.clone(),
        dials: dials(args)?,
        limits,
        log_file: args.logs.log_file.clone(),
        log_format: args.logs.log_format.clone(),
        log_fsync: args.logs.log_fsync,
        drain_ns: ns(args.drain_timeout),
        retire_ns: ns(args.retire_timeout),
        hand_over_ns: ns(args.hand_over_timeout),
        socket_mode: args.socket_mode,
        metrics: args.metrics.clone(),
        clients: clients::of(&args.clients),
        error_log: None,
        inherited: Vec::new(),
        alive_ns: None,
        control: None,
        user: None,
        sandbox: args.sandbox.into(),
        content: Vec::new(),
        hosts: Vec::new(),
    })
}

/// The start, which depends on the number of workers, and over it every dial that was given.
fn dials(args: &cli::Serve) -> Result<Dials, DialError> {
    let mut dials = if args.naive { Dials::naive() } else { Dials::default() };
    if let Some(word) = args.dials.word("workers") {
        dials.set("workers", word)?;
        if !args.naive {
            dials = Dials::for_workers(dials.workers.count());
        }
    }
    for (name, word) in args.dials.given() {
        dials.set(name, word)?;
    }
    Ok(dials)
}

/// What a dial takes, after the word of it that was perhaps meant.
fn takes(word: &str, choices: &str) -> String {
    let words = choices.split(", ").flat_map(|part| part.split(" or ")).filter(|one| !one.contains(' '));
    let question = alike::did_you_mean(word, words).map(|question| question + " ").unwrap_or_default();
    format!("{question}it takes {choices}")
}

fn unknown_word(error: &DialError) -> Failure {
    match error {
        DialError::UnknownWord { dial, word, choices } => {
            let what = format!("--{dial} cannot be \"{word}\"");
            Failure::usage(what).likely(takes(word, choices)).try_this("dyno serve --help")
        }
        DialError::UnknownDial { .. } => Failure::usage(error.to_string()).try_this("dyno serve --help"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;
    use dyno_climb::built_in::built_in;
    use dyno_climb::plan::Plan;
    use dyno_climb::rung::{NetworkHere, Surroundings};

    fn serve(words: &[&str]) -> Box<cli::Serve> {
        let cli = Cli::try_parse_from(["dyno", "serve"].iter().chain(words)).unwrap();
        let Some(Verb::Serve(args)) = cli.verb else { panic!("serve was asked for") };
        args
    }

    fn dials_of(words: &[&str]) -> Dials {
        config(&serve(words)).unwrap().dials
    }

    #[test]
    fn without_flags_everything_is_as_the_engine_has_it() {
        let (ours, theirs) = (config(&serve(&[])).unwrap(), Config::default());
        assert_eq!((ours.listen, ours.dials, ours.limits), (theirs.listen, theirs.dials, theirs.limits));
        assert_eq!((ours.log_file, ours.drain_ns), (theirs.log_file, theirs.drain_ns));
    }

    #[test]
    fn a_dial_that_is_given_wins_over_naive_in_any_order() {
        let wanted = Dials { log: dyno_engine::Log::Ring, ..Dials::naive() };
        assert_eq!(dials_of(&["--naive", "--log", "ring"]), wanted);
        assert_eq!(dials_of(&["--log", "ring", "--naive"]), wanted);
    }

    #[test]
    fn several_workers_get_their_own_defaults_unless_told_otherwise() {
        assert_eq!(dials_of(&["--workers", "3"]), Dials::for_workers(3.try_into().unwrap()));
        let told = dials_of(&["--workers", "3", "--reuseport", "cpu", "--pin", "none"]);
        assert_eq!((told.reuseport, told.pin), (dyno_engine::Reuseport::Cpu, dyno_engine::Pin::None));
        assert_eq!(dials_of(&["--naive", "--workers", "3"]).reuseport, dyno_engine::Reuseport::Off);
    }

    #[test]
    fn every_dial_has_a_flag_of_its_name() {
        for name in Dials::NAMES {
            let word = Dials::default().get(name).unwrap();
            let flag = format!("--{name}");
            assert_eq!(dials_of(&["--naive", &flag, &word]).get(name), Some(word));
        }
    }

    #[test]
    fn a_word_that_a_dial_does_not_know_is_answered_with_its_choices() {
        let lines = unknown_word(&config(&serve(&["--log", "loud"])).unwrap_err()).lines();
        assert!(
            lines.starts_with(
                "error: --log cannot be \"loud\"\n  likely: it takes sync, ring, commit or off\n"
            )
        );
    }

    /// The climb turns dials by the words of these flags; it must not invent any.
    #[test]
    fn every_value_of_the_built_in_plan_is_a_flag_that_the_engine_takes() {
        let surroundings = Surroundings {
            program: "dyno".into(),
            server_cpus: 4,
            congestion_controls: vec!["reno".into(), "cubic".into()],
            allocators: vec!["/usr/lib/libmimalloc.so.2".into()],
            network: Some(NetworkHere { server_mask: "1".into(), ..NetworkHere::default() }),
        };
        let plan: Plan = built_in(&surroundings);
        let words: Vec<&str> = plan
            .dials
            .iter()
            .flat_map(|dial| &dial.values)
            .flat_map(|value| &value.words)
            .map(String::as_str)
            .collect();
        assert!(words.len() > 20, "the plan turns dials by words");
        for dial in &plan.dials {
            for value in &dial.values {
                let words: Vec<&str> = value.words.iter().map(String::as_str).collect();
                config(&serve(&words)).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            }
        }
    }
}
