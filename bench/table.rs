//! Markdown tables, with columns aligned for reading as text.

/// A table from its head and rows, all of the same length.
pub fn markdown(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|width| format!("{}:", "-".repeat(width - 1))).collect();
    let mut text = line(&mut head.iter().copied());
    text.push_str(&line(&mut rule.iter().map(String::as_str)));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["1".to_owned(), "x".to_owned()], vec!["1000".to_owned(), "µs".to_owned()]];
        assert_eq!(
            markdown(&["n", "time"], &rows),
            "|    n | time |\n| ---: | ---: |\n|    1 |    x |\n| 1000 |   µs |\n"
        );
    }
}
