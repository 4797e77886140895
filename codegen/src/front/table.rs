//! Arrays of constants that are read at an index known at run time only.

use std::collections::BTreeMap;

use syn::Expr;

use super::Front;
use super::infer::{Kind, TypeVar};
use super::report::tidy;
use super::scope::{Integer, Val};
use crate::ir::{Expr as IrExpr, ExprKind, Id, Table, Type};
use crate::verify::operands;

/// A table whose elements get their values once their type is known.
#[derive(Debug)]
pub(super) struct PendingTable {
    pub(super) name: String,
    pub(super) ty: TypeVar,
    /// Expressions of constants.
    pub(super) items: Vec<Id<IrExpr>>,
}

/// What tells arrays apart.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Number(Id<IrExpr>),
    Integer(i128),
    Truth(bool),
}

/// All tables, each once however often it is read.
#[derive(Debug, Default)]
pub(super) struct PendingTables {
    tables: Vec<PendingTable>,
    known: BTreeMap<Vec<Item>, usize>,
}

impl PendingTables {
    /// In the order of their ids.
    pub(super) fn all(&self) -> &[PendingTable] {
        &self.tables
    }
}

impl Front {
    /// `array[at]` where `at` is a number of the kernel.
    pub(super) fn element(&mut self, items: &[Val], at: Id<IrExpr>, index: &syn::ExprIndex) -> Val {
        if self.types.kind_of(at) != Kind::Integer {
            let help = "indices are integers: `w[n as usize]`";
            return self.poison(&*index.index, "the array is indexed by a number that is no integer", help);
        }
        if items.is_empty() {
            return self.poison(&*index.expr, "this array is empty", "");
        }
        let Some(table) = self.table(items, &index.expr) else { return Val::Poison };
        let place = self.reporter.place(index);
        let wide = self.types.known(Type::U64);
        let decided = self.types.get(self.types.exprs[at.index()]);
        let at = match decided {
            Some(ty) if ty != Type::U64 => self.expr_of(ExprKind::Cast(at), wide, place),
            _ => {
                self.unify(wide, self.types.exprs[at.index()], place);
                at
            }
        };
        let ty = self.tables.tables[table.index()].ty;
        Val::Number(self.expr_of(ExprKind::Element { table, index: at }, ty, place))
    }

    /// The table of an array's elements; `None` (reported) when they are no constants.
    fn table(&mut self, items: &[Val], tokens: &Expr) -> Option<Id<Table>> {
        let mut key = Vec::new();
        for item in items {
            key.push(match item {
                Val::Number(number) if self.is_constant(*number) => Item::Number(*number),
                Val::Integer(Integer { value, .. }) => Item::Integer(*value),
                Val::Truth(truth) => Item::Truth(*truth),
                Val::Poison => return None,
                other => {
                    let (message, help) = match other {
                        Val::Number(_) => (
                            "an array of values that are computed is indexed by a number known at run time only",
                            "make it a `const` array of constants, or choose by `match n { 0 => a, 1 => b, _ => c }`",
                        ),
                        Val::Array(_) => (
                            "an array of arrays is indexed by a number known at run time only",
                            "make it one flat array: `W[3 * i + j]`",
                        ),
                        Val::Field(_) => (
                            "an array of fields is indexed by a number known at run time only",
                            "read all of them and choose: `match n { 0 => s[0][HERE], _ => s[1][HERE] }`",
                        ),
                        _ => (
                            "an array of what is no number is indexed by a number known at run time only",
                            "use literals, `const`s and `for` variables, cast as needed: `w[i as usize]`",
                        ),
                    };
                    self.poison(tokens, message, help);
                    return None;
                }
            });
        }
        if let Some(known) = self.tables.known.get(&key) {
            return Some(Id::new(*known));
        }
        let place = self.reporter.place(tokens);
        let mut numbers: Vec<Id<IrExpr>> = Vec::new();
        for item in items {
            let wanted = numbers.first().map(|first| self.types.exprs[first.index()]);
            numbers.push(self.number(item, wanted, place)?);
        }
        let ty = self.types.exprs[numbers[0].index()];
        for number in &numbers {
            if !self.unify(ty, self.types.exprs[number.index()], place) {
                return None;
            }
        }
        let name = match tokens {
            Expr::Path(path) => tidy(path),
            _ => "table".to_owned(),
        };
        self.tables.known.insert(key, self.tables.tables.len());
        self.tables.tables.push(PendingTable { name, ty, items: numbers });
        Some(Id::new(self.tables.tables.len() - 1))
    }

    /// Whether an expression is made of literals only.
    fn is_constant(&self, id: Id<IrExpr>) -> bool {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let kind = &self.kernel.exprs[id].kind;
            match kind {
                ExprKind::Literal(_) | ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::Cast(_) => {}
                ExprKind::Param(_) | ExprKind::Local(_) | ExprKind::Load { .. } | ExprKind::Index(_) => return false,
                ExprKind::Element { .. } | ExprKind::Call(..) => return false,
            }
            open.extend(operands(kind));
        }
        true
    }
}
