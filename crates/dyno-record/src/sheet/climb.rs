//! The sheet of a climb: the total, the floor, the final setting's own figures, every rung.

use dyno_measure::apart::around;

use crate::climb::{Attempt, Climb, Role, Rung, RungVerdict};
use crate::figure::{Better, Condition, Figure, Forbids, Sheet, Starts, Unit, of_machine};
use crate::plan_text::{PlanText, load_of};
use crate::sheet::{REQUEST_BYTES, RIGHT_ANSWER};

/// What the name of a rung's figure to quote begins with.
pub const RUNG: &str = "rung.";
/// What the name of a step's own figure begins with.
pub const STEP: &str = "step.";

/// The condition that names where dials ended: a result, and no cause of one.
pub const FINAL_SETTING: &str = "final setting";

/// All that a climb comes to.
#[must_use]
pub fn of_climb(climb: &Climb) -> Sheet {
    let rungs = climb.rungs.iter().flat_map(|rung| [quoted(climb, rung), step(climb, rung)]);
    Sheet {
        kind: "climb",
        schema: climb.schema.clone(),
        version: climb.version.clone(),
        started_unix_s: climb.started_unix_s,
        duration_s: climb.duration_s,
        cut_short: climb.cut_short.clone(),
        conditions: conditions(climb),
        texts: climb.texts.clone(),
        figures: ratios(climb).into_iter().chain(last(climb)).chain([noise(climb)]).chain(rungs).collect(),
        starts: Starts::Seen,
        warnings: climb.warnings.clone(),
    }
}

fn conditions(climb: &Climb) -> Vec<Condition> {
    let network = climb
        .network
        .as_ref()
        .map_or("loopback".to_owned(), |network| format!("two namespaces, {} queues", network.queues));
    let setting = climb.reached().map(|reached| reached.final_setting.join(" ")).unwrap_or_default();
    let start = climb.reached().map(|reached| reached.naive_argv.get(1..).unwrap_or_default().join(" "));
    let own = [
        Condition::new("load", climb.load.to_string(), Forbids::All),
        Condition::new(REQUEST_BYTES, climb.load.request_digest.clone(), Forbids::All),
        Condition::new(RIGHT_ANSWER, climb.load.answer_digest.clone(), Forbids::All),
        Condition::new("network", network, Forbids::All),
        Condition::new("version", climb.version.clone(), Forbids::Nothing),
        Condition::new(FINAL_SETTING, setting, Forbids::Nothing),
        Condition::new("start", start.map(|line| without_port(&line)).unwrap_or_default(), Forbids::Nothing),
    ];
    let plan = Condition::new("plan", climb.plan.clone(), Forbids::All);
    [plan].into_iter().chain(of_machine(&climb.machine)).chain(own).collect()
}

/// A command line without the port that was drawn for it.
fn without_port(line: &str) -> String {
    let word = |word: &str| match word.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{host}:PORT")
        }
        _ => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn ratios(climb: &Climb) -> Vec<Figure> {
    let total = climb.total.as_ref();
    let without = total.and_then(|total| total.without.as_ref());
    let figure = |name: &str, what: String, better, ratio: Option<crate::climb::Ratio>| {
        let figure = Figure::new(name, what, (Unit::Ratio, better), ratio.map(|ratio| ratio.ratio));
        figure.within(ratio.map(|ratio| ratio.interval)).basis(no_value(climb, ratio.is_some()))
    };
    let gain = "requests per CPU-second, final setting over start";
    let with = without.map(|one| format!(" with {}", one.rung)).unwrap_or_default();
    vec![
        figure("total", gain.to_owned(), Better::Higher, total.map(|total| total.gain))
            .of(texts(climb, |text| text.start))
            .deciding(),
        figure(
            "floor",
            "CPU per request, final setting over the smallest loop".to_owned(),
            Better::Lower,
            climb.floor,
        ),
        figure("total.without", format!("{gain}{with}"), Better::Higher, without.map(|one| one.gain)),
    ]
}

/// Why there is no total.
fn no_value(climb: &Climb, known: bool) -> String {
    match (known, &climb.cut_short) {
        (true, _) => String::new(),
        (false, Some(why)) => format!("not measured: {why}"),
        (false, None) => "not measured".to_owned(),
    }
}

/// The final setting's own figures in the total.
fn last(climb: &Climb) -> Vec<Figure> {
    let total = climb.total.as_ref();
    let at = total.and_then(|total| total.arms.iter().position(|arm| arm.role == Role::Final));
    let figures = total.zip(at).map(|(total, at)| total.arms[at].figures);
    let half = total.zip(at).and_then(|(total, at)| Some(total.levels(&climb.series)?.level(at)?.half_width));
    let cpu = figures.map(|figures| figures.cpu_us_per_request);
    let interval = cpu.zip(half).map(|(cpu, half)| around(cpu, half));
    let why = no_value(climb, figures.is_some());
    let figure = |name: &str, what: &str, how, value: Option<f64>| {
        Figure::new(name, format!("{what}, final setting"), how, value).basis(why.clone())
    };
    vec![
        figure("cpu", "server CPU per request", (Unit::Us, Better::Lower), cpu).within(interval),
        figure(
            "rps",
            "requests per second",
            (Unit::PerSecond, Better::Higher),
            figures.map(|f| f.requests_per_second),
        ),
        figure(
            "p50",
            "median latency under saturation",
            (Unit::Us, Better::Lower),
            figures.map(|f| f.p50_us),
        ),
        figure("p99", "99 % latency under saturation", (Unit::Us, Better::Lower), figures.map(|f| f.p99_us)),
    ]
}

fn noise(climb: &Climb) -> Figure {
    let visible = climb.noise.as_ref().map(|noise| noise.visible_percent);
    Figure::new("noise", "smallest effect that was visible", (Unit::Share, Better::Neither), visible)
}

/// The figure to quote: confirmed where the rung was kept, else the step's own.
fn quoted(climb: &Climb, rung: &Rung) -> Figure {
    let confirmed = rung.leave_one_out.filter(|_| rung.attempt.verdict == RungVerdict::Kept);
    let figure = of_attempt(climb, rung, RUNG);
    match confirmed {
        None => figure,
        Some(effect) => Figure {
            value: Some(effect.effect_percent).filter(|value| value.is_finite()),
            basis: format!("confirmed, {}", of(climb, &rung.attempt)),
            ..figure
        }
        .within(Some(effect.interval_percent)),
    }
}

fn step(climb: &Climb, rung: &Rung) -> Figure {
    of_attempt(climb, rung, STEP)
}

fn of_attempt(climb: &Climb, rung: &Rung, prefix: &str) -> Figure {
    let attempt = &rung.attempt;
    let basis = match attempt.effect_percent {
        Some(_) => format!("step, {}", of(climb, attempt)),
        None => attempt.why.clone(),
    };
    let what = format!("{}: {}", attempt.metric, rung.change);
    let name = format!("{prefix}{}", rung.id);
    let figure = Figure::new(name, what, (Unit::Percent, Better::Lower), attempt.effect_percent);
    let figure = figure.of(texts(climb, |text| is_of(rung, text)));
    figure.within(attempt.interval_percent).word(attempt.verdict.words()).basis(basis)
}

fn texts(climb: &Climb, wanted: impl Fn(&PlanText) -> bool) -> Vec<PlanText> {
    climb.texts.iter().filter(|text| wanted(text)).cloned().collect()
}

/// Whether a rung goes to this value, needs it, came from it, or is measured under this load.
fn is_of(rung: &Rung, text: &PlanText) -> bool {
    let dial = |name: &str| name.split_once('=').map(|(dial, _)| dial.to_owned());
    let from = text.start && dial(&text.name).is_some() && dial(&text.name) == dial(&rung.sets);
    text.name == load_of(&rung.id) || text.name == rung.sets || rung.needs.contains(&text.name) || from
}

/// Of which metric, and of which load where that is the rung's own.
fn of(climb: &Climb, attempt: &Attempt) -> String {
    let own = !attempt.load.is_empty() && attempt.load != climb.load.to_string();
    let load = if own { format!(", {}", attempt.load) } else { String::new() };
    format!("{}{load}", attempt.metric)
}
