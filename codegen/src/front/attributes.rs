//! Attributes inside of a stencil, and a second `#[stencil]` on it.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ItemFn};

use super::Front;
use super::module::is_stencil;
use super::report::Reporter;

impl Front {
    /// Refuses attributes that would make the function another one for rustc than for the devices.
    pub(super) fn attributes(&mut self, function: &ItemFn) {
        for attribute in function.attrs.iter().filter(|attribute| is_stencil(attribute)) {
            let help = "write all options in one: `#[stencil(contract, T = f32 | f64)]`";
            self.reporter.refuse(attribute, "`#[stencil]` stands twice on one function", help);
        }
        let mut inside = Inside { reporter: &mut self.reporter };
        inside.visit_signature_mut(&mut function.sig.clone());
        inside.visit_block_mut(&mut function.block.clone());
    }
}

struct Inside<'a> {
    reporter: &'a mut Reporter,
}

impl VisitMut for Inside<'_> {
    fn visit_attribute_mut(&mut self, attribute: &mut Attribute) {
        let path = attribute.path();
        if path.is_ident("cfg") || path.is_ident("cfg_attr") {
            let help = "a stencil is compiled before it is known which parts of the program are built: write two stencils \
                        with `#[cfg(..)]` in front of each, or pass a scalar";
            self.reporter.refuse(&*attribute, "there can be no `#[cfg]` inside of a stencil", help);
        } else if is_stencil(attribute) {
            let help = "take the attribute away: what a stencil calls is compiled into it";
            self.reporter.refuse(&*attribute, "there can be no stencil inside of a stencil", help);
        }
        visit_mut::visit_attribute_mut(self, attribute);
    }
}
