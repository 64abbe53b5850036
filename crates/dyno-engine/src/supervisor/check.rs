//! Whether a configuration would serve, asked without serving: nothing is bound, forked or written.

use crate::config::Config;
use crate::dials::Log;
use crate::error::EngineError;
use crate::{host, listen, log};
use dyno_sys::socket::{Addr, SocketError};

/// Asks everything that a start would ask. The addresses that somebody listens on at this moment are handed back: whoever
/// checks the configuration of a server that runs finds it there.
///
/// ```
/// # use dyno_engine::*;
/// let config = Config { listen: vec!["127.0.0.1:0".parse()?], ..Config::default() };
/// assert!(supervisor::check(&config)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What would keep the server from starting.
pub fn check(config: &Config) -> Result<Vec<Addr>, EngineError> {
    config.limits.check(config.dials.workers.get())?;
    host::prepare(config.content.clone(), config.hosts.clone())?;
    if config.listen.is_empty() {
        return Err(EngineError::NoAddress);
    }
    if let (true, Some(path)) = (config.dials.log != Log::Off, &config.log_file) {
        log::could_open(path).map_err(|source| EngineError::Log { path: Some(path.clone()), source })?;
    }
    if let Some(addr) = named_twice(config) {
        let source = SocketError::InUse { addr: addr.clone() };
        return Err(EngineError::Listen { addr: addr.clone(), source });
    }
    let mut busy = Vec::new();
    for addr in config.listen.iter().chain(&config.metrics) {
        match listen::would_listen(addr, &config.dials) {
            Ok(()) => {}
            Err(EngineError::Listen { source: SocketError::InUse { .. }, .. }) => busy.push(addr.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(busy)
}

/// An address on which the server itself listens already when its turn comes.
fn named_twice(config: &Config) -> Option<&Addr> {
    let all: Vec<&Addr> = config.listen.iter().chain(&config.metrics).collect();
    let is_taken = |at: &usize| all[..*at].iter().any(|before| is_same_place(before, all[*at]));
    (0..all.len()).find(is_taken).map(|at| all[at])
}

/// Whether two sockets cannot listen there: an unspecified address is every address of its family.
fn is_same_place(one: &Addr, other: &Addr) -> bool {
    match (one, other) {
        // The kernel chooses another port for each.
        (Addr::Tcp(one), Addr::Tcp(_)) if one.port() == 0 => false,
        (Addr::Tcp(one), Addr::Tcp(other)) => {
            let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
            one.port() == other.port()
                && one.is_ipv4() == other.is_ipv4()
                && (is_any || one.ip() == other.ip())
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::Limits;
    use crate::dials::Dials;
    use std::net::TcpListener;

    fn config(listen: &str) -> Config {
        Config { listen: vec![listen.parse().unwrap()], ..Config::default() }
    }

    #[test]
    fn a_check_finds_what_a_start_would_and_leaves_nothing() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = taken.local_addr().unwrap().to_string();
        assert_eq!(check(&config(&place)).unwrap(), [place.parse().unwrap()]);
        assert_eq!(check(&config("127.0.0.1:0")).unwrap(), []);
        // 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
        assert!(matches!(check(&config("192.0.2.1:80")), Err(EngineError::Listen { .. })));
        assert!(matches!(check(&config("unix:/nowhere/x.sock")), Err(EngineError::Listen { .. })));
        let metrics = Some("192.0.2.1:80".parse().unwrap());
        assert!(check(&Config { metrics, ..config("127.0.0.1:0") }).is_err());
        let path = std::env::temp_dir().join(format!("dyno-check-{}.sock", std::process::id()));
        assert_eq!(check(&config(&format!("unix:{}", path.display()))).unwrap(), []);
        assert!(!path.exists());
    }

    /// What the check says of two addresses is what a start meets. Planted fault: addresses are tried one by one, and none is held
    /// meanwhile.
    #[test]
    fn an_address_that_is_named_twice_is_found() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = std::env::temp_dir().join(format!("dyno-check-twice-{}.sock", std::process::id()));
        let (one, any) = (format!("127.0.0.1:{free}"), format!("0.0.0.0:{free}"));
        let (other, six) = (format!("127.0.0.2:{free}"), format!("[::1]:{free}"));
        let unix = format!("unix:{}", path.display());
        for (first, second, would) in [
            (&*one, &*one, false),
            (&one, &any, false),
            (&any, &one, false),
            (&unix, &unix, false),
            (&one, &other, true),
            (&any, &six, true),
            ("127.0.0.1:0", "127.0.0.1:0", true),
        ] {
            let (first, second): (Addr, Addr) = (first.parse().unwrap(), second.parse().unwrap());
            let both = Config { listen: vec![first.clone(), second.clone()], ..Config::default() };
            let metrics = Some(second);
            let beside = Config { listen: vec![first], metrics, ..Config::default() };
            assert_eq!((check(&both).is_ok(), check(&beside).is_ok()), (would, would), "{both:?}");
            assert_eq!(listen::bind(&both.listen, &both.dials, None).is_ok(), would, "{:?}", both.listen);
            let _ = std::fs::remove_file(&path);
        }
    }

    #[test]
    fn limits_and_the_log_are_asked_too() {
        let limits = Limits { buffer_bytes_max: 0, ..Limits::default() };
        let short = Config { limits, ..config("127.0.0.1:0") };
        assert!(matches!(check(&short), Err(EngineError::Limit { .. })));
        let log_file = Some("/nowhere/log".into());
        let logging = Config { dials: Dials::naive(), log_file, ..config("127.0.0.1:0") };
        assert!(matches!(check(&logging), Err(EngineError::Log { .. })));
    }
}
