//! Checks as workflow commands: what GitHub's runners turn into annotations.
//!
//! A command ends with its line, and its properties with a comma or a colon; so these are escaped as the runner reads them
//! back. Nothing else stands on a line, so that no name can begin a command.

use super::checks::{Case, Checks, Outcome};
use crate::number::visible;

/// The whole text.
pub(super) fn write(checks: &Checks) -> String {
    let cases = checks.cases.iter().filter_map(|case| of_case(checks, case));
    let warnings = checks.warnings.iter().map(|warning| command("warning", &checks.name, warning));
    let headline = command("notice", &checks.name, &checks.headline);
    cases.chain(warnings).chain([headline]).collect()
}

fn of_case(checks: &Checks, case: &Case) -> Option<String> {
    let title = format!("{}: {} {}", checks.name, case.group, case.name);
    match &case.outcome {
        Outcome::Failed(why) => Some(command("error", &title, why)),
        Outcome::Noted(why) => Some(command("warning", &title, why)),
        Outcome::Passed(_) | Outcome::Skipped(_) => None,
    }
}

/// One command, on a line of its own.
pub(super) fn command(name: &str, title: &str, message: &str) -> String {
    format!("::{name} title={}::{}\n", property(title), data(message))
}

fn data(text: &str) -> String {
    visible(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_neither_end_its_command_nor_begin_another() {
        let line = command("error", "a,line=1::b", "x\n::warning::y 100 %");
        assert_eq!(line, "::error title=a%2Cline=1%3A%3Ab::x ::warning::y 100 %25\n");
    }
}
