//! The tables of `dyno profile` and `dyno offcpu`, word for word, from recorded profiles: those verbs watch what runs, so
//! that their text is held here and not by the binary's own tests.
#![allow(clippy::unwrap_used)]

use std::fs::read_to_string;

use dyno_record::profile::Profile;
use dyno_report::text;

#[test]
fn tables_of_recorded_profiles_are_what_they_were() {
    let here = env!("CARGO_MANIFEST_DIR");
    for name in ["before", "waiting", "hostile"] {
        let record = read_to_string(format!("{here}/../dyno/tests/golden/{name}.json")).unwrap();
        let profile: Profile = serde_json::from_str(&record).unwrap();
        for width in [60, 160] {
            let wanted =
                |what: &str| read_to_string(format!("{here}/tests/golden/{name}.{what}.{width}.txt"));
            assert_eq!(text::profile(&profile, width), wanted("profile").unwrap(), "{name} in {width}");
            assert_eq!(text::offcpu(&profile, width), wanted("offcpu").unwrap(), "{name} in {width}");
        }
    }
}
