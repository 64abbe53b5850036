//! What a server's settings do not tell: it has to be watched while it serves. `dyno diagnose` does that.

use dyno_record::fact::{Gap, Unread};
use dyno_record::facts::Facts;

use super::draft::{Check, Seen, server};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "app.rw", about: "read and write in place of recv and send", look: watched },
    Check { id: "app.syscalls", about: "system calls per reply", look: watched },
    Check { id: "app.split", about: "sends per reply", look: watched },
    Check { id: "app.log", about: "log writes and syncs per reply", look: watched },
];

fn watched(facts: &Facts) -> Seen {
    let pid = server(facts)?.pid;
    Err(Gap::Unread(Unread {
        why: "it shows only while the server answers".into(),
        needs: format!("sudo dyno diagnose {pid} --load 'URL -c 64'"),
        ..Unread::default()
    }))
}
