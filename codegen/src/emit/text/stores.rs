//! Stores come last: a result may take the place of a field, so that a point must have read all it needs before it
//! writes anything.

use crate::ir::{Expr, ExprKind, Id, Kernel, Local, Output, Place, Stmt};
use crate::verify::operands;

/// The same kernel with all stores at the end of its body, after everything that reads a field.
pub(crate) fn stores_last(kernel: &Kernel) -> Kernel {
    let mut moved = kernel.clone();
    if !are_last(kernel) {
        let results = kernel.outputs.enumerate().map(|(id, output)| {
            let name = if kernel.outputs.len() == 1 { "result".into() } else { format!("result_{}", id.index()) };
            moved.locals.push(Local { name, ty: output.ty, mutable: false, note: None })
        });
        let mut mover = Mover { results: results.collect(), places: vec![Place::default(); kernel.outputs.len()] };
        moved.body = kernel.body.iter().flat_map(|stmt| mover.moved(stmt)).collect();
        for (output, ty) in kernel.outputs.enumerate().map(|(id, output)| (id, output.ty)) {
            let place = mover.places[output.index()];
            let kind = ExprKind::Local(mover.results[output.index()]);
            let value = moved.exprs.push(Expr { kind, ty, place });
            moved.body.push(Stmt::Store { output, value, place });
        }
    }
    moved
}

/// Whether nothing is read after the first store as it is.
fn are_last(kernel: &Kernel) -> bool {
    let stored = kernel.body.iter().rev().map_while(|stmt| match stmt {
        Stmt::Store { value, .. } => Some(*value),
        Stmt::Let { .. } | Stmt::Assign { .. } | Stmt::If { .. } => None,
    });
    let stored: Vec<Id<Expr>> = stored.collect();
    let later = stored.split_last().map_or(&[][..], |(_, later)| later);
    stored.len() == kernel.outputs.len() && !later.iter().any(|value| reads(kernel, *value))
}

/// Whether a value takes something from a field.
fn reads(kernel: &Kernel, value: Id<Expr>) -> bool {
    let mut seen = vec![false; kernel.exprs.len()];
    let mut open = vec![value];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        if let ExprKind::Load { .. } = kernel.exprs[id].kind {
            return true;
        }
        open.extend(operands(&kernel.exprs[id].kind));
    }
    false
}

/// Turns stores into values of locals.
struct Mover {
    /// By output.
    results: Vec<Id<Local>>,
    /// Where each output was stored last.
    places: Vec<Place>,
}

impl Mover {
    /// A statement of the kernel's body, with what must come before it.
    fn moved(&mut self, stmt: &Stmt) -> Vec<Stmt> {
        if let Stmt::Store { output, value, place } = *stmt {
            self.places[output.index()] = place;
            return vec![Stmt::Let { local: self.results[output.index()], value: Some(value), place }];
        }
        let mut stored = Vec::new();
        let assigned = self.assigned(stmt, &mut stored);
        stored.sort();
        stored.dedup();
        let declared = stored.into_iter().map(|output| Stmt::Let {
            local: self.results[output.index()],
            value: None,
            place: Place::default(),
        });
        declared.chain([assigned]).collect()
    }

    /// A statement whose stores are assignments; what they store goes to `stored`.
    fn assigned(&mut self, stmt: &Stmt, stored: &mut Vec<Id<Output>>) -> Stmt {
        match stmt {
            Stmt::Let { .. } | Stmt::Assign { .. } => stmt.clone(),
            Stmt::Store { output, value, place } => {
                stored.push(*output);
                self.places[output.index()] = *place;
                Stmt::Assign { local: self.results[output.index()], value: *value, place: *place }
            }
            Stmt::If { condition, then, otherwise, place } => {
                let mut block = |block: &[Stmt]| block.iter().map(|stmt| self.assigned(stmt, stored)).collect();
                Stmt::If { condition: *condition, then: block(then), otherwise: block(otherwise), place: *place }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::ir::show;
    use crate::front::{Options, compile};
    use crate::interpret::{Point, interpret};
    use crate::ir::{Axis, Field, Offset, Param, Value};
    use crate::random::{Limits, kernel as random};
    use crate::verify::verify;

    /// The body of the kernel that is made of `body`, line by line without indentation.
    fn check(signature: &str, body: &str, expected: &[&str]) {
        let function = syn::parse_str(&format!("fn k(u: &Field<f64>{signature} {{ {body} }}")).expect("Rust");
        let compiled = compile(&function, &Options::default()).expect("a stencil");
        let shown = show(&stores_last(&compiled.kernel));
        let lines: Vec<&str> = shown.lines().map(|line| line.split(" //").next().unwrap_or(line).trim()).collect();
        assert_eq!(&lines[1..lines.len() - 1], expected, "{shown}");
    }

    #[test]
    fn stores_that_are_last_stay() {
        check(") -> f64", "u[X] + 1.0", &["result = u[X] + 1.0;"]);
        let expected = ["let a: f64 = u[X];", "result 0 = u[HERE];", "result 1 = a * 2.0;"];
        check(") -> (f64, f64)", "let a = u[X]; (u[HERE], a * 2.0)", &expected);
    }

    #[test]
    fn what_is_read_after_a_store_is_read_before_it() {
        let values = ["let result_0: f64 = u[X];", "let result_1: f64 = u[Y];"];
        let stores = ["result 0 = result_0;", "result 1 = result_1;"];
        check(") -> (f64, f64)", "(u[X], u[Y])", &[values, stores].concat());
    }

    #[test]
    fn no_store_is_left_in_a_branch() {
        let expected = [
            "let result: f64;",
            "if u[HERE] < 0.0 {",
            "result = u[X];",
            "} else {",
            "result = u[Y];",
            "}",
            "result = result;",
        ];
        check(") -> f64", "if u[HERE] < 0.0 { return u[X]; } u[Y]", &expected);
    }

    /// Every load is its field and offset, every scalar its number.
    struct Anywhere<'k>(&'k Kernel);

    impl Point for Anywhere<'_> {
        fn load(&self, field: Id<Field>, offset: Offset) -> Value {
            let [x, y, z] = offset.0.map(i64::from);
            Value::from_bits(self.0.fields[field].ty, (x + 10 * y + 100 * z + 3 * field.index() as i64) as u64)
        }

        fn param(&self, param: Id<Param>) -> Value {
            Value::from_bits(self.0.params[param].ty, param.index() as u64 + 1)
        }

        fn index(&self, axis: Axis) -> i32 {
            axis as i32
        }
    }

    #[test]
    fn random_kernels_keep_their_results() {
        let mut changed = 0;
        for seed in 0..200 {
            let kernel = random("k", seed, Limits::default());
            let moved = verify(stores_last(&kernel)).expect("still sound");
            assert!(are_last(&moved), "seed {seed}");
            assert_eq!(interpret(&moved, &Anywhere(&kernel)), interpret(&kernel, &Anywhere(&kernel)), "seed {seed}");
            changed += usize::from(*moved != *kernel);
        }
        assert!((20..180).contains(&changed), "{changed} of 200 kernels changed");
    }
}
