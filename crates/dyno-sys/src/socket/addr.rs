//! Addresses as people write them and as the kernel takes them. Names are never resolved: nothing here opens a socket.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// `sun_path` has 108 bytes, one of them for the closing zero (`unix(7)`).
const UNIX_PATH_BYTES_MAX: usize = 107;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Addr {
    /// An IP address and a port: `127.0.0.1:80`, `[::1]:80`.
    Tcp(SocketAddr),
    /// A socket file: `unix:/run/dyno.sock`. Empty for an unnamed peer.
    Unix(PathBuf),
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddrError {
    /// A port without a host: would be open to the world by accident.
    #[error(
        "{text:?} names no host; write 127.0.0.1{port} (this machine only) or 0.0.0.0{port} (every interface)"
    )]
    NoHost {
        /// What was written.
        text: String,
        /// The port with its colon.
        port: String,
    },
    /// A host without a port.
    #[error("{text:?} names no port; write for example {text}:8080")]
    NoPort {
        /// What was written.
        text: String,
    },
    /// `unix:` without a usable path.
    #[error(
        "{text:?} is no socket file: a path of 1 to {UNIX_PATH_BYTES_MAX} bytes without zero bytes must follow unix:"
    )]
    BadPath {
        /// What was written.
        text: String,
    },
    /// Anything else, host names among it.
    #[error(
        "{text:?} is not an address; write 127.0.0.1:8080, [::1]:8080 or unix:/path (names are not resolved)"
    )]
    NotAnAddress {
        /// What was written.
        text: String,
    },
}

impl FromStr for Addr {
    type Err = AddrError;

    fn from_str(text: &str) -> Result<Addr, AddrError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Addr::of_file(Path::new(path));
        }
        text.parse().map(Addr::Tcp).map_err(|_| refusal(text.to_owned()))
    }
}

fn refusal(text: String) -> AddrError {
    let is_port = |digits: &str| digits.parse::<u16>().is_ok();
    let colon = text.strip_prefix(':').unwrap_or(&text);
    if is_port(colon) {
        let port = format!(":{colon}");
        return AddrError::NoHost { text, port };
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&text);
    if bare.parse::<std::net::IpAddr>().is_ok() {
        let text = if bare.contains(':') { format!("[{bare}]") } else { text };
        return AddrError::NoPort { text };
    }
    AddrError::NotAnAddress { text }
}

impl fmt::Display for Addr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Addr::Tcp(addr) => addr.fmt(out),
            Addr::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Addr {
    fn from(addr: SocketAddr) -> Addr {
        Addr::Tcp(addr)
    }
}

/// An address in the kernel's shape.
pub(crate) struct Raw {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl Raw {
    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(crate) fn len(&self) -> libc::socklen_t {
        self.len
    }

    fn zeroed() -> Raw {
        // SAFETY: all zeroes is a valid sockaddr_storage (AF_UNSPEC).
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Raw { storage, len: size_of_val(&storage) as libc::socklen_t }
    }

    /// `address` must be one of the sockaddr structures, each no larger than a storage and made of plain numbers.
    fn holding<T: Copy>(address: T) -> Raw {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        let mut raw = Raw::zeroed();
        raw.len = size_of::<T>() as libc::socklen_t;
        // SAFETY: the storage is at least as large as T (asserted above) and aligned for every sockaddr.
        unsafe { (&raw mut raw.storage).cast::<T>().write(address) };
        raw
    }
}

impl Addr {
    /// A socket file.
    ///
    /// # Errors
    /// When the kernel could not take such a path.
    pub fn of_file(path: &Path) -> Result<Addr, AddrError> {
        raw_unix(path).ok_or_else(|| AddrError::BadPath { text: format!("unix:{}", path.display()) })?;
        Ok(Addr::Unix(path.to_owned()))
    }

    pub(crate) fn family(&self) -> libc::c_int {
        match self {
            Addr::Tcp(SocketAddr::V4(_)) => libc::AF_INET,
            Addr::Tcp(SocketAddr::V6(_)) => libc::AF_INET6,
            Addr::Unix(_) => libc::AF_UNIX,
        }
    }

    /// `None` when a path does not fit: parsing refuses those, but `Addr::Unix` can be made by hand.
    pub(crate) fn raw(&self) -> Option<Raw> {
        match self {
            Addr::Tcp(SocketAddr::V4(addr)) => Some(Raw::holding(raw_v4(addr))),
            Addr::Tcp(SocketAddr::V6(addr)) => Some(Raw::holding(raw_v6(addr))),
            Addr::Unix(path) => raw_unix(path).map(Raw::holding),
        }
    }

    /// Runs a getsockname-like call and reads what it wrote.
    pub(crate) fn asked(
        ask: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int,
    ) -> io::Result<Addr> {
        let mut raw = Raw::zeroed();
        let Raw { storage, len } = &mut raw;
        crate::errno::checked(ask((&raw mut *storage).cast(), len))?;
        decode(&raw).ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
    }
}

fn decode(raw: &Raw) -> Option<Addr> {
    match libc::c_int::from(raw.storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which structure the kernel wrote; the storage is large and aligned enough.
            let addr = unsafe { raw.as_ptr().cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(u32::from_be(addr.sin_addr.s_addr));
            Some(Addr::Tcp(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(addr.sin_port)))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let addr = unsafe { raw.as_ptr().cast::<libc::sockaddr_in6>().read() };
            let (ip, port) = (Ipv6Addr::from(addr.sin6_addr.s6_addr), u16::from_be(addr.sin6_port));
            let addr = SocketAddrV6::new(ip, port, u32::from_be(addr.sin6_flowinfo), addr.sin6_scope_id);
            Some(Addr::Tcp(SocketAddr::V6(addr)))
        }
        libc::AF_UNIX => {
            // SAFETY: as above.
            let addr = unsafe { raw.as_ptr().cast::<libc::sockaddr_un>().read() };
            let path: Vec<u8> = addr.sun_path.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
            Some(Addr::Unix(PathBuf::from(std::ffi::OsStr::from_bytes(&path))))
        }
        _ => None,
    }
}

fn raw_v4(addr: &SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: addr.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*addr.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

fn raw_v6(addr: &SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: addr.port().to_be(),
        sin6_flowinfo: addr.flowinfo().to_be(),
        sin6_addr: libc::in6_addr { s6_addr: addr.ip().octets() },
        sin6_scope_id: addr.scope_id(),
    }
}

fn raw_unix(path: &Path) -> Option<libc::sockaddr_un> {
    let bytes = path.as_os_str().as_bytes();
    // A leading zero byte would name an abstract socket, which no file permission guards.
    if bytes.is_empty() || bytes.len() > UNIX_PATH_BYTES_MAX || bytes.contains(&0) {
        return None;
    }
    let mut raw = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    for (to, from) in raw.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Some(raw)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_written_as_they_were_read() {
        for text in ["127.0.0.1:80", "[::1]:80", "0.0.0.0:65535", "[fe80::1%3]:8080", "unix:/run/dyno.sock"] {
            assert_eq!(text.parse::<Addr>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_port_alone_is_refused_with_both_ways_out() {
        for text in [":8080", "8080"] {
            let message = text.parse::<Addr>().unwrap_err().to_string();
            assert!(message.contains("127.0.0.1:8080") && message.contains("0.0.0.0:8080"), "{message}");
        }
    }

    #[test]
    fn a_host_alone_is_told_its_port_is_missing() {
        assert!("127.0.0.1".parse::<Addr>().unwrap_err().to_string().contains("127.0.0.1:8080"));
        assert!("::1".parse::<Addr>().unwrap_err().to_string().contains("[::1]:8080"));
        assert!("[::1]".parse::<Addr>().unwrap_err().to_string().contains("[::1]:8080"));
    }

    #[test]
    fn names_and_nonsense_are_refused() {
        for text in ["localhost:80", "", "1.2.3.4:99999", "1.2.3.4:", "http://1.2.3.4:80", ":x"] {
            assert_eq!(text.parse::<Addr>(), Err(AddrError::NotAnAddress { text: text.to_owned() }));
        }
    }

    #[test]
    fn a_path_that_the_kernel_could_not_take_is_refused() {
        for path in ["", "a\0b", &"x".repeat(108)] {
            let text = format!("unix:{path}");
            assert_eq!(text.parse::<Addr>(), Err(AddrError::BadPath { text: text.clone() }));
        }
        assert!(format!("unix:{}", "x".repeat(107)).parse::<Addr>().is_ok());
    }

    #[test]
    fn a_path_that_is_no_text_stays_as_it_is() {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/run/\xff.sock"));
        assert_eq!(Addr::of_file(path), Ok(Addr::Unix(path.to_owned())));
    }

    #[test]
    fn the_kernels_shape_reads_back_the_same() {
        for text in ["127.0.0.1:80", "[::1]:80", "[fe80::1%3]:8080", "unix:/run/dyno.sock"] {
            let addr: Addr = text.parse().unwrap();
            assert_eq!(decode(&addr.raw().unwrap()), Some(addr));
        }
    }
}
