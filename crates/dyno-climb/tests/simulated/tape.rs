//! Block series that were recorded on a real machine: eight equal arms, and two arms of which one does 0.9 % more.

use std::sync::OnceLock;

use dyno_measure::series::Block;

/// One recorded block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) round: u64,
    pub(crate) arm: u64,
    pub(crate) block: Block,
}

/// 800 blocks of 8 equal arms, in the order in which they ran.
pub(crate) fn null() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| parse(include_str!("../data/blocks_null.csv")))
}

/// 1,288 blocks of 2 arms; arm 1 does 2.5 % more user work, about +0.9 % CPU per request.
pub(crate) fn small_change() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| parse(include_str!("../data/blocks_small_change.csv")))
}

fn parse(text: &str) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let numbers: Vec<u64> = line.split(',').map(|field| field.parse().expect("a whole number")).collect();
    let [round, arm, replies, wall_ns, cpu_in_ns, p50_ns, p99_ns] =
        numbers[..].try_into().expect("seven columns");
    let block = Block { replies, wall_ns, cpu_in_ns, p50_ns, p99_ns, ..Block::default() };
    Row { round, arm, block }
}
