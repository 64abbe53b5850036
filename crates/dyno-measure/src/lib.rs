//! Numbers and their judgement.
//!
//! How what was measured is summarised ([`hist`], [`series`]) and what may be said of it ([`judge`]).
//! Everything here is a pure function of its arguments: no clock, socket, thread or environment; chance comes from a
//! seeded [`Prng`].

pub mod apart;
pub mod between;
pub mod dependence;
pub mod drift;
pub mod estimate;
pub mod hist;
pub mod judge;
pub mod means;
pub mod movement;
pub mod normal;
pub mod others;
pub mod prng;
pub mod rounds;
pub mod series;
pub mod shares;
pub mod starts;
pub mod stats;
pub mod stretches;
pub mod student;
pub mod units;
pub mod usl;

pub use hist::Histogram;
pub use prng::Prng;
