//! One page for man(1), of one command: its sentence, synopsis, description, examples, flags by group, what it ends with.
//!
//! Flags are written by clap_mangen; the sections that it does not know are written here, in the same plain roff.

use clap::Command;
use clap_mangen::Man;

/// The page of a command.
pub(super) fn page(command: &Command, name: &str) -> String {
    // Its page is found by a name with dashes; the synopsis is what one types.
    let shown = command.clone().bin_name(name.replace('-', " ")).display_name(name.to_owned());
    let man = Man::new(shown.subcommand_value_name("verb"));
    let rest = |render: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut text = Vec::new();
        render(&mut text).expect("memory takes all that is written to it");
        String::from_utf8_lossy(&text).into_owned()
    };
    let title = name.to_uppercase();
    // Without a date: the same sources give the same page.
    let mut page = format!(".TH {title} 1 \"\" \"Dyno {}\" \"Dyno\"\n", env!("CARGO_PKG_VERSION"));
    page += &name_section(command, name);
    page += &rest(&|to| man.render_synopsis_section(to));
    page += &description(command);
    page += &in_groups(&rest(&|to| man.render_options_section(to)), command);
    page += &verbs(command, name);
    page += &after(command);
    page += &see_also(name);
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    in_ascii(&(lines.join("\n") + "\n"))
}

/// Groups of flags as parts of one section, under their own names.
fn in_groups(options: &str, command: &Command) -> String {
    let headings: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_help_heading()).collect();
    let of = |line: &str| {
        let shouted = line.strip_prefix(".SH ")?.trim_matches('"').to_owned();
        headings.iter().find(|heading| heading.to_uppercase() == shouted).copied()
    };
    let lines =
        options.lines().map(|line| of(line).map_or(line.to_owned(), |name| format!(".SS \"{name}\"")));
    lines.map(|line| line + "\n").collect()
}

/// Letters beyond ASCII by their numbers: what reads a page may be told of no other.
fn in_ascii(page: &str) -> String {
    let letter = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", c as u32) };
    page.chars().map(letter).collect()
}

fn name_section(command: &Command, name: &str) -> String {
    // man's index takes a phrase there: no capital, no full stop.
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let phrase = about.strip_suffix('.').unwrap_or(&about);
    let mut letters = phrase.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    format!(".SH NAME\n{} \\- {}\n", plain(name), plain(&format!("{first}{}", letters.as_str())))
}

/// The sentence, the paragraphs of the help, and its examples in a section of their own.
fn description(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let help = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let (examples, prose): (Vec<&str>, Vec<&str>) =
        help.lines().filter(|line| *line != "Examples:").partition(|line| line.starts_with("  "));
    let mut text = format!(".SH DESCRIPTION\n{}\n", line(&about));
    let prose = prose.join("\n");
    for paragraph in prose.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        text += ".PP\n";
        paragraph.lines().filter(|one| !one.is_empty()).for_each(|one| text += &format!("{}\n", line(one)));
    }
    if !examples.is_empty() {
        text += ".SH EXAMPLES\n.nf\n";
        examples.iter().for_each(|one| text += &format!("{}\n", line(one)));
        text += ".fi\n";
    }
    text
}

/// The verbs, each with the name of its own page.
fn verbs(command: &Command, name: &str) -> String {
    let listed: Vec<&Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    if listed.is_empty() {
        return String::new();
    }
    let mut text = ".SH VERBS\n".to_owned();
    for verb in listed {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let page = format!("{name}-{}", verb.get_name());
        text += &format!(".TP\n\\fB{}\\fR(1)\n{}\n", plain(&page), line(&about));
    }
    text
}

fn after(command: &Command) -> String {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines: String = after.lines().filter(|one| !one.is_empty()).map(|one| line(one) + "\n").collect();
    if lines.is_empty() { String::new() } else { format!(".SH NOTES\n{lines}") }
}

fn see_also(name: &str) -> String {
    match name.rsplit_once('-') {
        Some((above, _)) => format!(".SH SEE ALSO\n\\fB{}\\fR(1)\n", plain(above)),
        None => String::new(),
    }
}

/// A line of text: what begins like a request of roff's is none.
fn line(text: &str) -> String {
    let text = plain(text);
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// Text in which nothing is roff's: a dash is the one that is typed.
fn plain(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
