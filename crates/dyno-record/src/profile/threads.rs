//! A part of a profile by its threads: those of a name, or of a number.
//!
//! `dyno flame --thread` cuts it out. What is known only of all threads together is left out and said.

use std::collections::BTreeMap;

use super::{Profile, ProfileError, Stack, Thread};

/// Threads that an error names at most.
const NAMED_MAX: usize = 8;

impl Profile {
    /// What threads of these names or numbers did. Requests and system calls, which nobody counted by thread, are left out.
    ///
    /// # Errors
    /// When one of the words is no thread's name or number.
    pub fn of_threads(&self, words: &[String]) -> Result<Profile, ProfileError> {
        // What has no threads is written down as one of number 0, which no thread of a process has.
        let is_told = self.threads.iter().any(|thread| thread.tid != 0);
        if !is_told && !words.iter().all(|word| self.threads.iter().any(|thread| thread.name == *word)) {
            return Err(ProfileError::NoThreads);
        }
        if let Some(word) = words.iter().find(|word| !self.threads.iter().any(|thread| is(thread, word))) {
            return Err(ProfileError::NoThread { word: word.clone(), threads: self.names() });
        }
        let wanted: Vec<bool> =
            self.threads.iter().map(|thread| words.iter().any(|word| is(thread, word))).collect();
        let of = |thread: u32| wanted.get(thread as usize).copied().unwrap_or(false);
        let mut part = Profile {
            stacks: self.stacks.iter().filter(|stack| of(stack.thread)).cloned().collect(),
            timeline: self.timeline.iter().filter(|span| of(span.thread)).cloned().collect(),
            thread_times: self.thread_times.iter().filter(|times| of(times.thread)).cloned().collect(),
            requests: None,
            system_calls: BTreeMap::new(),
            ..self.clone()
        };
        part.sampling.samples = part.stacks.iter().map(|stack: &Stack| stack.samples).sum();
        part.sampling.truncated = part.truncated_stacks();
        part.sampling.truncated_by.clear();
        part.warnings.insert(0, format!("only what {} did is shown", listed(words)));
        Ok(part)
    }

    /// The names of its threads, each once, in the order in which they were seen.
    fn names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for thread in &self.threads {
            if !names.contains(&thread.name.as_str()) {
                names.push(&thread.name);
            }
        }
        let rest = names.len().saturating_sub(NAMED_MAX);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        names.truncate(NAMED_MAX);
        format!("{}{more}", names.join(", "))
    }
}

fn is(thread: &Thread, word: &str) -> bool {
    thread.name == word || word.parse() == Ok(thread.tid)
}

fn listed(words: &[String]) -> String {
    let word = if words.len() == 1 { "thread" } else { "threads" };
    format!("{word} {}", words.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn profile() -> Profile {
        let thread = |tid, name: &str| Thread { pid: 1, tid, name: name.to_owned() };
        let stack = |thread, samples| Stack { thread, samples, weight_ns: samples * 10, ..Stack::default() };
        Profile {
            threads: vec![thread(1, "main"), thread(2, "worker"), thread(3, "worker")],
            stacks: vec![stack(0, 5), stack(1, 3), stack(2, 2)],
            ..Profile::default()
        }
    }

    #[test]
    fn a_name_stands_for_all_its_threads_and_a_number_for_one() {
        let samples = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            profile().of_threads(&words).unwrap().sampling.samples
        };
        assert_eq!((samples(&["worker"]), samples(&["3"]), samples(&["main", "2"])), (5, 2, 8));
    }

    /// Planted fault: the name that stands for all of them is offered as if it were a thread's.
    #[test]
    fn stacks_without_threads_are_told_as_that() {
        let all = Thread { pid: 0, tid: 0, name: "all threads".to_owned() };
        let stacks = Profile { threads: vec![all], stacks: vec![Stack::default()], ..Profile::default() };
        let error = stacks.of_threads(&["worker".to_owned()]).unwrap_err();
        assert!(matches!(error, ProfileError::NoThreads), "{error}");
    }

    #[test]
    fn a_thread_that_is_not_there_is_an_error_that_names_those_that_are() {
        let error = profile().of_threads(&["workers".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "no thread is called \"workers\"; there are main, worker");
    }
}
