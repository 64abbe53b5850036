//! Checks as JUnit's XML: one suite, one test case per check.

use super::checks::{Case, Checks, Outcome};
use crate::number::visible;

/// The whole file.
pub(super) fn write(checks: &Checks) -> String {
    let count =
        |wanted: fn(&Outcome) -> bool| checks.cases.iter().filter(|case| wanted(&case.outcome)).count();
    let (failed, skipped) =
        (count(|one| matches!(one, Outcome::Failed(_))), count(|one| matches!(one, Outcome::Skipped(_))));
    let figures = format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.3}\"",
        checks.cases.len(),
        if checks.seconds.is_finite() { checks.seconds } else { 0.0 }
    );
    let name = escaped(&checks.name);
    let cases: String = checks.cases.iter().map(|case| of_case(checks, case)).collect();
    let said: Vec<String> =
        std::iter::once(&checks.headline).chain(&checks.warnings).map(|line| escaped(line)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{name}\" {figures}>\n  <testsuite name=\"{name}\" {figures}>\n{cases}    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n",
        said.join("\n")
    )
}

fn of_case(checks: &Checks, case: &Case) -> String {
    let head = format!(
        "    <testcase classname=\"{}.{}\" name=\"{}\"",
        escaped(&checks.name),
        case.group,
        escaped(&case.name)
    );
    match &case.outcome {
        Outcome::Passed(said) | Outcome::Noted(said) => {
            format!("{head}><system-out>{}</system-out></testcase>\n", escaped(said))
        }
        Outcome::Failed(why) => format!("{head}><failure message=\"{}\"/></testcase>\n", escaped(why)),
        Outcome::Skipped(why) => format!("{head}><skipped message=\"{}\"/></testcase>\n", escaped(why)),
    }
}

/// Text that is text in content and in quoted attributes; what XML 1.0 cannot hold at all is shown as its number.
fn escaped(text: &str) -> String {
    let letter = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&apos;".to_owned(),
        '\u{fffe}' | '\u{ffff}' => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    visible(text).chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_a_case_and_failures_are_counted() {
        let case = |outcome| Case { group: "rung", name: "a<b".into(), outcome };
        let cases = vec![
            case(Outcome::Passed("fine".into())),
            case(Outcome::Failed("\"no\" & no\u{0}".into())),
            case(Outcome::Skipped("one CPU".into())),
        ];
        let text = write(&Checks { name: "dyno".into(), cases, ..Checks::default() });
        assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{text}");
        assert!(text.contains("<failure message=\"&quot;no&quot; &amp; no\\u{0}\"/>"), "{text}");
        assert!(text.contains("name=\"a&lt;b\"><skipped message=\"one CPU\"/>"), "{text}");
    }
}
