//! Workers that wait in `poll` and its like for an answer, and not for something to do: a gateway before a slow backend, a
//! name that is looked up.
//!
//! The call does not say which; what waits for the workers does. Who waits for work is woken as soon as there is some. Where
//! work lies there all the time, more than one piece for each of them, and they sleep on for milliseconds, they wait for
//! something else. An epoll holds all that a loop serves, and is never told so. Called by `pool`.

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::{Asked, Serving};

use super::channels::Found;
use super::draft::{Draft, counted, percent};
use super::facts::Facts;
use super::limits::{pool_draft, queue, untaken};
use super::waits::{OffCpu, ThreadTime};

/// A mean wait of 5 ms: waking a thread takes a hundredth of it.
const WAIT_NS_MIN: u64 = 5_000_000;
/// Of the looks, those at which something waits: a busy server shows that at many of them by chance.
const WAITING_SHARE_MIN: f64 = 0.9;

/// Of these threads, taken to wait for answers in `poll`, whether they do: work lies before them, and nobody else explains
/// why. `ran_min` is their part of the CPU time at least: one among the others that is overloaded runs more.
pub(super) fn are_waited_for(
    facts: &Facts<'_>,
    off: &OffCpu<'_>,
    those: &[&ThreadTime],
    ran_min: f64,
) -> bool {
    let Some(sending) = facts.seen.packets.as_ref().and_then(|packets| packets.sending) else { return false };
    let ran: u64 = those.iter().map(|time| time.run).sum();
    // A connection that came this moment wakes its own worker; the others wait for theirs. At a listener anybody may take it.
    let of_each = sending.waiting >= sending.rounds * those.len() as u64;
    let in_line = of_each || queue(facts, WAITING_SHARE_MIN).is_some();
    let serve = ran as f64 >= ran_min * off.sum(|time| time.run) as f64;
    in_line && serve && untaken(facts, WAITING_SHARE_MIN).is_some()
}

/// Of the time, what workers wait for names for none of them to be free.
const TAKEN_UP_MIN: f64 = 0.9;

/// Requests stand in line inside the target for threads that look up names: more are held than there are such threads, none of
/// those is ever free, and they ask for a third of the requests at least. Others take the requests and hand them on.
pub(super) fn in_line_for_names(facts: &Facts<'_>, off: &OffCpu<'_>, spare: f64) -> Option<Draft> {
    let serving = facts.seen.packets.as_ref()?.serving?;
    let owed = serving.owed();
    let is_taken = |time: &&ThreadTime| time.names as f64 >= TAKEN_UP_MIN * off.window_ns;
    let those: Vec<&ThreadTime> = off.threads.values().filter(is_taken).collect();
    let asked = those.iter().map(|time| time.lookups).sum::<u64>() as f64 / (off.window_ns / 1e9);
    let many = those.len() as f64;
    let in_line =
        owed >= FOR_EACH_CONNECTION_MIN * many + BEYOND_MIN && asked >= ASKS_MIN * answered(&serving);
    (!those.is_empty() && in_line).then(|| {
        let workers = counted(those.len() as u64, "thread");
        let summary = format!(
            "{owed:.1} requests are held while {workers} that look up names wait for answers all the time, and {} of the CPUs' \
             time is free",
            percent(spare)
        );
        pool_draft(spare, summary)
            .fact(format!("{workers} wait for a name server, {asked:.0} times a second"), asked, "waits/s")
            .next("keep connections, or names, so that none is looked up for each request; more such threads (UV_THREADPOOL_SIZE); a resolver that waits for many at once")
    })
}

/// How many of the connections to whom the target asks wait for an answer on average, of those that do at a time at most, from
/// which on that is a limit. One that carries several requests at a time is met with the answer to one and the next question in
/// turns.
const TAKEN_MIN: f64 = 0.9;
/// The same where a connection is opened for each question: between two of them one is opened and closed, and nobody waits for an
/// answer meanwhile. Were it chance how many are asked at a time, one in eight looks found more than the most, and not one in twenty.
const TAKEN_OPENING_MIN: f64 = 0.6;
/// Of the looks at connections, those at another one than before, from which on one is opened for each question.
const OPENED_MIN: f64 = 0.5;
/// Fewer looks at them do not tell.
const LOOKS_MIN: u64 = 20;
/// Time since they were asked, on average: shorter waits lie within a tick or two of the kernel's, by which it is told who spoke
/// last. Who waits for 4 ms has done so for 2 when met.
const AWAITED_MS_MIN: f64 = 1.5;
/// Requests that the target holds for each connection, and beyond them, from which on they stand in line for one: a third of
/// those wait.
const FOR_EACH_CONNECTION_MIN: f64 = 1.5;
const BEYOND_MIN: f64 = 2.0;
/// Questions for each of its requests, at least: who waits for news that are for everybody asks fewer, and so does a task of its
/// own that has nothing to do with them. Both are counted by how many wait at a time, and how long they have when met at random.
const ASKS_MIN: f64 = 0.3;

/// The connections to whom the target asks of which as many as may be wait for an answer, while more requests are held.
fn taken<'o>(facts: &Facts<'o>) -> Option<&'o Asked> {
    let packets = facts.seen.packets.as_ref()?;
    let serving = packets.serving?;
    let owed = serving.owed();
    let asks = |one: &Asked| awaiting(one) * 1e3 / (2.0 * one.awaited_ms);
    let is_taken = |one: &&Asked| {
        one.looks >= LOOKS_MIN
            && one.looks_awaiting as f64 >= taken_min(one) * (one.most_awaiting * one.rounds) as f64
            && (one.awaited_ms >= AWAITED_MS_MIN || opens_each(one))
            && asks(one) >= ASKS_MIN * answered(&serving)
    };
    let one = packets.asked.iter().find(is_taken)?;
    // Others that it asks work on the rest.
    let in_line = owed >= FOR_EACH_CONNECTION_MIN * serving.awaiting.max(awaiting(one)) + BEYOND_MIN;
    in_line.then_some(one)
}

/// Whether a connection is opened for each question: it carries no second one.
fn opens_each(one: &Asked) -> bool {
    one.different as f64 >= OPENED_MIN * one.looks as f64
}

fn taken_min(one: &Asked) -> f64 {
    if opens_each(one) { TAKEN_OPENING_MIN } else { TAKEN_MIN }
}

/// Questions for each request from which on they are asked one by one for what one could ask at once: a page that asks a
/// database for this and that needs some ten.
const QUESTIONS_MIN: f64 = 20.0;
/// Requests in a second that tell how many questions each brings.
const REQUESTS_PER_S_MIN: f64 = 5.0;
/// Of the questions that wait at a time, the requests that must be held: else they are asked for something else.
const FOR_REQUESTS_MIN: f64 = 0.5;

/// Each request asks another server many times, one question after another: a query for each row of an answer. `kernel` is the
/// kernel's share of the CPU time.
pub(super) fn many_questions(facts: &Facts<'_>, kernel: f64) -> Option<Draft> {
    let packets = facts.seen.packets.as_ref()?;
    let serving = packets.serving.filter(|serving| serving.received_per_s >= REQUESTS_PER_S_MIN)?;
    let one = packets.asked.iter().max_by(|a, b| a.sent_per_s.total_cmp(&b.sent_per_s))?;
    let (requests, remote) = (serving.received_per_s, &one.remote);
    let each = one.sent_per_s / requests;
    let for_requests = serving.owed() >= FOR_REQUESTS_MIN * awaiting(one);
    (each >= QUESTIONS_MIN && for_requests).then(|| {
        let summary = format!("{remote} is asked {each:.0} times for each request");
        Draft::new(Class::SyscallHeavy, kernel, summary)
            .sure(Confidence::Medium)
            .fact(format!("{:.0} questions to {remote} a second", one.sent_per_s), one.sent_per_s, "questions/s")
            .fact(format!("{requests:.0} requests a second came from clients"), requests, "requests/s")
            .fact(format!("{} of the CPU is spent in the kernel", percent(kernel)), kernel, "share")
            .next("ask for many at once: one query for all rows (a join, or IN), MGET, a pipeline; or keep what the answers were")
    })
}

/// Requests that are answered in a second, of as many as wait at a time, and as long as each does.
fn answered(serving: &Serving) -> f64 {
    serving.owed() * 1e3 / (2.0 * serving.owed_ms.max(1.0))
}

/// Of its connections, those that wait for an answer, on average.
pub(super) fn awaiting(one: &Asked) -> f64 {
    one.connections * one.looks_awaiting as f64 / one.looks.max(1) as f64
}

/// Whether requests stand in line for connections of which none is ever free, and there are several: who waits at a lock then
/// waits for one of them. Of connections that are free meanwhile a lock is what keeps them so.
pub(super) fn none_is_free<'o>(facts: &Facts<'o>) -> Option<&'o Asked> {
    taken(facts).filter(|one| one.most_awaiting > 1 && awaiting(one) >= TAKEN_MIN * one.connections)
}

/// More requests are held than another server is asked at a time, always as many at most: the rest stand in line for their turn,
/// inside the target, whose threads do not show it. A limit of connections, or a pool of them.
pub(super) fn in_line_for_connections(facts: &Facts<'_>, spare: f64) -> Option<Found> {
    let serving = facts.seen.packets.as_ref()?.serving?;
    let owed = serving.owed();
    let one = taken(facts)?;
    let Asked { remote, connections, awaited_ms, .. } = one;
    let summary = format!(
        "{owed:.1} requests are held while {remote} is asked for {:.1} of them at a time, and {} of the CPUs' time is free",
        awaiting(one),
        percent(spare)
    );
    let since = format!("they were asked {awaited_ms:.0} ms before, on average");
    let draft =
        pool_draft(spare, summary)
            .fact(format!("{owed:.1} of {:.1} clients wait for an answer", serving.connections), owed, "requests")
            .fact(
                format!("its answers are waited for on {:.1} of {connections:.1} connections", awaiting(one)),
                awaiting(one),
                "connections",
            )
            .fact(since, *awaited_ms, "ms")
            .next(format!(
                "more connections to {remote}: a larger pool, or a higher limit; diagnose what listens there: when it answers \
                 sooner, as many do more"
            ));
    // A single connection that is kept may take one request at a time or many.
    let is_limit = one.most_awaiting > 1 || opens_each(one) || asks_one_at_a_time(one, &serving);
    Some(if is_limit { Found::Limit(draft) } else { Found::Perhaps(draft) })
}

/// Questions for each request, in segments, from which on none goes with another in one segment.
const APART_MIN: f64 = 0.9;
/// Questions that are asked while one is answered: one, and what figures are uncertain by.
const MEANWHILE_MAX: f64 = 1.5;

/// Whether a connection carries one question at a time: each request is asked for by a segment of its own, and as many are asked in
/// a second as answers take turns in it. Of several at a time as many more would go while one is awaited, or many in one segment.
fn asks_one_at_a_time(one: &Asked, serving: &Serving) -> bool {
    let meanwhile = one.sent_per_s * 2.0 * one.awaited_ms / 1e3;
    one.sent_per_s > 0.0
        && one.sent_per_s >= APART_MIN * serving.received_per_s
        && meanwhile <= MEANWHILE_MAX * one.most_awaiting as f64
}

/// Whether requests stand in such a line.
pub(super) fn in_line(facts: &Facts<'_>) -> bool {
    facts.spare().is_some_and(|spare| in_line_for_connections(facts, spare).is_some())
}

/// What a thread slept in `poll`, where its waits are long.
pub(super) fn polled_ns(time: &ThreadTime) -> u64 {
    if time.polled >= WAIT_NS_MIN * time.polls { time.polled } else { 0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Asked, Packets, Queue, Sending, Serving};
    use dyno_record::profile::WaitClass;

    use crate::scene::Scene;

    /// Planted faults: what waits at the listener counted for each worker (`of_each` alone); a queue now and then is enough.
    #[test]
    fn one_connection_that_nobody_accepts_waits_for_all_workers() {
        let queued = |looks_waiting: u64| {
            let sending =
                Sending { rounds: 80, rounds_waiting: looks_waiting, waiting: 160, ..Sending::default() };
            let queue = Queue { looks: 80, looks_waiting, waiting: 160, most: 3, ..Queue::default() };
            let packets = Packets { sending: Some(sending), queues: vec![queue], ..Packets::default() };
            server(&[0.3; 8], "poll", 180).with(|seen| seen.packets = Some(packets)).classes()
        };
        assert_eq!(queued(80), [Class::PoolLimit]);
        assert_eq!(queued(60), [], "at times somebody is there who accepts");
        assert_eq!(asked(server(&[0.3; 8], "poll", 180), 80, 160), [], "they lie in connections of two");
    }

    /// A gateway of 20 clients before a server that answers each request after 50 ms: `change` makes it another one.
    fn gateway(change: impl Fn(&mut Asked, &mut Serving)) -> Vec<Class> {
        let mut asked = Asked {
            remote: "127.0.0.1:9000".to_owned(),
            connections: 2.0,
            looks: 160,
            looks_awaiting: 155,
            rounds: 80,
            most_awaiting: 2,
            awaited_ms: 25.0,
            ..Asked::default()
        };
        let mut serving = Serving {
            connections: 20.0,
            looks: 1_600,
            looks_owed: 1_560,
            owed_ms: 250.0,
            awaiting: asked.connections,
            ..Serving::default()
        };
        change(&mut asked, &mut serving);
        let packets = Packets { asked: vec![asked], serving: Some(serving), ..Packets::default() };
        // It uses a five-hundredth of a CPU.
        let scene = server(&[0.02], "epoll_wait", 180);
        scene.with(|seen| seen.packets = Some(packets)).classes()
    }

    /// A cache that fetches one page at a time for sixteen clients. Planted faults: a single connection is never a limit; questions that
    /// go together in one segment, or many while one is answered, are one at a time.
    #[test]
    fn a_single_connection_that_carries_one_question_at_a_time_is_a_limit() {
        let fetches = |sent_per_s: f64| {
            gateway(|asked, serving| {
                (asked.connections, asked.most_awaiting, asked.awaited_ms) = (1.0, 1, 5.0);
                (asked.looks, asked.looks_awaiting, asked.sent_per_s) = (80, 76, sent_per_s);
                (serving.awaiting, serving.received_per_s, serving.owed_ms) = (0.95, 90.0, 90.0);
            })
        };
        assert_eq!(fetches(92.0), [Class::PoolLimit]);
        assert_eq!(fetches(12.0), [], "eight in a segment");
        assert_eq!(fetches(700.0), [], "seven at a time");
        assert_eq!(fetches(0.0), [], "that is not known");
    }

    /// Node's four threads, each for a name at a time, and a loop that takes requests. Planted faults: whoever polls waits for
    /// names; a line of none; threads that are free meanwhile.
    #[test]
    fn requests_in_line_for_threads_that_look_up_names_are_a_pool_that_is_too_small() {
        let node = |seconds: f64, owed: f64, leaf: &str| {
            let mut scene = Scene::new(&[0.02; 5]).off(5, WaitClass::Network, "main;epoll_wait", 9.8);
            for tid in 1..=4 {
                scene = scene.off(tid, WaitClass::Network, &format!("worker;{leaf};poll"), seconds);
                let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
                stack.wait.as_mut().unwrap().system_call = Some("poll".to_owned());
                stack.samples = 400;
            }
            let serving = Serving {
                connections: owed,
                looks: 1_600,
                looks_owed: 1_600,
                owed_ms: 250.0,
                ..Serving::default()
            };
            let packets = Packets { serving: Some(serving), ..Packets::default() };
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        let name = "getaddrinfo;__res_context_send";
        assert_eq!(node(9.8, 48.0, name), [Class::PoolLimit]);
        assert_eq!(node(9.8, 48.0, "PQgetResult"), [], "who knows what is asked there");
        assert_eq!(node(9.8, 6.0, name), [], "hardly anybody stands in line");
        assert_eq!(node(7.0, 48.0, name), [], "they are free for a quarter of the time");
    }

    /// An event loop that asks by a call which blocks. Planted fault: one connection is a note whatever lies unread.
    #[test]
    fn one_connection_is_a_limit_where_the_only_thread_waits_for_its_answer_and_requests_lie_unread() {
        let one = |unread: u64| {
            let asked = Asked {
                remote: "127.0.0.1:9000".to_owned(),
                connections: 1.0,
                looks: 80,
                looks_awaiting: 78,
                rounds: 80,
                most_awaiting: 1,
                awaited_ms: 10.0,
                ..Asked::default()
            };
            let serving = Serving {
                connections: 16.0,
                looks: 1_280,
                looks_owed: 1_270,
                owed_ms: 170.0,
                awaiting: 1.0,
                ..Serving::default()
            };
            let sending =
                Sending { rounds: 80, rounds_waiting: unread, waiting: 7 * unread, ..Sending::default() };
            let packets = Packets {
                asked: vec![asked],
                serving: Some(serving),
                sending: Some(sending),
                ..Packets::default()
            };
            let mut scene =
                Scene::new(&[0.6]).on("main;work", 6).off(1, WaitClass::Network, "main;get;recv", 9.3);
            let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
            stack.wait.as_mut().unwrap().system_call = Some("recvfrom".to_owned());
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        assert_eq!(one(78), [Class::PoolLimit]);
        assert_eq!(one(0), [], "one connection may carry several, and somebody takes what comes");
    }

    /// Planted faults: none of `QUESTIONS_MIN`, `REQUESTS_PER_S_MIN`, `FOR_REQUESTS_MIN`; a note at most.
    #[test]
    fn a_server_that_asks_many_times_for_each_request_makes_many_calls() {
        let asks = |sent_per_s: f64, received_per_s: f64, looks_owed: u64, kernel: u64| {
            let asked = Asked {
                remote: "127.0.0.1:6379".to_owned(),
                connections: 8.0,
                looks: 640,
                looks_awaiting: 600,
                rounds: 80,
                most_awaiting: 8,
                awaited_ms: 1.0,
                sent_per_s,
                ..Asked::default()
            };
            let serving = Serving {
                connections: 16.0,
                looks: 1_280,
                looks_owed,
                owed_ms: 4.0,
                awaiting: 7.5,
                received_per_s,
            };
            let packets = Packets { asked: vec![asked], serving: Some(serving), ..Packets::default() };
            let scene = Scene::new(&[9.0, 9.0])
                .on("main;query;write;tcp_sendmsg_[k]", kernel)
                .on("main;work", 100 - kernel);
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        assert_eq!(asks(100_000.0, 2_000.0, 1_200, 50), [Class::SyscallHeavy]);
        assert_eq!(asks(20_000.0, 2_000.0, 1_200, 50), [], "ten for each");
        assert_eq!(asks(100.0, 2.0, 1_200, 50), [], "hardly any request");
        assert_eq!(asks(100_000.0, 2_000.0, 100, 50), [], "no request waits for them");
        assert_eq!(asks(100_000.0, 2_000.0, 1_200, 10), [], "a note: what it does besides costs more");
    }

    /// As a pool of connections in Java is met: who wants one parks until another gives one back. Planted faults: the lock is
    /// named whatever is waited for; or never where others are asked.
    #[test]
    fn who_waits_for_a_connection_of_a_pool_waits_for_no_lock() {
        let pool =
            |connections: f64| {
                let mut scene = Scene::new(&[0.02; 20]);
                for tid in 1..=20 {
                    scene = scene
                        .off(tid, WaitClass::Lock, "run;pthread_mutex_lock;futex_wait_[k]", 9.0)
                        .woken("0x7f", tid % 20 + 1, "run;pthread_mutex_unlock");
                }
                let asked = Asked {
                    remote: "127.0.0.1:9000".to_owned(),
                    connections,
                    looks: (connections * 80.0) as u64,
                    looks_awaiting: 155,
                    rounds: 80,
                    most_awaiting: 2,
                    awaited_ms: 25.0,
                    ..Asked::default()
                };
                let serving = Serving {
                    connections: 20.0,
                    looks: 1_600,
                    looks_owed: 1_560,
                    owed_ms: 250.0,
                    awaiting: 2.0,
                    ..Serving::default()
                };
                let packets = Packets { asked: vec![asked], serving: Some(serving), ..Packets::default() };
                scene.with(|seen| seen.packets = Some(packets)).classes()
            };
        assert_eq!(pool(2.0), [Class::PoolLimit]);
        assert_eq!(pool(20.0)[0], Class::LockContention, "each has its own, and holds a lock while it asks");
    }

    /// Planted faults: none of `TAKEN_MIN`, `TAKEN_OPENING_MIN`, `OPENED_MIN`, `AWAITED_MS_MIN`, `ASKS_MIN`, `LOOKS_MIN`, or the line of
    /// `FOR_EACH_CONNECTION_MIN`; what others are asked left out;
    /// what it holds is no load (`nothing_ran` without `in_line`).
    #[test]
    fn requests_that_stand_in_line_for_a_connection_are_a_pool_that_is_too_small() {
        assert_eq!(gateway(|_, _| {}), [Class::PoolLimit]);
        assert_eq!(gateway(|asked, _| asked.connections = 10.0), [Class::PoolLimit], "ten of twenty wait");
        assert_eq!(gateway(|asked, _| asked.connections = 20.0), [], "each has its own");
        let rests =
            |looks: u64| gateway(|asked, _| (asked.connections, asked.looks) = (looks as f64 / 80.0, looks));
        assert_eq!(rests(240), [Class::PoolLimit], "a third connection is open and not used");
        assert_eq!(gateway(|asked, _| asked.most_awaiting = 4), [], "at times it asks for more");
        let one = |asked: &mut Asked| {
            (asked.connections, asked.looks, asked.looks_awaiting, asked.most_awaiting) = (1.0, 80, 78, 1);
        };
        assert_eq!(gateway(|asked, _| one(asked)), [], "one connection may carry several: a note");
        assert_eq!(
            gateway(|asked, _| asked.looks_awaiting = 80),
            [],
            "one carries several, or rests at times"
        );
        assert_eq!(
            gateway(|asked, _| asked.awaited_ms = 1.0),
            [],
            "within a tick nobody knows who spoke last"
        );
        assert_eq!(gateway(|asked, _| asked.awaited_ms = 20_000.0), [], "it waits for news");
        assert_eq!(gateway(|_, serving| serving.owed_ms = 25.0), [], "each is answered as soon as one is");
        assert_eq!(gateway(|_, serving| serving.looks_owed = 200), [], "its clients rest");
        assert_eq!(gateway(|_, serving| serving.awaiting = 18.0), [], "others work on the rest");
        // One that is opened for each question takes no second one; at some looks none is open.
        let opens = |looks: u64, different: u64| {
            gateway(|asked, _| {
                one(asked);
                (asked.looks, asked.looks_awaiting, asked.different) = (looks, looks - 2, different);
            })
        };
        assert_eq!(opens(60, 55), [Class::PoolLimit]);
        assert_eq!(opens(60, 20), [], "it is kept, and rests at times");
        assert_eq!(opens(45, 45), [], "at most looks none is asked");
        let at_once = |different: u64| {
            gateway(|asked, _| {
                one(asked);
                (asked.different, asked.awaited_ms) = (different, 1.5);
            })
        };
        assert_eq!(at_once(70), [Class::PoolLimit], "who has heard nothing yet waits for its first word");
        assert_eq!(at_once(1), []);
        let hardly = |asked: &mut Asked| (asked.looks, asked.looks_awaiting, asked.rounds) = (8, 8, 4);
        assert_eq!(gateway(|asked, _| hardly(asked)), [], "hardly looked at");
    }

    /// Threads that wait for nine of ten seconds in calls that many times each.
    fn server(run_s: &[f64], call: &str, waits: u64) -> Scene {
        let mut scene = Scene::new(run_s).on("main;serve;ask", 100);
        for tid in 1..=run_s.len() as u32 {
            scene = scene.off(tid, WaitClass::Network, "main;serve;ask", 9.0);
            let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
            stack.wait.as_mut().unwrap().system_call = Some(call.to_owned());
            stack.samples = waits;
        }
        scene
    }

    /// Of eighty looks, those at which something waited, and how much in all.
    fn asked(scene: Scene, rounds_waiting: u64, waiting: u64) -> Vec<Class> {
        let sending = Sending { rounds: 80, rounds_waiting, waiting, ..Sending::default() };
        scene
            .with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
            .classes()
    }

    /// Planted fault: `poll` is for work whatever waits (`are_waited_for` always false).
    #[test]
    fn who_sleeps_in_poll_while_work_lies_before_him_waits_for_an_answer() {
        for call in ["poll", "ppoll", "select", "pselect6"] {
            assert_eq!(asked(server(&[0.3; 4], call, 180), 80, 800), [Class::PoolLimit], "{call}");
            assert_eq!(asked(server(&[0.3], call, 180), 76, 700), [Class::PoolLimit], "{call}");
        }
    }

    /// Planted faults: no least mean wait; half of the looks are enough; epoll counts.
    #[test]
    fn who_is_woken_as_soon_as_there_is_work_waits_for_work() {
        assert_eq!(asked(server(&[0.3; 4], "poll", 9_000), 80, 800), [], "waits of a millisecond");
        assert_eq!(asked(server(&[0.3; 4], "poll", 180), 60, 800), [], "now and then nothing waits");
        assert_eq!(asked(server(&[0.3; 4], "poll", 180), 0, 0), [], "idle");
        assert_eq!(asked(server(&[0.3; 4], "epoll_wait", 180), 80, 800), [], "a loop");
        assert_eq!(asked(server(&[0.3; 4], "accept4", 180), 80, 800), [], "its listener is empty");
    }

    /// Planted fault: `in_line` always true.
    #[test]
    fn many_workers_with_a_client_each_wait_for_their_own() {
        assert_eq!(asked(server(&[0.05; 64], "poll", 180), 80, 240), []);
    }

    /// Planted faults: `serve` always true; threads in `poll` counted beside those that sleep.
    #[test]
    fn workers_beside_one_that_is_overloaded_or_sleeps_are_not_at_fault() {
        let mut busy = server(&[0.3, 0.3, 0.3, 0.3, 9.0], "poll", 180);
        busy.seen.off_cpu.as_mut().unwrap().stacks.pop();
        assert!(!asked(busy, 80, 800).contains(&Class::PoolLimit));
        let mut one = server(&[0.3; 8], "poll", 180);
        let stacks = &mut one.seen.off_cpu.as_mut().unwrap().stacks;
        stacks.last_mut().unwrap().wait.as_mut().unwrap().class = WaitClass::Sleep;
        assert_eq!(asked(one, 80, 800), []);
    }
}
