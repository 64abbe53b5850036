//! What would it bring if this were faster: virtual speed-ups of code and of waits, tried on a running program.
//!
//! ```text
//! profile → site (which code) → run: schedule → Rig (one window) → estimate → verdict → dyno_measure::causal::Causal
//! ```
//! The virtual speed-up is that of Coz (Curtsinger and Berger, 2015): whenever a sample lies in the site, everybody else
//! pauses, and what was inserted is taken out of the time. `dyno causal` calls [`run`] over a live process.

mod live;
mod point;
pub mod rig;
mod run;
pub mod site;

pub use live::{Children, Live, Subject, is_possible};
pub use point::{Candidate, Named, Progress, Returns, candidates, ranked, rates};
pub use rig::{Deed, Entry, Hooks, Moment, Pause, Place, Reach, Rig, Site, Span, WaitKind, Window};
pub use run::{Asked, News, Tried, run};
pub use site::{Choice, Parts, Passed, Probe, Resolver, SiteError, of_processes};
