//! Why a host cannot be served as it was told.

/// Why a host cannot be served as it was told.
///
/// ```
/// use dyno_engine::{HostError, Redirect};
///
/// let open = Redirect::new("/*", "https://example.org*", 301);
/// assert!(matches!(open, Err(HostError::Redirect { .. })));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It is no name of a host.
    #[error("no host can be called {name:?}: {why}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two hosts have one name, or one has it twice.
    #[error("{name} is the name of two hosts")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// Two hosts have no name: only one can answer for what is nobody's.
    #[error("two hosts have no name")]
    Nameless,
    /// There are more hosts than a server keeps.
    #[error("{hosts} hosts are told, and a server has {most} at most")]
    TooMany {
        /// How many.
        hosts: usize,
        /// How many there may be.
        most: usize,
    },
    /// A redirect that cannot be, or must not.
    #[error("{from} cannot be redirected to {to}: {why}")]
    Redirect {
        /// From where.
        from: String,
        /// To where.
        to: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header line that cannot be sent with every reply.
    #[error("the header {name:?} cannot be sent with every reply: {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An error page that cannot be.
    #[error("{page:?} cannot be the error page of {status}: {why}")]
    ErrorPage {
        /// The status.
        status: u16,
        /// The file.
        page: String,
        /// What is wrong with it.
        why: &'static str,
    },
}
