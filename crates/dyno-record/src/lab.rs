//! The laboratory's words: which parts of its network can be turned, to what, and what is counted there. Plain data.
//!
//! Plans and rungs name them, `dyno_host::lab` carries them out in namespaces of its own, proofs read the counts. The network
//! ends with the laboratory: nothing here is a setting of the host.

use serde::{Deserialize, Serialize};

/// Most rules, and most taps, that a laboratory is given: ten times what slows a server to a fifth.
const RULES_MAX: usize = 10_000;
const TAPS_MAX: usize = 64;
/// A packet that waits longer than ten milliseconds is lost to everybody who asked for it.
const DEFER_US_MAX: u64 = 10_000;
const DEFER_POLLS_MAX: u32 = 1_000;

/// A part of the network at the server's end of the cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Rules that every packet for the server passes: `none`, `linear N`, `set N`, and `unhooked N`, which nobody passes. With
    /// `tracked` behind it connections are tracked and accepted after the rules.
    Rules,
    /// Tracking of connections: `none`, `tracked`, `notrack`.
    Conntrack,
    /// The queueing discipline of the device: `noqueue`, `pfifo_fast`, `tbf`, `fq`.
    Qdisc,
    /// CPUs that packets are handed to (RPS), as a mask; `0` is none.
    Rps,
    /// Sockets that are handed every packet: how many.
    Taps,
    /// Receiving in polls of many packets (NAPI with GRO): `on`, `off`; `nominal` has GRO on, and the other end hands over
    /// segments that pass it by.
    Napi,
    /// A thread for these polls: `1`, `0`.
    Threads,
    /// Large segments leave whole (TSO and GSO): `on`, `off`.
    Segments,
    /// Interrupts stay away: `0`, or for how many µs after a poll, and for how many polls that found nothing: `20 2`.
    Defer,
}

impl Part {
    /// All of them, in the order in which a laboratory is put back: taps and rules first, threads once
    /// there is polling again.
    pub const ALL: [Part; 9] = [
        Part::Taps,
        Part::Rules,
        Part::Conntrack,
        Part::Qdisc,
        Part::Rps,
        Part::Napi,
        Part::Threads,
        Part::Segments,
        Part::Defer,
    ];

    /// Its name in plans.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Rules => "rules",
            Part::Conntrack => "conntrack",
            Part::Qdisc => "qdisc",
            Part::Rps => "rps",
            Part::Taps => "taps",
            Part::Napi => "napi",
            Part::Threads => "threads",
            Part::Segments => "segments",
            Part::Defer => "defer",
        }
    }

    /// Where it stands in a new laboratory.
    #[must_use]
    pub fn fresh(self) -> &'static str {
        match self {
            Part::Rules | Part::Conntrack => "none",
            Part::Qdisc => "noqueue",
            Part::Rps | Part::Taps | Part::Threads | Part::Defer => "0",
            Part::Napi | Part::Segments => "on",
        }
    }

    /// The part of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.name() == name)
    }

    /// Why it cannot stand there, if it cannot.
    #[must_use]
    pub fn fault(self, value: &str) -> Option<String> {
        let is_known = match self {
            Part::Rules => Rules::of(value).is_some(),
            Part::Conntrack => ["none", "tracked", "notrack"].contains(&value),
            Part::Qdisc => ["noqueue", "pfifo_fast", "tbf", "fq"].contains(&value),
            Part::Rps => is_mask(value),
            Part::Taps => value.parse::<usize>().is_ok_and(|count| count <= TAPS_MAX),
            Part::Napi => ["on", "off", "nominal"].contains(&value),
            Part::Threads => ["0", "1"].contains(&value),
            Part::Segments => ["on", "off"].contains(&value),
            Part::Defer => deferral(value).is_some(),
        };
        (!is_known).then(|| format!("{} cannot be \"{value}\": {}", self.name(), self.takes()))
    }

    fn takes(self) -> String {
        match self {
            Part::Rules => {
                format!(
                    "it takes none, linear N, set N or unhooked N, with tracked behind it or not, N up to {RULES_MAX}"
                )
            }
            Part::Conntrack => "it takes none, tracked or notrack".into(),
            Part::Qdisc => "it takes noqueue, pfifo_fast, tbf or fq".into(),
            Part::Rps => "it takes a mask of CPUs in hexadecimal, as 3".into(),
            Part::Taps => format!("it takes a number up to {TAPS_MAX}"),
            Part::Napi => "it takes on, off or nominal".into(),
            Part::Threads => "it takes 0 or 1".into(),
            Part::Segments => "it takes on or off".into(),
            Part::Defer => {
                format!("it takes 0, or µs up to {DEFER_US_MAX} and polls up to {DEFER_POLLS_MAX}, as 20 2")
            }
        }
    }
}

/// What a deferral means: ns, and polls that found nothing; none where it is no deferral.
#[must_use]
pub fn deferral(text: &str) -> Option<(u64, u32)> {
    if text == "0" {
        return Some((0, 0));
    }
    let (us, polls) = text.split_once(' ')?;
    let us = us.parse().ok().filter(|us| (1..=DEFER_US_MAX).contains(us))?;
    let polls = polls.parse().ok().filter(|polls| (1..=DEFER_POLLS_MAX).contains(polls))?;
    Some((us * 1_000, polls))
}

fn is_mask(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',')
}

/// What the planted host has at the server's end (the filters and the log are its server's): rules in one chain with tracking
/// behind them, a limiter that never limits, packets handed to the server's CPUs, ten taps.
#[must_use]
pub fn planted(server_mask: &str) -> Vec<(Part, String)> {
    vec![
        (Part::Rules, "linear 300 tracked".to_owned()),
        (Part::Qdisc, "tbf".to_owned()),
        (Part::Rps, server_mask.to_owned()),
        (Part::Taps, "10".to_owned()),
    ]
}

/// What the rules are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// There are none.
    None,
    /// So many addresses that are refused.
    Some {
        /// How they are written down.
        form: Form,
        /// How many.
        count: usize,
        /// Whether connections are tracked, and accepted behind them.
        tracked: bool,
    },
}

/// How many addresses are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A rule for each.
    Linear,
    /// One rule and a set.
    Set,
    /// A rule for each in a chain that no packet passes.
    Unhooked,
}

impl Rules {
    /// What a text means, if anything.
    #[must_use]
    pub fn of(text: &str) -> Option<Rules> {
        let words: Vec<&str> = text.split(' ').collect();
        let (form, count, tracked) = match words[..] {
            ["none"] => return Some(Rules::None),
            [form, count] => (form, count, false),
            [form, count, "tracked"] => (form, count, true),
            _ => return None,
        };
        let form = match form {
            "linear" => Form::Linear,
            "set" => Form::Set,
            "unhooked" => Form::Unhooked,
            _ => return None,
        };
        let count = count.parse().ok().filter(|count| (1..=RULES_MAX).contains(count))?;
        Some(Rules::Some { form, count, tracked })
    }
}

/// What is counted in a laboratory, or read there as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    /// Rules that packets for the server passed before one that let them through.
    RulesPassed,
    /// Packets of tracked connections.
    Tracked,
    /// Packets whose connection a rule asked for, tracked or not.
    Asked,
    /// Packets that the queueing discipline held.
    Queued,
    /// Packets that one CPU handed to another.
    HandedOver,
    /// Copies of packets that taps were handed.
    Tapped,
    /// Microseconds of CPU of the threads that poll the device.
    ThreadUs,
    /// Packets that the device sent.
    Sent,
    /// Packets that somebody who waited for events took from the device by polling it (busy polling).
    BusyPolled,
    /// Soft interrupts that receive, of all the machine.
    Polls,
}

impl Count {
    /// What it is called in a proof.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Count::RulesPassed => "rules passed",
            Count::Tracked => "packets of tracked connections",
            Count::Asked => "packets whose connection was asked for",
            Count::Queued => "packets through a queue",
            Count::HandedOver => "packets handed to another CPU",
            Count::Tapped => "copies for taps",
            Count::ThreadUs => "µs of the polling threads",
            Count::Sent => "packets sent",
            Count::BusyPolled => "packets taken by busy polling",
            Count::Polls => "receive interrupts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_may_stand_where_a_new_laboratory_has_it_and_is_found_by_its_name() {
        for part in Part::ALL {
            assert_eq!(part.fault(part.fresh()), None, "{}", part.name());
            assert_eq!(Part::of_name(part.name()), Some(part));
            assert!(part.fault("$(reboot)").is_some_and(|why| why.contains("it takes")), "{}", part.name());
        }
    }

    #[test]
    fn a_deferral_has_a_time_and_a_number_of_polls() {
        assert_eq!((deferral("0"), deferral("20 2")), (Some((0, 0)), Some((20_000, 2))));
        for text in ["", "20", "20 0", "0 2", "20000 2", "20 2 2", "-1 2", "20 1001"] {
            assert_eq!(deferral(text), None, "{text}");
        }
    }

    #[test]
    fn rules_are_read_with_their_number_and_nothing_else() {
        let some = |form, count, tracked| Some(Rules::Some { form, count, tracked });
        assert_eq!(Rules::of("linear 300 tracked"), some(Form::Linear, 300, true));
        assert_eq!(Rules::of("set 100"), some(Form::Set, 100, false));
        for text in ["", "linear", "linear 0", "linear 10001", "set -1", "linear 3 x", "none 3", "list 3"] {
            assert_eq!(Rules::of(text), None, "{text}");
        }
    }
}
