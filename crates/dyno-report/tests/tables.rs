//! The tables of `dyno profile` and `dyno offcpu`, word for word, from recorded profiles: those verbs watch what runs, so
//! that their text is held here and not by the binary's own tests.
#![allow(clippy::unwrap_used)]

use std::fs::{read_to_string, write};

use dyno_record::profile::{Kind, Profile};
use dyno_report::page::flame::Look;
use dyno_report::text;

/// `DYNO_GOLDEN=write cargo test -p dyno-report --test tables` writes them anew.
#[test]
fn tables_of_recorded_profiles_are_what_they_were() {
    let here = env!("CARGO_MANIFEST_DIR");
    for name in ["before", "waiting", "hostile"] {
        let record = read_to_string(format!("{here}/../dyno/tests/golden/{name}.json")).unwrap();
        let mut profile: Profile = serde_json::from_str(&record).unwrap();
        for (what, kind) in [("profile", Kind::OnCpu), ("offcpu", Kind::OffCpu)] {
            profile.kind = kind;
            for width in [60, 160] {
                let file = format!("{here}/tests/golden/{name}.{what}.{width}.txt");
                let text = text::profile(&profile, width, Look::default());
                if std::env::var_os("DYNO_GOLDEN").is_some_and(|what| what == "write") {
                    write(&file, &text).unwrap();
                }
                assert_eq!(text, read_to_string(file).unwrap(), "{name} in {width}");
            }
        }
    }
}
