//! How a picture is to look, and the table below it.

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

/// Which functions stand first in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Those with most time of their own.
    #[default]
    Own,
    /// Those with most time in them and in what they call.
    Total,
}

/// How a picture is to look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// Which way towers grow.
    pub orientation: Orientation,
    /// Whether threads stand apart.
    pub threads: Threads,
    /// Which functions its table begins with.
    pub order: Order,
}
