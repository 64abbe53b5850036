//! What the derive writes is what serde's derive with serde_json writes, for values drawn by a seed.
#![allow(clippy::unwrap_used)]

use dyno_engine::Encode;
use dyno_measure::prng::Prng;
use serde::Serialize;

#[derive(Encode, Serialize)]
struct Plain<'a> {
    id: u64,
    name: &'a str,
    balance: i64,
    is_open: bool,
    tags: Vec<String>,
    parent: Option<u32>,
}

#[derive(Encode, Serialize)]
#[json(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
struct Renamed<T> {
    first_name: T,
    r#type: Level,
    #[json(rename = "key with \"quotes\" \\ and \n")]
    #[serde(rename = "key with \"quotes\" \\ and \n")]
    odd: u8,
    #[json(skip)]
    #[serde(skip)]
    _secret: u8,
    points: [i32; 2],
    a_b_c: bool,
}

#[derive(Encode, Serialize, Clone, Copy)]
#[json(rename_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Level {
    Low,
    VeryHigh,
    #[json(rename = "☃")]
    #[serde(rename = "☃")]
    Other,
}

#[derive(Encode, Serialize)]
struct Id(u64);

#[derive(Encode, Serialize)]
struct Empty {}

#[derive(Encode, Serialize)]
struct Outer<'a> {
    id: Id,
    plain: Vec<Plain<'a>>,
    renamed: Option<Renamed<String>>,
    levels: [Level; 3],
    empty: Empty,
}

/// Every case, on names that try them.
macro_rules! cases {
    ($($case:ident $word:literal)*) => {$(
        #[derive(Encode, Serialize)]
        #[json(rename_all = $word)]
        #[serde(rename_all = $word)]
        #[allow(non_snake_case)]
        struct $case { plain: u8, two_words: u8, oddCase: u8, a_b_c: u8 }
    )*};
}

cases! {
    Lower "lowercase" Upper "UPPERCASE" Pascal "PascalCase" Camel "camelCase" Snake "snake_case"
    Screaming "SCREAMING_SNAKE_CASE" Dashed "kebab-case"
}

#[derive(Encode, Serialize)]
#[json(rename_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
enum Kebab {
    HttpServer,
    HTTPServer,
    A,
}

/// What both write of a value.
fn same(value: &(impl Encode + Serialize)) -> String {
    let mut ours = Vec::new();
    value.json_write(&mut ours);
    assert_eq!(ours.len(), value.json_len(), "the length that was announced");
    let ours = String::from_utf8(ours).unwrap();
    assert_eq!(ours, serde_json::to_string(value).unwrap());
    ours
}

struct Drawn {
    prng: Prng,
}

impl Drawn {
    fn text(&mut self) -> String {
        const LETTERS: [char; 14] =
            ['a', 'Z', '"', '\\', '/', '\n', '\0', '\u{1f}', '\u{7f}', 'é', '\u{2028}', '☃', '😀', ' '];
        let length = self.prng.below(40);
        (0..length).map(|_| LETTERS[self.prng.below(LETTERS.len() as u64) as usize]).collect()
    }

    /// Of any size: small ones are as likely as large ones.
    fn number(&mut self) -> u64 {
        let bits = self.prng.below(65) as u32;
        if bits == 0 { 0 } else { self.prng.next_u64() >> (64 - bits) }
    }

    fn level(&mut self) -> Level {
        [Level::Low, Level::VeryHigh, Level::Other][self.prng.below(3) as usize]
    }

    fn renamed<T>(&mut self, first_name: T) -> Renamed<T> {
        Renamed {
            first_name,
            r#type: self.level(),
            odd: self.number() as u8,
            _secret: 0,
            points: [self.number() as i32, -(self.number() as i32 >> 1)],
            a_b_c: self.prng.coin(),
        }
    }
}

#[test]
fn any_value_is_written_as_serde_json_writes_it() {
    let seed = 0x5eed_1234_u64;
    println!("seed {seed:#x}");
    let mut drawn = Drawn { prng: Prng::new(seed) };
    for _ in 0..2_000 {
        let names: Vec<String> = (0..drawn.prng.below(4)).map(|_| drawn.text()).collect();
        let plain = names.iter().map(|name| Plain {
            id: drawn.number(),
            name,
            balance: drawn.number() as i64,
            is_open: drawn.prng.coin(),
            tags: (0..drawn.prng.below(3)).map(|_| drawn.text()).collect(),
            parent: drawn.prng.coin().then(|| drawn.number() as u32),
        });
        let plain = plain.collect();
        let text = drawn.text();
        let outer = Outer {
            id: Id(drawn.number()),
            plain,
            renamed: drawn.prng.coin().then(|| drawn.renamed(text)),
            levels: [drawn.level(), drawn.level(), drawn.level()],
            empty: Empty {},
        };
        same(&outer);
    }
}

#[test]
fn keys_and_variants_are_named_as_serde_names_them() {
    assert_eq!(
        same(&[Kebab::HttpServer, Kebab::HTTPServer, Kebab::A]),
        r#"["http-server","h-t-t-p-server","a"]"#
    );
    same(&Lower { plain: 1, two_words: 2, oddCase: 3, a_b_c: 4 });
    same(&Upper { plain: 1, two_words: 2, oddCase: 3, a_b_c: 4 });
    same(&Pascal { plain: 1, two_words: 2, oddCase: 3, a_b_c: 4 });
    same(&Camel { plain: 1, two_words: 2, oddCase: 3, a_b_c: 4 });
    same(&Snake { plain: 1, two_words: 2, oddCase: 3, a_b_c: 4 });
    same(&Screaming { plain: 1, two_words: 2, oddCase: 3, a_b_c: 4 });
    same(&Dashed { plain: 1, two_words: 2, oddCase: 3, a_b_c: 4 });
}
