//! Charts as what they show: values with their intervals on a scale. The page draws them; a terminal has their sentence.
//!
//! The makers of views fill these types. A record may hold what is no number; it is left out before it comes here, and the
//! constructors hold that.

use super::boxes::Boxes;
use super::show::Verdict;

/// A picture, the sentence for those who do not see it, and what stands under it.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) chart: Chart,
    /// Empty where the picture is part of something that says the same in words.
    pub(crate) sentence: String,
    pub(crate) caption: String,
}

/// What is drawn.
#[derive(Debug, Clone)]
pub(crate) enum Chart {
    Bars(Vec<Bar>),
    Estimates(Estimates),
    Ladder(Ladder),
    Curves(Curves),
    Effect(Effect),
    Course(Course),
    Points(Points),
    Boxes(Box<Boxes>),
    /// The boxes that a page is about: its script searches and enlarges them.
    Explorable(Box<Boxes>),
    Lanes(Lanes),
}

/// From values to percent of the width. The left value may be the larger one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// The value at the left edge.
    pub(crate) left: f64,
    /// The value at the right edge.
    pub(crate) right: f64,
}

impl Scale {
    /// A scale that holds these values and zero, with a little air at both ends.
    pub(crate) fn around_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = finite.fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        // A thousandth keeps a scale from having no width at all.
        let air = (0.04 * (high - low)).max(1e-3);
        let left = if low < 0.0 { low - air } else { 0.0 };
        Self { left, right: high + air }
    }

    /// The same scale from right to left: what costs less stands on the right.
    pub(crate) fn mirrored(self) -> Self {
        Self { left: self.right, right: self.left }
    }

    /// Where a value stands, in percent of the width, held within the picture.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let place = 100.0 * (value - self.left) / (self.right - self.left);
        if place.is_finite() { place.clamp(0.0, 100.0) } else { 0.0 }
    }

    /// Whether a value lies within the picture.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.left.min(self.right)..=self.left.max(self.right)).contains(&value)
    }

    /// Round values over the whole scale, `steps_max` steps apart at most.
    pub(crate) fn ticks(&self, steps_max: usize) -> Vec<f64> {
        let (low, high) = (self.left.min(self.right), self.left.max(self.right));
        let step = round_step((high - low) / steps_max as f64);
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

/// The smallest of 1, 2, 3 and 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-9).log10().floor());
    let steps = [1.0, 2.0, 3.0, 5.0, 10.0].map(|k| k * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// How a mark is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// A solid bar from zero: a confirmed gain.
    Solid,
    /// A hollow bar from zero: the figure of a step.
    Hollow,
    /// A hollow grey bar from zero: tried and not kept.
    Grey,
    /// A dot: one estimate among several.
    Dot,
    /// A small tick: a part of an estimate, such as one instance.
    Tick,
    /// A pale band over its interval: what cannot be told from zero.
    Band,
}

/// A value and its interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) value: f64,
    /// Both ends of its interval.
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) ink: Ink,
}

impl Mark {
    /// A mark whose value and interval are numbers; none where the value is none. An interval without ends is left out.
    pub(crate) fn of(value: f64, interval: Option<[f64; 2]>, ink: Ink) -> Option<Self> {
        let interval = interval.filter(|ends| ends.iter().all(|end| end.is_finite()));
        value.is_finite().then_some(Self { value, interval, ink })
    }

    /// How far it reaches.
    pub(crate) fn ends(&self) -> [f64; 2] {
        self.interval.unwrap_or([self.value; 2])
    }
}

/// A named row of marks.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) marks: Vec<Mark>,
    /// The marks in words.
    pub(crate) words: String,
}

impl Row {
    /// A row of one estimate; none where it is no number.
    pub(crate) fn one(name: &str, value: f64, interval: Option<[f64; 2]>, ink: Ink) -> Option<Self> {
        let words = crate::number::estimate(Some(value), interval);
        Some(Self { name: name.to_owned(), marks: vec![Mark::of(value, interval, ink)?], words })
    }
}

/// Rows of estimates over one scale, in percent, gains on the right.
#[derive(Debug, Clone)]
pub(crate) struct Estimates {
    pub(crate) scale: Scale,
    pub(crate) rows: Vec<Row>,
}

impl Estimates {
    /// The rows on a scale that holds all of them; none where there are none.
    pub(crate) fn of(rows: Vec<Row>, also: [f64; 2]) -> Option<Self> {
        let ends = rows.iter().flat_map(|row| &row.marks).flat_map(Mark::ends);
        let scale = Scale::around_zero(ends.chain(also)).mirrored();
        (!rows.is_empty()).then(|| Self::new(scale, rows))
    }

    fn new(scale: Scale, rows: Vec<Row>) -> Self {
        let marks = rows.iter().flat_map(|row| &row.marks);
        assert!(marks.into_iter().all(|mark| mark.value.is_finite()), "a mark is a number");
        Self { scale, rows }
    }

    /// As a picture.
    pub(crate) fn figure(self, caption: &str) -> Figure {
        Figure { chart: Chart::Estimates(self), sentence: String::new(), caption: caption.to_owned() }
    }
}

/// Every rung on one scale, from top to bottom in the order of the climb.
#[derive(Debug, Clone)]
pub(crate) struct Ladder {
    pub(crate) scale: Scale,
    /// What stands over the left and the right end of the scale.
    pub(crate) sides: [&'static str; 2],
    /// The ways of drawing, each with its word.
    pub(crate) key: Vec<(Mark, &'static str)>,
    pub(crate) rungs: Vec<LadderRung>,
}

/// A rung of the ladder.
#[derive(Debug, Clone)]
pub(crate) struct LadderRung {
    pub(crate) anchor: String,
    pub(crate) name: String,
    pub(crate) change: String,
    /// What makes its figure another than its neighbours'.
    pub(crate) otherwise: String,
    pub(crate) marks: Vec<Mark>,
    pub(crate) figure: String,
    /// Whether the figure is confirmed, or the step's own.
    pub(crate) confirmed: bool,
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
}

/// A bar from zero with its name and its figure on the line above.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Its figure in words.
    pub(crate) figure: String,
    /// Its length.
    pub(crate) value: f64,
    /// The share of it that is drawn in full colour, the rest being pale.
    pub(crate) full: Option<f64>,
    /// Both ends of its interval.
    pub(crate) interval: Option<[f64; 2]>,
}

/// How a curve is drawn; all four differ without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// The one that the page is about.
    Strong,
    /// What it is compared with.
    Thin,
    /// A variant of that.
    Dashed,
    /// A bound.
    Dotted,
}

/// A curve of places: across and up, both from 0 to 1.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// Its name, written at its end.
    pub(crate) name: String,
    pub(crate) stroke: Stroke,
    /// Its points, from left to right.
    pub(crate) places: Vec<(f64, f64)>,
}

impl Curve {
    pub(crate) fn new(name: String, stroke: Stroke, places: Vec<(f64, f64)>) -> Self {
        assert!(places.iter().all(|(x, y)| x.is_finite() && y.is_finite()), "a curve's points are numbers");
        assert!(places.is_sorted_by(|a, b| a.0 <= b.0), "a curve goes from left to right");
        Self { name, stroke, places }
    }
}

/// Curves over a common pair of axes, with labelled places on both (0 to 1).
#[derive(Debug, Clone)]
pub(crate) struct Curves {
    pub(crate) curves: Vec<Curve>,
    pub(crate) across: Vec<(f64, String)>,
    pub(crate) up: Vec<(f64, String)>,
}

/// Whether an estimate is to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Within its interval.
    Sound,
    /// Something is known to pull it away: drawn hollow.
    Biased,
}

/// An estimate for one strength of the cause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    /// The cause, in percent.
    pub(crate) across: f64,
    /// The effect, in percent.
    pub(crate) value: f64,
    /// Both ends of its interval; they may be without end.
    pub(crate) interval: [f64; 2],
    pub(crate) trust: Trust,
}

/// What a change of its cause does to an effect.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// The strongest cause of all pictures that are compared.
    pub(crate) across_max: f64,
    /// The effects of all pictures that are compared.
    pub(crate) up: Scale,
    pub(crate) estimates: Vec<Estimate>,
    /// Effect per cause of the line through the origin, and its interval.
    pub(crate) slope: Option<(f64, [f64; 2])>,
    /// Effect per cause that something else would suggest.
    pub(crate) suggested: Option<f64>,
    /// What no cause at all does.
    pub(crate) nulls: Option<[f64; 2]>,
    /// Single measurements: cause and effect.
    pub(crate) cloud: Vec<(f64, f64)>,
}

impl Effect {
    /// The same, once it holds what can be drawn.
    pub(crate) fn checked(self) -> Self {
        assert!(self.estimates.iter().all(|one| one.value.is_finite()), "an estimate is a number");
        assert!(self.estimates.is_sorted_by(|a, b| a.across <= b.across), "levels go from left to right");
        assert!(self.cloud.iter().all(|(_, value)| value.is_finite()), "a measurement is a number");
        self
    }
}

/// A figure over several runs, in the order in which they were made.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    pub(crate) title: String,
    /// The last run's, in words.
    pub(crate) figure: String,
    /// The value that means nothing was gained.
    pub(crate) base: f64,
    /// What stands behind the numbers of the scale.
    pub(crate) suffix: &'static str,
    /// One for each run; none where it was not measured.
    pub(crate) marks: Vec<Option<Mark>>,
    /// Whether something changed between the run before and this one.
    pub(crate) changed: Vec<bool>,
    /// When the first and the last run began.
    pub(crate) dates: [String; 2],
}

impl Course {
    /// A scale that holds all runs and the base.
    pub(crate) fn frame(&self) -> Scale {
        let ends = self.marks.iter().flatten().flat_map(Mark::ends).filter(|end| end.is_finite());
        let (low, high) = ends.fold((self.base, self.base), |(low, high), end| (low.min(end), high.max(end)));
        let air = (0.06 * (high - low)).max(1e-3);
        Scale { left: low - air, right: high + air }
    }
}

/// States of a thread, from the bottom up: running, runnable, and the kinds of waits.
pub(crate) const STATES: usize = 2 + dyno_record::name::WAITS.len();

/// What each thread did when.
#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    /// The states that occur, with their words.
    pub(crate) key: Vec<(usize, &'static str)>,
    pub(crate) lanes: Vec<Lane>,
    /// Half of the time, and all of it.
    pub(crate) axis: [String; 2],
}

/// A thread's time in columns: each state's share of each.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) sentence: String,
    pub(crate) columns: Vec<[f64; STATES]>,
}

/// Robust deviations that the picture of raw values holds: beyond lie wild blocks, which are drawn at its edge.
const FRAME_SIGMAS: f64 = 5.0;

/// Raw measurements in the order in which they were made, and what was read from them, in percent.
#[derive(Debug, Clone)]
pub(crate) struct Points {
    /// The values that are drawn.
    pub(crate) values: Vec<f64>,
    /// The estimate and its interval.
    pub(crate) estimate: Option<(f64, [f64; 2])>,
    /// From values to percent of the height, larger values above.
    pub(crate) frame: Scale,
}

impl Points {
    /// Every `stride`-th of the values that are numbers.
    pub(crate) fn new(values: &[f64], stride: usize, estimate: Option<(f64, [f64; 2])>) -> Self {
        assert!(stride > 0, "some values are drawn");
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let frame = frame(finite.clone());
        Self { values: finite.into_iter().step_by(stride).collect(), estimate, frame }
    }

    /// How many of the drawn values lie beyond the picture.
    pub(crate) fn beyond(&self) -> usize {
        self.values.iter().filter(|value| !self.frame.holds(**value)).count()
    }
}

fn frame(mut sorted: Vec<f64>) -> Scale {
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(centre) = sorted.get(sorted.len() / 2).copied() else {
        return Scale::around_zero([-1.0, 1.0]).mirrored();
    };
    let mut sizes: Vec<f64> = sorted.iter().map(|value| (value - centre).abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let spread = FRAME_SIGMAS * 1.4826 * sizes[sizes.len() / 2];
    let (low, high) = (sorted[0].max(centre - spread), sorted[sorted.len() - 1].min(centre + spread));
    Scale::around_zero([low, high]).mirrored()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_begins_at_zero_unless_something_is_below_it() {
        assert_eq!(Scale::around_zero([3.0, 10.0]).left, 0.0);
        assert!(Scale::around_zero([-3.0, 10.0]).left < -3.0);
    }

    #[test]
    fn gains_stand_on_the_right_of_a_mirrored_scale() {
        let scale = Scale::around_zero([-30.0, 5.0]).mirrored();
        assert!(scale.at(-30.0) > scale.at(-10.0) && scale.at(-10.0) > scale.at(5.0));
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let scale = Scale { left: 0.0, right: 10.0 };
        assert_eq!([scale.at(-5.0), scale.at(50.0), scale.at(f64::NAN)], [0.0, 100.0, 0.0]);
        assert!(scale.holds(10.0) && !scale.holds(10.1));
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(Scale { left: 0.0, right: 16.0 }.ticks(3), [0.0, 10.0]);
        assert_eq!(Scale { left: 4.0, right: -54.0 }.ticks(3), [-40.0, -20.0, 0.0]);
        let narrow = Scale::around_zero([0.0]).ticks(3);
        assert!(!narrow.is_empty() && narrow.len() <= 4, "{narrow:?}");
    }

    #[test]
    fn a_wild_value_is_counted_and_what_is_no_number_is_left_out() {
        let mut values: Vec<f64> = (0..100).map(|k| f64::from(k % 7) - 3.0).collect();
        values[50] = 5_000.0;
        assert_eq!(Points::new(&values, 1, None).beyond(), 1);
        assert_eq!(Points::new(&values, 3, None).values.len(), 34);
        assert_eq!(Points::new(&[f64::NAN, 1.0, f64::INFINITY], 1, None).values, [1.0]);
        assert!(Mark::of(f64::NAN, None, Ink::Dot).is_none());
    }

    #[test]
    #[should_panic(expected = "a mark is a number")]
    fn a_mark_that_is_no_number_is_a_mistake() {
        let marks = vec![Mark { value: f64::NAN, interval: None, ink: Ink::Dot }];
        let row = Row { name: String::new(), marks, words: String::new() };
        Estimates::new(Scale { left: 0.0, right: 1.0 }, vec![row]);
    }

    #[test]
    #[should_panic(expected = "a curve goes from left to right")]
    fn a_curve_that_turns_back_is_a_mistake() {
        Curve::new(String::new(), Stroke::Thin, vec![(1.0, 0.0), (0.5, 0.0)]);
    }

    #[test]
    #[should_panic(expected = "a curve's points are numbers")]
    fn a_curve_through_nowhere_is_a_mistake() {
        Curve::new(String::new(), Stroke::Thin, vec![(0.0, f64::NAN)]);
    }

    /// A picture of these levels and values, and of one measurement.
    fn effect(levels: [(f64, f64); 2], measured: f64) -> Effect {
        let trust = Trust::Sound;
        let one = |(across, value)| Estimate { across, value, interval: [0.0, 2.0], trust };
        let (up, estimates) = (Scale { left: 0.0, right: 1.0 }, levels.map(one).to_vec());
        let cloud = vec![(10.0, measured)];
        Effect { across_max: 50.0, up, estimates, slope: None, suggested: None, nulls: None, cloud }.checked()
    }

    #[test]
    #[should_panic(expected = "levels go from left to right")]
    fn levels_out_of_order_are_a_mistake() {
        effect([(50.0, 1.0), (10.0, 1.0)], 1.0);
    }

    #[test]
    #[should_panic(expected = "an estimate is a number")]
    fn an_estimate_that_is_no_number_is_a_mistake() {
        effect([(10.0, 1.0), (50.0, f64::NAN)], 1.0);
    }

    #[test]
    #[should_panic(expected = "a measurement is a number")]
    fn a_measurement_that_is_no_number_is_a_mistake() {
        effect([(10.0, 1.0), (50.0, 2.0)], f64::INFINITY);
    }

    #[test]
    #[should_panic(expected = "some values are drawn")]
    fn a_stride_of_nothing_is_a_mistake() {
        Points::new(&[1.0], 0, None);
    }
}
