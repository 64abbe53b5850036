//! What a server hands to the program that takes its place: its sockets by number, and who is to hear that it serves.
//!
//! It is told by one variable of the environment, a line for each thing, so that programs of different versions understand
//! each other: `4242 ready 5` and then `serve 3,4 127.0.0.1:80`, with `metrics` or `manager` in the place of `serve`.

use dyno_sys::child;
use dyno_sys::socket::Addr;
use std::os::fd::OwnedFd;

/// The variable.
pub const VARIABLE: &str = "DYNO_HANDOVER";

/// What sockets are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Requests.
    Serve,
    /// Metrics.
    Metrics,
    /// Requests, where a service manager has opened them.
    Manager,
}

/// The sockets of one address.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) role: Role,
    pub(super) asked: Addr,
    pub(super) sockets: Vec<OwnedFd>,
}

/// What this process has been handed; by default nothing.
#[derive(Debug, Default)]
pub struct Inheritance {
    pub(super) sockets: Vec<Handed>,
    /// Who hands over reads here that this process serves.
    pub(super) predecessor: Option<OwnedFd>,
}

/// A line of it.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Ready(i32),
    Sockets(Role, Vec<i32>, Addr),
}

impl Role {
    const ALL: [(Role, &str); 3] =
        [(Role::Serve, "serve"), (Role::Metrics, "metrics"), (Role::Manager, "manager")];

    fn word(self) -> &'static str {
        let found = Role::ALL.iter().find(|(role, _)| *role == self);
        found.map(|(_, word)| *word).expect("every role has its word")
    }
}

impl Inheritance {
    /// What the variable's text says, when it is meant for this process. Call it before anything else is opened.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn take(text: &str) -> Result<Inheritance, String> {
        let Some(lines) = lines(text, child::this())? else { return Ok(Inheritance::default()) };
        let take = |number: i32| {
            child::take_inherited(number).map_err(|error| format!("descriptor {number}: {error}"))
        };
        let mut inheritance = Inheritance::default();
        for line in lines {
            match line {
                Line::Ready(number) => inheritance.predecessor = Some(take(number)?),
                Line::Sockets(role, numbers, asked) => {
                    let sockets = numbers.into_iter().map(take).collect::<Result<_, _>>()?;
                    inheritance.sockets.push(Handed { role, asked, sockets });
                }
            }
        }
        Ok(inheritance)
    }
}

/// The variable's text for process `pid`.
pub(super) fn text(pid: dyno_sys::Pid, ready: i32, sockets: &[(Role, Vec<i32>, &Addr)]) -> String {
    let mut text = format!("{pid} ready {ready}");
    for (role, numbers, asked) in sockets {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        text.push_str(&format!("\n{} {} {asked}", role.word(), numbers.join(",")));
    }
    text
}

/// What the text says; `None` when it is meant for another process.
fn lines(text: &str, pid: dyno_sys::Pid) -> Result<Option<Vec<Line>>, String> {
    let Some((whom, rest)) = text.split_once(' ') else { return Err("it names no process".to_owned()) };
    if whom != pid.to_string() {
        return Ok(None);
    }
    rest.lines().map(line).collect::<Result<Vec<_>, _>>().map(Some)
}

fn line(text: &str) -> Result<Line, String> {
    let wrong = || format!("\"{text}\" is no line of it");
    let mut words = text.splitn(3, ' ');
    let (word, numbers) = (words.next().ok_or_else(wrong)?, words.next().ok_or_else(wrong)?);
    let numbers: Result<Vec<i32>, _> = numbers.split(',').map(str::parse).collect();
    let numbers = numbers.map_err(|_| wrong())?;
    match (word, words.next()) {
        ("ready", None) => numbers.first().copied().map(Line::Ready).ok_or_else(wrong),
        (word, Some(asked)) => {
            let (role, _) = Role::ALL.iter().find(|(_, known)| *known == word).ok_or_else(wrong)?;
            Ok(Line::Sockets(*role, numbers, asked.parse().map_err(|_| wrong())?))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_handed_over_reads_back() {
        let (tcp, unix): (Addr, Addr) =
            ("[::1]:80".parse().unwrap(), "unix:/run/a file.sock".parse().unwrap());
        let sockets = [
            (Role::Serve, vec![3, 4], &tcp),
            (Role::Metrics, vec![5], &unix),
            (Role::Manager, vec![6], &tcp),
        ];
        let text = text(77, 7, &sockets);
        let mut expected = vec![Line::Ready(7)];
        expected.extend(sockets.map(|(role, numbers, asked)| Line::Sockets(role, numbers, asked.clone())));
        assert_eq!(lines(&text, 77).unwrap(), Some(expected));
        assert_eq!(lines(&text, 78).unwrap(), None, "meant for another process");
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in
            ["", "77", "77 ready x", "77 ready 3 4", "77 dance 3 unix:/x", "77 serve 3", "77 serve 3 x"]
        {
            assert!(lines(text, 77).is_err(), "{text}");
        }
    }
}
