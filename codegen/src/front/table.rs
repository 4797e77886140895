//! Arrays of constants that are read at an index known at run time only.

use std::collections::BTreeMap;

use syn::Expr;

use super::Front;
use super::infer::{Kind, TypeVar};
use super::report::tidy;
use super::scope::{Integer, Val};
use crate::ir::{Binary, Expr as IrExpr, ExprKind, Function, Id, Place, Table, Type, Value};
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
        let at = self.wide(at);
        let ty = self.tables.tables[table.index()].ty;
        Val::Number(self.expr_of(ExprKind::Element { table, index: at }, ty, place))
    }

    /// `rows[row][column]` where the row is a number of the kernel: the rows become one table. Each index beyond the end is
    /// the last one.
    pub(super) fn element_of_rows(
        &mut self,
        rows: &[Val],
        row: Id<IrExpr>,
        column: Val,
        inner: &syn::ExprIndex,
        index: &syn::ExprIndex,
    ) -> Val {
        let lengths = rows.iter().map(|row| if let Val::Array(row) = row { row.len() } else { 0 });
        let length = lengths.max().unwrap_or(0);
        let flat = rows.iter().flat_map(|row| if let Val::Array(row) = row { row.clone() } else { Vec::new() });
        let flat: Vec<Val> = flat.collect();
        if length == 0 || flat.len() != rows.len() * length {
            return self.element(rows, row, inner); // Says what is wrong.
        }
        if self.types.kind_of(row) != Kind::Integer {
            return self.element(&flat, row, inner);
        }
        let place = self.reporter.place(index);
        let column = match column {
            Val::Integer(at) if usize::try_from(at.value).is_ok_and(|at| at < length) => self.small(at.value, place),
            Val::Integer(at) => return self.outside(&index.index, at.value, length),
            Val::Number(at) if self.types.kind_of(at) == Kind::Integer => self.limited(at, length, place),
            Val::Poison => return Val::Poison,
            other => {
                let message = format!("the array is indexed by {}, not by an integer", other.describe());
                return self.poison(&*index.index, message, "cast it as needed: `w[i as usize]`");
            }
        };
        let row = self.limited(row, rows.len(), place);
        let length = self.small(length as i128, place);
        let start = self.binary_of(Binary::Mul, row, length, place);
        let at = self.binary_of(Binary::Add, start, column, place);
        let Some(table) = self.table(&flat, &inner.expr) else { return Val::Poison };
        let ty = self.tables.tables[table.index()].ty;
        Val::Number(self.expr_of(ExprKind::Element { table, index: at }, ty, place))
    }

    /// An index as a `u64` that is less than a length.
    fn limited(&mut self, at: Id<IrExpr>, length: usize, place: Place) -> Id<IrExpr> {
        let at = self.wide(at);
        let last = self.small(length as i128 - 1, place);
        let ty = self.types.exprs[at.index()];
        self.expr_of(ExprKind::Call(Function::Min, vec![at, last]), ty, place)
    }

    /// An index as a `u64`.
    fn wide(&mut self, at: Id<IrExpr>) -> Id<IrExpr> {
        let (wide, place) = (self.types.known(Type::U64), self.kernel.exprs[at].place);
        match self.types.get(self.types.exprs[at.index()]) {
            Some(ty) if ty != Type::U64 => self.expr_of(ExprKind::Cast(at), wide, place),
            _ => {
                self.unify(wide, self.types.exprs[at.index()], place);
                at
            }
        }
    }

    /// A literal `u64`.
    fn small(&mut self, value: i128, place: Place) -> Id<IrExpr> {
        let ty = self.types.known(Type::U64);
        let literal = self.expr_of(ExprKind::Literal(Value::U64(0)), ty, place);
        self.types.integer_literal(literal, value);
        literal
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
                    let name = tidy(tokens);
                    let rows = format!(
                        "read one number of it, `{name}[i as usize][j]`, or write `{name}` as one array, row after row"
                    );
                    let (message, help) = match other {
                        Val::Number(_) => (
                            "an array of values that are computed is indexed by a number known at run time only",
                            "make it a `const` array of constants, or choose by `match n { 0 => a, 1 => b, _ => c }`",
                        ),
                        Val::Array(_) => {
                            ("an array of arrays is indexed by a number known at run time only", rows.as_str())
                        }
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
