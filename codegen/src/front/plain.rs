//! Takes the invisible groups away that a macro puts around what it was given, `$t:ty` and `$e:expr`: what a user wrote
//! means the same with and without a macro around it.

use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Type};

/// The rewrite; [`VisitMut`] carries it out.
pub(super) struct Plain;

impl VisitMut for Plain {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        while let Type::Group(group) = ty {
            *ty = (*group.elem).clone();
        }
        visit_mut::visit_type_mut(self, ty);
    }

    /// Only around what needs no parentheses: the tree keeps the others, and they are looked through where they stand.
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        while let Expr::Group(group) = expr
            && matches!(&*group.expr, Expr::Lit(_) | Expr::Path(_) | Expr::Paren(_) | Expr::Group(_) | Expr::Call(_))
        {
            *expr = (*group.expr).clone();
        }
        visit_mut::visit_expr_mut(self, expr);
    }
}
