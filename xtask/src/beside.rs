//! Programs beside each other: each one's words are kept in a file until it has ended, and told whole then.
//!
//! `test` runs its binaries so that measure nothing, and `ci` its builds beside them. Whoever does not wait for all of them
//! has those killed that have not ended, with everything that they started.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::command::shown;
use crate::limit::{Ended, Run, Took};
use crate::trouble::Trouble;

/// Between two looks at all of them.
const LOOK: Duration = Duration::from_millis(10);

/// Something to be run.
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) command: Command,
    pub(crate) limit: Duration,
    /// How much it takes of the room of its group.
    pub(crate) takes: usize,
}

/// Tasks that share a room: each begins, in their order, as soon as those before it have left enough of it.
pub(crate) struct Group {
    room: usize,
    tasks: VecDeque<Task>,
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) name: String,
    pub(crate) limit: Duration,
    pub(crate) ended: Ended,
    pub(crate) took: Took,
    /// The file with all that it said.
    pub(crate) said: PathBuf,
}

/// So many bytes of the beginning of what a failure said, and as many of its end, are told once more.
const EXCERPT: usize = 1_500;

impl Done {
    /// Of one that failed, what it said of its failure: a reader of a long log looks at its end.
    pub(crate) fn excerpt(&self) -> Option<String> {
        if self.ended == Ended::Well {
            return None;
        }
        let said = std::fs::read(&self.said).unwrap_or_default();
        Some(excerpt(&String::from_utf8_lossy(&said)))
    }

    /// For a table.
    pub(crate) fn line(&self) -> String {
        let Took { elapsed, cpu } = self.took;
        format!("{:>7.1} s {:>7.1} s of CPU  {}", elapsed.as_secs_f64(), cpu.as_secs_f64(), self.name)
    }
}

impl Group {
    /// # Panics
    /// When a task takes more than the room: it would never begin.
    pub(crate) fn new(room: usize, tasks: impl IntoIterator<Item = Task>) -> Group {
        let tasks: VecDeque<Task> = tasks.into_iter().collect();
        assert!(
            tasks.iter().all(|task| task.takes <= room),
            "a task that takes more than there is never begins"
        );
        Group { room, tasks }
    }

    /// The next task, if there is room for it.
    fn next(&mut self) -> Option<Task> {
        let task = self.tasks.pop_front_if(|task| task.takes <= self.room)?;
        self.room -= task.takes;
        Some(task)
    }
}

/// A task that was started.
pub(crate) struct Job {
    name: String,
    limit: Duration,
    run: Run,
    said: PathBuf,
}

impl Job {
    /// Starts it with nobody at its input, and a file in `folder` for all that it says.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(folder: &Path, mut task: Task) -> Result<Job, Trouble> {
        let said = folder.join(task.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let cannot = || Trouble::cannot(format!("keep what {} says in {}", task.name, said.display()));
        let file = File::create(&said).map_err(cannot())?;
        let other = file.try_clone().map_err(cannot())?;
        eprintln!("     Running {}: {}", task.name, shown(&task.command));
        let command = task.command.stdin(Stdio::null()).stdout(file).stderr(other);
        Ok(Job { run: Run::start(command, task.limit)?, name: task.name, limit: task.limit, said })
    }

    /// Waits for its end, and tells what it said.
    ///
    /// # Errors
    /// When it cannot be looked at, or nobody hears us.
    pub(crate) fn wait(mut self, out: &mut dyn Write) -> Result<Done, Trouble> {
        loop {
            if let Some(done) = self.look(out)? {
                return Ok(done);
            }
            sleep(LOOK);
        }
    }

    fn look(&mut self, out: &mut dyn Write) -> Result<Option<Done>, Trouble> {
        let Some(ended) = self.run.look()? else { return Ok(None) };
        let (name, said) = (self.name.clone(), self.said.clone());
        let done = Done { name, limit: self.limit, ended, took: self.run.took(), said };
        tell(out, &done).map_err(Trouble::cannot("tell what was run"))?;
        Ok(Some(done))
    }
}

/// Groups that run beside each other. Dropped before the last task has ended, those that run are killed.
pub(crate) struct Crowd {
    folder: PathBuf,
    groups: Vec<Group>,
    /// With the group of each, and what it takes of the room.
    running: Vec<(usize, usize, Job)>,
}

impl Crowd {
    /// Starts what there is room for, whatever is done until [`Crowd::finish`]. What tasks say is kept in `folder`.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub(crate) fn begin(folder: PathBuf, groups: Vec<Group>) -> Result<Crowd, Trouble> {
        let mut crowd = Crowd { folder, groups, running: Vec::new() };
        crowd.start()?;
        Ok(crowd)
    }

    /// Where what tasks say is kept.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// One group more.
    pub(crate) fn join(&mut self, group: Group) {
        self.groups.push(group);
    }

    /// Until the last task has ended, whatever became of it; what each said is told to `out`, task by task.
    ///
    /// # Errors
    /// When one of them cannot be started or looked at, or nobody hears us.
    pub(crate) fn finish(mut self, out: &mut dyn Write) -> Result<Vec<Done>, Trouble> {
        let mut all = Vec::new();
        loop {
            self.start()?;
            if self.running.is_empty() {
                return Ok(all);
            }
            for at in (0..self.running.len()).rev() {
                let (group, takes, job) = &mut self.running[at];
                if let Some(done) = job.look(out)? {
                    self.groups[*group].room += *takes;
                    all.push(done);
                    self.running.remove(at);
                }
            }
            sleep(LOOK);
        }
    }

    fn start(&mut self) -> Result<(), Trouble> {
        for (at, group) in self.groups.iter_mut().enumerate() {
            while let Some(task) = group.next() {
                self.running.push((at, task.takes, Job::start(&self.folder, task)?));
            }
        }
        Ok(())
    }
}

/// From the line on with which the failures of tests begin, or the whole where there is none; of a long text its beginning and end.
fn excerpt(said: &str) -> String {
    let begins = said.find("\nfailures:\n").map_or(0, |at| at + 1);
    let of_failure = said[begins..].trim_end();
    if of_failure.len() <= 2 * EXCERPT {
        return of_failure.to_owned();
    }
    let head = of_failure.floor_char_boundary(EXCERPT);
    let tail = of_failure.ceil_char_boundary(of_failure.len() - EXCERPT);
    format!("{}\n[…]\n{}", &of_failure[..head], &of_failure[tail..])
}

fn tell(out: &mut dyn Write, done: &Done) -> std::io::Result<()> {
    let ended = match &done.ended {
        Ended::Well => "ended".to_owned(),
        Ended::Badly(status) => format!("FAILED: {status}"),
        Ended::TooLate(processes) => format!("HANGS: its {processes} processes were killed"),
    };
    let Took { elapsed, cpu } = done.took;
    let times = format!("{:.1} s, {:.1} s of CPU", elapsed.as_secs_f64(), cpu.as_secs_f64());
    writeln!(out, "---- {} {ended} ({times}); it said:", done.name)?;
    std::io::copy(&mut File::open(&done.said)?, out)?;
    writeln!(out, "---- that was {}", done.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::command::command;
    use std::time::Instant;

    /// Far more than any of these programs takes.
    const LONG: Duration = Duration::from_secs(60);

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let folder = std::env::temp_dir().join(format!("dyno-beside-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Scratch(folder)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn task(name: &str, script: &str, limit: Duration) -> Task {
        Task { name: name.to_owned(), command: command(["sh", "-c", script]), limit, takes: 1 }
    }

    fn run(scratch: &Scratch, groups: Vec<Group>) -> (Vec<Done>, String) {
        let mut told = Vec::new();
        let done = Crowd::begin(scratch.0.clone(), groups).unwrap().finish(&mut told).unwrap();
        (done, String::from_utf8(told).unwrap())
    }

    /// Fault: a loop that ends with the first failure, or `look` that takes any end for a good one.
    #[test]
    fn what_fails_or_hangs_beside_others_is_told_by_its_name_and_the_others_go_on() {
        let scratch = Scratch::new("fails");
        let build = Group::new(1, [task("the build", "exit 3", LONG), task("after it", "exit 0", LONG)]);
        let short = Duration::from_millis(200);
        let tests = [task("well", "sleep 0.3", LONG), task("hangs", "sleep 600", short)];
        let (done, told) = run(&scratch, vec![build, Group::new(2, tests)]);
        let of = |name: &str| &done.iter().find(|one| one.name == name).unwrap().ended;
        assert!(matches!(of("the build"), Ended::Badly(status) if status.code() == Some(3)), "{done:?}");
        assert_eq!((of("after it"), of("well")), (&Ended::Well, &Ended::Well));
        assert!(matches!(of("hangs"), Ended::TooLate(1..)), "{done:?}");
        assert!(told.contains("---- the build FAILED: exit status: 3"), "{told}");
        assert!(told.contains("---- hangs HANGS: its "), "{told}");
    }

    /// Fault: the last lines alone, behind which the names stand and no reason.
    #[test]
    fn of_what_failed_its_failures_are_told_once_more_and_of_long_ones_begin_and_end() {
        let said = "running 2 tests\ntest a ... ok\n\nfailures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b\n";
        assert_eq!(excerpt(said), "failures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b");
        assert_eq!(excerpt("error: no such file\n"), "error: no such file");
        let long = format!("first{}last", "é".repeat(4 * EXCERPT));
        let told = excerpt(&long);
        assert!(told.starts_with("first") && told.ends_with("last") && told.contains("[…]"), "{told}");
        assert!(told.len() < 3 * EXCERPT);
        let scratch = Scratch::new("excerpt");
        let tasks = [task("red", "echo why; exit 1", LONG), task("green", "echo fine", LONG)];
        let (done, _) = run(&scratch, vec![Group::new(1, tasks)]);
        let told: Vec<Option<String>> = done.iter().map(Done::excerpt).collect();
        assert_eq!(told, [Some("why".to_owned()), None]);
    }

    /// Each says a line, waits until the other has said one too, and says another: through one pipe they would be mixed.
    /// Fault: output that is inherited, of which nothing is told here.
    #[test]
    fn what_runs_beside_each_other_is_told_one_after_another() {
        let scratch = Scratch::new("mixed");
        let says = |me: &str, other: &str| {
            let folder = scratch.0.display();
            format!(
                "echo {me} begins; touch {folder}/{me}; until [ -e {folder}/{other} ]; do sleep 0.01; done; \
                 echo {me} ends >&2"
            )
        };
        let tasks = [task("one", &says("a", "b"), LONG), task("two", &says("b", "a"), LONG)];
        let (done, told) = run(&scratch, vec![Group::new(2, tasks)]);
        assert!(done.iter().all(|one| one.ended == Ended::Well), "{done:?} {told}");
        for words in ["it said:\na begins\na ends\n----", "it said:\nb begins\nb ends\n----"] {
            assert!(told.contains(words), "{told}");
        }
    }

    /// Who finds another's folder fails. Fault: `next` that does not look at the room.
    #[test]
    fn of_a_group_no_more_run_at_once_than_there_is_room_for() {
        let scratch = Scratch::new("once");
        let place = scratch.0.join("place");
        let script = format!("mkdir {0} && sleep 0.02 && rmdir {0}", place.display());
        let large = |at| Task { takes: 2, ..task(&format!("task {at}"), &script, LONG) };
        let (done, told) = run(&scratch, vec![Group::new(3, (0..8).map(large))]);
        assert_eq!(done.len(), 8);
        assert!(done.iter().all(|one| one.ended == Ended::Well), "{told}");
        let names: Vec<&str> = done.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names[..2], ["task 0", "task 1"], "in their order");
    }

    /// Fault: a crowd that begins when it is waited for; or one that knows no group that joins.
    #[test]
    fn a_crowd_begins_at_once_and_others_may_join_it() {
        let scratch = Scratch::new("joins");
        let (first, second) = (scratch.0.join("first"), scratch.0.join("second"));
        let waits =
            format!("touch {}; until [ -e {} ]; do sleep 0.01; done", first.display(), second.display());
        let build = Group::new(1, [task("build", &waits, LONG)]);
        let mut crowd = Crowd::begin(scratch.0.clone(), vec![build]).unwrap();
        let begun = Instant::now();
        while !first.exists() {
            assert!(begun.elapsed() < LONG, "it has not begun");
            std::thread::yield_now();
        }
        crowd.join(Group::new(1, [task("test", &format!("touch {}", second.display()), LONG)]));
        let done = crowd.finish(&mut Vec::new()).unwrap();
        assert_eq!(done.len(), 2);
        assert!(done.iter().all(|one| one.ended == Ended::Well), "{done:?}");
    }

    /// Fault: `Run` without its `drop`.
    #[test]
    fn what_runs_when_something_cannot_be_started_is_killed() {
        let scratch = Scratch::new("ends");
        let pid_file = scratch.0.join("pid");
        let waits = format!("until [ -s {} ]; do sleep 0.01; done", pid_file.display());
        let begins = task("begins", &format!("echo $$ > {}; exec sleep 600", pid_file.display()), LONG);
        let broken = Task { command: command(["/no/such/program"]), ..task("broken", "", LONG) };
        let groups = vec![Group::new(1, [begins]), Group::new(1, [task("waits", &waits, LONG), broken])];
        let begun = Instant::now();
        let crowd = Crowd::begin(scratch.0.clone(), groups).unwrap();
        let told = crowd.finish(&mut Vec::new()).unwrap_err().to_string();
        assert!(told.contains("/no/such/program"), "{told}");
        assert!(begun.elapsed() < LONG);
        let pid = std::fs::read_to_string(pid_file).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} lives");
    }
}
