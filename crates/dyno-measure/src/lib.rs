//! Numbers and their judgement.
//!
//! What a run measured ([`record`]), how it is summarised ([`hist`], [`series`]) and what may be said of it ([`judge`]).
//! Everything here is a pure function of its arguments: no clock, socket, thread or environment; chance comes from a
//! seeded [`Prng`]. A record holds all that its verdicts were made from, so that a stranger can judge it again.

pub mod causal;
pub mod diagnosis;
pub mod finding;
pub mod foretell;
pub mod hist;
pub mod judge;
pub mod observation;
pub mod prng;
pub mod profile;
pub mod record;
pub mod rounds;
pub mod series;
pub mod stats;
pub mod student;
pub mod units;
pub mod usl;

pub use hist::Histogram;
pub use prng::Prng;
