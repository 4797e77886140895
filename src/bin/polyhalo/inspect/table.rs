//! What the kernels of a compiled text use, as a table.

use polyhalo_codegen::offline::{Traffic, Usage};

/// One row for each kernel, under a head; columns that say nothing are left out. Columns stand two spaces apart at least.
pub(super) fn table(kernels: &[Usage], stored_bytes: usize) -> String {
    let rows: Vec<Vec<(&str, Option<String>)>> = kernels.iter().map(|kernel| cells(kernel, stored_bytes)).collect();
    let Some(first) = rows.first() else { return "  no kernel\n".into() };
    let said = |column: usize| rows.iter().any(|row| row[column].1.is_some());
    let columns: Vec<usize> = (0..first.len()).filter(|column| said(*column)).collect();
    let mut lines = vec![String::from(" "); rows.len() + 1];
    for column in columns {
        let head = first[column].0.to_owned();
        let texts: Vec<String> = std::iter::once(head)
            .chain(rows.iter().map(|row| row[column].1.clone().unwrap_or_else(|| "-".into())))
            .collect();
        let width = texts.iter().map(|text| text.len()).max().unwrap_or(0) + 1;
        for (line, text) in lines.iter_mut().zip(&texts) {
            line.push_str(&format!(" {text:width$}"));
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn cells(kernel: &Usage, stored_bytes: usize) -> Vec<(&'static str, Option<String>)> {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let bytes = |bytes: Option<u32>| bytes.map(|bytes| format!("{bytes} B"));
    let moved = |count: u32, bytes: u32| Some(format!("{count} ({bytes} B)"));
    let loads = |traffic: Traffic| moved(traffic.loads, traffic.loaded_bytes);
    let stores = |traffic: Traffic| moved(traffic.stores, traffic.stored_bytes);
    let (loads_per_point, bytes_per_point) = kernel.per_point(stored_bytes);
    vec![
        ("kernel", Some(kernel.kernel.clone())),
        ("registers", number(kernel.registers)),
        ("scalar", number(kernel.scalar_registers)),
        ("spills", bytes(kernel.spill_bytes)),
        ("local", bytes(kernel.local_bytes)),
        ("shared", bytes(kernel.shared_bytes)),
        ("lanes", number(kernel.lanes)),
        ("waves", number(kernel.waves)),
        ("loads", loads(kernel.traffic)),
        ("stores", stores(kernel.traffic)),
        ("loop loads", kernel.in_loop.and_then(loads)),
        ("loop stores", kernel.in_loop.and_then(stores)),
        ("loads per point", Some(format!("{} ({} B)", short(loads_per_point), short(bytes_per_point)))),
    ]
}

/// One decimal where there is one.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_say_nothing_are_left_out() {
        let traffic = |loads| Traffic { loads, loaded_bytes: 8 * loads, stores: 1, stored_bytes: 8 };
        let point = Usage { kernel: "heat".into(), registers: Some(30), traffic: traffic(15), ..Usage::default() };
        let march = Usage {
            kernel: "heat_march".into(),
            registers: Some(40),
            traffic: traffic(20),
            in_loop: Some(Traffic { stores: 2, stored_bytes: 16, ..traffic(11) }),
            ..Usage::default()
        };
        assert_eq!(
            table(&[point, march], 8),
            "  kernel      registers  loads       stores   loop loads  loop stores  loads per point\n  \
               heat        30         15 (120 B)  1 (8 B)  -           -            15 (120 B)\n  \
               heat_march  40         20 (160 B)  1 (8 B)  11 (88 B)   2 (16 B)     5.5 (44 B)\n"
        );
        assert_eq!(table(&[], 8), "  no kernel\n");
    }
}
