//! What raw frames are called. Each is looked up once: names cost time.

use std::collections::HashMap;
use std::rc::Rc;

use dyno_record::profile::{Frame, Module, Origin};

use super::raw::Raw;
use crate::image::spaces::Place;
use crate::image::{ImageId, Images, UnwoundBy};
use crate::symbol::{Function, Symbols};

/// The module of the kernel's frames, where its loadable modules are not distinguished.
pub(crate) const KERNEL: &str = "[kernel]";

/// What stands for an address at which no code was mapped: its number would look like a function's.
const OUTSIDE: &str = "[outside any mapping]";

/// In which file a frame lies, before it is described.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ModuleKey {
    /// A file, the vDSO, or a process's own code.
    File(ImageId),
    /// The kernel, or a loadable module of it.
    Kernel(String),
}

/// What a raw frame is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// Its functions, the innermost first: more than one where some were folded into others.
    pub(crate) functions: Vec<Function>,
    /// Where they lie.
    pub(crate) module: Option<ModuleKey>,
    /// Address within the file; of the kernel the address as it is.
    pub(crate) address: u64,
    /// Whose code it is.
    pub(crate) origin: Origin,
}

impl Named {
    /// As rows of a record, the innermost first.
    pub(crate) fn frames(&self, module: Option<u32>) -> impl DoubleEndedIterator<Item = Frame> {
        self.functions.iter().map(move |function| Frame {
            name: function.name.clone(),
            module,
            origin: self.origin,
            file: function.file.clone(),
            line: function.line,
            inlined: function.inlined,
            address: self.address,
        })
    }

    /// Whether all of it is what `is` says of a function's name.
    pub(crate) fn all(&self, is: impl Fn(&str) -> bool) -> bool {
        self.functions.iter().all(|function| is(&function.name))
    }
}

/// Names that were looked up.
#[derive(Default)]
pub(crate) struct Names {
    symbols: Symbols,
    known: HashMap<Raw, Rc<Named>>,
}

impl Names {
    pub(crate) fn new(symbols: Symbols) -> Names {
        Names { symbols, known: HashMap::new() }
    }

    pub(crate) fn symbols(&mut self) -> &mut Symbols {
        &mut self.symbols
    }

    /// What a frame is called; its files must be among `images`.
    pub(crate) fn name(&mut self, images: &Images, raw: &Raw) -> Rc<Named> {
        if let Some(known) = self.known.get(raw) {
            return Rc::clone(known);
        }
        let named = Rc::new(self.look_up(images, raw));
        assert!(!named.functions.is_empty(), "every address has a name, be it the address");
        self.known.insert(raw.clone(), Rc::clone(&named));
        named
    }

    fn look_up(&mut self, images: &Images, raw: &Raw) -> Named {
        match raw {
            Raw::Kernel(address) => {
                let (function, module) = self.symbols.kernel(*address);
                let (functions, module) = (vec![function], Some(ModuleKey::Kernel(module)));
                Named { functions, module, address: *address, origin: Origin::Kernel }
            }
            Raw::KernelNamed(name) => {
                let functions = vec![named(name.clone())];
                let module = Some(ModuleKey::Kernel(KERNEL.to_owned()));
                Named { functions, module, address: 0, origin: Origin::Kernel }
            }
            Raw::User(place) => {
                let functions = self.symbols.functions(images, *place);
                let module = Some(ModuleKey::File(place.image));
                Named { functions, module, address: place.address, origin: Origin::User }
            }
            Raw::Outside => {
                let functions = vec![named(OUTSIDE.to_owned())];
                Named { functions, module: None, address: 0, origin: Origin::Mark }
            }
            Raw::Unread(place) => {
                // Another process may have led to the file since.
                let found = images.get(place.image).placed(place.address);
                let functions = match found {
                    Some(address) => self.symbols.functions(images, Place { address, ..*place }),
                    None => vec![named(format!("{:#x}", place.address))],
                };
                let (module, address) = (Some(ModuleKey::File(place.image)), found.unwrap_or(place.address));
                Named { functions, module, address, origin: Origin::User }
            }
        }
    }

    /// A file with code, as a record has it.
    pub(crate) fn file(&mut self, images: &Images, id: ImageId) -> Module {
        let image = images.get(id);
        let unwound_by = match image.unwound_by() {
            UnwoundBy::Dwarf => "dwarf",
            UnwoundBy::FramePointers => "fp",
        };
        Module {
            path: image.path().to_owned(),
            build_id: image.build_id(),
            unwound_by: unwound_by.to_owned(),
            symbols: self.symbols.has_names(images, id),
        }
    }
}

fn named(name: String) -> Function {
    Function { name, ..Function::default() }
}
