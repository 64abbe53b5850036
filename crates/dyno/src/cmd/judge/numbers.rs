//! Lists of numbers as people have them: one per line, a JSON array, hyperfine's export, go's benchmark output.
//!
//! What a file is, its text tells: no flag and no ending decides. Every number must be positive, because effects are
//! ratios; one that is not is named with its line.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use dyno_lab::Failure;
use dyno_lab::file;
use dyno_report::number::visible;

/// Numbers of one file, all finite and above zero.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The file, as messages call it.
    pub(super) name: String,
    /// In the order of the file.
    pub(super) values: Vec<f64>,
    /// How many numbers each start of the program has, where the file says where starts begin; else all of them.
    pub(super) starts: Vec<usize>,
    /// Who wrote them.
    pub(super) source: Source,
    /// What the last place of the finest number stands for, where numbers have a decimal point: counts have none.
    pub(super) step: Option<f64>,
    /// Runs that ended with another status than 0, as far as the file says.
    pub(super) failed: usize,
}

/// Who wrote a list of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Anybody.
    List,
    /// It starts the program anew for each number, and measures one program to its end.
    Hyperfine,
    /// It takes all numbers of a run from one process, and measures one benchmark to its end.
    Go,
}

impl Numbers {
    /// Reads a file; `wanted` names one benchmark of several.
    pub(super) fn read(path: &Path, wanted: Option<&String>) -> Result<Numbers, Failure> {
        let name = file::name(path);
        let text = String::from_utf8(file::read(path)?).map_err(|error| {
            let failure = Failure::error(format!("{name} is not text")).because(&error);
            failure.likely(FORMS).try_this("dyno judge --help")
        })?;
        Numbers::parse(name, &text, wanted)
    }

    pub(super) fn parse(name: String, text: &str, wanted: Option<&String>) -> Result<Numbers, Failure> {
        let text = text.trim_start_matches('\u{feff}');
        let reader = Reader { name: &name, wanted, step: Cell::new(None) };
        let one = |values: Vec<f64>| (vec![values.len()], values);
        let mut failed = 0;
        let ((starts, values), source) = match text.trim_start().as_bytes().first() {
            Some(b'[') => (one(reader.array(text)?), Source::List),
            Some(b'{') => {
                let (values, of_them) = reader.hyperfine(text)?;
                failed = of_them;
                (one(values), Source::Hyperfine)
            }
            _ if text.lines().any(is_go_result) => (reader.go(text)?, Source::Go),
            _ => (reader.lines(text)?, Source::List),
        };
        let step = reader.step.get();
        Ok(Numbers { name, values, starts, source, step, failed })
    }

    /// What rounding may have made of the smallest number, log; nothing of counts.
    pub(super) fn rounding(&self) -> f64 {
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        self.step.map_or(0.0, |step| 0.5 * step / least)
    }

    /// The numbers of each start.
    pub(super) fn by_start(&self) -> Vec<&[f64]> {
        let mut rest = &self.values[..];
        let take = |length: &usize| {
            let (start, later) = rest.split_at(*length);
            rest = later;
            start
        };
        self.starts.iter().map(take).collect()
    }

    /// Whether it says of several numbers that they are of one start, and of others that they are of another.
    pub(super) fn has_starts(&self) -> bool {
        self.starts.len() > 1 && self.starts.len() < self.values.len()
    }
}

/// A line by which a list says that what follows is another start of the program; any words may stand after it.
const START: &str = "start";

fn is_start(line: &str) -> bool {
    let comment = line.trim().strip_prefix('#').map(str::trim_start);
    comment.is_some_and(|words| {
        words.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case(START))
    })
}

/// How many numbers stand between each two beginnings of a start, where there are any; both by line.
fn lengths(numbers: impl Iterator<Item = usize>, begins: &[usize]) -> Vec<usize> {
    let mut lengths = vec![0; begins.len() + 1];
    for line in numbers {
        lengths[begins.partition_point(|begin| *begin < line)] += 1;
    }
    lengths.retain(|length| *length > 0);
    lengths
}

pub(super) const FORMS: &str = "it must hold numbers, one per line, a JSON array of them, hyperfine's --export-json, or go test -bench output";

/// What is read of one file, with the file's name for messages.
struct Reader<'r> {
    name: &'r str,
    wanted: Option<&'r String>,
    /// The finest step of the numbers so far.
    step: Cell<Option<f64>>,
}

/// What the last place of a number with a decimal point stands for.
fn step(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (_, places) = mantissa.split_once('.')?;
    Some(10_f64.powi(exponent.parse::<i32>().ok()? - i32::try_from(places.len()).ok()?))
}

impl Reader<'_> {
    /// Lengths of starts, and all numbers.
    fn lines(&self, text: &str) -> Result<(Vec<usize>, Vec<f64>), Failure> {
        self.no_name("is a list of numbers")?;
        let content = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
        let begins: Vec<usize> =
            (0..).zip(text.lines()).filter(|(_, line)| is_start(line)).map(|(at, _)| at).collect();
        let lines: Vec<(usize, String)> =
            text.lines().map(content).enumerate().filter(|(_, line)| !line.is_empty()).collect();
        let starts = lengths(lines.iter().map(|(at, _)| *at), &begins);
        let number = |(at, line): (usize, String)| self.number(&line, &format!("{}:{}", self.name, at + 1));
        Ok((starts, lines.into_iter().map(number).collect::<Result<_, _>>()?))
    }

    fn array(&self, text: &str) -> Result<Vec<f64>, Failure> {
        self.no_name("is a list of numbers")?;
        let values: Vec<Value> = self.json(text)?;
        if let Some(other) = values.iter().find(|value| !value.is_number()) {
            let failure = Failure::error(format!("{} holds {}, which is no number", self.name, kind(other)));
            return Err(failure.likely(FORMS).try_this("dyno judge --help"));
        }
        // An array of nothing but numbers has a comma between each two, and none elsewhere.
        let mut line = 1;
        let pieces = text.trim().trim_start_matches('[').trim_end_matches(']').split(',');
        let lead = text.len() - text.trim_start().len();
        line += text[..lead].matches('\n').count();
        let mut numbers = Vec::with_capacity(values.len());
        for piece in pieces.filter(|piece| !piece.trim().is_empty()) {
            let before = piece.len() - piece.trim_start().len();
            let at = line + piece[..before].matches('\n').count();
            numbers.push(self.number(piece.trim(), &format!("{}:{at}", self.name))?);
            line += piece.matches('\n').count();
        }
        Ok(numbers)
    }

    /// Times, and how many of the runs failed.
    fn hyperfine(&self, text: &str) -> Result<(Vec<f64>, usize), Failure> {
        let value: Value = self.json(text)?;
        if value.get("schema").is_some() {
            let failure = Failure::error(format!("{} is a record, not a list of numbers", self.name));
            return Err(failure
                .likely("a climb's record is judged alone")
                .try_this(format!("dyno judge {}", self.name)));
        }
        let Some(results) = value.get("results").and_then(Value::as_array) else {
            let failure = Failure::error(format!("{} is JSON without \"results\"", self.name));
            return Err(failure.likely(FORMS).try_this("hyperfine --export-json FILE COMMAND"));
        };
        let command = |result: &Value| result["command"].as_str().unwrap_or_default().to_owned();
        let chosen = self.chosen(&results.iter().map(command).collect::<Vec<_>>())?;
        let result = &results[chosen];
        let Some(times) = result["times"].as_array() else {
            let what = format!("{}: \"{}\" has no times", self.name, visible(&command(result)));
            return Err(Failure::error(what)
                .likely("hyperfine wrote it without single runs")
                .try_this("hyperfine --export-json"));
        };
        let time = |(at, time): (usize, &Value)| {
            self.number(&time.to_string(), &format!("{}: results[{chosen}].times[{at}]", self.name))
        };
        // Without -i it ends at the first of them; who was killed has no status.
        let codes = result["exit_codes"].as_array();
        let failed = codes.map_or(0, |codes| codes.iter().filter(|code| code.as_i64() != Some(0)).count());
        Ok((times.iter().enumerate().map(time).collect::<Result<_, _>>()?, failed))
    }

    fn go(&self, text: &str) -> Result<(Vec<usize>, Vec<f64>), Failure> {
        let results = go_results(text);
        let mut names: Vec<String> = Vec::new();
        for result in &results {
            if names.iter().all(|known| *known != result.name) {
                names.push(result.name.clone());
            }
        }
        let chosen = &names[self.chosen(&names)?];
        let mine: Vec<&GoResult<'_>> = results.iter().filter(|result| result.name == *chosen).collect();
        // Each run of the command is a process of its own, and says at its end how it went.
        let ends = text.lines().enumerate().filter(|(_, line)| is_go_end(line)).map(|(at, _)| at + 1);
        let starts = lengths(mine.iter().map(|result| result.line), &ends.collect::<Vec<_>>());
        let number =
            |result: &&GoResult<'_>| self.number(result.value, &format!("{}:{}", self.name, result.line));
        Ok((starts, mine.iter().map(number).collect::<Result<_, _>>()?))
    }

    /// The benchmark that is meant: by its name, or because it is the only one.
    fn chosen(&self, names: &[String]) -> Result<usize, Failure> {
        let listed = || {
            let names: BTreeSet<String> = names.iter().map(|name| format!("\"{}\"", visible(name))).collect();
            names.into_iter().collect::<Vec<_>>().join(", ")
        };
        let pick = |what: String| {
            let first = names.first().map_or("NAME", String::as_str);
            let failure = Failure::error(what).likely(format!("it has {}", listed()));
            Err(failure.try_this(format!("--name '{}'", visible(first))))
        };
        match self.wanted {
            None if names.len() == 1 => Ok(0),
            None if names.is_empty() => {
                let failure = Failure::error(format!("{} has no results", self.name));
                Err(failure.likely("nothing was measured").try_this("hyperfine --export-json FILE COMMAND"))
            }
            None => pick(format!("{} has {} benchmarks, one is judged at a time", self.name, names.len())),
            Some(wanted) => match names.iter().position(|name| name == wanted) {
                Some(at) => Ok(at),
                None => pick(format!("{} has no benchmark \"{}\"", self.name, visible(wanted))),
            },
        }
    }

    /// A list without names cannot be asked for one.
    fn no_name(&self, what: &str) -> Result<(), Failure> {
        let Some(wanted) = self.wanted else { return Ok(()) };
        let failure = Failure::usage(format!("{} has no benchmark \"{}\"", self.name, visible(wanted)));
        Err(failure.likely(format!("it {what}, without names")).try_this("dyno judge without --name"))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, Failure> {
        serde_json::from_str(text).map_err(|error| {
            let failure = Failure::error(format!("{}:{}: {error}", self.name, error.line()));
            failure.likely("it begins like JSON and is cut or damaged").try_this("python3 -m json.tool FILE")
        })
    }

    fn number(&self, text: &str, place: &str) -> Result<f64, Failure> {
        let refused = |why: &str, likely: &str| {
            let failure = Failure::error(format!("{place}: {} {why}", visible(text)));
            Err(failure.likely(likely).try_this("dyno judge --help"))
        };
        match text.parse::<f64>() {
            Err(_) => refused("is not a number", FORMS),
            Ok(value) if !value.is_finite() => {
                refused("is not finite", "a measurement failed, or divided by nothing")
            }
            Ok(value) if value <= 0.0 => {
                refused("is not above zero", "effects are ratios: times, sizes and rates are above zero")
            }
            Ok(value) => {
                let finest = [self.step.get(), step(text)].into_iter().flatten().reduce(f64::min);
                self.step.set(finest);
                Ok(value)
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// `ok  example.com/a  1.2s`, `PASS`, or the head of the next run.
fn is_go_end(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    ["ok", "PASS", "FAIL", "goos:", "pkg:"].contains(&word)
}

fn is_go_result(line: &str) -> bool {
    go_result(line).is_some()
}

/// A line of results.
struct GoResult<'t> {
    /// From 1.
    line: usize,
    /// What tells it from other benchmarks of the file.
    name: String,
    value: &'t str,
}

/// All results of the text. Two packages may have a benchmark of one name each: then the package is part of it.
fn go_results(text: &str) -> Vec<GoResult<'_>> {
    let (mut package, mut found) = ("", Vec::new());
    for (at, line) in text.lines().enumerate() {
        package = line.strip_prefix("pkg:").map_or(package, str::trim);
        found.extend(go_result(line).map(|(name, value)| (at + 1, package, name, value)));
    }
    let is_one_package = found.iter().all(|(_, package, ..)| *package == found[0].1);
    let end = cpus_of_all(found.iter().map(|(_, _, name, _)| *name)).map_or(0, |cpus| cpus.len() + 1);
    let results = found.iter().map(|&(line, package, name, value)| {
        let bare = &name[..name.len() - end];
        let name = if is_one_package { bare.to_owned() } else { format!("{package}.{bare}") };
        GoResult { line, name, value }
    });
    results.collect()
}

/// The name and the time of `BenchmarkServe-8   1000   1234 ns/op   512 B/op`.
fn go_result(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|name| name.starts_with("Benchmark"))?;
    let words: Vec<&str> = words.collect();
    let unit = words.iter().position(|word| *word == "ns/op")?;
    Some((name, words.get(unit.checked_sub(1)?)?))
}

/// Go adds `-8` for GOMAXPROCS 8, and nothing for 1; the same benchmark on another machine has another one. What not every
/// name ends in is told apart by it: `-cpu 1,4`, or a case of its own as `/size-10`.
fn cpus_of_all<'t>(mut names: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let cpus = |name: &'t str| name.rsplit_once('-').map(|(_, cpus)| cpus);
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let first = names.next().and_then(cpus).filter(is_number)?;
    names.all(|name| cpus(name) == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str, wanted: Option<&str>) -> Result<Vec<f64>, String> {
        let wanted = wanted.map(str::to_owned);
        let numbers = Numbers::parse("x.txt".to_owned(), text, wanted.as_ref());
        numbers.map(|numbers| numbers.values).map_err(|failure| failure.lines())
    }

    fn error(text: &str) -> String {
        read(text, None).unwrap_err()
    }

    const GO: &str = "goos: linux\npkg: x\nBenchmarkA-8   \t1000\t 1234 ns/op\t 5 B/op\nBenchmarkB-8 10 7.5 ns/op\n\
                      BenchmarkA-8   \t1000\t 1230.5 ns/op\nPASS\n";
    const HYPERFINE: &str =
        r#"{"results":[{"command":"a","mean":1,"times":[1.5,2]},{"command":"b","times":[3]}]}"#;

    #[test]
    fn lines_may_have_comments_blanks_and_a_windows_end() {
        assert_eq!(read("# before\n1\n\n 2.5 # slow\r\n3e-3\n", None).unwrap(), [1.0, 2.5, 0.003]);
        assert_eq!(read("\u{feff}1\n", None).unwrap(), [1.0]);
        assert!(read("", None).unwrap().is_empty());
    }

    fn starts(text: &str) -> Vec<usize> {
        Numbers::parse("x.txt".to_owned(), text, None).unwrap().starts
    }

    /// Planted faults: any comment is a start's, or none is; a start without numbers is one.
    #[test]
    fn a_list_says_where_starts_begin_and_go_by_its_runs() {
        assert_eq!(starts("# start\n1\n2\n\n3\n#start 2 of 3\n4\n# Start\n# start\n5\n6\n"), [3, 1, 2]);
        assert_eq!(starts("1\n2\n# start\n3\n"), [2, 1]);
        assert_eq!(starts("# starts\n1\n\n2\n3 # start\n4\n"), [4]);
        assert_eq!(starts("[1, 2]"), [2]);
        assert_eq!(starts(&GO.replace("BenchmarkB", "BenchmarkA")), [3]);
        let twice = format!("{GO}ok  \tx\t1.2s\n{GO}");
        let read = Numbers::parse("x".to_owned(), &twice, Some(&"BenchmarkA".to_owned())).unwrap();
        assert_eq!((&read.starts[..], read.source), (&[2, 2][..], Source::Go));
        assert_eq!(read.by_start(), [&[1234.0, 1230.5], &[1234.0, 1230.5]]);
        assert!(read.has_starts());
        let each = Numbers::parse("x".to_owned(), "1\n# start\n2\n", None).unwrap();
        assert!(!each.has_starts(), "a number each is a list of starts");
    }

    /// Planted faults: whole numbers have a step of one, or exponents are not counted.
    #[test]
    fn numbers_with_a_decimal_point_say_what_they_were_rounded_to() {
        let of = |text: &str| Numbers::parse("x".to_owned(), text, None).unwrap();
        assert_eq!(of("1\n2\n30\n").step, None);
        for (text, wanted) in
            [("0.01\n0.0250\n7", 1e-4), ("1.5e3", 100.0), ("2.5E-3", 1e-4), ("[0.1, 3]", 0.1)]
        {
            let step = of(text).step.unwrap();
            assert!((step / wanted - 1.0).abs() < 1e-9, "{text}: {step}");
        }
        assert_eq!((of("0.02\n0.01").rounding(), of("7").rounding()), (0.5, 0.0));
    }

    #[test]
    fn runs_that_failed_are_counted() {
        let of = |codes: &str| {
            let text = format!(r#"{{"results":[{{"command":"a","times":[1,2,3]{codes}}}]}}"#);
            Numbers::parse("x".to_owned(), &text, None).unwrap().failed
        };
        let codes = ["", r#","exit_codes":[0,0,0]"#, r#","exit_codes":[0,139,null]"#];
        assert_eq!(codes.map(of), [0, 0, 2]);
    }

    #[test]
    fn a_json_array_is_a_list() {
        assert_eq!(read("\n[1, 2.5,\n3]\n", None).unwrap(), [1.0, 2.5, 3.0]);
        assert!(read("[]", None).unwrap().is_empty());
    }

    #[test]
    fn a_bad_number_is_named_with_file_and_line() {
        for (text, place) in [
            ("1\n2\nthree\n", "x.txt:3: three is not a number"),
            ("1\n-2\n", "x.txt:2: -2 is not above zero"),
            ("0\n", "x.txt:1: 0 is not above zero"),
            ("1\ninf\n", "x.txt:2: inf is not finite"),
            ("nan", "x.txt:1: nan is not finite"),
            ("[1,\n2,\n-3]", "x.txt:3: -3 is not above zero"),
            ("\n[0]", "x.txt:2: 0 is not above zero"),
            ("BenchmarkA-8 1 0 ns/op", "x.txt:1: 0 is not above zero"),
            (r#"{"results":[{"times":[1,0]}]}"#, "x.txt: results[0].times[1]: 0 is not above zero"),
        ] {
            assert!(error(text).starts_with(&format!("error: {place}")), "{}", error(text));
        }
    }

    #[test]
    fn json_that_is_no_list_is_refused_with_what_would_be() {
        assert!(error("[1, \"2\"]").contains("holds a string, which is no number"));
        assert!(error("[[1]]").contains("holds a list"));
        assert!(error("[1,").starts_with("error: x.txt:1: "));
        assert!(error("{\"a\":1}").contains("JSON without \"results\""));
        assert!(error("{\"schema\":\"dyno.climb/1\"}").contains("try:    dyno judge x.txt"));
    }

    #[test]
    fn one_benchmark_of_several_must_be_named() {
        for (text, names) in [(GO, "\"BenchmarkA\", \"BenchmarkB\""), (HYPERFINE, "\"a\", \"b\"")] {
            let lines = error(text);
            assert!(lines.contains("has 2 benchmarks") && lines.contains(names), "{lines}");
            assert!(read(text, Some("C")).unwrap_err().contains("no benchmark \"C\""));
        }
        assert_eq!(read(GO, Some("BenchmarkA")).unwrap(), [1234.0, 1230.5]);
        assert_eq!(read(HYPERFINE, Some("a")).unwrap(), [1.5, 2.0]);
        assert!(read("1\n2\n", Some("a")).is_err());
    }

    fn go_names(text: &str) -> Vec<String> {
        go_results(text).into_iter().map(|result| result.name).collect()
    }

    #[test]
    fn gos_suffix_for_cpus_is_not_part_of_the_name() {
        assert_eq!(
            go_names("BenchmarkX/size-10-8 5 1.0 ns/op\nBenchmarkY-8 1 2 ns/op"),
            ["BenchmarkX/size-10", "BenchmarkY"]
        );
        assert_eq!(go_result("BenchmarkX"), None);
        assert_eq!(go_result("ok  x 1.2s"), None);
        assert_eq!(go_result("BenchmarkX ns/op"), None);
    }

    /// Planted fault: whatever ends in a number is cut off there, and different benchmarks are one list.
    #[test]
    fn benchmarks_that_differ_in_a_number_or_in_their_package_are_not_pooled() {
        let cpus = "BenchmarkX 5 4.0 ns/op\nBenchmarkX-4 5 1.0 ns/op\n";
        assert_eq!(go_names(cpus), ["BenchmarkX", "BenchmarkX-4"]);
        let sizes = "BenchmarkX/size-10 5 1.0 ns/op\nBenchmarkX/size-1000 5 99.0 ns/op\n";
        assert_eq!(go_names(sizes), ["BenchmarkX/size-10", "BenchmarkX/size-1000"]);
        let packages = "pkg: a/x\nBenchmarkX-8 5 1.0 ns/op\nPASS\npkg: a/y\nBenchmarkX-8 5 7.0 ns/op\n";
        assert_eq!(go_names(packages), ["a/x.BenchmarkX", "a/y.BenchmarkX"]);
        assert_eq!(read(packages, Some("a/y.BenchmarkX")).unwrap(), [7.0]);
        for text in [cpus, sizes, packages] {
            assert!(error(text).contains("has 2 benchmarks"), "{text}");
        }
        assert_eq!(go_names(&packages.replace("a/y", "a/x")), ["BenchmarkX", "BenchmarkX"]);
    }

    #[test]
    fn names_are_shown_and_never_obeyed() {
        let text = "{\"results\":[{\"command\":\"\\u001b[31mred\"},{\"command\":\"b\"}]}";
        assert!(!error(text).contains('\u{1b}'));
    }
}
