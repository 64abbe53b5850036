//! What a rung turns: plain data, shared by the passes, the confirmations and the record.

use crate::dial::Setting;

/// A dial that was turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turned {
    pub(crate) dial: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Turned {
    /// The same turned back.
    pub(crate) fn back(&self) -> Self {
        Self { dial: self.dial.clone(), from: self.to.clone(), to: self.from.clone() }
    }
}

/// A rung that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Index into the record's rungs.
    pub(crate) rung: usize,
    /// Dials that it turned, with the values before and after.
    pub(crate) turned: Vec<Turned>,
    /// What a pair of short blocks of its step took, ns.
    pub(crate) pair_ns: u64,
}

impl Kept {
    /// Whether it brought this dial to this value.
    pub(crate) fn brought(&self, dial: &str, value: &str) -> bool {
        self.turned.iter().any(|turn| turn.dial == dial && turn.to == value)
    }
}

/// The setting with these dials turned.
pub(crate) fn apply(setting: &Setting, turned: &[Turned]) -> Setting {
    turned.iter().fold(setting.clone(), |setting, turn| setting.with(&turn.dial, &turn.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(dial: &str, from: &str, to: &str) -> Turned {
        Turned { dial: dial.into(), from: from.into(), to: to.into() }
    }

    #[test]
    fn what_is_turned_back_stands_where_it_stood() {
        let (there, start) = (turn("log", "sync", "ring"), Setting::default().with("log", "sync"));
        assert_eq!(there.back(), turn("log", "ring", "sync"));
        let turned = apply(&start, &[there.clone(), turn("spin", "off", "on")]);
        assert_eq!(turned.words(), ["log=ring", "spin=on"]);
        assert_eq!(apply(&turned, &[there.back()]).words(), ["log=sync", "spin=on"]);
        assert_eq!(
            apply(&start, &[there, turn("log", "ring", "off")]).words(),
            ["log=off"],
            "in their order"
        );
    }

    /// Planted fault: the dial alone, or the value alone, is what it brought.
    #[test]
    fn a_rung_brought_its_dials_to_their_values_and_to_no_others() {
        let turned = vec![turn("log", "sync", "ring"), turn("spin", "off", "on")];
        let kept = Kept { rung: 0, turned, pair_ns: 1 };
        let brought = [("log", "ring"), ("spin", "on"), ("log", "sync"), ("log", "on"), ("pin", "on")];
        assert_eq!(brought.map(|(dial, value)| kept.brought(dial, value)), [true, true, false, false, false]);
    }
}
