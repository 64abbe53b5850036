//! The history of benches: one line of JSON per run in `bench/history.jsonl`, with where and how it was measured.

use std::fs::File;
use std::io::Write;

use serde_json::{Value, json};

use super::options::Options;
use super::series::Series;
use crate::command::{command, output};
use crate::repo::Repo;
use crate::trouble::Trouble;

/// Name and number of a line's shape.
const SCHEMA: &str = "dyno.bench/1";

/// Adds a run; `loads` are its parts by name.
pub(crate) fn append(
    repo: &Repo,
    options: &Options,
    bench: &str,
    loads: &[(String, Vec<Series>)],
) -> Result<(), Trouble> {
    let slice_s = options.slice.as_secs_f64();
    let line = json!({
        "schema": SCHEMA, "bench": bench, "unix_s": super::options::unix_s(), "commit": commit(repo), "machine": machine(),
        "seed": options.seed, "slice_s": slice_s, "server_cpu": options.server_cpu, "load_cpu": options.load_cpu,
        "loads": loads.iter().map(|(name, all)| of_load(name, all)).collect::<Vec<_>>(),
    });
    let file = File::options().create(true).append(true).open(&options.history);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.map_err(Trouble::cannot(format!("write {}", options.history.display())))
}

/// Every slice is kept: anybody can judge again.
fn of_load(name: &str, all: &[Series]) -> Value {
    let arms = all.iter().map(|series| {
        let cpu: Vec<f64> = series.slices.iter().map(|slice| rounded(slice.cpu_us, 1e4)).collect();
        let user = series.slices.iter().map(|slice| slice.user_us.map(|user| rounded(user, 1e4)));
        let rate: Vec<f64> = series.slices.iter().map(|slice| rounded(slice.per_s, 1.0)).collect();
        json!({ "arm": series.name, "cpu_us_per_request": cpu,
            "user_us_per_request": user.collect::<Vec<_>>(), "requests_per_s": rate })
    });
    json!({ "load": name, "arms": arms.collect::<Vec<_>>() })
}

fn rounded(value: f64, scale: f64) -> f64 {
    (value * scale).round() / scale
}

/// The commit, marked when files differ from it; null outside a checkout.
fn commit(repo: &Repo) -> Value {
    let words = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    output(command(words).current_dir(repo.root())).map_or(Value::Null, |text| text.trim().into())
}

fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, name)| name);
    json!({
        "cpus": cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
        "model": model,
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "congestion": read("/proc/sys/net/ipv4/tcp_congestion_control").trim(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::series::Slice;

    #[test]
    fn every_slice_is_kept() {
        let slices = vec![
            Slice { cpu_us: 6.123_456, user_us: Some(0.5), per_s: 120_000.4 },
            Slice { cpu_us: 7.0, user_us: None, per_s: 1.0 },
        ];
        let line = of_load("json", &[Series { name: "floor".to_owned(), slices }]);
        let expected = json!({ "load": "json", "arms": [
            { "arm": "floor", "cpu_us_per_request": [6.1235, 7.0], "user_us_per_request": [0.5, null],
              "requests_per_s": [120_000.0, 1.0] },
        ]});
        assert_eq!(line, expected);
    }
}
