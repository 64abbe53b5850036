//! A setting in bytes, for the keeper's channel. Called by [`super::undo`]; it changes nothing.

use super::packet::{Reader, Writer};
use crate::namespace::Network;
use crate::setting::{Device, Field, Setting, Task};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(super) fn write<'w>(setting: &Setting, out: &'w mut Writer) -> &'w mut Writer {
    match setting {
        Setting::NetworkFile { network: at, path } => name(network(out.number(0), at), path),
        Setting::DeviceFile { device: at, file } => device(out.number(1), at).bytes(file.as_bytes()),
        Setting::Feature { device: at, name } => device(out.number(2), at).bytes(name.as_bytes()),
        Setting::Hardware { device: at, field } => device(out.number(3), at).bytes(field.name().as_bytes()),
        Setting::Qdisc(at) => device(out.number(4), at),
        Setting::Table { network: at, family, name } => {
            network(out.number(5), at).bytes(family.as_bytes()).bytes(name.as_bytes())
        }
        Setting::Affinity(at) => task(out.number(6), at),
        Setting::Scheduler(at) => task(out.number(7), at),
        Setting::OwnFile(path) => name(out.number(8), path),
        Setting::OwnFolder(path) => name(out.number(9), path),
        Setting::Interrupt { irq, name } => out.number(10).number(u64::from(*irq)).bytes(name.as_bytes()),
        Setting::FirstRule { network: at, family, table, chain } => network(out.number(11), at)
            .bytes(family.as_bytes())
            .bytes(table.as_bytes())
            .bytes(chain.as_bytes()),
    }
}

pub(super) fn read(packet: &mut Reader<'_>) -> Option<Setting> {
    Some(match packet.number()? {
        0 => Setting::NetworkFile { network: read_network(packet)?, path: read_path(packet)? },
        1 => Setting::DeviceFile { device: read_device(packet)?, file: text(packet)? },
        2 => Setting::Feature { device: read_device(packet)?, name: text(packet)? },
        3 => Setting::Hardware { device: read_device(packet)?, field: Field::named(&text(packet)?)? },
        4 => Setting::Qdisc(read_device(packet)?),
        5 => Setting::Table { network: read_network(packet)?, family: text(packet)?, name: text(packet)? },
        6 => Setting::Affinity(read_task(packet)?),
        7 => Setting::Scheduler(read_task(packet)?),
        8 => Setting::OwnFile(read_path(packet)?),
        9 => Setting::OwnFolder(read_path(packet)?),
        10 => Setting::Interrupt { irq: u32::try_from(packet.number()?).ok()?, name: text(packet)? },
        11 => Setting::FirstRule {
            network: read_network(packet)?,
            family: text(packet)?,
            table: text(packet)?,
            chain: text(packet)?,
        },
        _ => return None,
    })
}

fn network<'w>(out: &'w mut Writer, network: &Network) -> &'w mut Writer {
    out.number(network.inode).number(network.cookie)
}

fn read_network(packet: &mut Reader<'_>) -> Option<Network> {
    Some(Network { inode: packet.number()?, cookie: packet.number()? })
}

fn device<'w>(out: &'w mut Writer, device: &Device) -> &'w mut Writer {
    network(out, &device.network).number(u64::from(device.index)).bytes(device.name.as_bytes())
}

fn read_device(packet: &mut Reader<'_>) -> Option<Device> {
    let (network, index) = (read_network(packet)?, u32::try_from(packet.number()?).ok()?);
    Some(Device { network, index, name: text(packet)? })
}

fn task<'w>(out: &'w mut Writer, task: &Task) -> &'w mut Writer {
    let number = |id: i32| u64::from(id.cast_unsigned());
    out.number(number(task.pid)).number(number(task.tid)).number(task.started)
}

fn read_task(packet: &mut Reader<'_>) -> Option<Task> {
    let mut id = || packet.number().and_then(|number| i32::try_from(number).ok());
    let (pid, tid) = (id()?, id()?);
    Some(Task { pid, tid, started: packet.number()? })
}

fn name<'w>(out: &'w mut Writer, path: &Path) -> &'w mut Writer {
    out.bytes(path.as_os_str().as_bytes())
}

fn read_path(packet: &mut Reader<'_>) -> Option<PathBuf> {
    Some(OsString::from_vec(packet.bytes()?).into())
}

fn text(packet: &mut Reader<'_>) -> Option<String> {
    String::from_utf8(packet.bytes()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_comes_back_as_it_went_and_cut_anywhere_is_none() {
        let network = Network { inode: 4_026_531_840, cookie: u64::MAX };
        let device = Device { network, index: 7, name: "<img src=x>".into() };
        let task = Task { pid: 3, tid: i32::MAX, started: 99 };
        for setting in [
            Setting::NetworkFile { network, path: "/proc/sys/net/core/somaxconn".into() },
            Setting::DeviceFile { device: device.clone(), file: "queues/rx-0/rps_cpus".into() },
            Setting::Feature { device: device.clone(), name: "rx-gro".into() },
            Setting::Hardware { device: device.clone(), field: Field::AdaptiveRx },
            Setting::Qdisc(device),
            Setting::Table { network, family: "ip".into(), name: "dyno_x".into() },
            Setting::Affinity(task),
            Setting::Scheduler(task),
            Setting::OwnFile("/etc/x".into()),
            Setting::OwnFolder("/etc/y".into()),
            Setting::Interrupt { irq: u32::MAX, name: "virtio2-input.0".into() },
            Setting::FirstRule {
                network,
                family: "inet".into(),
                table: "filter".into(),
                chain: "input".into(),
            },
        ] {
            let mut out = Writer::default();
            let packet = &write(&setting, &mut out).0;
            assert_eq!(read(&mut Reader(packet)).as_ref(), Some(&setting));
            assert!((0..packet.len()).all(|cut| read(&mut Reader(&packet[..cut])).is_none()), "{setting}");
        }
    }
}
