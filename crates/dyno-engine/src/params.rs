//! The parameters of a matched route.

use dyno_proto::percent;

/// What stands in the place of `{name}` in a path.
pub(crate) enum Params<'f> {
    None,
    Borrowed(matchit::Params<'f, 'f>),
    /// With escapes in a value, which had to be decoded into memory of its own.
    Decoded(Vec<(String, String)>),
}

impl<'f> Params<'f> {
    /// `None` when a value is not text, or holds a zero, which no text needs and C strings end at.
    pub(crate) fn of(matched: matchit::Params<'f, 'f>) -> Option<Params<'f>> {
        if !matched.iter().any(|(_, value)| value.contains('%')) {
            return Some(Params::Borrowed(matched));
        }
        let decoded = matched.iter().map(|(name, value)| Some((name.to_owned(), decode(value)?)));
        decoded.collect::<Option<Vec<_>>>().map(Params::Decoded)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        match self {
            Params::None => None,
            Params::Borrowed(params) => params.get(name),
            Params::Decoded(params) => {
                params.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
            }
        }
    }
}

fn decode(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    percent::decode(value.as_bytes(), &mut bytes).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
