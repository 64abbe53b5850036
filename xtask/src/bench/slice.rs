//! One slice: a short run of a generator, and the CPU per request that it or its server used.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::options::Options;
use super::series::Slice;
use crate::command::{command, output, shown};
use crate::server::Server;
use crate::trouble::Trouble;

/// `dyno load` on the load CPU.
pub(crate) fn dyno_load(
    dyno: &Path,
    options: &Options,
    server: &Server,
    path: &str,
    connections: usize,
) -> Command {
    let (milliseconds, cpu) = (options.slice.as_millis(), options.load_cpu.to_string());
    let mut generator = command([dyno.to_string_lossy()]);
    generator.arg("load").arg(format!("http://{}{path}", server.addr())).args(["-t", "1"]);
    generator.args(["-c", &connections.to_string(), "-d", &format!("{milliseconds}ms")]);
    generator.args(["--pin", &cpu, "--json"]);
    generator
}

/// The server's CPU per request, as `dyno load` reads it.
pub(crate) fn of_server(mut generator: Command, pid: u32) -> Result<Slice, Trouble> {
    generator.args(["--pid", &pid.to_string()]);
    let record = record(&output(&mut generator)?, &generator)?;
    without_errors(&record, &generator)?;
    let cpu_us = number(&record, &["server", "cpu_us_per_request", "total"], &generator)?;
    // Null when no tick of the kernel's clock hit the server.
    let user_us = record["server"]["cpu_us_per_request"]["user"].as_f64();
    let per_s = number(&record, &["requests_per_second"], &generator)?;
    Ok(Slice { cpu_us, user_us, per_s })
}

/// A generator's run, measured from outside: its CPU by its parent, its requests by what it says.
pub(crate) struct Measured {
    /// User and system time, start and connecting included, in microseconds.
    pub(crate) cpu_us: f64,
    /// What it printed.
    pub(crate) printed: String,
}

/// Runs a generator; bash prints the CPU of its child to the millisecond, for which there is no call in std.
pub(crate) fn measured(generator: &Command, cpu: usize) -> Result<Measured, Trouble> {
    let script = "TIMEFORMAT='%3U %3S'; time \"$@\" 2>/dev/null";
    let mut timed = command(["bash", "-c", script, "bash", "taskset", "-c", &cpu.to_string()]);
    timed.arg(generator.get_program()).args(generator.get_args());
    let run = timed.output().map_err(Trouble::cannot(format!("run {}", shown(&timed))))?;
    let said = String::from_utf8_lossy(&run.stderr);
    if !run.status.success() {
        return Err(Trouble::new(format!("{} ended with {}", shown(generator), run.status)));
    }
    let cpu_us = seconds(&said).ok_or_else(|| Trouble::new(format!("bash printed no times: {said}")))? * 1e6;
    Ok(Measured { cpu_us, printed: String::from_utf8_lossy(&run.stdout).into_owned() })
}

/// The sum of user and system time on the last line.
fn seconds(said: &str) -> Option<f64> {
    let (user, system) = said.trim().lines().last()?.split_once(' ')?;
    Some(user.parse::<f64>().ok()? + system.parse::<f64>().ok()?)
}

/// A number below these keys of what a generator printed as JSON.
pub(crate) fn number(record: &Value, keys: &[&str], from: &Command) -> Result<f64, Trouble> {
    let found = keys.iter().fold(record, |value, key| &value[key]);
    let missing = || {
        Trouble::new(format!("{} says no {}", shown(from), keys.join(".")))
            .likely("no request was answered, or its record has another shape now")
    };
    found.as_f64().filter(|value| *value > 0.0).ok_or_else(missing)
}

/// A server that answers wrongly, or a generator that stumbles, is not compared with one that does its work.
pub(crate) fn without_errors(record: &Value, from: &Command) -> Result<(), Trouble> {
    let errors = record["errors"].as_object().into_iter().flatten();
    let met: Vec<String> = errors
        .filter(|(_, count)| count.as_u64() != Some(0))
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    match met.is_empty() {
        true => Ok(()),
        false => Err(Trouble::new(format!("{} met errors: {}", shown(from), met.join(", ")))),
    }
}

/// What a generator printed as JSON.
pub(crate) fn record(printed: &str, from: &Command) -> Result<Value, Trouble> {
    serde_json::from_str(printed).map_err(Trouble::cannot(format!("read what {} printed", shown(from))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_times_of_bash_are_added() {
        assert_eq!(seconds("0.250 0.500\n"), Some(0.75));
        assert_eq!(seconds("words\n0.001 0.002"), Some(0.001 + 0.002));
        assert_eq!(seconds("no times"), None);
    }

    /// A CPU that this process may use; a container need not have the first one.
    fn allowed_cpu() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        list.trim().split([',', '-']).next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_program_that_works_is_seen_to_have_used_cpu() {
        let work = command(["bash", "-c", "for ((i = 0; i < 100000; i++)); do :; done; echo done"]);
        let measured = measured(&work, allowed_cpu()).unwrap();
        assert!(measured.cpu_us >= 1_000.0, "{}", measured.cpu_us);
        assert_eq!(measured.printed, "done\n");
    }

    #[test]
    fn a_program_that_fails_is_trouble() {
        assert!(measured(&command(["false"]), allowed_cpu()).is_err());
    }

    #[test]
    fn a_slice_with_errors_is_trouble() {
        let read = |text| without_errors(&record(text, &command(["x"])).unwrap(), &command(["x"]));
        assert!(read("{\"errors\":{\"read\":0,\"status\":0}}").is_ok());
        let trouble = read("{\"errors\":{\"read\":0,\"status\":7}}").unwrap_err();
        assert!(trouble.to_string().contains("status 7"), "{trouble}");
    }

    #[test]
    fn a_number_that_is_missing_or_zero_is_trouble() {
        let record = record("{\"a\":{\"b\":2.5},\"c\":0}", &command(["x"])).unwrap();
        assert_eq!(number(&record, &["a", "b"], &command(["x"])).unwrap(), 2.5);
        assert!(number(&record, &["a", "c"], &command(["x"])).is_err());
        assert!(number(&record, &["c"], &command(["x"])).is_err());
    }
}
