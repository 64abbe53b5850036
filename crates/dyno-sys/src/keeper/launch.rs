//! What to start: checked here, before any process exists for it, and written for the keeper.

use super::error::KeeperError;
use super::limits::INHERIT_MAX;
use super::setup;
use super::wire::Order;
use crate::affinity::CpuSet;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What to start, and how.
#[derive(Debug)]
pub struct Launch {
    /// The program and its arguments; a name without a slash is looked up in PATH. No shell.
    pub argv: Vec<OsString>,
    /// Added to dyno's environment, replacing variables of the same name.
    pub env: Vec<(OsString, OsString)>,
    /// Its working folder; dyno's when `None`.
    pub cwd: Option<PathBuf>,
    /// Where it may run, with all its threads and children; everywhere dyno may when `None`.
    pub cpus: Option<CpuSet>,
    /// Standard output and error. Standard input is /dev/null, unless it is handed on as descriptor 0.
    pub output: OwnedFd,
    /// Further descriptors and the numbers (0, or 3 to 63, each once) that the program finds them under.
    pub inherit: Vec<(OwnedFd, i32)>,
    /// The user and group to run as, without further groups; dyno's own when `None`.
    pub user: Option<(u32, u32)>,
}

/// The launch in bytes, refused here when exec could never take it.
pub(super) fn order(launch: &Launch) -> Result<Order, KeeperError> {
    let bytes = |word: &OsString| word.as_bytes().to_vec();
    let order = Order {
        argv: launch.argv.iter().map(bytes).collect(),
        env: launch.env.iter().map(|(name, value)| (bytes(name), bytes(value))).collect(),
        cwd: launch.cwd.as_ref().map(|folder| folder.as_os_str().as_bytes().to_vec()),
        cpus: launch.cpus.clone(),
        user: launch.user,
        targets: launch.inherit.iter().map(|pair| pair.1).collect(),
    };
    match fault(&order) {
        None => Ok(order),
        Some(why) => Err(KeeperError::Invalid { why }),
    }
}

fn fault(order: &Order) -> Option<String> {
    let has_zero = |word: &Vec<u8>| word.contains(&0);
    let bad_name = |(name, value): &(Vec<u8>, Vec<u8>)| {
        name.is_empty() || name.contains(&b'=') || has_zero(name) || has_zero(value)
    };
    let outside =
        order.targets.iter().find(|target| **target != 0 && !(3..=setup::TARGET_MAX).contains(*target));
    let each_once = order.targets.iter().collect::<BTreeSet<_>>().len() == order.targets.len();
    if order.argv.first().is_none_or(Vec::is_empty) {
        return Some("no program is named".to_owned());
    }
    if order.argv.iter().chain(&order.cwd).any(has_zero) {
        return Some("an argument holds a zero byte".to_owned());
    }
    if order.env.iter().any(bad_name) {
        return Some("a variable has no name, or a name or value that cannot be passed on".to_owned());
    }
    if order.targets.len() > INHERIT_MAX || !each_once {
        return Some(format!("at most {INHERIT_MAX} descriptors can be inherited, each number once"));
    }
    outside.map(|target| {
        format!("descriptor {target} cannot be inherited: numbers are 0, and 3 to {}", setup::TARGET_MAX)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn plain() -> Order {
        Order { argv: vec![b"x".to_vec()], env: vec![], cwd: None, cpus: None, user: None, targets: vec![] }
    }

    #[test]
    fn a_launch_that_no_kernel_takes_is_refused_in_words() {
        let variable = |name: &[u8]| vec![(name.to_vec(), vec![])];
        let faults = [
            Order { argv: vec![], ..plain() },
            Order { argv: vec![vec![]], ..plain() },
            Order { argv: vec![b"a\0b".to_vec()], ..plain() },
            Order { cwd: Some(b"a\0b".to_vec()), ..plain() },
            Order { env: variable(b""), ..plain() },
            Order { env: variable(b"A=B"), ..plain() },
            Order { targets: vec![1], ..plain() },
            Order { targets: vec![2], ..plain() },
            Order { targets: vec![64], ..plain() },
            Order { targets: vec![5, 5], ..plain() },
        ];
        for order in faults {
            assert!(fault(&order).is_some(), "{order:?}");
        }
        assert_eq!(fault(&Order { targets: (3..=63).collect(), env: variable(b"A"), ..plain() }), None);
        assert_eq!(fault(&Order { targets: vec![0], ..plain() }), None);
    }
}
