//! The built-in ladder of `dyno serve`: a rung and its dial are one file in `rung/` and one line in [`steps`].
//!
//! Each rung moves one dial one step, and says what it claims, on whose word, at what risk, and how to see it. The words are
//! those of the server's flags; a test in the binary feeds each of them to the engine's own parser.

mod allocator;
mod batch;
mod borrowed_headers;
mod congestion;
mod cpu_steering;
mod date_cache;
mod edge;
mod log_off;
mod log_ring;
mod network;
mod one_send;
mod outbox;
mod pin;
mod recv_send;
mod reuseport;
mod sandbox_off;
mod shape;
mod short_read;
mod spin;
mod workers;

pub(crate) use shape::Step;
pub use shape::{HostHere, Needs, NetworkHere, Rung, Surroundings};

/// In the order in which they are climbed; dials stand on the command line in the order of their first rungs.
pub(crate) fn steps(surroundings: &Surroundings) -> Vec<Step> {
    let all: &[fn(&Surroundings) -> Step] = &[
        one_send::step,
        log_ring::step,
        log_off::step,
        recv_send::step,
        short_read::step,
        outbox::step,
        borrowed_headers::step,
        date_cache::step,
        edge::step,
        batch::step,
        congestion::step,
        allocator::step,
        spin::step,
        workers::step,
        reuseport::step,
        pin::step,
        cpu_steering::step,
        sandbox_off::step,
    ];
    let network = surroundings.network.iter().flat_map(network::steps);
    all.iter().map(|step| step(surroundings)).chain(network).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &str) -> usize {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        std::fs::read_dir(folder).expect("a folder of rungs").count()
    }

    #[test]
    fn every_file_of_the_folder_is_a_rung_of_the_plan() {
        let rungs = steps(&Surroundings::default()).len();
        assert_eq!(files("src/rung"), rungs + 3, "one file each, shape.rs, and the network's");
        let network = Some(NetworkHere { server_mask: "1".into(), ..NetworkHere::default() });
        let with = steps(&Surroundings { network, ..Surroundings::default() }).len();
        assert_eq!(files("src/rung/network"), with - rungs, "one file each");
    }

    /// A climb that nobody asked for it must not end without a sandbox, however much faster that is.
    #[test]
    fn what_gives_up_security_is_tried_by_who_names_it_and_says_what_it_risks() {
        let steps = steps(&Surroundings::default());
        let asked: Vec<&Rung> = steps.iter().map(|step| &step.rung).filter(|rung| rung.only_named).collect();
        assert_eq!(asked.iter().map(|rung| rung.id.as_str()).collect::<Vec<_>>(), ["sandbox-off"]);
        let rung = asked[0];
        assert!(!rung.is_wanted(&[]) && !rung.is_wanted(&["pin".into()]));
        assert!(rung.is_wanted(&["pin".into(), "sandbox-off".into()]));
        assert!(rung.risk.contains("SECURITY"), "{}", rung.risk);
        assert!(steps.iter().filter(|step| !step.rung.only_named).all(|step| step.rung.is_wanted(&[])));
    }
}
