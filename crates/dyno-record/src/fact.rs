//! A fact about a host: what was read, or why it was not. Nothing is passed over in silence.
//!
//! The host's facts are made of them; an audit's check asks them with `?`, so that what could not be read ends up among what
//! could not be looked at.

use serde::{Deserialize, Serialize};

/// What was asked of the host, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// It was read.
    Value(T),
    /// This kernel or machine has no such thing.
    Absent(String),
    /// It could not be read.
    Unread(Unread),
}

/// Why something could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// What was asked.
    pub what: String,
    /// The kernel's error number, where it gave one.
    #[serde(default)]
    pub errno: Option<i32>,
    /// Why not, in words.
    pub why: String,
    /// What would make it readable; empty where nothing is known to.
    #[serde(default)]
    pub needs: String,
}

/// Why a fact is not at hand: there is no such thing, or nobody could look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// This kernel or machine has no such thing.
    Absent(String),
    /// It could not be read.
    Unread(Unread),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Fact::Unread(Unread { why: "nobody asked for it".into(), ..Unread::default() })
    }
}

impl<T> Fact<T> {
    /// The value, for `?`.
    ///
    /// # Errors
    /// When there is none.
    pub fn known(&self) -> Result<&T, Gap> {
        match self {
            Fact::Value(value) => Ok(value),
            Fact::Absent(what) => Err(Gap::Absent(what.clone())),
            Fact::Unread(unread) => Err(Gap::Unread(unread.clone())),
        }
    }

    /// The value, where it was read.
    pub fn value(&self) -> Option<&T> {
        self.known().ok()
    }

    /// The same fact about something that follows from it.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Value(value) => Fact::Value(change(value)),
            Fact::Absent(what) => Fact::Absent(what),
            Fact::Unread(unread) => Fact::Unread(unread),
        }
    }

    /// The value, where what is absent counts as this.
    ///
    /// # Errors
    /// When it could not be read.
    pub fn or_absent<'t>(&'t self, absent: &'t T) -> Result<&'t T, Gap> {
        match self.known() {
            Err(Gap::Absent(_)) => Ok(absent),
            known => known,
        }
    }
}

impl<T> From<T> for Fact<T> {
    fn from(value: T) -> Self {
        Fact::Value(value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_fact_is_written_with_what_came_of_it() {
        let read: Fact<u64> = 5.into();
        let text = serde_json::to_string(&read).unwrap();
        assert_eq!(text, r#"{"value":5}"#);
        let refused: Fact<u64> =
            serde_json::from_str(r#"{"unread":{"what":"audit","errno":1,"why":"not permitted"}}"#).unwrap();
        let Err(Gap::Unread(unread)) = refused.known() else { panic!("it was refused") };
        assert_eq!((unread.errno, unread.needs.as_str()), (Some(1), ""));
    }

    #[test]
    fn what_is_absent_counts_as_a_value_only_where_somebody_says_which() {
        let absent: Fact<u64> = Fact::Absent("conntrack".into());
        assert_eq!((absent.or_absent(&0), absent.value()), (Ok(&0), None));
        assert!(Fact::<u64>::default().or_absent(&0).is_err());
        assert_eq!(Fact::Value(2).map(|value| value + 1), Fact::Value(3));
    }
}
