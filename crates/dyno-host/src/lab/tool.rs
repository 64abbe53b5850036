//! Programs of the system that write what the kernel wants in dozens of nested messages: nft and tc.
//!
//! Called by absolute path, with an empty environment and no shell, in this process's namespace only.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use dyno_record::lab::Part;

use super::error::LabError;

/// Where systems put them.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// Of what one says when it refuses.
const SAID_BYTES_MAX: usize = 300;

fn path_of(tool: &'static str, part: &'static str) -> Result<PathBuf, LabError> {
    let places = FOLDERS.iter().map(|folder| PathBuf::from(folder).join(tool));
    places.into_iter().find(|path| path.exists()).ok_or(LabError::NoTool { tool, part })
}

/// That the program is there which turns a part, where one does: a laboratory is not made to find that out.
///
/// # Errors
/// When it is not.
pub fn check(part: Part) -> Result<(), LabError> {
    let tool = match part {
        Part::Rules | Part::Conntrack => "nft",
        Part::Qdisc => "tc",
        Part::Rps | Part::Taps | Part::Threads | Part::Napi | Part::Segments | Part::Defer => return Ok(()),
    };
    path_of(tool, part.name()).map(|_| ())
}

/// Runs it with these words and this input; what it printed.
pub fn run(tool: &'static str, part: &'static str, words: &[&str], input: &str) -> Result<String, LabError> {
    let path = path_of(tool, part)?;
    let refused = |said: &str| LabError::Tool { tool, said: said.chars().take(SAID_BYTES_MAX).collect() };
    let failed = |error: std::io::Error| refused(&error.to_string());
    let mut child = Command::new(path)
        .args(words)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // It reads all of its input before it prints anything.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).trim()));
    }
    written.map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
