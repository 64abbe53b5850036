//! What a world has built so far.

use std::path::PathBuf;

use dyno_climb::meter::Trouble;
use dyno_climb::plan::BuildStep;

/// What has been built, and how long that took together.
#[derive(Debug, Default)]
pub(crate) struct Builds {
    /// Folders by the steps that filled them; the trouble where one failed: it would fail again.
    pub(crate) done: Vec<(Vec<BuildStep>, Result<PathBuf, Trouble>)>,
    pub(crate) took_ns: u64,
}
