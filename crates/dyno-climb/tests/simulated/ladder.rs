//! Plans for the simulated world, and climbs through it.
//!
//! [`climbed`] is the one way in which the tests climb: whatever a test is about, it also checks what must hold after
//! every climb (all servers closed, the record judged again says the same).

use dyno_climb::climb::{ClimbError, Event, INSTANCES, Options, Order, Profiles, climb};
use dyno_climb::dial::{Dial, How, Value};
use dyno_climb::load::LoadSpec;
use dyno_climb::plan::{Launch, Plan};
use dyno_climb::proof::Proof;
use dyno_climb::rung::{Needs, Rung};
use dyno_measure::series::Metric;
use dyno_record::climb::{Climb, Rung as RungRecord, RungVerdict};
use dyno_record::trial::Compared;

use crate::rejudge;
use crate::world::{World, assignments};

/// Threads that many climbs are spread over.
const THREADS: usize = 2;

pub(crate) fn seconds(s: u64) -> u64 {
    s * 1_000_000_000
}

/// A plan with a rung per `dial=value`; every dial starts at `off`.
pub(crate) fn ladder(steps: &[&str]) -> Plan {
    let mut plan = Plan {
        name: "simulated".into(),
        launch: Launch { argv: vec!["simulated".into()], ..Launch::default() },
        load: LoadSpec::default(),
        dials: Vec::new(),
        rungs: Vec::new(),
        memory_max_bytes: None,
        headline: None,
    };
    for step in steps {
        let (dial, value) = assignments(step).remove(0);
        let position = plan.dials.iter().position(|known| known.name == dial).unwrap_or_else(|| {
            plan.dials.push(Dial { name: dial.clone(), how: How::Arg, values: vec![named("off")], start: 0 });
            plan.dials.len() - 1
        });
        plan.dials[position].values.push(named(&value));
        plan.rungs.push(rung(step, dial, value));
    }
    plan
}

fn named(value: &str) -> Value {
    Value { name: value.to_owned(), words: vec![value.to_owned()], text: String::new() }
}

fn rung(step: &str, dial: String, to: String) -> Rung {
    Rung {
        id: step.to_owned(),
        dial,
        to,
        needs: Vec::new(),
        claim: "simulated".into(),
        source: "simulated".into(),
        risk: "none".into(),
        metric: Metric::CpuPerRequest,
        load: None,
        server_cpus: 1,
        impossible: None,
        state: None,
        elsewhere: String::new(),
        proofs: vec![Proof::Answer { path: "/dials".into(), contains: step.to_owned() }],
        in_place: false,
        only_named: false,
    }
}

/// A change to one rung of a plan.
pub(crate) trait Edit {
    fn edit(self, step: &str, change: impl FnOnce(&mut Rung)) -> Self;
    fn needing(self, step: &str, needs: &str) -> Self;
    fn in_place(self, step: &str) -> Self;
}

impl Edit for Plan {
    fn edit(mut self, step: &str, change: impl FnOnce(&mut Rung)) -> Self {
        change(self.rungs.iter_mut().find(|rung| rung.id == step).expect("a rung of this plan"));
        self
    }

    fn needing(self, step: &str, needs: &str) -> Self {
        let needs = assignments(needs).into_iter().map(|(dial, value)| Needs { dial, value });
        self.edit(step, |rung| rung.needs = needs.collect())
    }

    fn in_place(mut self, step: &str) -> Self {
        let (dial, _) = assignments(step).remove(0);
        self.dials.iter_mut().filter(|known| known.name == dial).for_each(|known| known.how = How::Live);
        self.edit(step, |rung| rung.in_place = true)
    }
}

/// A climb that is over.
pub(crate) struct Climbed {
    pub(crate) record: Climb,
    pub(crate) outcome: Result<(), ClimbError>,
    pub(crate) world: World,
    pub(crate) events: usize,
}

pub(crate) fn options(seed: u64, time_s: u64) -> Options {
    Options {
        time_ns: seconds(time_s),
        order: Order::Given,
        seed,
        instances: INSTANCES,
        server_cpus: 1,
        only: Vec::new(),
        worthwhile_percent: None,
        profiles: Profiles::None,
    }
}

/// Climbs, and checks what must hold after every climb.
pub(crate) fn climbed(plan: &Plan, options: &Options, mut world: World) -> Climbed {
    plan.check().expect("a plan of these tests");
    let mut record = Climb::default();
    let (mut events, mut rounds_told) = (0, false);
    let outcome = climb(plan, options, &mut world, &mut record, &mut |event| {
        events += usize::from(matches!(event, Event::Rung(_)));
        if let Event::Pair { stage, pair, of, left_ns, .. } = event {
            assert!(
                1 <= *pair && pair <= of && *left_ns <= options.time_ns,
                "{stage}: {pair} of {of}, {left_ns} ns left"
            );
            rounds_told |= *stage == "total";
        }
    });
    // Planted fault: `report_rounds` says nothing.
    assert!(rounds_told || record.total.is_none(), "seed {}: nothing told of the total", options.seed);
    assert_eq!(world.live(), 0, "seed {}: servers outlive the climb: {outcome:?}", options.seed);
    assert!(world.peak() <= 2 * options.instances.max(2), "{} live at once", world.peak());
    assert_eq!(outcome.is_err(), record.cut_short.is_some(), "seed {}: {outcome:?}", options.seed);
    rejudge::says_the_same(&record);
    Climbed { record, outcome, world, events }
}

/// A climb that reaches its end.
pub(crate) fn whole(plan: &Plan, options: &Options, world: World) -> Climbed {
    let climbed = climbed(plan, options, world);
    assert_eq!(climbed.outcome, Ok(()), "seed {}", options.seed);
    climbed
}

/// Calls to the world that a trial took whose servers, so many a side, were each proved so often.
pub(crate) fn calls_of(trial: &Compared, instances: u64, proofs: u64) -> u64 {
    let last = trial.trial.pairs.iter().map(|pair| u64::from(pair.instance)).max().unwrap_or(0);
    let openings = last / instances + 1;
    openings * 2 * instances * (1 + proofs) + 2 * trial.trial.pairs.len() as u64
}

impl Climbed {
    pub(crate) fn rung(&self, id: &str) -> &RungRecord {
        self.record.rungs.iter().find(|rung| rung.id == id).expect("a rung of this climb")
    }

    pub(crate) fn verdict(&self, id: &str) -> RungVerdict {
        self.rung(id).attempt.verdict
    }

    pub(crate) fn why(&self, id: &str) -> &str {
        &self.rung(id).attempt.why
    }

    pub(crate) fn kept(&self, id: &str) -> bool {
        self.verdict(id) == RungVerdict::Kept
    }

    /// The final setting's dials that left the start.
    pub(crate) fn turned(&self) -> Vec<&str> {
        let reached = self.record.reached().expect("a final setting");
        reached.final_setting.iter().map(String::as_str).filter(|word| !word.ends_with("=off")).collect()
    }

    /// The trial that people know by this title.
    pub(crate) fn trial(&self, title: &str) -> Option<&Compared> {
        self.record.series.trials.iter().find(|trial| trial.title() == title)
    }

    pub(crate) fn missing(&self, what: &str) -> bool {
        self.record.not_measured.iter().any(|missing| missing.what == what)
    }
}

/// Runs a test of one seed for seeds 1 to `seeds`, over two threads; results in the order of seeds.
pub(crate) fn over_seeds<T: Send>(seeds: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let one = &one;
    let share = |first: u64| move || (first..=seeds).step_by(THREADS).map(|seed| (seed, one(seed))).collect();
    let mut all: Vec<(u64, T)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS as u64).map(|first| scope.spawn(share(first))).collect();
        threads.into_iter().flat_map(|t| -> Vec<_> { t.join().expect("a seed failed, see above") }).collect()
    });
    all.sort_by_key(|(seed, _)| *seed);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Share of the results for which `is` holds.
pub(crate) fn share<T>(results: &[T], is: impl Fn(&T) -> bool) -> f64 {
    results.iter().filter(|result| is(result)).count() as f64 / results.len() as f64
}

pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    dyno_measure::stats::mean(&values.into_iter().collect::<Vec<_>>())
}
