//! The words after a verb: flags with and without a value, and that nothing is left over.

use std::str::FromStr;
use std::time::Duration;

use crate::trouble::Trouble;

/// The words not yet taken.
pub(crate) struct Flags(Vec<String>);

/// Whether a flag without a value was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Yes,
    No,
}

impl Flags {
    pub(crate) fn new(words: Vec<String>) -> Flags {
        Flags(words)
    }

    /// Takes `--name`.
    pub(crate) fn switch(&mut self, name: &str) -> Given {
        match self.0.iter().position(|word| word == name) {
            Some(at) => {
                self.0.remove(at);
                Given::Yes
            }
            None => Given::No,
        }
    }

    /// Takes `--name VALUE` or `--name=VALUE`, as `read` understands the value.
    pub(crate) fn value<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Trouble> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let unread = || Trouble::new(format!("{name} cannot be \"{text}\"")).remedy("cargo xtask --help");
        read(&text).map(Some).ok_or_else(unread)
    }

    /// The same for what the language can read.
    pub(crate) fn parsed<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Trouble> {
        self.value(name, |text| text.parse().ok())
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Trouble> {
        let prefix = format!("{name}=");
        if let Some(at) = self.0.iter().position(|word| word.starts_with(&prefix)) {
            return Ok(Some(self.0.remove(at)[prefix.len()..].to_owned()));
        }
        let Some(at) = self.0.iter().position(|word| word == name) else { return Ok(None) };
        if at + 1 == self.0.len() {
            return Err(Trouble::new(format!("{name} needs a value")).remedy("cargo xtask --help"));
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// Takes the first word that is no flag.
    pub(crate) fn word(&mut self) -> Option<String> {
        let at = self.0.iter().position(|word| !word.starts_with('-'))?;
        Some(self.0.remove(at))
    }

    /// Nothing may be left: a misspelt flag must not be passed over.
    pub(crate) fn finish(self) -> Result<(), Trouble> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => {
                Err(Trouble::new(format!("\"{word}\" is not understood")).remedy("cargo xtask --help"))
            }
        }
    }
}

/// `90m`, `3h` or `600s`.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let seconds = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return None,
    };
    let number: u64 = text[..text.len() - 1].parse().ok()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn flags(line: &str) -> Flags {
        Flags::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn flags_are_taken_in_any_order_and_nothing_may_be_left() {
        let mut all = flags("peers --cycles=5 --yes --seed 7");
        assert_eq!(all.parsed("--seed").unwrap(), Some(7_u64));
        assert_eq!(all.parsed("--cycles").unwrap(), Some(5_usize));
        assert_eq!(all.switch("--yes"), Given::Yes);
        assert_eq!(all.switch("--yes"), Given::No);
        assert_eq!(all.word().as_deref(), Some("peers"));
        assert!(all.finish().is_ok());
        assert!(flags("--ye").finish().is_err());
    }

    #[test]
    fn a_value_that_is_missing_or_unreadable_is_named() {
        assert!(flags("--seed").parsed::<u64>("--seed").is_err());
        let refused = flags("--seed x").parsed::<u64>("--seed").unwrap_err();
        assert!(refused.to_string().contains("--seed cannot be \"x\""), "{refused}");
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("3h"), Some(Duration::from_secs(10_800)));
        assert_eq!(time("90m"), Some(Duration::from_secs(5400)));
        assert_eq!(time("10s"), Some(Duration::from_secs(10)));
        for bad in ["", "h", "10", "-1m", "ten m", "99999999999999999999h", "18446744073709551615h"] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }
}
