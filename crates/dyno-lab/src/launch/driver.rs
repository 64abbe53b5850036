//! The load on a server, and the network that its connections are opened in.
//!
//! With a laboratory that is the client's end: a connection that is opened anew in a block comes from there too. Every load of
//! a climb goes through here.

use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use dyno_load::{Beside, BlockReport, BlockSpec, Crew, Edge, Expect, OpenError, Placement, SessionPlan};
use dyno_sys::namespace::OwnNetwork;

/// Connections with the place where they are opened.
#[derive(Debug)]
pub(crate) struct Driver {
    crew: Crew,
    from: Option<Rc<OwnNetwork>>,
}

impl Driver {
    /// Opens the plan's connections there; `None` is where this process is.
    pub(crate) fn open(
        plan: &SessionPlan,
        placement: &Placement,
        from: Option<Rc<OwnNetwork>>,
    ) -> Result<Driver, OpenError> {
        let crew = within(from.as_deref(), || Crew::open(plan, placement))?;
        Ok(Driver { crew, from })
    }

    /// The bytes of a right answer.
    pub(crate) fn sample_answer(&self) -> &[u8] {
        self.crew.sample_answer()
    }

    /// What answers are held against, once a first one was found right.
    pub(crate) fn expect(&self) -> &Expect {
        self.crew.expect()
    }

    /// One block, see [`Crew::block`].
    pub(crate) fn block(&mut self, spec: &BlockSpec, at_edge: &mut (dyn FnMut(Edge) + Send)) -> BlockReport {
        let Driver { crew, from } = self;
        within(from.as_deref(), || crew.block(spec, at_edge))
    }

    /// One block with a look beside it, see [`Crew::beside`]. The look is not to open anything of this namespace.
    pub(crate) fn beside<T>(
        &mut self,
        spec: &BlockSpec,
        stop: &AtomicBool,
        at_edge: &mut (dyn FnMut(Edge) + Send),
        look: impl FnOnce(&Beside) -> T,
    ) -> (BlockReport, T) {
        let Driver { crew, from } = self;
        within(from.as_deref(), || crew.beside(spec, stop, at_edge, look))
    }
}

/// Does `work` there.
///
/// # Panics
/// When this process may not enter a namespace that it made: it lost its rights meanwhile, and no figure would be one of the
/// laboratory any more.
pub(crate) fn within<T>(network: Option<&OwnNetwork>, work: impl FnOnce() -> T) -> T {
    match network {
        None => work(),
        Some(network) => network.within(work).expect("who made a namespace may enter it"),
    }
}
