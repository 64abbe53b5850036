//! What a function is called, as all who name addresses say it.

/// A function, perhaps with the line of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name, demangled; `0x…` where there is none: the address at which it begins, or else the address itself.
    pub name: String,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Whether the compiler folded it into the next.
    pub inlined: bool,
}
