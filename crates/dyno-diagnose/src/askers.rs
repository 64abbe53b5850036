//! Those who ask over something that is no connection of TCP: what their writes do says who they are.
//!
//! A client on the same machine is no neighbour: its CPU time is the price of asking. Who holds a connection's far end is found while the
//! target is watched; who asks over a pipe, or a datagram at a time, is not. They end waits for requests, and their CPU time goes
//! from the neighbours' to the peers'.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dyno_record::observation::Observation;
use dyno_record::profile::{Profile, WaitClass};

use super::names;

/// Of the waits for a network or a pipe, those that a program's writes must end to be one that asks.
const ENDED_MIN: f64 = 0.1;

/// The observation with those who ask among the peers.
pub(super) fn among_peers(seen: &Observation) -> Cow<'_, Observation> {
    let askers = seen.off_cpu.as_ref().map(askers).unwrap_or_default();
    let asks = |(name, _): &(String, u64)| askers.contains(name.as_str());
    if !seen.host.neighbours.iter().any(asks) {
        return Cow::Borrowed(seen);
    }
    let (asking, others): (Vec<_>, Vec<_>) = seen.host.neighbours.iter().cloned().partition(asks);
    let asking_ns = asking.iter().map(|(_, ns)| ns).sum::<u64>().min(seen.host.foreign_ns);
    let mut known = seen.clone();
    known.host.foreign_ns -= asking_ns;
    known.host.peers_ns += asking_ns;
    known.host.neighbours = others;
    known.host.peers.extend(asking);
    Cow::Owned(known)
}

/// Names of other processes whose writes ended a tenth or more of the waits for a network or a pipe.
fn askers(profile: &Profile) -> BTreeSet<&str> {
    let own: BTreeSet<u32> = profile.threads.iter().map(|thread| thread.tid).collect();
    let (mut all, mut by) = (0, BTreeMap::<&str, u64>::new());
    for stack in &profile.stacks {
        if stack.wait.as_ref().is_none_or(|wait| wait.class != WaitClass::Network) {
            continue;
        }
        all += stack.samples;
        let waker = stack.waker.and_then(|at| profile.wakers.get(at as usize));
        let Some(waker) = waker.filter(|waker| !own.contains(&waker.tid)) else { continue };
        let mut frames = waker.frames.iter().map(|at| &profile.frames[*at as usize]);
        if frames.any(|frame| names::is(&frame.name, names::SENDS)) {
            *by.entry(waker.name.as_str()).or_default() += stack.samples;
        }
    }
    by.into_iter()
        .filter(|(_, waits)| *waits as f64 >= ENDED_MIN * all as f64)
        .map(|(name, _)| name)
        .collect()
}
