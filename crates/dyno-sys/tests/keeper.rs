//! Launching, stopping and telling, with a keeper that nobody kills.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Scratch, append, is_alive, launch, next_exit, until};
use dyno_sys::affinity::{CpuSet, allowed};
use dyno_sys::child::{self, Exit};
use dyno_sys::keeper::{Closing, Keeper, KeeperError, Undo};
use dyno_sys::proc;
use std::fs;
use std::process::ExitCode;

const SECOND_NS: u64 = 1_000_000_000;

fn main() -> ExitCode {
    common::run(&[
        ("a_program_gets_its_words_folder_and_variables", a_program_gets_its_words_folder_and_variables),
        ("a_program_starts_clean", a_program_starts_clean),
        ("a_program_runs_on_its_cpus_with_its_children", a_program_runs_on_its_cpus_with_its_children),
        ("only_standard_and_named_descriptors_are_open", only_standard_and_named_descriptors_are_open),
        ("a_held_child_has_not_run_its_program", a_held_child_has_not_run_its_program),
        ("a_held_child_can_be_stopped_or_forgotten", a_held_child_can_be_stopped_or_forgotten),
        ("a_program_that_is_not_there_is_told", a_program_that_is_not_there_is_told),
        (
            "a_folder_that_is_not_there_is_told_before_release",
            a_folder_that_is_not_there_is_told_before_release,
        ),
        ("exits_are_told_once_in_both_kinds", exits_are_told_once_in_both_kinds),
        ("stopping_asks_first", stopping_asks_first),
        ("stopping_kills_what_does_not_listen", stopping_kills_what_does_not_listen),
        ("a_master_is_asked_alone_and_its_orphans_after", a_master_is_asked_alone_and_its_orphans_after),
        ("a_daemon_is_stopped_with_its_own_launch_only", a_daemon_is_stopped_with_its_own_launch_only),
        ("a_launch_that_ended_can_be_stopped_again", a_launch_that_ended_can_be_stopped_again),
        ("a_stranger_cannot_be_stopped", a_stranger_cannot_be_stopped),
        ("a_launch_that_forks_on_and_on_is_stopped", a_launch_that_forks_on_and_on_is_stopped),
        ("many_launches_live_side_by_side", many_launches_live_side_by_side),
        (
            "a_long_environment_passes_and_a_longer_one_is_refused",
            a_long_environment_passes_and_a_longer_one_is_refused,
        ),
        ("closing_ends_everything_and_puts_settings_back", closing_ends_everything_and_puts_settings_back),
        ("a_setting_that_cannot_be_put_back_is_told", a_setting_that_cannot_be_put_back_is_told),
        (
            "a_setting_that_somebody_else_changed_is_left_alone_and_told",
            a_setting_that_somebody_else_changed_is_left_alone_and_told,
        ),
        ("the_keeper_is_out_of_the_terminals_reach", the_keeper_is_out_of_the_terminals_reach),
        ("the_output_ends_when_the_program_does", the_output_ends_when_the_program_does),
    ])
}

fn a_program_gets_its_words_folder_and_variables() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let mut asked = scratch.program(&["sh", "-c", "pwd; echo \"$GIVEN|$HOME|$1|$2\"; cat", "sh", "a b", ""]);
    asked.env = vec![("GIVEN".into(), "x y".into()), ("HOME".into(), "/elsewhere".into())];
    let pid = launch(&keeper, &asked).unwrap();
    // `cat` ends at once: standard input is empty.
    assert_eq!(next_exit(&keeper), (pid, Exit::Code(0)));
    let folder = fs::canonicalize(scratch.path(".")).unwrap();
    assert_eq!(scratch.text("output"), format!("{}\nx y|/elsewhere|a b|\n", folder.display()));
}

fn a_program_starts_clean() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let pid = launch(&keeper, &scratch.program(&["cat", "/proc/self/status", "/proc/self/stat"])).unwrap();
    assert_eq!(next_exit(&keeper), (pid, Exit::Code(0)));
    let text = scratch.text("output");
    let field = |name| proc::parse_status_field(&text, name).unwrap().to_owned();
    let nothing = "0000000000000000";
    assert_eq!((field("SigBlk").as_str(), field("SigIgn").as_str()), (nothing, nothing));
    assert_eq!(field("NoNewPrivs"), "1");
    assert_eq!((field("Pid"), field("Threads").as_str()), (pid.to_string(), "1"));
    // Fields 5 and 6 of stat: it leads its own process group and session.
    let stat = text.lines().last().unwrap().rsplit_once(") ").unwrap().1.to_owned();
    let fields: Vec<&str> = stat.split(' ').collect();
    assert_eq!((fields[2], fields[3]), (pid.to_string().as_str(), pid.to_string().as_str()));
}

fn a_program_runs_on_its_cpus_with_its_children() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let last = CpuSet::single(allowed().iter().last().unwrap());
    let mut asked = scratch.sh("cat /proc/self/status; true");
    asked.cpus = Some(last.clone());
    launch(&keeper, &asked).unwrap();
    next_exit(&keeper);
    let text = scratch.text("output");
    assert_eq!(proc::parse_status_field(&text, "Cpus_allowed_list"), Some(last.to_string().as_str()));
}

fn only_standard_and_named_descriptors_are_open() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    // Descriptors of dyno's from before and after the keeper's start, one of them without close-on-exec by its maker.
    let (_open, _also_open) = (append(&scratch.path("open")), dyno_sys::socket::pair().unwrap());
    // Two launches held at once: neither may see the other's pipes. The numbers cross each other.
    let mut asked = scratch.program(&["ls", "-l", "/proc/self/fd"]);
    asked.inherit = vec![(append(&scratch.path("a")), 4), (append(&scratch.path("b")), 3)];
    let waiting = keeper.hold(&scratch.sh("true")).unwrap();
    let held = keeper.hold(&asked).unwrap();
    let pid = keeper.release(held).unwrap();
    assert_eq!(next_exit(&keeper), (pid, Exit::Code(0)));
    let folder = fs::canonicalize(scratch.path(".")).unwrap();
    let at = |number: u32, name: &str| format!("{number} -> {}", folder.join(name).display());
    let text = scratch.text("output");
    // `ls` itself has the folder that it lists open.
    let fds: Vec<&str> =
        text.lines().filter(|line| line.contains(" -> ") && !line.contains("/proc/")).collect();
    let expected = ["0 -> /dev/null".to_owned(), at(1, "output"), at(2, "output"), at(3, "b"), at(4, "a")];
    assert_eq!(fds.len(), expected.len(), "{text}");
    assert!(fds.iter().zip(&expected).all(|(line, end)| line.ends_with(end.as_str())), "{text}");
    keeper.stop(waiting.pid(), 0).unwrap();
}

fn a_held_child_has_not_run_its_program() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let held = keeper.hold(&scratch.sh("echo ran; sleep 60")).unwrap();
    let line = || fs::read(format!("/proc/{}/cmdline", held.pid())).unwrap();
    assert!(!line().starts_with(b"sh"), "{:?}", String::from_utf8_lossy(&line()));
    until("it sleeps", || proc::all_sleeping(held.pid()));
    assert_eq!(scratch.text("output"), "");
    let before = held.pid();
    let pid = keeper.release(held).unwrap();
    assert_eq!(pid, before, "the program keeps the child's number");
    until("it runs", || scratch.text("output") == "ran\n");
    assert!(fs::read(format!("/proc/{pid}/cmdline")).unwrap().starts_with(b"sh"));
    keeper.stop(pid, SECOND_NS).unwrap();
    assert!(!is_alive(pid));
}

fn a_held_child_can_be_stopped_or_forgotten() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let (one, two) = (keeper.hold(&scratch.sh("true")).unwrap(), keeper.hold(&scratch.sh("true")).unwrap());
    keeper.stop(one.pid(), SECOND_NS).unwrap();
    assert!(!is_alive(one.pid()) && is_alive(two.pid()));
    assert!(matches!(keeper.release(one), Err(KeeperError::Died { .. })));
    // The other one ends with the keeper; the runner looks.
}

fn a_program_that_is_not_there_is_told() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    for (program, errno) in [("/nonesuch/program", libc::ENOENT), ("/dev/null", libc::EACCES)] {
        let held = keeper.hold(&scratch.program(&[program])).unwrap();
        match keeper.release(held).unwrap_err() {
            KeeperError::Exec { program: named, source } => {
                assert_eq!((named.to_str().unwrap(), source.raw_os_error()), (program, Some(errno)));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(keeper.exits(), [], "what never ran has no exit");
}

fn a_folder_that_is_not_there_is_told_before_release() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let mut asked = scratch.sh("true");
    asked.cwd = Some(scratch.path("nowhere"));
    match keeper.hold(&asked).unwrap_err() {
        KeeperError::Setup { step, source, .. } => {
            assert_eq!((step, source.raw_os_error()), ("enter its folder", Some(libc::ENOENT)));
        }
        other => panic!("{other}"),
    }
    let mut asked = scratch.sh("true");
    asked.cpus = Some(CpuSet::single(8_191));
    let refused = keeper.hold(&asked).unwrap_err();
    assert!(refused.to_string().contains("bound to its CPUs"), "{refused}");
}

fn exits_are_told_once_in_both_kinds() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let seven = launch(&keeper, &scratch.sh("exit 7")).unwrap();
    assert_eq!(next_exit(&keeper), (seven, Exit::Code(7)));
    let killed = launch(&keeper, &scratch.sh("kill -SEGV $$")).unwrap();
    assert_eq!(next_exit(&keeper), (killed, Exit::Signal(libc::SIGSEGV)));
    assert_eq!(keeper.exits(), []);
    let stopped = launch(&keeper, &scratch.sh("exec sleep 60")).unwrap();
    keeper.stop(stopped, SECOND_NS).unwrap();
    assert_eq!(keeper.exits(), [(stopped, Exit::Signal(libc::SIGTERM))]);
}

fn stopping_asks_first() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let script = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let pid = launch(&keeper, &scratch.sh(script)).unwrap();
    until("it is ready", || scratch.text("output") == "ready\n");
    keeper.stop(pid, 20 * SECOND_NS).unwrap();
    assert_eq!(
        (scratch.text("output").as_str(), keeper.exits()),
        ("ready\nasked\n", vec![(pid, Exit::Code(5))])
    );
}

fn stopping_kills_what_does_not_listen() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let script = "trap '' TERM; sleep 60 & echo $! >pids; echo $$ >>pids; wait; sleep 60";
    let pid = launch(&keeper, &scratch.sh(script)).unwrap();
    let pids = scratch.pids("pids", 2);
    keeper.stop(pid, SECOND_NS / 20).unwrap();
    assert!(!pids.iter().any(|&pid| is_alive(pid)));
    assert_eq!(keeper.exits(), [(pid, Exit::Signal(libc::SIGKILL))]);
}

fn a_master_is_asked_alone_and_its_orphans_after() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    // The worker must not hear of it while its master is there: the master takes 0.2 s to end and then orphans it.
    let worker = "trap 'test -e master-gone && echo worker asked in time; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let master = format!("trap 'sleep 0.2; touch master-gone; exit 0' TERM; sh -c \"{worker}\" & wait; wait");
    let pid = launch(&keeper, &scratch.sh(&master)).unwrap();
    until("the worker is ready", || scratch.text("output") == "ready\n");
    keeper.stop(pid, 20 * SECOND_NS).unwrap();
    assert_eq!(scratch.text("output"), "ready\nworker asked in time\n");
}

fn a_daemon_is_stopped_with_its_own_launch_only() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    // Twice forked, a session of its own, its environment and descriptors gone.
    let daemon = |name: &str| {
        format!(
            "(setsid env -i sh -c 'echo $$ >{name}; exec sleep 60' </dev/null >/dev/null 2>&1 &) ; exit 0"
        )
    };
    let (one, two) = (
        launch(&keeper, &scratch.sh(&daemon("one"))).unwrap(),
        launch(&keeper, &scratch.sh(&daemon("two"))).unwrap(),
    );
    let (first, second) = (scratch.pids("one", 1)[0], scratch.pids("two", 1)[0]);
    let mut exits = Vec::new();
    until("both starters have ended", || {
        exits.extend(keeper.exits());
        exits.len() == 2
    });
    keeper.stop(one, SECOND_NS).unwrap();
    assert!(!is_alive(first) && is_alive(second));
    keeper.stop(two, SECOND_NS).unwrap();
    assert!(!is_alive(second));
}

fn a_launch_that_ended_can_be_stopped_again() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let pid = launch(&keeper, &scratch.sh("true")).unwrap();
    assert_eq!(next_exit(&keeper), (pid, Exit::Code(0)));
    keeper.stop(pid, 0).unwrap();
    keeper.stop(pid, 0).unwrap();
    assert_eq!(keeper.exits(), []);
}

fn a_stranger_cannot_be_stopped() {
    let keeper = Keeper::start().unwrap();
    let me = child::this();
    assert!(matches!(keeper.stop(me, 0), Err(KeeperError::Unknown { pid }) if pid == me));
}

fn a_launch_that_forks_on_and_on_is_stopped() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    // Bounded, so that a failure of this test harms nobody: 300 children, each ignoring the first question.
    let script =
        "trap '' TERM; i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); echo $! >>pids; done; wait";
    let pid = launch(&keeper, &scratch.sh(script)).unwrap();
    scratch.pids("pids", 30);
    keeper.stop(pid, 0).unwrap();
    assert!(!scratch.pids("pids", 30).into_iter().any(is_alive));
}

fn many_launches_live_side_by_side() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let sleepers: Vec<_> = (0..20).map(|_| launch(&keeper, &scratch.sh("exec sleep 60")).unwrap()).collect();
    keeper.stop(sleepers[10], SECOND_NS).unwrap();
    let alive = sleepers.iter().filter(|&&pid| is_alive(pid)).count();
    assert_eq!(alive, 19);
    assert_eq!(keeper.close().unwrap(), Closing::Clean);
    assert!(!sleepers.into_iter().any(is_alive), "closing returns when all are gone");
}

fn a_long_environment_passes_and_a_longer_one_is_refused() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let mut asked = scratch.sh("echo ${#LONG}");
    asked.env = vec![("LONG".into(), "x".repeat(90 * 1_024).into())];
    launch(&keeper, &asked).unwrap();
    next_exit(&keeper);
    assert_eq!(scratch.text("output"), "92160\n");
    asked.env = vec![("LONG".into(), "x".repeat(200 * 1_024).into())];
    assert!(matches!(keeper.hold(&asked), Err(KeeperError::Invalid { .. })));
    launch(&keeper, &scratch.sh("exec sleep 60")).unwrap();
}

fn closing_ends_everything_and_puts_settings_back() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let (kept, forgotten) = (scratch.path("kept"), scratch.path("forgotten"));
    fs::write(&kept, "2").unwrap();
    fs::write(&forgotten, "2").unwrap();
    let _token = keeper.undo_on_death(&[Undo::write(&kept, b"1")]).unwrap();
    let token = keeper.undo_on_death(&[Undo::write(&forgotten, b"1")]).unwrap();
    keeper.forget(token).unwrap();
    let pid = launch(&keeper, &scratch.sh("trap '' TERM; sleep 60")).unwrap();
    assert_eq!(keeper.close().unwrap(), Closing::Clean);
    assert!(!is_alive(pid));
    assert_eq!((scratch.text("kept"), scratch.text("forgotten")), ("1".to_owned(), "2".to_owned()));
}

fn a_setting_that_somebody_else_changed_is_left_alone_and_told() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let (ours, theirs) = (scratch.path("ours"), scratch.path("theirs"));
    fs::write(&ours, "3").unwrap();
    fs::write(&theirs, "7").unwrap();
    let undo = |path: &std::path::Path, values: &[&[u8]]| {
        let ours = values.iter().map(|value| value.to_vec()).collect();
        [Undo::Write { path: path.to_owned(), old: b"1".to_vec(), ours }]
    };
    let first = keeper.undo_on_death(&undo(&ours, &[b"2"])).unwrap();
    let _second = keeper.undo_on_death(&undo(&theirs, &[b"2"])).unwrap();
    keeper.amend(&first, &undo(&ours, &[b"2", b"3"])).unwrap();
    assert_eq!(keeper.close().unwrap(), Closing::NotClean);
    assert_eq!((scratch.text("ours"), scratch.text("theirs")), ("1".to_owned(), "7".to_owned()));
}

fn a_setting_that_cannot_be_put_back_is_told() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let (gone, there) = (scratch.path("gone"), scratch.path("there"));
    fs::write(&there, "2").unwrap();
    let _first = keeper.undo_on_death(&[Undo::write(&there, b"1")]).unwrap();
    let _second = keeper.undo_on_death(&[Undo::write(&gone, b"1")]).unwrap();
    assert!(matches!(
        keeper.undo_on_death(&[Undo::write("relative", b"1")]),
        Err(KeeperError::Invalid { .. })
    ));
    assert_eq!(keeper.close().unwrap(), Closing::NotClean);
    assert_eq!(scratch.text("there"), "1", "one failure does not keep the others back");
    assert!(!gone.exists());
}

fn the_keeper_is_out_of_the_terminals_reach() {
    let keeper = Keeper::start().unwrap();
    let session = |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned()
    };
    assert_eq!(session(keeper.pid()), keeper.pid().to_string());
    assert_ne!(session(child::this()), session(keeper.pid()));
    assert_eq!(fs::read_to_string(format!("/proc/{}/comm", keeper.pid())).unwrap(), "dyno-keeper\n");
    // Three standard ones, the channel, dyno's pidfd, the signals; and one more for moments, when it looks around in /proc.
    let count = || fs::read_dir(format!("/proc/{}/fd", keeper.pid())).unwrap().count();
    let begun = std::time::Instant::now();
    while count() != 6 {
        assert!(begun.elapsed().as_secs() < 20, "{} descriptors", count());
    }
}

fn the_output_ends_when_the_program_does() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let (reader, writer) = dyno_sys::socket::pipe().unwrap();
    let mut asked = scratch.sh("echo done; sleep 0.05 &");
    asked.output = writer;
    // A second launch, which must not hold the first one's output open.
    let other = launch(&keeper, &scratch.sh("exec sleep 60")).unwrap();
    launch(&keeper, &asked).unwrap();
    drop(asked);
    let text = std::io::read_to_string(fs::File::from(reader)).unwrap();
    assert_eq!(text, "done\n");
    assert!(is_alive(other));
}
