//! `#[derive(Encode)]`: a type of a fixed form writes itself as JSON, its keys being constants of the program.
//!
//! `dyno-engine` hands it on beside the trait of the same name. What it makes writes the same bytes as serde's derive with
//! `serde_json`, for the forms that it knows; for others it refuses to compile.

mod attribute;
mod form;

use attribute::Names;
use form::{Form, Piece};
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{DeriveInput, Error, parse_macro_input, parse_quote};

/// Implements `Encode` for a struct with named fields, a struct of one field without a name (which is written as that field),
/// or an enum whose variants have no fields (which are written as texts).
///
/// `#[json(rename = "key")]` gives a field or a variant another key; `#[json(skip)]` leaves a field out; on the type,
/// `#[json(rename_all = "camelCase")]` (or `snake_case`, `kebab-case`, `lowercase`, `UPPERCASE`, `PascalCase`,
/// `SCREAMING_SNAKE_CASE`) changes all that are not renamed. `#[json(crate = path)]` names the crate that has the trait, where
/// it is not `dyno_engine`.
///
/// A body that holds a value behind a key:
///
/// ```text
/// #[derive(dyno_engine::Encode)]
/// #[json(rename_all = "camelCase")]
/// struct User<'a> { id: u64, full_name: &'a str, #[json(skip)] password: &'a str }
/// // {"id":7,"fullName":"Ada"}
/// ```
#[proc_macro_derive(Encode, attributes(json))]
pub fn derive_encode(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> Result<Tokens, Error> {
    let names = Names::of_type(&input.attrs)?;
    let form = Form::of(input, &names)?;
    let root = &names.root;
    let mut generics = input.generics.clone();
    for param in generics.type_params_mut() {
        param.bounds.push(parse_quote!(#root::Encode));
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let name = &input.ident;
    let (length, writing) = match &form {
        Form::Pieces(pieces) => (length_of(pieces, root), writing_of(pieces, root)),
        Form::Texts(texts) => {
            let (variants, texts): (Vec<_>, Vec<_>) =
                texts.iter().map(|(variant, text)| (variant, text)).unzip();
            let lengths = texts.iter().map(|text| text.len());
            (
                quote!(match self { #(Self::#variants => #lengths),* }),
                quote!(out.extend_from_slice(match self { #(Self::#variants => #texts.as_bytes()),* });),
            )
        }
    };
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #root::Encode for #name #arguments #conditions {
            #[inline]
            fn json_len(&self) -> usize {
                #length
            }
            #[inline]
            fn json_write(&self, out: &mut ::std::vec::Vec<u8>) {
                #writing
            }
        }
    })
}

fn length_of(pieces: &[Piece], root: &syn::Path) -> Tokens {
    let each = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => {
            let bytes = text.len();
            quote!(#bytes)
        }
        Piece::Field(field) => quote!(#root::Encode::json_len(&self.#field)),
    });
    quote!(0 #(+ #each)*)
}

fn writing_of(pieces: &[Piece], root: &syn::Path) -> Tokens {
    let each = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => quote!(out.extend_from_slice(#text.as_bytes());),
        Piece::Field(field) => quote!(#root::Encode::json_write(&self.#field, out);),
    });
    quote!(#(#each)*)
}
