//! Names as users know them. Whoever tells of a site calls it by these.

/// A function's name as its user knows it: `write` for the C library's `__GI___libc_write`.
pub(super) fn user_name(name: &str) -> &str {
    let plain = name.strip_prefix("__GI_").unwrap_or(name);
    let plain = plain.strip_prefix("__libc_").unwrap_or(plain);
    let is_name = plain.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if is_name { plain } else { name }
}
