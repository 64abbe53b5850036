//! `#[json(…)]`: what a user says of a type, a field or a variant, and the names that come of it.

use syn::{Attribute, Error, Ident, LitStr, Path, Token, parse_quote};

/// How names are changed that are not renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
}

/// What is said of a type.
pub(super) struct Names {
    case: Option<Case>,
    /// The crate, or the module, that has the trait.
    pub(super) root: Path,
}

/// What is said of a field or a variant.
pub(super) struct Own {
    rename: Option<String>,
    pub(super) skip: bool,
}

impl Names {
    pub(super) fn of_type(attributes: &[Attribute]) -> Result<Names, Error> {
        let mut names = Names { case: None, root: parse_quote!(::dyno_engine) };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("json")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename_all") {
                    let word: LitStr = meta.value()?.parse()?;
                    names.case = Some(case(&word)?);
                    Ok(())
                } else if meta.path.is_ident("crate") {
                    meta.input.parse::<Token![=]>()?;
                    names.root = meta.input.call(Path::parse_mod_style)?;
                    Ok(())
                } else {
                    Err(meta.error("it takes rename_all = \"…\" and crate = path"))
                }
            })?;
        }
        Ok(names)
    }

    pub(super) fn of_field(&self, name: &Ident, own: Own) -> String {
        own.rename.unwrap_or_else(|| {
            in_case(&bare(name), self.case, "_", |name| name.split('_').map(str::to_owned).collect())
        })
    }

    pub(super) fn of_variant(&self, name: &Ident, own: Own) -> String {
        own.rename.unwrap_or_else(|| in_case(&bare(name), self.case, "", words_of))
    }
}

impl Own {
    pub(super) fn of(attributes: &[Attribute]) -> Result<Own, Error> {
        let mut own = Own { rename: None, skip: false };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("json")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    let key: LitStr = meta.value()?.parse()?;
                    own.rename = Some(key.value());
                    Ok(())
                } else if meta.path.is_ident("skip") {
                    own.skip = true;
                    Ok(())
                } else {
                    Err(meta.error("it takes rename = \"…\" and skip"))
                }
            })?;
        }
        Ok(own)
    }
}

/// A name without the mark of a raw one.
fn bare(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map_or_else(|| name.clone(), str::to_owned)
}

fn case(word: &LitStr) -> Result<Case, Error> {
    Ok(match word.value().as_str() {
        "lowercase" => Case::Lower,
        "UPPERCASE" => Case::Upper,
        "PascalCase" => Case::Pascal,
        "camelCase" => Case::Camel,
        "snake_case" => Case::Snake,
        "SCREAMING_SNAKE_CASE" => Case::ScreamingSnake,
        "kebab-case" => Case::Kebab,
        _ => return Err(Error::new(word.span(), "there is no such case")),
    })
}

/// The words of a variant: each capital begins one, as serde has it.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_uppercase() => word.push(letter),
            _ => words.push(letter.to_string()),
        }
    }
    words
}

/// A name in a case. `between` is what stands between its words as it is written.
fn in_case(name: &str, case: Option<Case>, between: &str, words: impl Fn(&str) -> Vec<String>) -> String {
    let joined = |by: &str| match between == by {
        true => name.to_owned(),
        false if between.is_empty() => words(name).join(by).to_ascii_lowercase(),
        false => words(name).join(by),
    };
    let pascal = || words(name).iter().map(|word| first(word, char::to_ascii_uppercase)).collect::<String>();
    match case {
        None => name.to_owned(),
        Some(Case::Lower) if between.is_empty() => name.to_ascii_lowercase(),
        Some(Case::Lower) => name.to_owned(),
        Some(Case::Upper) => name.to_ascii_uppercase(),
        Some(Case::Pascal) => pascal(),
        Some(Case::Camel) => first(&pascal(), char::to_ascii_lowercase),
        Some(Case::Snake) => joined("_"),
        Some(Case::ScreamingSnake) => joined("_").to_ascii_uppercase(),
        Some(Case::Kebab) => joined("-"),
    }
}

/// The word with its first letter changed.
fn first(word: &str, change: fn(&char) -> char) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| change(&letter));
    first.into_iter().chain(letters).collect()
}
