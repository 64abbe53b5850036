//! In which program most of the CPU time is, where that is not the process that was named: a shell or `timeout` is named for what it
//! runs. Told beside the target's name; no rule asks.

use std::collections::BTreeMap;

use dyno_record::observation::Observation;
use dyno_record::profile::{Profile, Thread};

/// Of the CPU time, what a program must use to be where the work is; and what the named process may use at most.
const MOST_MIN: f64 = 0.5;
const OWN_MAX: f64 = 0.1;

/// The name of that program.
pub(super) fn elsewhere(seen: &Observation) -> Option<String> {
    let profile = seen.on_cpu.as_ref()?;
    let named = profile.target.pid?;
    let (mut all_ns, mut own_ns, mut of_others) = (0, 0, BTreeMap::<&str, u64>::new());
    for stack in &profile.stacks {
        let thread = profile.threads.get(stack.thread as usize)?;
        all_ns += stack.weight_ns;
        if thread.pid == named {
            own_ns += stack.weight_ns;
        } else {
            *of_others.entry(of_process(profile, thread)).or_default() += stack.weight_ns;
        }
    }
    let (name, ns) = of_others.into_iter().max_by_key(|(_, ns)| *ns)?;
    let is_there = ns as f64 >= MOST_MIN * all_ns as f64 && own_ns as f64 <= OWN_MAX * all_ns as f64;
    // Workers of a server have its name.
    (is_there && !name.is_empty() && name != profile.target.name).then(|| name.to_owned())
}

/// A process has the name of its first thread.
fn of_process<'p>(profile: &'p Profile, thread: &'p Thread) -> &'p str {
    let first = profile.threads.iter().find(|one| one.tid == thread.pid);
    first.map_or(thread.name.as_str(), |one| one.name.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::profile::Thread;

    use crate::scene::Scene;

    /// A process 1 that used so many hundredths of the CPU time, and another one of that name that used the rest. Planted faults: the
    /// shell is no other; whatever else runs is told; workers with their server's name are.
    #[test]
    fn the_program_that_a_shell_runs_is_named() {
        let told = |own: u64, other: &str| {
            let mut scene = Scene::new(&[0.1, 9.0]).on("main;wait", own).on("main;sort", 100 - own);
            let profile = scene.seen.on_cpu.as_mut().unwrap();
            (profile.target.pid, profile.target.name) = (Some(1), "bash".to_owned());
            profile.threads[1] = Thread { pid: 2, tid: 2, name: other.to_owned() };
            profile.stacks.last_mut().unwrap().thread = 1;
            scene.diagnosed().works_in
        };
        assert_eq!(told(5, "sort").as_deref(), Some("sort"));
        assert_eq!(told(20, "sort"), None);
        assert_eq!(told(5, "bash"), None);
    }
}
