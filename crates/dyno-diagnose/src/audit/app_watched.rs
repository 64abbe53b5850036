//! What a server's settings do not tell: what it does for a reply. `dyno audit --measure` watches it for a moment.

use dyno_record::audit::Risk;
use dyno_record::fact::{Gap, Unread};
use dyno_record::facts::{Facts, Watched};

use super::draft::{Check, FAST, Looked, Say, Seen, finding, measured, measured_here, server};
use super::here;

pub(super) const CHECKS: &[Check] = &[
    Check { id: "app.rw", about: "read and write in place of recv and send", look: read_write },
    Check { id: "app.syscalls", about: "system calls per reply", look: calls },
    Check { id: "app.split", about: "sends per reply", look: split },
    Check { id: "app.log", about: "log writes and syncs per reply", look: log },
];

/// From here on something happens for every reply, or nearly so: connections that begin and end make it uneven.
const EACH: f64 = 0.5;
/// Sends per reply from which replies go out in parts.
const PARTS: f64 = 1.3;
/// Calls per reply from which it is worth a sentence: wait, receive, send, and one more for whatever it does.
const CALLS_MAX: f64 = 4.5;
/// Names of calls that are told.
const NAMED_MAX: usize = 6;

fn watched(facts: &Facts) -> Result<&Watched, Gap> {
    let pid = server(facts)?.pid;
    match here::measured(facts) {
        Some(here) => here.server.known(),
        None => Err(Gap::Unread(Unread {
            why: "it shows only while the server answers".into(),
            needs: format!(
                "sudo dyno audit --pid {pid} --measure under load, or sudo dyno diagnose {pid} --load 'URL -c 64'"
            ),
            ..Unread::default()
        })),
    }
}

fn read_write(facts: &Facts) -> Seen {
    let seen = watched(facts)?;
    let each = |count: u64| seen.per_reply(count);
    let found = format!(
        "for a reply: read {:.1}, recv {:.1}, write {:.1}, send {:.1}",
        each(seen.reads),
        each(seen.receives),
        each(seen.writes),
        each(seen.sends)
    );
    if each(seen.reads) < EACH && each(seen.writes) < EACH {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("The server reads and writes its connections as if they were files", found, "recv and send")
        .gain(FAST, measured(2.0, 4.0, "recv and send against read and write; 5 to 10 % published"))
        .risk(Risk::None, "")
        .why("read and write go through the layer of files, with its checks and locks, before they come to the socket.")
        .see(&["sudo strace -c -f -p PID"])
        .apply(&["in the program: recv(2) and send(2) in place of read(2) and write(2)"])
        .revert(&["the program as it was"])
        .into())
}

fn calls(facts: &Facts) -> Seen {
    let seen = watched(facts)?;
    let each = seen.calls_per_reply();
    let mut named: Vec<(&String, &u64)> = seen.calls.iter().collect();
    named.sort_by(|a, b| b.1.cmp(a.1));
    let words: Vec<String> = named
        .iter()
        .take(NAMED_MAX)
        .map(|(name, count)| format!("{name} {:.1}", seen.per_reply(**count)))
        .collect();
    let found = format!("{each:.1} for a reply: {}", words.join(", "));
    if each < CALLS_MAX {
        return Ok(Looked::Fine(found));
    }
    let here = here::measured(facts);
    let times = here.and_then(|here| Some((here.call_ns.value()?, here.request_us.value()?)));
    let gain = match times {
        Some((call, request)) => {
            let extra = each - here::CALLS;
            let percent = call.interval.map(|ns| here::share(extra * ns / 1_000.0, request.value));
            let what = format!(
                "{extra:.1} calls more than three, at {} for one that does nothing, beside {} of a small request over loopback: no less than this",
                here::ns(call),
                here::us(request)
            );
            measured_here(percent, what)
        }
        None => measured(1.0, 10.0, "0.1 to 0.3 µs for each call beside what it does"),
    };
    Ok(finding("The server makes many system calls for a reply", found, "three: one that waits, one that receives, one that sends")
        .gain(FAST, gain)
        .risk(Risk::None, "")
        .why("Each call enters the kernel and passes whatever stands before it: audit, filters, tracers, measures against weaknesses of the processor.")
        .see(&["sudo strace -c -f -p PID"])
        .apply(&["in the program: no timers, options or polls for each request; dyno profile says who makes them"])
        .revert(&["the program as it was"])
        .into())
}

fn split(facts: &Facts) -> Seen {
    let seen = watched(facts)?;
    let each = seen.per_reply(seen.writes + seen.sends);
    let found = format!("{each:.2} sends for a reply, {} replies", seen.replies);
    if each < PARTS {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("A reply leaves in several sends", found, "one: head and body joined, or sent by writev or sendmsg")
        .gain(FAST, measured(36.0, 44.0, "head and body in two sends against one; large replies leave in several by their nature"))
        .risk(Risk::None, "")
        .why("Each send goes down all of the network, and small ones make a packet each; with Nagle's algorithm the second may wait for an answer to the first.")
        .see(&["sudo strace -f -e trace=network,write,writev -p PID"])
        .apply(&["in the program: one buffer, writev(2), or MSG_MORE on all sends but the last (TCP_CORK); nginx: tcp_nopush on"])
        .revert(&["the program as it was"])
        .into())
}

fn log(facts: &Facts) -> Seen {
    let seen = watched(facts)?;
    let (writes, syncs) = (seen.per_reply(seen.file_writes), seen.per_reply(seen.syncs));
    let found = format!("{writes:.2} writes to files and {syncs:.2} syncs for a reply");
    if writes < EACH && syncs < EACH {
        return Ok(Looked::Fine(found));
    }
    let gain = match syncs >= EACH {
        true => measured(90.0, 97.0, "a synchronous line for each reply"),
        false => measured(11.0, 21.0, "a line written for each reply; nginx's access log 16 to 23 %"),
    };
    Ok(finding(
        "The server writes to a file for every reply",
        found,
        "lines gathered in a buffer and written together, by somebody else",
    )
    .gain(FAST, gain)
    .risk(Risk::Durability, "the last lines are lost when the server crashes")
    .why("A write is a system call and takes the file's lock; a sync waits for the disk.")
    .see(&["sudo strace -f -e trace=write,pwrite64,fsync,fdatasync -p PID"])
    .apply(&["nginx: access_log PATH main buffer=64k flush=1s; dyno serve --log ring"])
    .revert(&["the setting as it was"])
    .into())
}
