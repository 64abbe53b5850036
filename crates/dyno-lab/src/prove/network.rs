//! What a laboratory's network counted while the server answered.

use dyno_climb::meter::Trouble;
use dyno_climb::proof::Reading;
use dyno_record::lab::Count;

use super::WATCHED;
use crate::failure::chain;
use crate::launch::{Arm, World};

impl World<'_> {
    /// Per request. Beside the load there is nothing on the cable.
    pub(super) fn network(&mut self, arm: &mut Arm, count: Count) -> Result<Reading, Trouble> {
        let before = match self.counted(count) {
            Ok(before) => before,
            Err(why) => return Ok(Reading::CannotTell(why)),
        };
        let report = arm.driver.block(&WATCHED, &mut |_| {});
        self.check(arm, &report, &WATCHED)?;
        Ok(match self.counted(count) {
            Ok(after) => Reading::Number(after.saturating_sub(before) as f64 / report.replies.max(1) as f64),
            Err(why) => Reading::CannotTell(why),
        })
    }

    fn counted(&mut self, count: Count) -> Result<u64, String> {
        let lab =
            self.lab.as_mut().ok_or_else(|| format!("{} are counted with --netns only", count.words()))?;
        lab.count(count).map_err(|error| chain(&error))
    }
}
