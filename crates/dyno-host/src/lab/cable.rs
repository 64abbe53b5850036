//! The cable: made with its queues, addresses and offloads, and seen to be so before anything is measured on it.

use std::net::Ipv4Addr;

use dyno_record::lab::Part;
use dyno_sys::knob;
use dyno_sys::namespace::OwnNetwork;
use dyno_sys::netlink::ethtool;
use dyno_sys::netlink::link::{self, Offload, Veth};
use dyno_sys::netlink::route::{self, Link};

use super::error::LabError;

/// The server's address; the block is set aside for measuring networks (RFC 2544).
pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The load's.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The server's end.
pub const SERVER_DEVICE: &str = "veth-server";
/// The load's end.
pub const CLIENT_DEVICE: &str = "veth-client";

/// Two addresses are all that is needed.
const PREFIX: u8 = 30;
/// A namespace of ours has `lo`, the cable, and tunnels that some kernels make everywhere.
const LINKS_MAX: usize = 100;
/// Segmentation on sending; a peer without it hands over single packets, which alone are polled for (drivers/net/veth.c,
/// `veth_skb_is_eligible_for_gro`).
pub(super) const SEGMENTATION: [&str; 4] = [
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
];
pub(super) const GSO: &str = "tx-generic-segmentation";
pub(super) const GRO: &str = "rx-gro";

/// Lays the cable from this thread's namespace; the number of this end.
pub(super) fn lay(client: &OwnNetwork, queues: u32) -> Result<u32, LabError> {
    let cannot = |what| move |source| LabError::Cable { what, source };
    quiet()?;
    let veth = Veth { names: [SERVER_DEVICE, CLIENT_DEVICE], queues };
    link::make_veth(veth, client).map_err(cannot("make the ends"))?;
    let device = begin(SERVER_DEVICE, SERVER)?;
    let there = client.within(|| quiet().and_then(|()| begin(CLIENT_DEVICE, CLIENT)));
    let there = there.map_err(LabError::Namespace)??;
    link::set_offloads(device, &[GRO], Offload::On).map_err(cannot("set the offloads"))?;
    let off = || link::set_offloads(there, &SEGMENTATION, Offload::Off);
    client.within(off).map_err(LabError::Namespace)?.map_err(cannot("set the offloads"))?;
    Ok(device)
}

/// Neighbours and routers of IPv6 are not looked for: their packets would be counted with the load's.
fn quiet() -> Result<(), LabError> {
    for which in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        if std::path::Path::new(&path).exists() {
            knob::write(path, b"1")?;
        }
    }
    Ok(())
}

/// An end with its address, up.
fn begin(name: &'static str, address: Ipv4Addr) -> Result<u32, LabError> {
    let cannot = |what| move |source| LabError::Cable { what, source };
    let device = link_of(name)?.index;
    link::set_up(LO).and_then(|()| link::set_up(device)).map_err(cannot("set up the ends"))?;
    link::add_address(device, address, PREFIX).map_err(cannot("set the addresses"))?;
    Ok(device)
}

/// `lo` is the first device of every namespace.
const LO: u32 = 1;

fn link_of(name: &'static str) -> Result<Link, LabError> {
    let cannot = |source| LabError::Cable { what: "read the ends", source };
    let (links, _) = route::links(LINKS_MAX).map_err(cannot)?;
    let found = links.into_iter().find(|link| link.name == name);
    found.ok_or_else(|| cannot(std::io::Error::from(std::io::ErrorKind::NotFound)))
}

/// Whether a device's offload is on.
pub(super) fn has(device: u32, offload: &str) -> Result<bool, LabError> {
    let cannot = |source| LabError::Cable { what: "read the offloads", source };
    let all = ethtool::settings(LINKS_MAX).map_err(cannot)?;
    let features = all.get(&device).and_then(|settings| settings.features.as_ref());
    Ok(features.is_some_and(|names| names.iter().any(|name| name == offload)))
}

/// That the cable is what was asked for: both ends up, with their queues, and the offloads on which polling hangs.
pub(super) fn check(client: &OwnNetwork, device: u32, queues: u32) -> Result<(), LabError> {
    let here = link_of(SERVER_DEVICE)?;
    let there = client.within(|| link_of(CLIENT_DEVICE)).map_err(LabError::Namespace)??;
    let read = format!("{} up, {:?} queues; {} up, {:?}", here.is_up, here.queues, there.is_up, there.queues);
    let wanted = format!("true up, {0:?} queues; true up, {0:?}", (queues, queues));
    same("cable", wanted, read)?;
    let polled = has(device, GRO)?;
    let whole = client.within(|| has(there.index, SEGMENTATION[0])).map_err(LabError::Namespace)??;
    let read = format!("GRO {polled}, the other end's segmentation {whole}");
    same(Part::Napi.name(), "GRO true, the other end's segmentation false".into(), read)
}

/// The number of the client's end, in its namespace.
pub(super) fn peer(client: &OwnNetwork) -> Result<u32, LabError> {
    Ok(client.within(|| link_of(CLIENT_DEVICE)).map_err(LabError::Namespace)??.index)
}

pub(super) fn same(what: &'static str, wanted: String, read: String) -> Result<(), LabError> {
    if wanted == read { Ok(()) } else { Err(LabError::NotSo { what, wanted, read }) }
}
