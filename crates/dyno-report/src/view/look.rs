//! How a picture is to look.

use dyno_profile::tree::Threads;

/// Which way towers grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Orientation {
    /// Upwards, the root at the bottom.
    #[default]
    Flame,
    /// Downwards, the root at the top.
    Icicle,
}

/// How a picture is to look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// Which way towers grow.
    pub orientation: Orientation,
    /// Whether threads stand apart.
    pub threads: Threads,
}
