//! The kernel functions in the C dialects: in one a work item computes a point, in the other a row along X.

use super::address::{Axes, ROWS, Stride, along, stride};
use super::c::{Own, Source};
use super::fold::LANES;
use crate::ir::Axis;

impl Source<'_> {
    /// What is inside the kernel function that computes a point; `ids` are the expressions for the point within the box.
    pub(crate) fn point(&self, ids: [String; 3]) -> Vec<String> {
        let Own { ijk, cells, .. } = &self.own;
        let mut lines = self.ids(&ids, &Axis::ALL);
        lines.extend([format!("    if ({}) {{", self.is_left_out()), "        return;".into(), "    }".into()]);
        lines.extend(self.rows_of_a_plane());
        lines.extend(cells.iter().rev().map(|(axes, cell)| self.index(&cell.c, *axes, [&ijk[0], &ijk[1], &ijk[2]])));
        lines.push(String::new());
        lines.extend(self.tables());
        lines.extend(self.body(4));
        lines
    }

    /// Where a work item finds itself among the rows; it ends if there is none for it.
    pub(crate) fn row_ids(&self, ids: [String; 2]) -> Vec<String> {
        self.ids(&ids, &[Axis::Y, Axis::Z])
    }

    /// What is inside the function that computes row (j, k). `before` are lines that stand before the loop over its
    /// points.
    pub(crate) fn row(&self, before: &[&str]) -> Vec<String> {
        let Own { ijk, cells, n, lo, lane, block, .. } = &self.own;
        let (i, n_x) = (&ijk[0], &n[0]);
        let mut lines: Vec<String> = self.rows_of_a_plane().into_iter().collect();
        for (axes, cell) in cells.iter().rev() {
            let name = if axes[0] { &cell.row } else { &cell.c };
            lines.push(self.index(name, *axes, ["", &ijk[1], &ijk[2]]));
        }
        lines.extend(self.tables());
        lines.extend(self.fold_variables());
        lines.extend(before.iter().map(|line| line.to_string()));
        let left_out = self.is_left_out();
        let indent = if self.has_lanes() {
            lines.extend([
                format!("    for (int {block} = -({} & {}); {block} < {n_x}; {block} += {LANES}) {{", lo[0], LANES - 1),
                "#pragma unroll".into(),
                format!("        for (int {lane} = 0; {lane} < {LANES}; ++{lane}) {{"),
                format!("            const int {i} = {block} + {lane};"),
                format!("            if ({i} < 0 || {i} >= {n_x} || ({left_out})) {{"),
            ]);
            12
        } else {
            lines.push(format!("    for (int {i} = 0; {i} < {n_x}; ++{i}) {{"));
            lines.push(format!("        if ({left_out}) {{"));
            8
        };
        lines.extend([format!("{:indent$}    continue;", ""), format!("{:indent$}}}", "")]);
        for (_, cell) in cells.iter().rev().filter(|(axes, _)| axes[0]) {
            lines.push(format!("{:indent$}const {} {} = {} + {i};", "", self.own.index, cell.c, cell.row));
        }
        lines.push(String::new());
        lines.extend(self.body(indent));
        lines.extend((4..indent).step_by(4).rev().map(|indent| format!("{:indent$}}}", "")));
        lines.extend(self.fold_stores());
        lines
    }

    /// Names the ids along `axes`, and returns where there is nothing to do.
    pub(crate) fn ids(&self, ids: &[String], axes: &[Axis]) -> Vec<String> {
        let Own { ijk, n, .. } = &self.own;
        let named = axes.iter().zip(ids).map(|(axis, id)| format!("    const int {} = {id};", ijk[*axis as usize]));
        let outside = axes.iter().map(|axis| format!("{} >= {}", ijk[*axis as usize], n[*axis as usize]));
        let outside: Vec<String> = outside.collect();
        let end = [format!("    if ({}) {{", outside.join(" || ")), "        return;".into(), "    }".into()];
        named.chain(end).collect()
    }

    /// `parity >= 0 && ((lo_x + lo_y + lo_z + i + j + k) & 1) != parity`
    pub(crate) fn is_left_out(&self) -> String {
        let Own { lo, ijk, parity, .. } = &self.own;
        format!("{parity} >= 0 && (({} + {}) & 1) != {parity}", lo.join(" + "), ijk.join(" + "))
    }

    /// `const long rows = sz / sy;`, where it is needed.
    pub(crate) fn rows_of_a_plane(&self) -> Option<String> {
        let Own { rows, sy, sz, cells, index, .. } = &self.own;
        cells.contains_key(&ROWS).then(|| format!("    const {index} {rows} = {sz} / {sy};"))
    }

    /// `const Index c = (lo_x + i) + (lo_y + j) * sy + (lo_z + k) * sz;` for the point `at` of the box; without `i` the
    /// index of a row's first point.
    pub(crate) fn index(&self, name: &str, axes: Axes, at: [&str; 3]) -> String {
        let Own { lo, sy, sz, rows, index, .. } = &self.own;
        let terms = along(axes).map(|axis| {
            let term = match (lo[axis as usize].as_str(), at[axis as usize]) {
                (lo, "") => return lo.to_owned(),
                (lo, at) => format!("({lo} + {at})"),
            };
            match stride(axes, axis) {
                Stride::Cell => term,
                Stride::Row => format!("{term} * {sy}"),
                Stride::Plane => format!("{term} * {sz}"),
                Stride::Rows => format!("{term} * {rows}"),
            }
        });
        let terms: Vec<String> = terms.collect();
        // A single sum needs no parentheses.
        let value = match terms.as_slice() {
            [term] => term.trim_start_matches('(').trim_end_matches(')').to_owned(),
            terms => terms.join(" + "),
        };
        format!("    const {index} {name} = {value};")
    }
}
