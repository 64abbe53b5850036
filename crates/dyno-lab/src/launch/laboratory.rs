//! Entering a laboratory (`dyno_host::lab`), with what people are told where that is not possible.
//!
//! `dyno climb --netns`, the planted host and `dyno netlab` call it, each before its keeper is started.

use dyno_climb::dial::How;
use dyno_climb::plan::Plan;
use dyno_host::lab::{Lab, LabError, tool};
use dyno_record::lab::Part;
use dyno_sys::affinity;

use crate::failure::{Failure, chain};
use crate::user::is_root;

/// Queues of the cable: one for each CPU, two at least so that they can be told apart, and no more than a small card has.
const QUEUES: std::ops::RangeInclusive<usize> = 2..=8;

/// The same as [`entered`], once it is sure that everything is there that turns the parts of the plan.
pub fn entered_for(plan: &Plan) -> Result<Lab, Failure> {
    for dial in &plan.dials {
        match dial.how {
            How::Lab { part } if dial.values.iter().any(|value| !stands_anyway(part, &value.text)) => {
                tool::check(part).map_err(|error| failure(&error))?;
            }
            _ => {}
        }
    }
    entered()
}

/// An empty text is where a part was in the new laboratory.
fn stands_anyway(part: Part, value: &str) -> bool {
    value.is_empty() || value == part.fresh()
}

/// Takes this process, while it has one thread, into a laboratory, with everything that it starts from now on.
pub fn entered() -> Result<Lab, Failure> {
    if !is_root() {
        return Err(Failure::error("a laboratory of network namespaces needs root")
            .likely("only root may make namespaces and cables between them")
            .try_this("sudo dyno climb --netns, or climb without --netns over loopback"));
    }
    let queues = affinity::allowed().len().clamp(*QUEUES.start(), *QUEUES.end());
    Lab::enter(queues as u32).map_err(|error| failure(&error))
}

/// Why there is no laboratory, or why it is not as it should be.
pub fn failure(error: &LabError) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        LabError::Namespace(_) => {
            failure.likely("this kernel or this container allows no namespaces").try_this("dyno doctor")
        }
        LabError::NoTool { tool, .. } => failure.likely("a package is missing").try_this(match *tool {
            "nft" => "apt install nftables",
            _ => "apt install iproute2",
        }),
        _ => failure,
    }
}

/// CPUs as the kernel's masks are written: hexadecimal, in words of 32 bits.
pub fn mask(cpus: impl Iterator<Item = usize>) -> String {
    let mut words = vec![0u32];
    for cpu in cpus {
        words.resize(words.len().max(cpu / 32 + 1), 0);
        words[cpu / 32] |= 1 << (cpu % 32);
    }
    let texts: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    let text = texts.join(",");
    let short = text.trim_start_matches(['0', ',']);
    if short.is_empty() { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_written_as_the_kernel_reads_it() {
        assert_eq!(mask([0].into_iter()), "1");
        assert_eq!(mask([0, 1, 5].into_iter()), "23");
        assert_eq!(mask([33].into_iter()), "2,00000000");
        assert_eq!(mask(std::iter::empty()), "0");
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let lines = failure(&LabError::NoTool { tool: "nft", part: "rules" }).lines();
        assert!(lines.contains("rules needs it") && lines.contains("apt install nftables"), "{lines}");
    }
}
