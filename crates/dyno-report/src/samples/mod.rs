//! Records with known effects, for the tests of what draws them.

pub(crate) mod causal;
pub(crate) mod climb;
