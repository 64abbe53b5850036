//! A simulated world behind the climb's `Meter`: servers whose true costs are known.
//!
//! Every server costs 6 µs of CPU per request, moved by the effects of the dials' values; an effect may need several
//! dials to stand where it says, so that one dial's worth can depend on another's. Blocks cost simulated time. Servers
//! die, hang and lie where a test says so.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use dyno_climb::dial::Setting;
use dyno_climb::load::LoadSpec;
use dyno_climb::meter::{
    Clock, Describe, Described, Length, Look, Measured, Memory, Meter, Opening, Trouble, Vitals,
};
use dyno_climb::proof::{Proof, Reading};
use dyno_measure::normal::normal_quantile;
use dyno_measure::series::Block;
use dyno_measure::units::log_of_percent;
use dyno_measure::{Histogram, Prng};
use dyno_record::profile::{Frame, Profile, Requests, Stack, Thread};

use crate::noise::{Noise, Weather, moved};

const BASE_NS: f64 = 6_000.0;
/// The smallest loop that answers the same bytes.
const FLOOR_NS: f64 = 3_500.0;
/// What of a request no dial changes.
const REST_NS: f64 = 2_000.0;
/// Between samples of a profile.
const PROFILE_PERIOD_NS: f64 = 1e6;
const BASE_RSS: f64 = 20e6;
const CONNECTIONS: f64 = 64.0;
/// Log-normal spread of latencies within a block.
const LATENCY_SIGMA: f64 = 0.35;
/// Normal quantile of 99 %.
const P99_Z: f64 = 2.326;
/// How the tail of single blocks differs: with it the pairs' p99 has a spread of 45 %, as measured.
const TAIL_SIGMA: f64 = 0.3;
/// A new process is a new draw of hashes and layout: so many percent, where a test says nothing else.
const STARTS_PERCENT: f64 = 0.3;
/// The second block of a pair was 1.5 % cheaper.
const SECOND_CHEAPER: f64 = 0.015;
/// A block after one on the same arm was 3.5 % dearer than one after a switch.
const SAME_ARM_DEARER: f64 = 0.035;
/// A block in which work comes in a burst costs twice as much.
const BURST: f64 = 2.0;

/// In which the kernel counts the CPU time of others.
const TICK_NS: f64 = 4e6;
/// What is burnt at once.
const PULSE_NS: u64 = 100_000_000;
/// What is left over of a block that was cut short.
const CUT_NS: u64 = 60_000_000;

const OPEN_NS: u64 = 150_000_000;
const CLOSE_NS: u64 = 10_000_000;
const PROVE_NS: u64 = 5_000_000;
const TURN_NS: u64 = 50_000;

/// What a dial's value does to a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Does {
    /// CPU per request, percent.
    Cpu(f64),
    /// The slowest 2 % of the latencies, percent.
    Tail(f64),
    /// Resident memory, percent.
    Memory(f64),
    /// Share of 25-ms stretches that cost twice as much.
    Bursts(f64),
    /// CPU per request more for every ten seconds that a process has lived, percent.
    Ageing(f64),
    /// CPU per request more at the start, percent; two thirds of it are gone after so many seconds.
    WarmUp(f64, f64),
    /// Share of stretches of 25 ms in which so many times as much CPU is burnt, for no more answers.
    Rare(f64, f64),
    /// CPU per request, percent, under the plan's load only; and under any other.
    CpuUnder { plans: f64, others: f64 },
    /// Spread of processes, percent, beside the usual one.
    Spread(f64),
    /// Slow wandering of every process by itself, over some three seconds, percent.
    Wander(f64),
    /// Every process by itself has two speeds, so many percent apart, and keeps each for so many seconds on the average.
    Leap(f64, f64),
    /// Share of a CPU burnt all the time, load or not, percent.
    Background(f64),
    /// Share of blocks after which 60 ms of CPU are burnt that were left over, percent.
    Cut(f64),
    /// 100 ms burnt at once, every so many seconds, load or not.
    Pulse(f64),
    /// CPU per request that others burn for it, µs: a log's daemon, a helper. The kernel tells it in ticks.
    Elsewhere(f64),
    /// What it takes to make such a ground or to take it away where the block before stood on another, seconds: rules that
    /// are loaded, a device that is set.
    Ground(f64),
}

/// What a proof reads, where it is not the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// On both sides as if the change were in force.
    Always,
    /// On neither.
    Never,
    /// It cannot be told.
    Unreadable,
    /// True when read for the first time on a server, later as if it were not in force.
    Fades,
    /// True as long as no floor lives beside it: in the total it is as if it were not in force.
    NotBesideFloor,
    /// True on most servers: on every third it is as if it were not in force.
    OnMost,
}

/// Where a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Build,
    Open,
    Prove,
    Turn,
    /// This block of a server, counted from 1.
    Block(u64),
}

/// Something that goes wrong with servers of a setting.
#[derive(Debug, Clone)]
struct Fault {
    when: Vec<(String, String)>,
    at: At,
    trouble: Trouble,
    times: u64,
}

/// Trouble at a call counted from the start of the climb, whatever it is.
#[derive(Debug, Clone)]
pub(crate) enum Trip {
    /// At this call only.
    Once(u64, Trouble),
    /// From this call on.
    From(u64, Trouble),
}

/// A live server.
#[derive(Debug)]
pub(crate) struct Arm {
    id: u64,
    setting: Setting,
    instance: f64,
    cost: f64,
    tail: f64,
    rss: f64,
    memory_left_bytes: u64,
    bursts: f64,
    rare: (f64, f64),
    ageing: f64,
    warm_up: (f64, f64),
    opened_ns: u64,
    /// Whether it serves the plan's load.
    plans_load: bool,
    wander: f64,
    background: f64,
    elsewhere_ns: f64,
    cut: f64,
    pulse_ns: f64,
    /// When its last block ended.
    last_end_ns: Option<u64>,
    /// Where its own wandering stands, and since when.
    wandered: (f64, u64),
    /// Half of what its two speeds differ by, log, and how long it keeps one, ns.
    leap: (f64, f64),
    /// Its draw as a process.
    draw: f64,
    blocks: u64,
    proofs: u64,
    /// What it died of: it never serves again.
    dead: Option<Trouble>,
}

/// The world.
pub(crate) struct World {
    rng: Prng,
    noise: Noise,
    effects: Vec<(Vec<(String, String)>, Does)>,
    faults: Vec<Fault>,
    evidence: BTreeMap<String, Evidence>,
    trip: Option<Trip>,
    block_ns: u64,
    open_ns: u64,
    starts_percent: f64,
    memory_percent: f64,
    memory_left_bytes: u64,
    now_ns: u64,
    live: BTreeMap<u64, Setting>,
    /// What each live server burns all the time, as a share of a CPU.
    burning: BTreeMap<u64, f64>,
    /// Most servers alive during a block of one that burns.
    crowd: usize,
    opened: u64,
    peak: usize,
    calls: u64,
    /// Blocks since something else was done: odd ones are the second of their pair.
    run: u64,
    last_arm: Option<u64>,
    /// What the last block stood on.
    ground: Setting,
    /// What others have burnt and no tick has told yet, ns.
    untold_ns: f64,
    /// Settings that served blocks, with how many.
    served: BTreeMap<Setting, u64>,
}

/// `dial=value` pairs.
pub(crate) fn assignments(text: &str) -> Vec<(String, String)> {
    let split = |word: &str| word.split_once('=').map(|(dial, value)| (dial.to_owned(), value.to_owned()));
    text.split_whitespace().map(|word| split(word).expect("dial=value")).collect()
}

fn stands(setting: &Setting, when: &[(String, String)]) -> bool {
    when.iter().all(|(dial, value)| setting.get(dial) == value)
}

impl World {
    pub(crate) fn new(weather: Weather, seed: u64) -> Self {
        // The climb seeds its own coins with the same number: the world must not throw the same ones.
        let mut rng = Prng::new(seed ^ 0x5eed_0f7e_4a11);
        let noise = Noise::new(weather, &mut rng);
        Self {
            rng,
            noise,
            effects: Vec::new(),
            faults: Vec::new(),
            evidence: BTreeMap::new(),
            trip: None,
            block_ns: 31_000_000,
            open_ns: OPEN_NS,
            starts_percent: STARTS_PERCENT,
            memory_percent: 0.0,
            memory_left_bytes: u64::MAX,
            now_ns: 0,
            live: BTreeMap::new(),
            burning: BTreeMap::new(),
            crowd: 0,
            opened: 0,
            peak: 0,
            calls: 0,
            run: 0,
            last_arm: None,
            ground: Setting::default(),
            untold_ns: 0.0,
            served: BTreeMap::new(),
        }
    }

    /// Where these dials (`a=on b=2`; none: always) stand so, this holds.
    pub(crate) fn with(mut self, when: &str, does: Does) -> Self {
        self.effects.push((assignments(when), does));
        self
    }

    /// Servers of such a setting always have this trouble there.
    pub(crate) fn failing(self, when: &str, at: At, trouble: Trouble) -> Self {
        self.failing_times(u64::MAX, when, at, trouble)
    }

    pub(crate) fn failing_times(mut self, times: u64, when: &str, at: At, trouble: Trouble) -> Self {
        self.faults.push(Fault { when: assignments(when), at, trouble, times });
        self
    }

    /// The proof of `dial=value` reads this.
    pub(crate) fn reading(mut self, assignment: &str, evidence: Evidence) -> Self {
        self.evidence.insert(assignment.to_owned(), evidence);
        self
    }

    pub(crate) fn tripping(mut self, trip: Trip) -> Self {
        self.trip = Some(trip);
        self
    }

    pub(crate) fn with_memory_left(mut self, bytes: u64) -> Self {
        self.memory_left_bytes = bytes;
        self
    }

    /// A server so slow that a short block must be lengthened to this.
    pub(crate) fn slow(mut self, block_ns: u64) -> Self {
        self.block_ns = block_ns;
        self
    }

    /// Servers that take this long to start.
    pub(crate) fn opening(mut self, open_ns: u64) -> Self {
        self.open_ns = open_ns;
        self
    }

    /// Servers differ from one start to the next by so many percent (standard deviation).
    pub(crate) fn starting(mut self, percent: f64) -> Self {
        self.starts_percent = percent;
        self
    }

    /// The memory of servers differs from one start to the next by so many percent.
    pub(crate) fn remembering(mut self, percent: f64) -> Self {
        self.memory_percent = percent;
        self
    }

    pub(crate) fn live(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// Most servers that were alive while one that burns had its block.
    pub(crate) fn crowd(&self) -> usize {
        self.crowd
    }

    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Blocks served by servers that stood so.
    pub(crate) fn served(&self, when: &str) -> u64 {
        let when = assignments(when);
        self.served.iter().filter(|(setting, _)| stands(setting, &when)).map(|(_, blocks)| blocks).sum()
    }

    fn call(&mut self) -> Result<(), Trouble> {
        self.calls += 1;
        match &self.trip {
            Some(Trip::Once(at, trouble)) if self.calls == *at => Err(trouble.clone()),
            Some(Trip::From(at, trouble)) if self.calls >= *at => Err(trouble.clone()),
            _ => Ok(()),
        }
    }

    /// A call to a live server: what fails once goes on failing when it was a death.
    fn call_to(&mut self, arm: &mut Arm, setting: &Setting, at: At) -> Result<(), Trouble> {
        if let Some(trouble) = &arm.dead {
            return Err(trouble.clone());
        }
        let called = self.call().and_then(|()| self.fault(setting, at));
        if let Err(trouble @ (Trouble::Died { .. } | Trouble::Hung { .. })) = &called {
            arm.dead = Some(trouble.clone());
        }
        called
    }

    fn fault(&mut self, setting: &Setting, at: At) -> Result<(), Trouble> {
        let strikes = |fault: &&mut Fault| fault.at == at && fault.times > 0 && stands(setting, &fault.when);
        let Some(fault) = self.faults.iter_mut().find(strikes) else { return Ok(()) };
        fault.times -= 1;
        if let Trouble::Hung { waited_ms } | Trouble::NotListening { waited_ms, .. } = &fault.trouble {
            self.now_ns += waited_ms * 1_000_000;
        }
        Err(fault.trouble.clone())
    }

    fn start(&mut self, setting: Setting, base_ns: f64, plans_load: bool) -> Arm {
        self.opened += 1;
        self.run = 0;
        let id = self.opened;
        self.live.insert(id, setting.clone());
        self.peak = self.peak.max(self.live.len());
        let instance = base_ns.ln() + self.starts_percent / 100.0 * self.rng.normal();
        let mut arm = Arm {
            id,
            setting,
            instance,
            cost: 0.0,
            tail: 0.0,
            rss: 0.0,
            memory_left_bytes: self.memory_left_bytes,
            bursts: 0.0,
            rare: (0.0, 1.0),
            ageing: 0.0,
            warm_up: (0.0, 1.0),
            opened_ns: self.now_ns,
            plans_load,
            wander: 0.0,
            background: 0.0,
            elsewhere_ns: 0.0,
            cut: 0.0,
            pulse_ns: f64::INFINITY,
            last_end_ns: None,
            wandered: (0.0, 0),
            leap: (0.0, f64::INFINITY),
            draw: 0.0,
            blocks: 0,
            proofs: 0,
            dead: None,
        };
        if self
            .effects
            .iter()
            .any(|(_, does)| matches!(does, Does::Spread(_) | Does::Wander(_) | Does::Leap(..)))
        {
            (arm.draw, arm.wandered) = (self.rng.normal(), (self.rng.normal(), self.now_ns));
        }
        self.resolve(&mut arm);
        arm
    }

    fn change_ground(&mut self, setting: &Setting) {
        for (when, does) in &self.effects {
            if let Does::Ground(seconds) = does
                && stands(&self.ground, when) != stands(setting, when)
            {
                self.now_ns += (seconds * 1e9) as u64;
            }
        }
        self.ground = setting.clone();
    }

    /// What the arm's setting means for it.
    fn resolve(&mut self, arm: &mut Arm) {
        (arm.background, arm.elsewhere_ns, arm.pulse_ns) = (0.0, 0.0, f64::INFINITY);
        (arm.rare, arm.ageing, arm.warm_up) = ((0.0, 1.0), 0.0, (0.0, 1.0));
        (arm.cost, arm.tail, arm.rss, arm.bursts) = (arm.instance, 0.0, BASE_RSS.ln(), 0.0);
        for (_, does) in self.effects.iter().filter(|(when, _)| stands(&arm.setting, when)) {
            match does {
                Does::Cpu(percent) => arm.cost += log_of_percent(*percent),
                Does::Tail(percent) => arm.tail += log_of_percent(*percent),
                Does::Memory(percent) => arm.rss += log_of_percent(*percent),
                Does::Bursts(share) => arm.bursts = *share,
                Does::Spread(percent) => arm.cost += arm.draw * log_of_percent(*percent),
                Does::Background(percent) => arm.background += percent / 100.0,
                Does::Elsewhere(us) => arm.elsewhere_ns += 1e3 * us,
                Does::Cut(percent) => arm.cut = percent / 100.0,
                Does::Pulse(seconds) => arm.pulse_ns = seconds * 1e9,
                Does::Ground(_) => {}
                Does::Wander(percent) => arm.wander = log_of_percent(*percent),
                Does::Leap(percent, seconds) => arm.leap = (log_of_percent(*percent) / 2.0, seconds * 1e9),
                Does::Ageing(percent) => arm.ageing += log_of_percent(*percent) / 1e10,
                Does::WarmUp(percent, seconds) => arm.warm_up = (log_of_percent(*percent), seconds * 1e9),
                Does::Rare(share, times) => arm.rare = (*share, *times),
                Does::CpuUnder { plans, others } => {
                    arm.cost += log_of_percent(if arm.plans_load { *plans } else { *others });
                }
            }
        }
        self.burning.insert(arm.id, arm.background);
    }

    /// The cost of a block, log: what the server needs, what the machine adds, and the order of blocks.
    fn cost_of_block(&mut self, arm: &Arm, slices: u32) -> f64 {
        let mut sum = 0.0;
        for slice in 0..slices {
            let at_ns = self.now_ns + u64::from(slice) * 25_000_000;
            let burst = if self.rng.unit() < arm.bursts { BURST } else { 1.0 };
            sum += burst * self.noise.of_block(at_ns, &mut self.rng).exp();
        }
        let second = if self.run % 2 == 1 { SECOND_CHEAPER } else { 0.0 };
        let same = if self.last_arm == Some(arm.id) { SAME_ARM_DEARER } else { 0.0 };
        let age_ns = (self.now_ns - arm.opened_ns) as f64;
        let aged = arm.ageing * age_ns + arm.warm_up.0 * (-age_ns / arm.warm_up.1).exp();
        arm.cost + aged + (sum / f64::from(slices)).ln() - second + same
    }

    /// What the kernel says that others burnt, in whole ticks.
    fn told_of_others(&mut self, burnt_ns: f64) -> u64 {
        self.untold_ns += burnt_ns;
        let ticks = (self.untold_ns / TICK_NS).floor();
        self.untold_ns -= ticks * TICK_NS;
        (ticks * TICK_NS) as u64
    }

    fn latencies(&mut self, arm: &Arm, replies: u64, median_ns: f64) -> Histogram {
        let tail = arm.tail + TAIL_SIGMA * self.rng.normal();
        let mut latencies = Histogram::new();
        for (z, share) in grid() {
            let lengthened = if *z > 2.0 { tail } else { 0.0 };
            let value_ns = median_ns * (LATENCY_SIGMA * z + lengthened).exp();
            latencies.record_n(value_ns as u64, (share * replies as f64).round() as u64);
        }
        latencies
    }
}

/// Normal quantiles in the middle of stretches, with the stretches' shares: finer where the tail is.
fn grid() -> &'static [(f64, f64)] {
    static GRID: OnceLock<Vec<(f64, f64)>> = OnceLock::new();
    GRID.get_or_init(|| {
        let mut edges: Vec<f64> = (0..=9).map(|tenth| f64::from(tenth) / 10.0).collect();
        edges.extend([0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0]);
        edges.windows(2).map(|e| (normal_quantile(f64::midpoint(e[0], e[1])), e[1] - e[0])).collect()
    })
}

impl Meter for World {
    type Arm = Arm;

    fn build(&mut self, setting: &Setting) -> Result<(), Trouble> {
        assert!(self.live.is_empty(), "connections of a live server would be idle while another is built");
        self.fault(setting, At::Build)
    }

    fn open(&mut self, what: Opening<'_, Arm>) -> Result<Arm, Trouble> {
        self.call()?;
        self.now_ns += self.open_ns;
        match what {
            Opening::Server(spec) => {
                self.fault(&spec.setting, At::Open)?;
                let mut arm = self.start(spec.setting.clone(), BASE_NS, spec.load == LoadSpec::default());
                if self.memory_percent > 0.0 {
                    arm.rss += self.memory_percent / 100.0 * self.rng.normal();
                }
                Ok(arm)
            }
            Opening::Floor { like, .. } => {
                assert!(
                    self.live.contains_key(&like.id),
                    "the floor is to answer what a dead server answers"
                );
                Ok(self.start(Setting::default(), FLOOR_NS, true))
            }
        }
    }

    fn turn(&mut self, arm: &mut Arm, setting: &Setting, dial: &str) -> Result<(), Trouble> {
        self.now_ns += TURN_NS;
        let turned = arm.setting.with(dial, setting.get(dial));
        self.call_to(arm, &turned, At::Turn)?;
        arm.setting = turned;
        self.resolve(arm);
        Ok(())
    }

    fn prove(&mut self, arm: &mut Arm, proof: &Proof) -> Result<Reading, Trouble> {
        self.now_ns += PROVE_NS;
        self.run = 0;
        let setting = arm.setting.clone();
        self.call_to(arm, &setting, At::Prove)?;
        arm.proofs += 1;
        let Proof::Answer { contains, .. } = proof else { panic!("the simulated servers answer only") };
        let truth = stands(&arm.setting, &assignments(contains));
        let holds = match self.evidence.get(contains) {
            Some(Evidence::Unreadable) => return Ok(Reading::CannotTell("the page is gone".into())),
            Some(Evidence::Always) => true,
            Some(Evidence::Never) => false,
            Some(Evidence::Fades) => truth && arm.proofs == 1,
            Some(Evidence::NotBesideFloor) => {
                truth && !self.live.values().any(|setting| *setting == Setting::default())
            }
            Some(Evidence::OnMost) => truth && !arm.id.is_multiple_of(3),
            None => truth,
        };
        Ok(Reading::Fact { text: arm.setting.words().join(" "), holds })
    }

    fn block(&mut self, arm: &mut Arm, length: Length) -> Result<Measured, Trouble> {
        assert!(self.live.contains_key(&arm.id), "a closed server is to serve");
        arm.blocks += 1;
        let (setting, block) = (arm.setting.clone(), At::Block(arm.blocks));
        self.call_to(arm, &setting, block)?;
        let (slices, block_ns) = match length {
            Length::Short => (1, self.block_ns),
            Length::Long => (10, 260_000_000.max(self.block_ns)),
        };
        if arm.wander > 0.0 {
            let passed = (self.now_ns - arm.wandered.1) as f64 / 3e9;
            arm.wandered = (moved(arm.wandered.0, passed, &mut self.rng), self.now_ns);
        }
        if arm.leap.0 > 0.0 {
            let passed = (self.now_ns - arm.wandered.1) as f64 / arm.leap.1;
            let stays = self.rng.unit() < f64::midpoint(1.0, (-2.0 * passed).exp());
            let now = arm.wandered.0.signum();
            arm.wandered = (if stays { now } else { -now }, self.now_ns);
        }
        self.change_ground(&arm.setting);
        let own = (arm.wander + arm.leap.0) * arm.wandered.0;
        let cost_ns = (self.cost_of_block(arm, slices) + own).exp();
        self.run += 1;
        self.last_arm = Some(arm.id);
        self.now_ns += block_ns;
        *self.served.entry(arm.setting.clone()).or_default() += 1;
        let wall_ns = 25_000_000 * u64::from(slices);
        // What burns all the time takes it from whoever is served, and is charged to its own clock.
        let taken: f64 = self.burning.values().sum();
        let replies = (wall_ns as f64 * (1.0 - taken) / cost_ns) as u64;
        let began_ns = self.now_ns - block_ns;
        let idle_ns = arm.last_end_ns.map_or(0, |end| began_ns - end);
        let pulses = |from_ns: u64, to_ns: u64| {
            let until = |at_ns: u64| (at_ns as f64 / arm.pulse_ns + arm.id as f64 / 8.0) as u64;
            PULSE_NS * (until(to_ns) - until(from_ns))
        };
        let pulsed_ns = [pulses(began_ns - idle_ns, began_ns), pulses(began_ns, self.now_ns)];
        arm.last_end_ns = Some(self.now_ns);
        if arm.background > 0.0 {
            self.crowd = self.crowd.max(self.live.len());
        }
        let left_over_ns = if arm.cut > 0.0 && self.rng.unit() < arm.cut { CUT_NS } else { 0 };
        // What is burnt for nothing, beside as many answers as ever: collections on another CPU, a log that is turned over.
        let rare =
            |rng: &mut Prng| if arm.rare.0 > 0.0 && rng.unit() < arm.rare.0 { arm.rare.1 - 1.0 } else { 0.0 };
        let more: f64 = (0..slices).map(|_| rare(&mut self.rng)).sum::<f64>() / f64::from(slices);
        let latencies = self.latencies(arm, replies, CONNECTIONS * cost_ns);
        let block = Block {
            replies,
            wall_ns,
            cpu_in_ns: (replies as f64 * cost_ns * (1.0 + more) + arm.background * wall_ns as f64) as u64
                + pulsed_ns[1],
            cpu_off_ns: (arm.background * idle_ns as f64) as u64 + left_over_ns + pulsed_ns[0],
            p50_ns: (CONNECTIONS * cost_ns) as u64,
            p99_ns: (CONNECTIONS * cost_ns * (LATENCY_SIGMA * P99_Z).exp()) as u64,
            foreign_ns: self.told_of_others(arm.elsewhere_ns * replies as f64),
            ..Block::default()
        };
        Ok(Measured { block, latencies })
    }

    fn close(&mut self, arm: Arm) {
        self.now_ns += CLOSE_NS;
        self.burning.remove(&arm.id);
        assert!(self.live.remove(&arm.id).is_some(), "server {} is closed twice", arm.id);
    }
}

impl Clock for World {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

impl Vitals for Arm {
    fn memory(&self) -> Memory {
        Memory { server_bytes: self.rss.exp() as u64, left_bytes: self.memory_left_bytes }
    }

    fn user_system_ticks(&self) -> Option<(u64, u64)> {
        Some((self.blocks, 9 * self.blocks))
    }

    fn clock(&self) -> String {
        "simulated".into()
    }
}

impl Look for World {
    /// A part that no dial touches, and the part that they all do, which is called from so many places that each call of it is
    /// dust.
    fn profile(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        self.now_ns += for_ns;
        let cost_ns = arm.cost.exp();
        let count = (for_ns as f64 / cost_ns) as u64;
        let samples = |rng: &mut Prng, ns: f64| {
            let expected = ns * count as f64 / PROFILE_PERIOD_NS;
            (expected + expected.sqrt() * rng.normal()).max(0.0) as u64
        };
        let stack = |frames: Vec<u32>, samples: u64| {
            let weight_ns = samples * PROFILE_PERIOD_NS as u64;
            Stack { frames, samples, weight_ns, ..Stack::default() }
        };
        let (rest, serve) = (samples(&mut self.rng, REST_NS), samples(&mut self.rng, cost_ns - REST_NS));
        let callers = (0..serve).map(|at| format!("caller {at}"));
        let names = ["rest".to_owned(), "serve".to_owned()].into_iter().chain(callers);
        let frames = names.map(|name| Frame { name, ..Frame::default() }).collect();
        let calls = (0..serve as u32).map(|at| stack(vec![2 + at, 1], 1));
        let stacks = std::iter::once(stack(vec![0], rest)).chain(calls).collect();
        let requests = Some(Requests { count, source: "load".into() });
        Ok(Profile { frames, stacks, requests, threads: vec![Thread::default()], ..Profile::default() })
    }
}

impl Describe for World {
    fn describe(&self, setting: &Setting) -> Described {
        Described { argv: setting.words(), ..Described::default() }
    }
}
