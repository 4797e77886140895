//! A work item that computes a row: all points of the box along X, or every second one.
//!
//! Compilers turn a loop over a row into vectors only if they know that the results share no memory with the fields.
//! In general they may, so [`row`] compares the pointers: where none are equal, the function of [`apart`] computes the
//! row, which has been told. A row that folds is no loop that could become vectors.

use rspirv::spirv::{Op, Word};

use super::Source;
use super::address::cells;
use super::arguments::{Arguments, Buffer, Inputs, position, takes_all, wrong_parity};
use super::body::Body;
use super::fold::Fold;
use super::module::Module;
use crate::ir::{Kernel, Type};

/// The row of a work item.
struct Row<'a> {
    buffers: &'a [Buffer],
    folds: &'a [Fold],
    /// For each buffer the first point's cell.
    cells: Vec<Word>,
    /// The index of the first point in the subdomain.
    first: [Word; 3],
    /// The number of points.
    n: Word,
}

/// Which points of a row a loop computes.
struct Walk {
    /// The first one, counted from the row's first.
    start: Word,
    /// How far the next one is.
    step: Word,
    /// The same as a number; it only matters to folds.
    lanes: usize,
}

/// What is known behind a loop.
struct End {
    block: Word,
    /// Where the next point would have been.
    x: Word,
    /// What each fold keeps.
    kept: Vec<Vec<Word>>,
}

/// The function that computes all points of a row whose results share no memory with the fields. Its arguments are the
/// first point's cells, the index of that point, the number of points and the inputs.
pub(super) fn apart(module: &mut Module, source: &Source<'_>) -> Word {
    let index = module.index;
    let mut types = Buffer::types(module, source.kernel);
    types.extend([index; 4]);
    types.extend(Inputs::types(module, source));
    let void = module.void;
    let signature = module.builder.type_function(void, types);
    let declare = |module: &mut Module| {
        let buffers = Buffer::declare(module, source);
        for result in &buffers[..source.kernel.outputs.len()] {
            module.alone(result.pointer);
        }
        let first = ["i", "j", "k"].map(|name| module.parameter(index, name));
        let n = module.parameter(index, "n");
        (buffers, first, n, Inputs::declare(module, source))
    };
    let name = format!("{}_row_apart", source.kernel.name);
    module.routine(&name, signature, declare, |module, (buffers, first, n, inputs)| {
        let cells = buffers.iter().map(|buffer| buffer.pointer).collect();
        let row = Row { buffers, folds: &[], cells, first: *first, n: *n };
        let [start, step] = [0, 1].map(|number| module.index_constant(number));
        points(&mut Body::new(module, source, inputs), &row, &Walk { start, step, lanes: 1 });
    })
}

/// Computes the row of the work item, most often by the function `apart`.
pub(super) fn row(body: &mut Body<'_, '_>, arguments: &Arguments, apart: Word) {
    inside(body, arguments, &[], |body, row| {
        let module = &mut *body.module;
        let (index, truth) = (module.index, module.ty(Type::Bool));
        let [fast, general, end] = ["apart", "general", "end"].map(|name| module.label(name));
        let all = takes_all(module, arguments);
        let is_apart = is_apart(module, body.kernel, &arguments.buffers);
        let is_apart = is_apart.into_iter().fold(all, |all, one| module.value(Op::LogicalAnd, truth, &[all, one]));
        module.select(is_apart, fast, general, end);

        module.open(fast);
        let mut passed = row.cells.clone();
        passed.extend(row.first);
        passed.push(row.n);
        passed.extend(arguments.inputs.words());
        module.invoke(apart, passed);
        module.branch(end);

        module.open(general);
        module.enter();
        let [zero, one, two] = [0, 1, 2].map(|number| module.index_constant(number));
        let wrong = wrong_parity(module, arguments, row.first);
        let start = module.value(Op::Select, index, &[all, zero, wrong]);
        let step = module.value(Op::Select, index, &[all, one, two]);
        points(body, row, &Walk { start, step, lanes: 0 });
        body.module.leave();
        body.module.branch(end);

        body.module.open(end);
    });
}

/// For each pair of a result and a field whether they are different buffers.
fn is_apart(module: &mut Module, kernel: &Kernel, buffers: &[Buffer]) -> Vec<Word> {
    let (index, truth) = (module.index, module.ty(Type::Bool));
    let (results, fields) = buffers.split_at(kernel.outputs.len());
    let mut different = Vec::new();
    for field in fields.iter().filter(|field| field.used) {
        for result in results {
            let [a, b] = [result, field].map(|it| module.value(Op::ConvertPtrToU, index, &[it.pointer]));
            different.push(module.value(Op::INotEqual, truth, &[a, b]));
        }
    }
    different
}

/// Computes and folds the row of the work item; `folds` is all that the kernel folds.
pub(super) fn folded_row(body: &mut Body<'_, '_>, arguments: &Arguments, folds: &[Fold]) {
    inside(body, arguments, folds, |body, row| {
        let module = &mut *body.module;
        let [all, alternate, end] = ["all", "alternate", "end"].map(|name| module.label(name));
        let takes_all = takes_all(module, arguments);
        module.select(takes_all, all, alternate, end);

        let ends = [(all, 1), (alternate, 2)].map(|(label, lanes)| {
            let module = &mut *body.module;
            module.open(label);
            module.enter();
            let start = match lanes {
                1 => module.index_constant(0),
                _ => wrong_parity(module, arguments, row.first),
            };
            let step = module.index_constant(lanes as i64);
            let ended = points(body, row, &Walk { start, step, lanes });
            body.module.leave();
            body.module.branch(end);
            ended
        });

        body.module.open(end);
        store_folds(body, row, &ends);
    });
}

/// Does `compute` if the row is one of the box.
fn inside(
    body: &mut Body<'_, '_>,
    arguments: &Arguments,
    folds: &[Fold],
    compute: impl FnOnce(&mut Body<'_, '_>, &Row<'_>),
) {
    let module = &mut *body.module;
    let index = module.index;
    let (at, inside) = position(module, arguments, 1..3);
    let n = module.value(Op::SConvert, index, &[arguments.n[0]]);
    let first = module.value(Op::SConvert, index, &[arguments.lo[0]]);
    let [start, done] = ["row", "done"].map(|name| module.label(name));
    module.select(inside, start, done, done);

    module.open(start);
    let first = [first, at[0], at[1]];
    let cells = cells(module, arguments, first, "row");
    compute(body, &Row { buffers: &arguments.buffers, folds, cells, first, n });
    body.module.branch(done);

    body.module.open(done);
}

/// Computes some points of a row; the block behind the loop stays open.
fn points(body: &mut Body<'_, '_>, row: &Row<'_>, walk: &Walk) -> End {
    let module = &mut *body.module;
    let (index, truth) = (module.index, module.ty(Type::Bool));
    let initial: Vec<Vec<Word>> = row.folds.iter().map(|fold| fold.initial(module)).collect();
    let before = module.block;
    let [head, compute, next, end] = ["head", "point", "next", "behind"].map(|name| module.label(name));
    module.branch(head);

    module.open(head);
    let following = module.label("x_next");
    let x = module.phi(index, &[(walk.start, before), (following, next)]);
    module.name(x, "x");
    let (mut kept, mut changed) = (Vec::new(), Vec::new());
    for (fold, initial) in row.folds.iter().zip(&initial) {
        let ty = fold.ty(module);
        let kept_here: Vec<Word> = initial.iter().map(|_| module.label("kept")).collect();
        let changed_here: Vec<Word> = (0..fold.changes()).map(|_| module.label("changed")).collect();
        let advanced = fold.advance(&kept_here, &changed_here, walk.lanes);
        for ((&id, &initial), advanced) in kept_here.iter().zip(initial).zip(advanced) {
            module.define_phi(ty, id, &[(initial, before), (advanced, next)]);
        }
        kept.push(kept_here);
        changed.push(changed_here);
    }
    let more = module.value(Op::SLessThan, truth, &[x, row.n]);
    module.repeat(more, compute, next, end);

    module.open(compute);
    module.enter();
    let mut cells = Vec::new();
    for (buffer, &first) in row.buffers.iter().zip(&row.cells) {
        let mut cell = first;
        if buffer.used && buffer.axes[0] {
            cell = module.displaced(buffer.ty, first, x);
            module.name(cell, format!("{}_cell", buffer.name));
        }
        cells.push(cell);
    }
    let [i, j, k] = row.first;
    let at = body.inputs.global.map(|_| [module.value(Op::IAdd, index, &[i, x]), j, k]);
    body.run(&cells, at);
    for ((fold, kept), changed) in row.folds.iter().zip(&kept).zip(&changed) {
        let value = body.result(fold.output);
        fold.add(body.module, kept, value, changed);
    }
    body.store();
    let module = &mut *body.module;
    module.leave();
    module.branch(next);

    module.open(next);
    module.define(Op::IAdd, index, following, &[x, walk.step]);
    module.branch(head);

    module.open(end);
    End { block: end, x, kept }
}

/// Stores the value of the row for each fold, whichever of the loops ran.
fn store_folds(body: &mut Body<'_, '_>, row: &Row<'_>, [all, alternate]: &[End; 2]) {
    let module = &mut *body.module;
    let index = module.index;
    let x = module.phi(index, &[(all.x, all.block), (alternate.x, alternate.block)]);
    let mut kept = Vec::new();
    for ((fold, of_all), of_alternate) in row.folds.iter().zip(&all.kept).zip(&alternate.kept) {
        let ty = fold.ty(module);
        let ways = of_all.iter().zip(of_alternate);
        let joined = ways
            .map(|(&of_all, &of_alternate)| module.phi(ty, &[(of_all, all.block), (of_alternate, alternate.block)]));
        kept.push(joined.collect::<Vec<Word>>());
    }
    let end = module.value(Op::IAdd, index, &[row.first[0], x]);
    for (fold, kept) in row.folds.iter().zip(&kept) {
        let value = fold.row(module, kept, end);
        let number = fold.output.index();
        module.store(row.buffers[number].ty, row.cells[number], value);
    }
}
