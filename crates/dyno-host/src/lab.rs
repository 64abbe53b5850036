//! The laboratory: two network namespaces and a cable between them, for servers at one end and load at the other.
//!
//! Both are without names: they end with the last process in them, so that nothing is left whatever ends this one. What is
//! turned there is a setting of the laboratory and never one of the host: no journal knows it, and none need. The lab's
//! `World` holds one for `dyno climb --netns`, the planted host and the tests' own.

mod cable;
mod counts;
mod error;
mod parts;
mod snapshot;
mod tables;
pub mod tool;

use std::collections::BTreeMap;
use std::rc::Rc;

use dyno_record::lab::{Count, Part};
use dyno_sys::clock;
use dyno_sys::namespace::OwnNetwork;
use dyno_sys::tap::Tap;

pub use cable::{CLIENT, CLIENT_DEVICE, SERVER, SERVER_DEVICE};
pub use error::LabError;
pub use snapshot::MOVING;

/// What was taken away is freed behind our back, once every CPU has let go of it: not while the next block is measured.
const SETTLE_NS: u64 = 10_000_000;

/// A laboratory in whose server's namespace this process lives.
#[derive(Debug)]
pub struct Lab {
    client: Rc<OwnNetwork>,
    device: u32,
    queues: u32,
    /// Where parts stand that were turned.
    stands: BTreeMap<Part, String>,
    /// Once opened they stay: one that is to hear nothing waits for what nobody sends.
    taps: Vec<Tap>,
}

impl Lab {
    /// Makes both namespaces and the cable, and takes this process into the server's, with everything that it starts from now
    /// on; `/sys` shows the devices there. The process must have one thread.
    ///
    /// # Errors
    /// Without root, and where the cable is not as it was asked for.
    pub fn enter(queues: u32) -> Result<Lab, LabError> {
        let (server, client) = (
            OwnNetwork::make().map_err(LabError::Namespace)?,
            OwnNetwork::make().map_err(LabError::Namespace)?,
        );
        server.settle().map_err(LabError::Namespace)?;
        let device = cable::lay(&client, queues)?;
        let lab = Lab { client: Rc::new(client), device, queues, stands: BTreeMap::new(), taps: Vec::new() };
        cable::check(&lab.client, device, queues)?;
        Ok(lab)
    }

    /// The namespace of the load: what opens connections does it there.
    #[must_use]
    pub fn client(&self) -> Rc<OwnNetwork> {
        Rc::clone(&self.client)
    }

    /// Queues of each end.
    #[must_use]
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Where a part stands.
    #[must_use]
    pub fn stands(&self, part: Part) -> &str {
        self.stands.get(&part).map_or(part.fresh(), String::as_str)
    }

    /// Makes a part stand somewhere; an empty text is where it was in the new laboratory.
    ///
    /// # Errors
    /// When it does not stand there then.
    pub fn stand(&mut self, part: Part, value: &str) -> Result<(), LabError> {
        let value = if value.is_empty() { part.fresh() } else { value };
        if let Some(why) = part.fault(value) {
            return Err(LabError::Value(why));
        }
        if self.stands(part) == value {
            return Ok(());
        }
        self.turn(part, value)?;
        clock::sleep_ns(SETTLE_NS);
        self.stands.insert(part, value.to_owned());
        assert!(self.stands(part) == value, "{} stands where it was put", part.name());
        Ok(())
    }

    /// Every part to where it was in the new laboratory.
    ///
    /// # Errors
    /// The first failure, after all were tried.
    pub fn clear(&mut self) -> Result<(), LabError> {
        let mut outcome = Ok(());
        for part in Part::ALL {
            outcome = outcome.and(self.stand(part, ""));
        }
        outcome
    }

    /// What was counted since the laboratory was made; callers take differences.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn count(&mut self, count: Count) -> Result<u64, LabError> {
        self.read(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Does `work` on a thread in a laboratory of its own; nothing where this user may not make one. One at a time: some
    /// counts are the whole machine's.
    fn in_lab(work: impl FnOnce(&mut Lab) + Send + 'static) {
        static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        if let Err(error) = dyno_sys::namespace::can_make_network() {
            assert!(!dyno_sys::namespace::may_make_network(), "{error}");
            eprintln!("not tested, without the right to make a laboratory: {error}");
            return;
        }
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let thread = std::thread::spawn(|| work(&mut Lab::enter(2).unwrap()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }

    /// A connection over the cable.
    fn connection(lab: &Lab) -> [TcpStream; 2] {
        let listener = TcpListener::bind((SERVER, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let client = lab.client().within(|| TcpStream::connect(address)).unwrap().unwrap();
        client.set_nodelay(true).unwrap();
        [listener.accept().unwrap().0, client]
    }

    /// What a question and an answer count.
    fn counted(lab: &mut Lab, ends: &mut [TcpStream; 2], count: Count) -> u64 {
        let before = lab.count(count).unwrap();
        for _ in 0..20 {
            ends[1].write_all(b"?").unwrap();
            ends[0].read_exact(&mut [0]).unwrap();
            ends[0].write_all(b"!").unwrap();
            ends[1].read_exact(&mut [0]).unwrap();
        }
        lab.count(count).unwrap() - before
    }

    fn napi(end: &TcpStream) -> i32 {
        dyno_sys::socket::int_option(end, dyno_sys::socket::SockOpt::IncomingNapiId).unwrap()
    }

    #[test]
    fn every_part_stands_where_it_is_put_and_is_back_when_it_is_cleared() {
        in_lab(|lab| {
            let turned = [
                (Part::Rules, "set 20 tracked"),
                (Part::Conntrack, "notrack"),
                (Part::Qdisc, "tbf"),
                (Part::Rps, "1"),
                (Part::Taps, "2"),
                (Part::Threads, "1"),
                (Part::Napi, "off"),
                (Part::Segments, "off"),
                (Part::Defer, "20 2"),
            ];
            for (part, value) in turned {
                lab.stand(part, value).unwrap();
                assert_eq!(lab.stands(part), value);
            }
            lab.clear().unwrap();
            assert!(Part::ALL.iter().all(|part| lab.stands(*part) == part.fresh()));
            let refused = lab.stand(Part::Rules, "many").unwrap_err().to_string();
            assert!(refused.contains("linear N"), "{refused}");
        });
    }

    #[test]
    fn a_snapshot_shows_every_part_that_is_turned_and_nothing_once_it_is_cleared() {
        in_lab(|lab| {
            let before = lab.snapshot().unwrap();
            assert!(before.len() > 300, "{}", before.len());
            for (part, value) in dyno_record::lab::planted("1") {
                lab.stand(part, &value).unwrap();
                let now = lab.snapshot().unwrap();
                assert_ne!(now, before, "{} cannot be seen", part.name());
                lab.stand(part, "").unwrap();
                let now = lab.snapshot().unwrap();
                let differs: Vec<_> =
                    now.iter().filter(|(name, value)| before.get(*name) != Some(value)).collect();
                assert!(differs.is_empty() && now.len() == before.len(), "{}: {differs:?}", part.name());
            }
        });
    }

    #[test]
    fn rules_count_where_packets_pass_them_and_not_where_they_are_only_written_down() {
        in_lab(|lab| {
            let mut ends = connection(lab);
            assert_eq!(counted(lab, &mut ends, Count::RulesPassed), 0);
            lab.stand(Part::Rules, "linear 100").unwrap();
            assert!(counted(lab, &mut ends, Count::RulesPassed) >= 20 * 100);
            lab.stand(Part::Rules, "unhooked 100").unwrap();
            assert_eq!(counted(lab, &mut ends, Count::RulesPassed), 0, "written, and not in force");
            lab.stand(Part::Rules, "set 100").unwrap();
            let passed = counted(lab, &mut ends, Count::RulesPassed);
            assert!((20..20 * 10).contains(&passed), "{passed}");
        });
    }

    #[test]
    fn polling_is_real_only_when_the_other_end_does_not_segment() {
        in_lab(|lab| {
            let mut ends = connection(lab);
            counted(lab, &mut ends, Count::Sent);
            assert_ne!(napi(&ends[0]), 0);
            lab.stand(Part::Napi, "nominal").unwrap();
            let mut ends = connection(lab);
            counted(lab, &mut ends, Count::Sent);
            assert_eq!(napi(&ends[0]), 0, "GRO is on, and nothing is polled");
        });
    }

    /// Why the proofs `polled` and `local` are read while requests come. The question came while nothing was polled for; a client
    /// that goes on to say nothing acknowledges the answer later, when polling is on again.
    #[test]
    fn at_rest_a_connection_tells_by_what_way_an_acknowledgement_came() {
        in_lab(|lab| {
            let mut ends = connection(lab);
            let deadline = clock::mono_ns() + 5_000_000_000;
            let of_question = loop {
                lab.stand(Part::Napi, "off").unwrap();
                counted(lab, &mut ends, Count::Sent);
                let found = (napi(&ends[0]), dyno_sys::socket::last_brought_data(&ends[0]).unwrap());
                lab.stand(Part::Napi, "on").unwrap();
                // An acknowledgement is put off by 40 ms. Where all this took longer, it has come the other way: another question.
                if dyno_sys::socket::unacknowledged(&ends[0]).unwrap() > 0 {
                    break found;
                }
                assert!(clock::mono_ns() < deadline, "acknowledged too early, again and again");
            };
            while napi(&ends[0]) == 0 {
                assert!(clock::mono_ns() < deadline, "nobody acknowledged the last answer");
                clock::sleep_ns(1_000_000);
            }
            assert_eq!(of_question.0, 0, "the question was not polled for");
            assert!(of_question.1, "and it was the last packet");
            assert!(
                !dyno_sys::socket::last_brought_data(&ends[0]).unwrap(),
                "what was polled for is no question"
            );
        });
    }

    #[test]
    fn a_polling_thread_works_only_where_polling_is_real() {
        in_lab(|lab| {
            lab.stand(Part::Threads, "1").unwrap();
            let mut ends = connection(lab);
            let real = counted(lab, &mut ends, Count::ThreadUs);
            lab.stand(Part::Napi, "nominal").unwrap();
            let mut ends = connection(lab);
            let nominal = counted(lab, &mut ends, Count::ThreadUs);
            assert!(real > 20 && nominal < real / 4, "{real} µs and {nominal} µs");
        });
    }

    #[test]
    fn interrupts_are_deferred_only_where_polling_is_real() {
        in_lab(|lab| {
            // A packet is a poll that finds it. Deferred by two polls of 20 µs, two more come behind it that find nothing:
            // `napi_complete_done` counts them down (net/core/dev.c), and a packet that comes before they are done is found by
            // one of them. With 5 ms to the next packet all three come, unless something keeps the kernel from its soft
            // interrupts for so long. So a packet has 2 more with it than without, and one more has to be seen: half of the
            // packets may lose theirs.
            let mut polls = |napi: &str, defer: &str| {
                lab.stand(Part::Napi, napi).unwrap();
                lab.stand(Part::Defer, defer).unwrap();
                let mut ends = connection(lab);
                dyno_sys::affinity::set_current(&dyno_sys::affinity::CpuSet::single(0)).unwrap();
                let mut counts: Vec<u64> = (0..COUNTS).map(|_| polls_of_packets(lab, &mut ends)).collect();
                counts.sort_unstable();
                counts[COUNTS / 2]
            };
            let (real, deferred) = (polls("on", "0"), polls("on", "20 2"));
            let (nominal, written) = (polls("nominal", "0"), polls("nominal", "20 2"));
            assert!(deferred >= real + PACKETS, "{real} without, {deferred} with");
            assert!(
                written < nominal + PACKETS,
                "{nominal} without, {written} where it is only written down"
            );
        });
    }

    /// Packets of a count, and counts of which the middle one is taken: the whole machine's polls are counted, and a burst of
    /// others' packets, or a moment without soft interrupts, is in few of them.
    const PACKETS: u64 = 20;
    const COUNTS: usize = 5;

    /// Polls of so many packets, with time behind each for whatever comes later.
    fn polls_of_packets(lab: &mut Lab, ends: &mut [TcpStream; 2]) -> u64 {
        let before = lab.count(Count::Polls).unwrap();
        for _ in 0..PACKETS {
            ends[1].write_all(b"?").unwrap();
            ends[0].read_exact(&mut [0]).unwrap();
            clock::sleep_ns(5_000_000);
        }
        lab.count(Count::Polls).unwrap() - before
    }

    #[test]
    fn busy_polling_takes_packets_only_where_there_is_a_queue_that_can_be_polled() {
        // With one CPU nobody sends while somebody polls: only where nothing may be polled is there something to see.
        let cpus: Vec<usize> = dyno_sys::affinity::allowed().iter().collect();
        let (server_cpu, client_cpu) = (cpus[0], cpus[cpus.len().min(2) - 1]);
        in_lab(move |lab| {
            let mut polled = |napi: &str| {
                lab.stand(Part::Napi, napi).unwrap();
                let mut ends = connection(lab);
                // The connection's queue is known once something came by it.
                counted(lab, &mut ends, Count::BusyPolled);
                waited_for(lab, ends, [server_cpu, client_cpu])
            };
            let (real, nominal) = (polled("on"), polled("nominal"));
            let least = if server_cpu == client_cpu { 0 } else { 5 };
            assert!(real >= least && nominal == 0, "{real} packets, {nominal} where it is only set");
        });
    }

    /// Packets that a wait for events took itself, while the other end sends from another CPU.
    fn waited_for(lab: &mut Lab, ends: [TcpStream; 2], cpus: [usize; 2]) -> u64 {
        use dyno_sys::affinity::{CpuSet, set_current};
        use dyno_sys::epoll::{Epoll, Events, Interest, Timeout};
        let [mut server, mut client] = ends;
        let epoll = Epoll::new().unwrap();
        epoll.poll_devices(200).unwrap();
        epoll.add(&server, 0, Interest::READ).unwrap();
        set_current(&CpuSet::single(cpus[0])).unwrap();
        let before = lab.count(Count::BusyPolled).unwrap();
        let sender = std::thread::spawn(move || {
            set_current(&CpuSet::single(cpus[1])).unwrap();
            for _ in 0..2_000 {
                client.write_all(b"?").unwrap();
                client.read_exact(&mut [0]).unwrap();
            }
        });
        let mut events = Events::with_capacity(4);
        for _ in 0..2_000 {
            while epoll.wait(&mut events, Timeout::Forever).unwrap().is_empty() {}
            server.read_exact(&mut [0]).unwrap();
            server.write_all(b"!").unwrap();
        }
        sender.join().unwrap();
        lab.count(Count::BusyPolled).unwrap() - before
    }

    #[test]
    fn tracking_taps_and_queues_are_counted_where_packets_meet_them() {
        in_lab(|lab| {
            let mut ends = connection(lab);
            for (part, value, count) in [
                (Part::Conntrack, "tracked", Count::Tracked),
                (Part::Conntrack, "notrack", Count::Asked),
                (Part::Qdisc, "tbf", Count::Queued),
                (Part::Taps, "3", Count::Tapped),
            ] {
                assert_eq!(counted(lab, &mut ends, count), 0, "{value} is not there yet");
                lab.stand(part, value).unwrap();
                let seen = counted(lab, &mut ends, count);
                // The first packet of a connection is a new one to who tracks it.
                assert!(seen >= 19, "{value}: {seen}");
                lab.stand(part, "").unwrap();
                assert_eq!(counted(lab, &mut ends, count), 0, "{value} is gone");
            }
        });
    }

    #[test]
    fn packets_are_handed_over_only_by_a_mask_that_names_another_cpu() {
        if dyno_sys::affinity::online().len() < 2 {
            assert!(std::env::var_os("CI").is_none(), "CI has two CPUs, or this says nothing");
            eprintln!("not tested: this machine has one CPU, and no other that a mask could name");
            return;
        }
        in_lab(|lab| {
            // Whoever sends receives on the same CPU: here on the first.
            dyno_sys::affinity::set_current(&dyno_sys::affinity::CpuSet::single(0)).unwrap();
            let mut ends = connection(lab);
            lab.stand(Part::Rps, "1").unwrap();
            let own = counted(lab, &mut ends, Count::HandedOver);
            lab.stand(Part::Rps, "2").unwrap();
            let other = counted(lab, &mut ends, Count::HandedOver);
            assert!(
                other >= 1 && own < other,
                "{own} with a mask that changes nothing, {other} with one that does"
            );
        });
    }

    #[test]
    fn large_replies_are_cut_where_segmentation_is_off() {
        in_lab(|lab| {
            let mut sent = |value: &str| {
                lab.stand(Part::Segments, value).unwrap();
                let [mut server, mut client] = connection(lab);
                let before = lab.count(Count::Sent).unwrap();
                for _ in 0..4 {
                    server.write_all(&[0; 32_000]).unwrap();
                    client.read_exact(&mut [0; 32_000]).unwrap();
                }
                lab.count(Count::Sent).unwrap() - before
            };
            let (whole, cut) = (sent("on"), sent("off"));
            // 4 × 32,000 bytes are 88 segments.
            assert!(cut >= 88 && whole < cut / 2, "{whole} packets whole, {cut} cut");
        });
    }

    #[test]
    fn a_laboratory_ends_with_who_lives_in_it() {
        let ends = dyno_sys::namespace::OwnNetwork::of_this_thread().unwrap().number().unwrap();
        in_lab(|lab| {
            let other = lab.client().number().unwrap();
            assert_ne!(dyno_sys::namespace::OwnNetwork::of_this_thread().unwrap().number().unwrap(), other);
        });
        assert_eq!(dyno_sys::namespace::OwnNetwork::of_this_thread().unwrap().number().unwrap(), ends);
        let (links, _) = dyno_sys::netlink::route::links(1_000).unwrap();
        assert!(links.iter().all(|link| link.name != SERVER_DEVICE && link.name != CLIENT_DEVICE));
    }
}
