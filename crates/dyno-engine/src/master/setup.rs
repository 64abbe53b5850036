//! What a master is given: what to serve, how to find out once more, and what it has for its life.

use super::handed::Inheritance;
use super::program::Program;
use crate::config::Config;
use crate::route::Router;

/// What a generation serves, and how.
pub struct Setup {
    /// The settings.
    pub config: Config,
    /// Makes the routes; called in each worker.
    pub routes: Box<dyn Fn() -> Router>,
}

/// What a master has for its life, whatever its settings come to.
#[derive(Debug, Default)]
pub struct Own {
    /// What a program handed over that this one takes the place of.
    pub inheritance: Inheritance,
    /// What takes over on SIGUSR2; `None`: nothing does.
    pub program: Option<Program>,
}

/// Reads the settings again; in what cannot be read there is the reason.
pub type Again<'a> = dyn FnMut() -> Result<Setup, String> + 'a;
