//! What audit does (`auditctl(8)`): whether it is on, and its rules.
//!
//! Read by the host's facts. It needs CAP_AUDIT_CONTROL in the first user namespace; the kernel refuses everybody else.

use super::attribute::u32_at;
use super::socket::{Netlink, Protocol, Until};
use std::io;

const AUDIT_GET: u16 = 1_000;
const AUDIT_LIST_RULES: u16 = 1_013;
/// Where `buflen` stands in `struct audit_rule_data`: three words, then four arrays of 64 words.
const RULE_BYTES: usize = 4 * (3 + 4 * 64) + 4;
/// The words of the mask of system calls.
const MASK_WORDS: usize = 64;
const MASK_AT: usize = 12;
/// The numbers of the conditions.
const FIELDS_AT: usize = MASK_AT + 4 * MASK_WORDS;
/// `AUDIT_INODE` and `AUDIT_WATCH`: a rule with one of them is kept by the file's number, and asked only for a system call that
/// touched it (kernel/auditfilter.c, audit_add_rule). One about a folder (`AUDIT_DIR`) stays among those for every call.
const FILE_FIELDS: [u32; 2] = [102, 105];
/// A rule's flags without "insert at the front".
const LIST_MASK: u32 = 0x0f;

/// Whether audit is on, and what it lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// 0 off, 1 on, 2 on until the next boot.
    pub enabled: u32,
    /// The daemon; 0 is none.
    pub daemon: u32,
    /// Records that wait for it, and how many may.
    pub backlog: u32,
    /// See `backlog`.
    pub backlog_max: u32,
    /// Records that were lost.
    pub lost: u32,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// `user`, `task`, `exit`, `exclude`, `filesystem`, `io_uring`.
    pub list: &'static str,
    /// `never`, `possible` or `always`.
    pub action: &'static str,
    /// System calls that it is about; 0 for lists without them.
    pub system_calls: u32,
    /// Conditions.
    pub fields: u32,
    /// It is about one file, and asked only where that file is touched.
    pub of_file: bool,
}

/// Asks whether it is on.
pub fn status() -> io::Result<Status> {
    let mut status = None;
    let mut netlink = Netlink::open(Protocol::Audit)?;
    netlink.ask((AUDIT_GET, &[]), Until::First, 1, &mut |message| status = Some(parse_status(message)))?;
    status.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODATA))
}

/// Its rules, `max` at most.
pub fn rules(max: usize) -> io::Result<Vec<Rule>> {
    let mut rules = Vec::new();
    let mut netlink = Netlink::open(Protocol::Audit)?;
    netlink.ask((AUDIT_LIST_RULES, &[]), Until::Done, max, &mut |message| {
        rules.extend(parse_rule(message));
    })?;
    Ok(rules)
}

/// `struct audit_status`.
pub fn parse_status(message: &[u8]) -> Status {
    let word = |at: usize| u32_at(message, 4 * at);
    Status { enabled: word(1), daemon: word(3), backlog: word(7), backlog_max: word(5), lost: word(6) }
}

/// `struct audit_rule_data`.
pub fn parse_rule(message: &[u8]) -> Option<Rule> {
    message.get(..RULE_BYTES)?;
    let list = match u32_at(message, 0) & LIST_MASK {
        0 => "user",
        1 => "task",
        2 => "entry",
        4 => "exit",
        5 => "exclude",
        6 => "filesystem",
        7 => "io_uring",
        _ => "other",
    };
    let action = match u32_at(message, 4) {
        0 => "never",
        1 => "possible",
        _ => "always",
    };
    let mask = (0..MASK_WORDS).map(|word| u32_at(message, MASK_AT + 4 * word).count_ones());
    let fields = u32_at(message, 8);
    let mut kinds = (0..MASK_WORDS.min(fields as usize)).map(|at| u32_at(message, FIELDS_AT + 4 * at));
    let of_file = kinds.any(|kind| FILE_FIELDS.contains(&kind));
    Some(Rule { list, action, system_calls: mask.sum(), fields, of_file })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_rule_is_read_from_its_bytes() {
        let mut message = vec![0; RULE_BYTES];
        message[0] = 4 | 0x10;
        message[4] = 2;
        message[8] = 3;
        message[MASK_AT..MASK_AT + 2].copy_from_slice(&[0b101, 1]);
        let rule = parse_rule(&message).unwrap();
        assert_eq!(rule, Rule { list: "exit", action: "always", system_calls: 3, fields: 3, of_file: false });
        assert_eq!(parse_rule(&message[..RULE_BYTES - 1]), None);
    }

    /// Planted fault: a folder's number counts too; the kernel asks such a rule at the end of every call that it is about.
    #[test]
    fn a_rule_about_one_file_is_told_from_one_about_calls_or_a_folder() {
        let of = |kinds: [u32; 2], fields: u8| {
            let mut message = vec![0; RULE_BYTES];
            (message[0], message[4], message[8]) = (4, 2, fields);
            let bytes: Vec<u8> = kinds.iter().flat_map(|kind| kind.to_le_bytes()).collect();
            message[FIELDS_AT..FIELDS_AT + 8].copy_from_slice(&bytes);
            parse_rule(&message).unwrap().of_file
        };
        assert!(of([105, 106], 2) && of([9, 102], 2));
        assert!(!of([107, 106], 2) && !of([9, 105], 1), "a folder, and what is behind the last condition");
        assert!(!of([0, 0], 255));
    }

    #[test]
    fn the_status_is_read_from_its_bytes() {
        let words: Vec<u8> =
            [0u32, 1, 1, 99, 0, 64, 5, 2].iter().flat_map(|word| word.to_le_bytes()).collect();
        let status = Status { enabled: 1, daemon: 99, backlog: 2, backlog_max: 64, lost: 5 };
        assert_eq!(parse_status(&words), status);
        assert_eq!(parse_status(&[]), Status::default());
    }
}
