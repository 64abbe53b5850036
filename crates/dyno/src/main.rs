//! Being written.
mod print;
mod report;
fn main() {}
