//! User stacks of waits, by their shapes: walked as they come, placed in files before their process changes its code.

use std::collections::HashMap;

use dyno_sys::Pid;
use dyno_sys::bpf::offcpu::Shape;

use super::code::Code;
use crate::stack::raw::Raw;
use crate::unwind::{Cut, Ended};

/// A stack that came through the ring.
enum UserStack {
    /// Its process has its code still: a library that was loaded since may be known by the end.
    Walked { pid: Pid, addresses: Vec<u64> },
    /// In code that its process had.
    Placed(Vec<Raw>),
}

/// All of them. A shape that is cut has a stack; a stack has at least its leaf.
#[derive(Default)]
pub(super) struct UserStacks {
    by_shape: HashMap<u64, UserStack>,
    /// Shapes whose stacks end before their root, and why.
    cut: HashMap<u64, Cut>,
}

impl UserStacks {
    /// Walks a copied stack.
    pub(super) fn add(&mut self, code: &mut Code, shape: &Shape<'_>) {
        let walked = code.unwind(shape);
        assert!(!walked.addresses.is_empty(), "a stack has at least its leaf");
        if let Ended::Cut(cut) = walked.ended {
            self.cut.insert(shape.id, cut);
        }
        let stack = UserStack::Walked { pid: shape.pid, addresses: walked.addresses };
        self.by_shape.insert(shape.id, stack);
    }

    /// Gives a process's stacks their places and names while its old code is still known.
    pub(super) fn place(&mut self, code: &mut Code, pid: Pid) {
        for stack in self.by_shape.values_mut() {
            if let UserStack::Walked { pid: of, addresses } = stack
                && *of == pid
            {
                let placed = code.placed(pid, addresses);
                code.name(&placed);
                *stack = UserStack::Placed(placed);
            }
        }
        debug_assert!(
            !self
                .by_shape
                .values()
                .any(|stack| matches!(stack, UserStack::Walked { pid: of, .. } if *of == pid)),
            "addresses of code that is gone are never looked up in its successor"
        );
    }

    /// Frames by shape, the leaf first, and the shapes that are cut.
    pub(super) fn finish(self, code: &mut Code) -> (HashMap<u64, Vec<Raw>>, HashMap<u64, Cut>) {
        let frames = |(shape, stack)| match stack {
            UserStack::Walked { pid, addresses } => (shape, code.placed(pid, &addresses)),
            UserStack::Placed(frames) => (shape, frames),
        };
        let frames: HashMap<u64, Vec<Raw>> = self.by_shape.into_iter().map(frames).collect();
        assert!(self.cut.keys().all(|shape| frames.contains_key(shape)), "what is cut has a stack");
        (frames, self.cut)
    }
}
