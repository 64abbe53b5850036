//! Which rungs stand in the final setting, and what those risk.

use dyno_record::climb::{Climb, Rung, RungVerdict, is_a_risk};

/// What a rung risks, where it stands in the final setting and risks anything: `none: why` is how a rung says that it does
/// not. A dial that moved on, or that was kept for a load of its own, costs nothing there.
pub(super) fn price<'c>(climb: &Climb, rung: &'c Rung) -> Option<&'c str> {
    (stands(climb, rung) && is_a_risk(&rung.risk)).then_some(rung.risk.as_str())
}

/// Whether its dial stands where it leads and did not begin, whatever the verdict: the total may have brought back what was not
/// confirmed, and a bundle has what showed no difference by itself, or too small a one. Older records do not say where dials stand.
fn stands(climb: &Climb, rung: &Rung) -> bool {
    let setting = climb.reached().map(|reached| reached.final_setting.as_slice()).unwrap_or_default();
    let is_kept = rung.attempt.verdict == RungVerdict::Kept && !climb.own_load_only(&rung.attempt);
    if rung.sets.is_empty() || setting.is_empty() {
        return is_kept;
    }
    let began_there = climb.texts.iter().any(|text| text.start && text.name == rung.sets);
    setting.contains(&rung.sets) && (is_kept || !began_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::climb::sample_climb;

    /// Planted fault: only what is kept costs something; then the risk of a rung that the total brought back is not told.
    #[test]
    fn whatever_stands_in_the_final_setting_has_its_price() {
        let mut climb = sample_climb(6);
        let total = climb.total.as_mut().expect("the sample has a total");
        total.reached.final_setting = vec!["back=on".into(), "stood=on".into()];
        let rung = climb.rungs[0].clone();
        let of = |sets: &str, verdict| {
            let mut rung =
                Rung { id: sets.into(), sets: sets.into(), risk: "lines are lost".into(), ..rung.clone() };
            rung.attempt.verdict = verdict;
            rung
        };
        climb.rungs = vec![
            of("back=on", RungVerdict::Unconfirmed),
            of("gone=on", RungVerdict::Kept),
            of("stood=on", RungVerdict::NoDifference),
        ];
        let start = |name: &str| dyno_record::plan_text::PlanText {
            name: name.into(),
            start: true,
            ..Default::default()
        };
        climb.texts = vec![start("stood=on"), start("back=off")];
        let standing: Vec<&str> =
            climb.rungs.iter().filter(|rung| stands(&climb, rung)).map(|rung| rung.id.as_str()).collect();
        assert_eq!(
            (standing, climb.rungs.iter().filter_map(|rung| price(&climb, rung)).count()),
            (vec!["back=on"], 1)
        );
    }
}
