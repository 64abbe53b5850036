//! Why a plan's text cannot be read: where, what, and the picture of the line as TOML's reader draws it.
//!
//! Made by the reader of plans; the binary prints it. The words are ours, the line and its mark are the text's own.

use dyno_record::alike;

/// More of a line is no picture; a line of a plan has no end of its own.
const PICTURE_CHARS_MAX: usize = 160;

/// What a text is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Syntax {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// The line with its number, and the mark under it: for a screen with letters of one width.
    pub picture: Vec<String>,
    /// The name that was perhaps meant.
    pub meant: Option<String>,
}

impl Syntax {
    pub(super) fn of(error: &toml::de::Error, text: &str) -> Syntax {
        let span = error.span().unwrap_or(0..0);
        let start = span.start.min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let (line, column) = (1 + before.matches('\n').count(), 1 + before[line_start..].chars().count());
        let whole = text[line_start..].lines().next().unwrap_or_default();
        let marked = text.get(start..span.end.min(line_start + whole.len())).unwrap_or_default();
        let picture = match error.span() {
            Some(_) => picture(line, column, whole, marked.chars().count().max(1)),
            None => Vec::new(),
        };
        let message = error.message().lines().next().unwrap_or_default();
        let (what, meant) = words(message);
        Syntax { line, column, what, picture, meant }
    }
}

fn picture(line: usize, column: usize, whole: &str, marks: usize) -> Vec<String> {
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let shown: String = whole.chars().take(PICTURE_CHARS_MAX).collect();
    // A tab is as wide under the line as in it.
    let indent: String = shown.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let marks = "^".repeat(marks.min(PICTURE_CHARS_MAX.saturating_sub(column - 1)));
    vec![format!("{margin} |"), format!("{number} | {shown}"), format!("{margin} | {indent}{marks}")]
}

/// serde's words for a name that is none of those expected, in ours; others as they are.
fn words(message: &str) -> (String, Option<String>) {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let kinds = [("unknown field ", "key", "the keys here are"), ("unknown variant ", "word", "it takes")];
    let Some((_, kind, are)) = kinds.into_iter().find(|(start, ..)| message.starts_with(start)) else {
        return (message.replace('`', "\""), None);
    };
    let wrong = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    let meant = alike::meant(wrong, known.iter().copied()).map(str::to_owned);
    (format!("unknown {kind} \"{wrong}\"; {are} {}", known.join(", ")), meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Syntax {
        let error = toml::from_str::<toml::Table>(text).expect_err("it is no TOML");
        Syntax::of(&error, text)
    }

    #[test]
    fn the_picture_marks_what_is_wrong_below_it() {
        let wrong = of("a = 1\nb = = 2\n");
        assert_eq!((wrong.line, wrong.column), (2, 5));
        assert_eq!(wrong.picture, ["  |", "2 | b = = 2", "  |     ^"]);
    }

    #[test]
    fn any_text_cut_anywhere_has_a_place_and_a_picture_that_fits() {
        let text = "é = \"ü\"\r\n\t[x\n[[rung]]\nid = \"\u{1f600}\nz = 'abc'\nq = { a = [1, 2 } ";
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let text = text[..cut].repeat(3);
            if let Err(error) = toml::from_str::<toml::Table>(&text) {
                let syntax = Syntax::of(&error, &text);
                assert!(syntax.line >= 1 && syntax.column >= 1 && syntax.picture.len() <= 3, "{syntax:?}");
            }
        }
        let long = of(&format!("a = {}", "=".repeat(100_000)));
        assert!(long.picture.iter().all(|line| line.chars().count() < 200), "{}", long.picture[2].len());
    }

    #[test]
    fn serdes_words_are_told_in_ours() {
        let told = words("unknown field `clame`, expected one of `id`, `claim`");
        assert_eq!(
            told,
            ("unknown key \"clame\"; the keys here are id, claim".to_owned(), Some("claim".to_owned()))
        );
        let told = words("unknown variant `zzz`, expected `a` or `b`");
        assert_eq!(told, ("unknown word \"zzz\"; it takes a, b".to_owned(), None));
        assert_eq!(words("missing field `id`"), ("missing field \"id\"".to_owned(), None));
    }
}
