//! A file of settings, in TOML: which settings it gives, and on which line. What is wrong is named with its line.
//!
//! Whether a word suits its setting is not judged here.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::settings::{self, Kind, Setting};
use dyno_lab::Failure;
use dyno_record::alike;

/// Where hosts are told of.
const MANUAL: &str = "docs/manual/hosts.md";

/// Two names are taken for one with a typing mistake from this likeness on (1 is the same).
const ALIKE: f64 = 0.6;

/// What a file gives one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    /// Its place in the list of settings.
    pub(super) setting: usize,
    /// As the command line would have it; a switch has `true` or `false`.
    pub(super) words: Vec<String>,
    pub(super) line: usize,
}

/// What a file gives one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GivenHost {
    /// Where its table begins.
    pub(super) line: usize,
    /// Its names, and where they stand.
    pub(super) names: (Vec<String>, usize),
    pub(super) given: Vec<Given>,
}

/// What a file gives.
#[derive(Debug, Default)]
pub(super) struct Gives {
    pub(super) settings: Vec<Given>,
    pub(super) hosts: Vec<GivenHost>,
}

/// The tables of hosts.
const HOST: &str = "host";

/// What a host may have of its own, as the table `[content]` has it.
const OF_HOSTS: [&str; 5] = ["root", "redirect", "header", "error_page", "security_headers"];

/// Reads a file's text; every mistake in it is told.
pub(super) fn read(name: &str, text: &str, settings: &[Setting]) -> Result<Gives, Vec<Failure>> {
    let mut reader = Reader { name, text, settings, gives: Gives::default(), mistakes: Vec::new() };
    match DeTable::parse(text) {
        Ok(table) => reader.table(None, table.get_ref()),
        Err(error) => {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let what = format!("{name}:{line}: {}", error.message());
            reader
                .mistakes
                .push(Failure::usage(what).likely("a mistake in TOML").try_this("https://toml.io/en/v1.0.0"));
        }
    }
    match reader.mistakes.is_empty() {
        true => Ok(reader.gives),
        false => Err(reader.mistakes),
    }
}

struct Reader<'r> {
    name: &'r str,
    text: &'r str,
    settings: &'r [Setting],
    gives: Gives,
    mistakes: Vec<Failure>,
}

impl Reader<'_> {
    fn table(&mut self, within: Option<&str>, table: &DeTable<'_>) {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            match value.get_ref() {
                DeValue::Table(inner) if within.is_none() && is_table(key.get_ref()) => {
                    self.table(Some(key.get_ref()), inner);
                }
                DeValue::Array(hosts) if within.is_none() && key.get_ref() == HOST => self.hosts(hosts),
                _ => self.entry(within, key, value),
            }
        }
    }

    fn entry(&mut self, within: Option<&str>, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) {
        let line = line_of(self.text, key.span().start);
        let path =
            within.map_or_else(|| key.get_ref().to_string(), |table| format!("{table}.{}", key.get_ref()));
        let Some(setting) = self.settings.iter().position(|setting| setting.path() == path) else {
            return self.unknown(line, &path, value.get_ref());
        };
        if let Some(words) = self.words(self.settings[setting].kind, &path, line, value) {
            self.gives.settings.push(Given { setting, words, line });
        }
    }

    /// The words for a setting; a mistake is noted.
    fn words(
        &mut self,
        kind: Kind,
        path: &str,
        line: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Vec<String>> {
        match words(kind, value.get_ref()) {
            Ok(words) => Some(words),
            Err(takes) => {
                let is = value.get_ref().type_str();
                let what = format!("{}:{line}: {path} cannot be of the type {is}", self.name);
                self.mistakes.push(Failure::usage(what).likely(takes).try_this("dyno serve --show-config"));
                None
            }
        }
    }

    fn hosts(&mut self, hosts: &[Spanned<DeValue<'_>>]) {
        for host in hosts {
            let line = line_of(self.text, host.span().start);
            let DeValue::Table(table) = host.get_ref() else {
                let what = format!("{}:{line}: a host is a table, [[host]]", self.name);
                self.mistakes.push(Failure::usage(what).likely("[[host]] is meant").try_this(MANUAL));
                continue;
            };
            let given = self.host(line, table);
            if given.names.0.is_empty() {
                let what = format!("{}:{line}: a host without names", self.name);
                let failure = Failure::usage(what).likely("names = [\"example.org\"] is missing");
                self.mistakes.push(failure.try_this(MANUAL));
            }
            self.gives.hosts.push(given);
        }
    }

    fn host(&mut self, line: usize, table: &DeTable<'_>) -> GivenHost {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut host = GivenHost { line, ..GivenHost::default() };
        for (key, value) in entries {
            let line = line_of(self.text, key.span().start);
            let path = format!("{HOST}.{}", key.get_ref());
            if key.get_ref() == "names" {
                host.names = (self.words(Kind::List, &path, line, value).unwrap_or_default(), line);
                continue;
            }
            let found = OF_HOSTS.iter().find(|known| *known == key.get_ref()).and_then(|known| {
                self.settings.iter().position(|setting| setting.path() == format!("content.{known}"))
            });
            let Some(setting) = found else {
                let what = format!("{}:{line}: a host has no setting \"{}\"", self.name, key.get_ref());
                let takes = format!("it has names, {}", OF_HOSTS.join(", "));
                self.mistakes.push(Failure::usage(what).likely(takes).try_this(MANUAL));
                continue;
            };
            if let Some(words) = self.words(self.settings[setting].kind, &path, line, value) {
                host.given.push(Given { setting, words, line });
            }
        }
        host
    }

    fn unknown(&mut self, line: usize, path: &str, value: &DeValue<'_>) {
        let failure = Failure::usage(format!("{}:{line}: there is no setting \"{path}\"", self.name));
        let table = || alike::did_you_mean(path, settings::tables());
        let setting = || nearest(path, self.settings).map(|known| alike::question(&known));
        // A table's name begins the path of each of its settings.
        let known =
            if let DeValue::Table(_) = value { table().or_else(setting) } else { setting().or_else(table) };
        let likely = known.unwrap_or_else(|| "a typing mistake, or a setting of another version".to_owned());
        self.mistakes
            .push(failure.likely(likely).try_this("dyno serve --show-config, which shows every setting"));
    }
}

fn is_table(name: &str) -> bool {
    settings::tables().any(|table| table == name)
}

/// The words for a value, or what the setting takes instead.
fn words(kind: Kind, value: &DeValue<'_>) -> Result<Vec<String>, &'static str> {
    match (kind, value) {
        (Kind::Switch, DeValue::Boolean(is_on)) => Ok(vec![is_on.to_string()]),
        (Kind::Switch, _) => Err("it takes true or false"),
        (Kind::List, DeValue::Array(values)) => values.iter().map(|value| word(value.get_ref())).collect(),
        (Kind::List, value) => word(value).map(|word| vec![word]).map_err(|_| "it takes a list of strings"),
        (Kind::Word, value) => word(value).map(|word| vec![word]),
    }
}

fn word(value: &DeValue<'_>) -> Result<String, &'static str> {
    const TAKES: &str = "it takes a string or a whole number";
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
        DeValue::Integer(_) => {
            Err("numbers are decimal here; permissions are a string of octal digits, as \"0660\"")
        }
        _ => Err(TAKES),
    }
}

/// The known setting that is most like this one. The same key in another table is as good as found.
pub(super) fn nearest(path: &str, settings: &[Setting]) -> Option<String> {
    let key = path.rsplit('.').next().unwrap_or(path);
    let likeness = |setting: &Setting| {
        let whole = alike::likeness(path, &setting.path());
        let alone = alike::likeness(key, &setting.key);
        (whole.max(alone), whole)
    };
    let rated = settings.iter().map(|setting| (likeness(setting), setting));
    let best =
        rated.max_by(|(one, _), (other, _)| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)))?;
    (best.0.0 >= ALIKE).then(|| best.1.path())
}

/// The line of a byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn given(text: &str) -> Vec<(String, Vec<String>, usize)> {
        let settings = settings::all();
        let given = read("x.toml", text, &settings).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        given
            .settings
            .into_iter()
            .map(|given| (settings[given.setting].path(), given.words, given.line))
            .collect()
    }

    fn mistakes(text: &str) -> Vec<String> {
        let mistakes = read("x.toml", text, &settings::all()).unwrap_err();
        mistakes.iter().map(Failure::in_one_line).collect()
    }

    #[test]
    fn a_file_gives_words_with_their_lines() {
        let text = "# mine\nlisten = [\"127.0.0.1:80\", \"[::1]:80\"]\nworkers = 2\n[limits]\nidle_timeout = \"5s\"\nbody_bytes_max = 1_000\n[dials]\nnaive = true\n";
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let expected = [
            ("listen", words(&["127.0.0.1:80", "[::1]:80"]), 2),
            ("workers", words(&["2"]), 3),
            ("limits.idle_timeout", words(&["5s"]), 5),
            ("limits.body_bytes_max", words(&["1000"]), 6),
            ("dials.naive", words(&["true"]), 8),
        ];
        assert_eq!(given(text), expected.map(|(path, words, line)| (path.to_owned(), words, line)));
        assert_eq!(
            given("limits.idle_timeout = \"5s\""),
            given("[limits]\nidle_timeout = \"5s\"")
                .into_iter()
                .map(|(path, words, _)| (path, words, 1))
                .collect::<Vec<_>>()
        );
        assert_eq!(given(""), []);
    }

    #[test]
    fn an_unknown_key_is_told_with_its_line_and_what_was_meant() {
        for (text, says) in [
            ("\nlisten_on = []", "x.toml:2: there is no setting \"listen_on\" (did you mean listen?)"),
            (
                "idle_timeout = 1",
                "x.toml:1: there is no setting \"idle_timeout\" (did you mean limits.idle_timeout?)",
            ),
            (
                "[limits]\nidel_timeout = 1",
                "x.toml:2: there is no setting \"limits.idel_timeout\" (did you mean limits.idle_timeout?)",
            ),
            ("[limts]\nidle_timeout = 1", "x.toml:1: there is no setting \"limts\" (did you mean limits?)"),
            // Planted fault: the setting that is most like it, whose path begins with the table's name.
            ("[dial]\nlog = \"off\"", "x.toml:1: there is no setting \"dial\" (did you mean dials?)"),
            ("[content_]\nroot = \"x\"", "there is no setting \"content_\" (did you mean content?)"),
            ("qqqqq = 1", "there is no setting \"qqqqq\" (a typing mistake"),
            ("check = true", "there is no setting \"check\""),
        ] {
            let said = mistakes(text);
            assert!(said.len() == 1 && said[0].contains(says), "{text}: {said:?}");
        }
    }

    #[test]
    fn every_mistake_of_a_file_is_told_and_a_wrong_type_says_what_is_taken() {
        let said = mistakes("listen = 1.5\nworkers = [2]\nsocket_mode = 0o660\n[dials]\nnaive = 1\nx = 1");
        assert_eq!(said.len(), 5, "{said:#?}");
        assert_eq!(said[0], "x.toml:1: listen cannot be of the type float (it takes a list of strings)");
        assert!(
            said[1].ends_with("workers cannot be of the type array (it takes a string or a whole number)")
        );
        assert!(said[2].contains("octal digits"), "{}", said[2]);
        assert!(
            said[3]
                .starts_with("x.toml:5: dials.naive cannot be of the type integer (it takes true or false)")
        );
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line() {
        for (text, line) in
            [("listen = [", 1), ("a = 1\nb = = 2", 2), ("workers = 1\nworkers = 2", 2), ("\n\n\"", 3)]
        {
            let said = mistakes(text);
            assert!(said.len() == 1 && said[0].starts_with(&format!("x.toml:{line}: ")), "{text}: {said:?}");
        }
    }

    #[test]
    fn hosts_are_given_in_their_order_with_their_lines() {
        let text = "listen = []\n[[host]]\nnames = [\"a\", \"*.a\"]\nroot = \"x\"\n\n[[host]]\nnames = \"b\"\nheader = [\"X: y\"]\n";
        let settings = settings::all();
        let gives = read("x.toml", text, &settings).unwrap();
        let names = |number: usize| gives.hosts[number].names.clone();
        assert_eq!(gives.hosts.len(), 2);
        assert_eq!(names(0), (vec!["a".to_owned(), "*.a".to_owned()], 3));
        assert_eq!(names(1), (vec!["b".to_owned()], 7));
        let given = &gives.hosts[1].given[0];
        assert_eq!((settings[given.setting].path().as_str(), given.line), ("content.header", 8));
    }

    #[test]
    fn what_no_host_has_is_told_with_its_line() {
        for (text, says) in [
            ("[[host]]\nroot = \"x\"", "x.toml:1: a host without names"),
            ("[[host]]\nnames = [\"a\"]\nworkers = 1", "x.toml:3: a host has no setting \"workers\""),
            ("[[host]]\nnames = [\"a\"]\nroot = 1.5", "x.toml:3: host.root cannot be of the type float"),
            ("host = [1]", "x.toml:1: a host is a table"),
            ("host = 1", "x.toml:1: there is no setting \"host\""),
        ] {
            let said = mistakes(text);
            assert!(said.len() == 1 && said[0].starts_with(says), "{text}: {said:?}");
        }
    }
}
