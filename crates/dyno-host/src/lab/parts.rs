//! Turning a part of the laboratory: written, read back, compared.

use dyno_record::lab::{Part, Rules, deferral};
use dyno_sys::knob;
use dyno_sys::netlink::link::{self, Offload};
use dyno_sys::netlink::route;
use dyno_sys::tap::{Hears, Tap};

use super::cable::{GRO, GSO, SEGMENTATION, SERVER_DEVICE, has, peer, same};
use super::error::LabError;
use super::{Lab, tables, tool};

/// Far above what the load sends, with room for all of it: nothing is dropped, everything is held under one lock.
const TBF: [&str; 6] = ["rate", "40gbit", "burst", "10mb", "limit", "100mb"];
/// A cable has a discipline per queue and a root at most.
const QDISCS_MAX: usize = 1_000;

impl Lab {
    pub(super) fn turn(&mut self, part: Part, value: &str) -> Result<(), LabError> {
        let nft = |text: String| tool::run("nft", part.name(), &["-f", "-"], &text).map(|_| ());
        match part {
            Part::Rules => nft(tables::rules(Rules::of(value).expect("the value was looked at"))),
            Part::Conntrack => nft(tables::tracking(value)),
            Part::Qdisc => self.set_qdisc(value),
            Part::Rps => self.set_steering(value),
            Part::Taps => self.set_taps(value.parse().expect("the value was looked at")),
            Part::Napi => self.set_polling(value),
            Part::Threads => {
                Ok(knob::write(format!("/sys/class/net/{SERVER_DEVICE}/threaded"), value.as_bytes())
                    .map(|_| ())?)
            }
            Part::Defer => set_deferral(deferral(value).expect("the value was looked at")),
            Part::Segments => self.set_segments(if value == "on" { Offload::On } else { Offload::Off }),
        }
    }

    fn set_qdisc(&self, value: &str) -> Result<(), LabError> {
        let mut words = vec!["qdisc", "replace", "dev", SERVER_DEVICE, "root", value];
        if value == "tbf" {
            words.extend(TBF);
        }
        tool::run("tc", Part::Qdisc.name(), &words, "")?;
        same(Part::Qdisc.name(), value.to_owned(), self.qdisc()?)
    }

    /// The root of the server's end.
    pub(super) fn qdisc(&self) -> Result<String, LabError> {
        let cannot = |source| LabError::Count { what: "the queueing disciplines", source };
        let (all, _) = route::qdiscs(QDISCS_MAX).map_err(cannot)?;
        let root = all.into_iter().find(|qdisc| qdisc.device == self.device && qdisc.is_root);
        Ok(root.map_or_else(|| Part::Qdisc.fresh().to_owned(), |root| root.kind))
    }

    fn set_steering(&self, mask: &str) -> Result<(), LabError> {
        for queue in 0..self.queues {
            let path = format!("/sys/class/net/{SERVER_DEVICE}/queues/rx-{queue}/rps_cpus");
            knob::write(path, mask.as_bytes())?;
        }
        Ok(())
    }

    /// Taps are opened once and bound or not: opening maps a ring, and that is not what is measured.
    fn set_taps(&mut self, wanted: usize) -> Result<(), LabError> {
        while self.taps.len() < wanted {
            self.taps.push(Tap::open().map_err(LabError::Tap)?);
        }
        for (at, tap) in self.taps.iter_mut().enumerate() {
            let hears = if at < wanted { Hears::All } else { Hears::Nothing };
            tap.set(hears).map_err(LabError::Tap)?;
        }
        Ok(())
    }

    fn set_polling(&self, value: &str) -> Result<(), LabError> {
        let on = |wanted: bool| if wanted { Offload::On } else { Offload::Off };
        let cannot = |source| LabError::Cable { what: "set the offloads", source };
        let (polled, whole) = (value != "off", value != "on");
        link::set_offloads(self.device, &[GRO], on(polled)).map_err(cannot)?;
        let peer = peer(&self.client())?;
        let there = || {
            link::set_offloads(peer, &SEGMENTATION, on(whole)).map_err(cannot)?;
            has(peer, SEGMENTATION[0])
        };
        let is_whole = self.client().within(there).map_err(LabError::Namespace)??;
        let words = |polled, whole| format!("GRO {polled}, the other end's segmentation {whole}");
        same(Part::Napi.name(), words(polled, whole), words(has(self.device, GRO)?, is_whole))
    }

    fn set_segments(&self, wanted: Offload) -> Result<(), LabError> {
        let cannot = |source| LabError::Cable { what: "set the offloads", source };
        let names: Vec<&str> = SEGMENTATION.into_iter().chain([GSO]).collect();
        link::set_offloads(self.device, &names, wanted).map_err(cannot)?;
        let is = [has(self.device, SEGMENTATION[0])?, has(self.device, GSO)?];
        let wanted = [wanted == Offload::On; 2];
        same(Part::Segments.name(), format!("{wanted:?}"), format!("{is:?}"))
    }
}

/// Both, or interrupts stay away for ever, or not at all.
fn set_deferral((flush_ns, polls): (u64, u32)) -> Result<(), LabError> {
    let folder = format!("/sys/class/net/{SERVER_DEVICE}");
    knob::write(format!("{folder}/gro_flush_timeout"), flush_ns.to_string().as_bytes())?;
    knob::write(format!("{folder}/napi_defer_hard_irqs"), polls.to_string().as_bytes())?;
    Ok(())
}
