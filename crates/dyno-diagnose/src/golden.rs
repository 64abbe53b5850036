//! A text that is written down in `tests/data`, for tests beside the code and for those of the audit.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// Compares with what is written down, line by line; `GOLDEN=write cargo test` writes it anew.
pub(crate) fn assert_golden(name: &str, found: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(&file, found).unwrap();
    }
    let wanted = std::fs::read_to_string(file).unwrap();
    for (at, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(found, wanted, "{name}, line {}", at + 1);
    }
    assert_eq!(found.lines().count(), wanted.lines().count(), "{name}");
}
