//! What a type looks like as JSON: constant texts with fields between them, or one text for each variant.
//!
//! Nothing is written here but keys, and those as RFC 8259 §7 has it.

use super::attribute::{Names, Own};
use syn::spanned::Spanned;
use syn::{Data, DataStruct, DeriveInput, Error, Fields, Ident, Member};

/// The JSON of a type.
pub(super) enum Form {
    /// A struct.
    Pieces(Vec<Piece>),
    /// An enum: each variant with its text, quotes and all.
    Texts(Vec<(Ident, String)>),
}

/// A part of a struct's JSON.
pub(super) enum Piece {
    Text(String),
    Field(Member),
}

impl Form {
    pub(super) fn of(input: &DeriveInput, names: &Names) -> Result<Form, Error> {
        match &input.data {
            Data::Struct(data) => of_struct(input, data, names).map(Form::Pieces),
            Data::Enum(data) => {
                let text = |variant: &syn::Variant| {
                    if !matches!(variant.fields, Fields::Unit) {
                        return Err(Error::new(
                            variant.span(),
                            "a variant with fields has no fixed form: write Encode by hand",
                        ));
                    }
                    let own = Own::of(&variant.attrs)?;
                    if own.skip {
                        return Err(Error::new(variant.span(), "a variant cannot be left out"));
                    }
                    Ok((variant.ident.clone(), quoted(&names.of_variant(&variant.ident, own))))
                };
                let texts = data.variants.iter().map(text).collect::<Result<Vec<_>, _>>()?;
                if texts.is_empty() {
                    return Err(Error::new(input.span(), "an enum without variants is never written"));
                }
                Ok(Form::Texts(texts))
            }
            Data::Union(_) => Err(Error::new(input.span(), "what a union holds is not known")),
        }
    }
}

fn of_struct(input: &DeriveInput, data: &DataStruct, names: &Names) -> Result<Vec<Piece>, Error> {
    match &data.fields {
        Fields::Named(_) => object(data, names),
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
            let field = &fields.unnamed[0];
            match field.attrs.iter().find(|attribute| attribute.path().is_ident("json")) {
                Some(attribute) => Err(Error::new(attribute.span(), "the only field has no key")),
                None => Ok(vec![Piece::Field(Member::from(0))]),
            }
        }
        _ => Err(Error::new(input.span(), "it takes named fields, or one field without a name")),
    }
}

/// Each text stands as long as it can: a comma, a key and its colon are one copy.
fn object(data: &DataStruct, names: &Names) -> Result<Vec<Piece>, Error> {
    let (mut pieces, mut text, mut keys) = (Vec::new(), "{".to_owned(), Vec::new());
    for (field, member) in data.fields.iter().zip(data.fields.members()) {
        let own = Own::of(&field.attrs)?;
        let Member::Named(name) = &member else { continue };
        if own.skip {
            continue;
        }
        let key = quoted(&names.of_field(name, own));
        if keys.contains(&key) {
            return Err(Error::new(field.span(), format!("the key {key} is there twice")));
        }
        if !keys.is_empty() {
            text.push(',');
        }
        text.push_str(&key);
        text.push(':');
        pieces.extend([Piece::Text(std::mem::take(&mut text)), Piece::Field(member)]);
        keys.push(key);
    }
    text.push('}');
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// A text between its quotes.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{8}' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\u{c}' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}
