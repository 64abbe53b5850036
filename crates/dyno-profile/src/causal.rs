//! What would it bring if this were faster: virtual speed-ups of code and of waits, tried on a running program.
//!
//! ```text
//! profile → site (which code) → run: experiment → Rig (one window) → estimate → verdict → dyno_record::causal::Causal
//! ```
//! The virtual speed-up is that of Coz (Curtsinger and Berger, 2015): whenever a sample lies in the site, all other
//! threads pause, and the inserted delay is taken out of the time. `dyno causal` calls [`run`] over a live process.

mod live;
pub mod rig;
mod run;
pub mod site;

pub use live::{
    Candidate, Children, Live, Subject, candidates, is_possible, passed_per_second, ranked, rates,
};
pub use rig::progress::{Named, Progress, Returns};
pub use rig::site::{Entry, Place, Reach, Site, Tried, WaitKind};
pub use rig::window::{Marks, Moment, Pair, Window};
pub use rig::{Hooks, Pause, Rig, Span, Treatment};
pub use run::{Asked, RoundEvent, run, sites_that_fit};
pub use site::{Choice, Parts, Passed, Probe, Resolver, SiteError, Spinning, of_processes};
