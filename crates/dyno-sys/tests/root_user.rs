//! What only root can try: launching as another user, perf events as a plain one, and a look into other networks.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/holder.rs"]
mod holder;

use common::{Scratch, launch, next_exit};
use dyno_sys::child::Exit;
use dyno_sys::keeper::{Closing, Keeper, KeeperError, Undo};
use dyno_sys::namespace::OwnNetwork;
use dyno_sys::netlink::link::{self, Veth};
use dyno_sys::netlink::route;
use dyno_sys::{connections, proc};
use holder::Holder;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// `nobody`: a user without rights on every machine.
const NOBODY: u32 = 65_534;

fn main() -> ExitCode {
    let why = "needs root: becomes another user (CAP_SETUID, CAP_SETGID), makes networks (CAP_SYS_ADMIN, CAP_NET_ADMIN)";
    common::run_ignored(
        &[
            ("a_program_runs_as_its_user", a_program_runs_as_its_user),
            ("a_launch_as_another_user_ends_like_any_other", a_launch_as_another_user_ends_like_any_other),
            ("a_folder_closed_to_the_user_is_refused", a_folder_closed_to_the_user_is_refused),
            ("a_plain_user_has_a_task_clock_too", a_plain_user_has_a_task_clock_too),
            (
                "a_real_setting_is_put_back_when_dyno_is_killed",
                a_real_setting_is_put_back_when_dyno_is_killed,
            ),
            ("a_choice_is_put_back_when_dyno_is_killed", a_choice_is_put_back_when_dyno_is_killed),
            (
                "a_refused_value_leaves_nothing_of_itself_behind",
                a_refused_value_leaves_nothing_of_itself_behind,
            ),
            ("who_asks_from_another_network_is_a_peer", who_asks_from_another_network_is_a_peer),
        ],
        why,
    )
}

fn a_program_runs_as_its_user() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let mut asked = scratch.program(&["cat", "/proc/self/status"]);
    asked.user = Some((NOBODY, NOBODY));
    let pid = launch(&keeper, &asked).unwrap();
    assert_eq!(next_exit(&keeper), (pid, Exit::Code(0)));
    let text = scratch.text("output");
    let four = [NOBODY; 4].map(|id| id.to_string()).join("\t");
    for field in ["Uid", "Gid"] {
        assert_eq!(proc::parse_status_field(&text, field), Some(four.as_str()));
    }
    assert_eq!(proc::parse_status_field(&text, "Groups"), Some(NOBODY.to_string().as_str()));
    let nothing = Some("0000000000000000");
    assert_eq!(
        (proc::parse_status_field(&text, "CapEff"), proc::parse_status_field(&text, "CapPrm")),
        (nothing, nothing)
    );
}

fn a_launch_as_another_user_ends_like_any_other() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let mut asked = scratch.sh("trap '' TERM; (setsid sleep 60 &); sleep 60");
    asked.user = Some((NOBODY, NOBODY));
    launch(&keeper, &asked).unwrap();
    let stopped = launch(&keeper, &asked).unwrap();
    keeper.stop(stopped, 10_000_000).unwrap();
    assert_eq!(keeper.close().unwrap(), Closing::Clean);
}

fn a_folder_closed_to_the_user_is_refused() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    std::fs::set_permissions(scratch.path("."), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut asked = scratch.sh("true");
    asked.user = Some((NOBODY, NOBODY));
    let refused = keeper.hold(&asked).unwrap_err();
    assert!(matches!(refused, KeeperError::Setup { step: "enter its folder", .. }), "{refused}");
}

/// Runs the perf test as `nobody`, from a copy of its program that nobody may read.
fn a_plain_user_has_a_task_clock_too() {
    let scratch = Scratch::new();
    std::fs::set_permissions(scratch.path("."), std::fs::Permissions::from_mode(0o777)).unwrap();
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let newest = std::fs::read_dir(folder).unwrap().flatten().filter(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.starts_with("perf-") && !name.contains('.')
    });
    let perf = newest
        .max_by_key(|entry| entry.metadata().unwrap().modified().unwrap())
        .expect("the perf test is built");
    std::fs::copy(perf.path(), scratch.path("perf")).unwrap();
    let mut command = Command::new(scratch.path("perf"));
    command.uid(NOBODY).gid(NOBODY).env("TMPDIR", scratch.path(".")).current_dir("/");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}");
}

/// A setting that exists everywhere and that one value more or less does not matter to.
fn a_real_setting_is_put_back_when_dyno_is_killed() {
    let knob = "/proc/sys/kernel/hung_task_warnings";
    let knob =
        if std::path::Path::new(knob).exists() { knob } else { "/proc/sys/kernel/printk_ratelimit_burst" };
    let before = dyno_sys::knob::read(knob).unwrap();
    common::as_dyno_killed(|| {
        let keeper = std::mem::ManuallyDrop::new(Keeper::start().unwrap());
        let old = String::from_utf8(before.clone()).unwrap().trim().parse::<i64>().unwrap();
        let _token = keeper.undo_on_death(&[Undo::write(knob, &before)]).unwrap();
        dyno_sys::knob::write(knob, (old + 1).to_string().as_bytes()).unwrap();
    });
    common::nothing_is_left();
    assert_eq!(dyno_sys::knob::read(knob).unwrap(), before);
}

/// A choice reads as all its words, and the kernel takes one of them.
fn a_choice_is_put_back_when_dyno_is_killed() {
    let knob = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let Ok(before) = dyno_sys::knob::read(knob) else {
        assert!(std::env::var_os("CI").is_none(), "CI has {knob}, or this says nothing");
        println!("not tested: there is no {knob}");
        return;
    };
    let other: &[u8] = if dyno_sys::knob::holds(knob, b"advise").unwrap() { b"never" } else { b"advise" };
    common::as_dyno_killed(|| {
        let keeper = std::mem::ManuallyDrop::new(Keeper::start().unwrap());
        let _token = keeper.undo_on_death(&[Undo::write(knob, &before)]).unwrap();
        dyno_sys::knob::write(knob, other).unwrap();
    });
    common::nothing_is_left();
    let after = dyno_sys::knob::read(knob).unwrap();
    dyno_sys::knob::put_back(knob, &before).unwrap();
    assert_eq!(after, before);
}

/// Of these the kernel takes the first word and then refuses the rest.
fn a_refused_value_leaves_nothing_of_itself_behind() {
    let knobs: [(&str, &[u8]); 2] =
        [("/proc/sys/net/ipv4/tcp_fin_timeout", b"5 7"), ("/proc/sys/net/ipv4/tcp_rmem", b"4097 x")];
    for (knob, value) in knobs {
        let before = dyno_sys::knob::read(knob).unwrap();
        let refused = dyno_sys::knob::write(knob, value).unwrap_err();
        let after = dyno_sys::knob::read(knob).unwrap();
        dyno_sys::knob::put_back(knob, &before).unwrap();
        assert_eq!(after, before, "{refused}");
    }
}

/// Gives this end of the cable an address, and sets it and `lo` up.
fn begin(name: &str, address: Ipv4Addr) {
    let (links, _) = route::links(16).unwrap();
    let device = links.iter().find(|link| link.name == name).unwrap().index;
    link::add_address(device, address, 24).unwrap();
    [1, device].into_iter().for_each(|device| link::set_up(device).unwrap());
}

/// A server in a container, asked by one outside; a third has a server of the same port, and is asked over its own loopback.
/// Planted fault: sockets of other networks are not looked at.
fn who_asks_from_another_network_is_a_peer() {
    let (inside, outside) = (OwnNetwork::make().unwrap(), OwnNetwork::make().unwrap());
    let [server_at, client_at] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];
    let listen = |at: Ipv4Addr| TcpListener::bind((at, 8_099)).unwrap();
    let connect = |at: Ipv4Addr| TcpStream::connect((at, 8_099)).unwrap();
    let server = inside.within(|| {
        link::make_veth(Veth { names: ["in", "out"], queues: 1 }, &outside).unwrap();
        begin("in", server_at);
        Holder::of([listen(Ipv4Addr::UNSPECIFIED).into()])
    });
    let (client, stranger, asked) = outside
        .within(|| {
            begin("out", client_at);
            let other = listen(Ipv4Addr::LOCALHOST);
            let stranger = Holder::of([connect(Ipv4Addr::LOCALHOST).into()]);
            (Holder::of([connect(server_at).into()]), stranger, Holder::of([other.into()]))
        })
        .unwrap();
    let server = server.unwrap();
    assert!(!proc::same_network(server.pid(), client.pid()));
    assert_eq!(connections::peers(&[server.pid()]), [client.pid()], "{} {}", stranger.pid(), asked.pid());
}
