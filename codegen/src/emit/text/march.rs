//! Marching along Z: a thread computes one point of its column after the other, and what the next point needs too stays in
//! registers.
//!
//! Cells of a field that differ only along Z are a *column*. Of a column that is read in several planes a thread keeps a
//! window, from the least to the greatest of these planes; it is filled before the first point and moves on by a plane
//! after each, so that each point loads one value of each column. What is read of fields that don't extend along Z is
//! loaded before the first point. All this is loaded whatever the branches of the kernel: the whole footprint of every
//! point of the box can be read.
//!
//! A result may take the place of a field. A value in a window may then be older than the one in memory, or newer than
//! another thread's window has it; but a kernel uses only those values that the launch writes for no other point.

use std::collections::{BTreeMap, BTreeSet};

use super::address::{Axes, Stride, addressed, stride, suffix};
use super::c::{Own, Source};
use super::walk::used;
use crate::emit::names::Names;
use crate::ir::{Axis, ExprKind, Field, Id, Kernel, Offset};

/// The most bytes that a thread may keep from one point to the next. On every GPU twice as many are left in registers then.
const MOST_BYTES: usize = 48 * 8;

/// What a thread that marches has in registers.
pub(crate) struct March {
    /// The columns that are read, in order.
    columns: Vec<Column>,
    /// The names of values, by field and offset.
    names: BTreeMap<(Id<Field>, [i32; 3]), String>,
    /// The number of planes in each part of the box, but the last.
    planes: String,
    /// The first plane of the thread, and the one after its last.
    first: String,
    end: String,
    /// The indices of the first point, by the axes along which fields extend.
    start: BTreeMap<Axes, String>,
}

/// Cells of a field that differ only along Z.
struct Column {
    field: Id<Field>,
    /// Where it is seen from the point, along X and Y.
    at: [i32; 2],
    /// The least and the greatest offset along Z.
    planes: [i32; 2],
}

impl Column {
    /// The offsets from the least to the greatest.
    fn offsets(&self) -> impl Iterator<Item = Offset> {
        let [low, high] = self.planes;
        (low..=high).map(|z| self.offset(z))
    }

    fn offset(&self, z: i32) -> Offset {
        Offset([self.at[0], self.at[1], z])
    }

    /// Whether a window is kept of it.
    fn has_window(&self) -> bool {
        self.planes[0] < self.planes[1]
    }
}

impl March {
    /// How to march, unless that saves no load or keeps too much, or the kernel folds results of rows.
    pub(crate) fn new(kernel: &Kernel, names: &mut Names) -> Option<March> {
        let columns = columns(kernel);
        let kept = |column: &Column| match kernel.fields[column.field].axes[Axis::Z as usize] {
            true if column.has_window() => column.offsets().count(),
            true => 0,
            false => 1,
        };
        // A register has four bytes.
        let bytes = |column: &Column| kept(column) * kernel.fields[column.field].ty.bytes().max(4);
        let folds = kernel.outputs.iter().any(|output| output.role.is_fold());
        if folds || !columns.iter().any(Column::has_window) || columns.iter().map(bytes).sum::<usize>() > MOST_BYTES {
            return None;
        }
        let mut values = BTreeMap::new();
        for column in &columns {
            for offset in column.offsets() {
                let wish = format!("{}_{}", names.field(column.field), place(offset));
                values.insert((column.field, offset.0), names.fresh(&wish));
            }
        }
        let [planes, first, end] = ["planes", "first", "end"].map(|wish| names.fresh(wish));
        let start = addressed(kernel).into_iter().rev();
        let start = start.map(|axes| (axes, names.fresh(&format!("start{}", suffix(axes))))).collect();
        Some(March { columns, names: values, planes, first, end, start })
    }

    /// The name of a value that the kernel reads.
    pub(crate) fn name(&self, field: Id<Field>, offset: Offset) -> &str {
        &self.names[&(field, offset.0)]
    }
}

/// The columns that a kernel reads.
fn columns(kernel: &Kernel) -> Vec<Column> {
    let mut planes: BTreeMap<(Id<Field>, [i32; 2]), BTreeSet<i32>> = BTreeMap::new();
    for id in used(kernel) {
        if let ExprKind::Load { field, offset: Offset([x, y, z]) } = kernel.exprs[id].kind {
            planes.entry((field, [x, y])).or_default().insert(z);
        }
    }
    let column = |((field, at), planes): ((Id<Field>, [i32; 2]), BTreeSet<i32>)| {
        let (low, high) = planes.first().zip(planes.last()).expect("a column is there because it is read");
        Column { field, at, planes: [*low, *high] }
    };
    planes.into_iter().map(column).collect()
}

/// An offset as a part of a name: `here`, `x1`, `xm1_z2`.
fn place(offset: Offset) -> String {
    let along = |axis: Axis| {
        let (name, cells) = (axis.name().to_lowercase(), offset.along(axis));
        match cells {
            0 => None,
            ..0 => Some(format!("{name}m{}", cells.unsigned_abs())),
            1.. => Some(format!("{name}{cells}")),
        }
    };
    let parts: Vec<String> = Axis::ALL.into_iter().filter_map(along).collect();
    if parts.is_empty() { "here".into() } else { parts.join("_") }
}

impl Source<'_> {
    /// What is inside the function that computes part `part` of as many as `parts` of a column; `ids` are the expressions
    /// for its place in the box along X and Y.
    pub(crate) fn column(&self, march: &March, ids: [String; 2], [part, parts]: [String; 2]) -> Vec<String> {
        let Own { ijk, n, cells, sy, sz, rows, index, .. } = &self.own;
        let (March { planes, first, end, .. }, [i, j, k], n_z) = (march, ijk, &n[2]);
        let mut lines = vec![
            format!("    const int {i} = {};", ids[0]),
            format!("    const int {j} = {};", ids[1]),
            format!("    const int {planes} = ({n_z} - 1) / {parts} + 1;"),
            format!("    const int {first} = {part} * {planes};"),
            format!("    if ({i} >= {} || {j} >= {} || {first} >= {n_z}) {{", n[0], n[1]),
            "        return;".into(),
            "    }".into(),
            format!("    const int {end} = {n_z} - {first} < {planes} ? {n_z} : {first} + {planes};"),
        ];
        lines.extend(self.rows_of_a_plane());
        let at = [i, j, first].map(String::as_str);
        lines.extend(march.start.iter().rev().map(|(axes, start)| self.index(start, *axes, at)));
        lines.push(String::new());
        lines.extend(self.tables());
        for column in &march.columns {
            let is_flat = !self.kernel.fields[column.field].axes[2];
            let kept = column.offsets().filter(|offset| is_flat || offset.along(Axis::Z) < column.planes[1]);
            let word = if is_flat { "const " } else { "" };
            let start = &march.start[&self.kernel.fields[column.field].axes];
            lines.extend(kept.flat_map(|offset| self.loaded(column.field, offset, word, start, 4)));
        }
        // Several points in one round would move fewer values, but need more registers and text.
        lines.push("#pragma unroll 1".into());
        lines.push(format!("    for (int {k} = {first}; {k} < {end}; ++{k}) {{"));
        for (axes, cell) in cells.iter().rev().filter(|(axes, _)| axes[2]) {
            let planes_on = match stride(*axes, Axis::Z) {
                Stride::Cell => format!("({k} - {first})"),
                Stride::Row => format!("({k} - {first}) * {sy}"),
                Stride::Plane => format!("({k} - {first}) * {sz}"),
                Stride::Rows => format!("({k} - {first}) * {rows}"),
            };
            lines.push(format!("        const {index} {} = {} + {planes_on};", cell.c, march.start[axes]));
        }
        // Its value in the last plane that is read: of a window the one that is new, of others the only one.
        let last = |column: &Column, indent: usize| {
            let c = &cells[&self.kernel.fields[column.field].axes].c;
            self.loaded(column.field, column.offset(column.planes[1]), "const ", c, indent)
        };
        let (windows, others): (Vec<&Column>, Vec<&Column>) = march
            .columns
            .iter()
            .filter(|column| self.kernel.fields[column.field].axes[2])
            .partition(|column| column.has_window());
        lines.extend(windows.iter().flat_map(|column| last(column, 8)));
        lines.push(format!("        if (!({})) {{", self.is_left_out()));
        lines.extend(others.iter().flat_map(|column| last(column, 12)));
        lines.extend(self.body(12));
        lines.push("        }".into());
        for column in windows {
            let names: Vec<&str> = column.offsets().map(|offset| march.name(column.field, offset)).collect();
            lines.extend(names.windows(2).map(|pair| format!("        {} = {};", pair[0], pair[1])));
        }
        lines.push("    }".into());
        lines
    }

    /// `const double u_x1 = u[c + 1];`; `word` is the `const`.
    fn loaded(&self, field: Id<Field>, offset: Offset, word: &str, from: &str, indent: usize) -> Vec<String> {
        let name = self.march.as_ref().map_or("", |march| march.name(field, offset));
        let before = format!("{word}{} {name} = ", self.ty(self.kernel.fields[field].ty));
        self.cell(field, from, offset).around(&before, ";").lines(indent)
    }
}
