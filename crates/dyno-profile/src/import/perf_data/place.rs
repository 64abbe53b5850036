//! Places in files as a perf.data has them: what names are asked for.

/// What perf calls the kernel; a mapping of it has the name of a symbol behind.
pub(super) const KERNEL: &str = "[kernel.kallsyms]";

/// A place in a file's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'f> {
    /// The file, as the target saw it; `[kernel.kallsyms]` for the kernel, whose offsets are addresses.
    pub module: &'f str,
    /// Its build-id in hex, where it was recorded.
    pub build_id: Option<&'f str>,
    /// Its inode, where it was recorded, else zero.
    pub inode: u64,
    /// Bytes from its beginning.
    pub offset: u64,
    /// The mapping it was found in: where in the file that begins, and its bytes.
    pub map: (u64, u64),
    /// Of the kernel: where it lay, as the name of a symbol and its address.
    pub anchor: Option<(&'f str, u64)>,
    /// Of the kernel: its release, as `uname -r` says it; empty where it was not recorded.
    pub release: &'f str,
}
