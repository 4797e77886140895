//! `polyhalo inspect` from outside.

use std::collections::BTreeMap;
use std::process::Command;

use polyhalo_codegen::offline::{clang, nvrtc, ocloc, ptxas, require};
use serde_json::Value;

use crate::process::{fails, out, run};
use crate::{file, polyhalo};

#[test]
fn inspect_tells_halos_and_costs_and_shows_every_target() {
    let shown = out(polyhalo(&["inspect", "examples/heat.rs", "--target", "all"]));
    for part in [
        "stencil heat (examples/heat.rs:",
        "halo 1 on -X because of u[-X] in line",
        "15 loads, 1 store, 26 flops (52 operations), at least 32 bytes, 0.812 flops/byte",
        "---- rust ----",
        "let flux = |d: Offset|",
        "---- ir ----",
        "let flux: f64 = (kappa[X] + kappa[HERE]) * (u[X] - u[HERE]); // heat.rs:",
        "---- host ----",
        "*kappa.offset(sy)",
        "---- cuda ----",
        "extern \"C\" __global__",
        "---- ptx",
        "---- sass sm_90",
        "---- gcn gfx90a",
        "---- pvc",
        "---- hip ----",
        "__builtin_amdgcn_workitem_id_x()",
        "---- opencl ----",
        "#pragma OPENCL FP_CONTRACT OFF",
        "---- spirv ----",
        "OpExecutionMode %heat ContractionOff",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
}

#[test]
fn inspect_writes_files() {
    let folder = file("inspected");
    out(polyhalo(&["inspect", "examples/heat.rs", "--kernel", "heat", "--out", folder.to_str().unwrap()]));
    for name in ["heat.cu", "heat.hip", "heat.cl", "heat.spv", "heat.spvasm", "heat.ir", "heat.host.rs", "heat.rs"] {
        assert!(folder.join(name).metadata().is_ok_and(|file| file.len() > 0), "{name} is missing");
    }
    let module = std::fs::read(folder.join("heat.spv")).expect("the module was written");
    assert_eq!(module[..4], 0x0723_0203_u32.to_le_bytes());
}

#[test]
fn inspect_reports_mistakes_by_line_and_ends_with_2() {
    let wrong = file("wrong.rs");
    std::fs::write(&wrong, "#[stencil]\nfn k(u: &Field<f64>) -> f64 {\n    u[0] + q\n}\n")
        .expect("the file is written");
    let said = fails(polyhalo(&["inspect", wrong.to_str().unwrap()]), 2);
    assert!(said.contains("wrong.rs:3:7: field `u` is indexed by an integer"), "{said}");
    assert!(said.contains("wrong.rs:3:12: `q` is not known"), "{said}");
    let said = fails(polyhalo(&["inspect", "Cargo.toml"]), 2);
    assert!(said.contains("not Rust"), "{said}");
    let said = fails(polyhalo(&["inspect", "examples/heat.rs", "--kernel", "cold"]), 2);
    assert!(said.contains("no stencil `cold`; it has heat"), "{said}");
}

/// The tools of each compiled target, as variables and as they are called in `POLYHALO_REQUIRE`.
const VARIABLES: [&str; 5] =
    ["POLYHALO_NVRTC", "POLYHALO_PTXAS", "POLYHALO_NVDISASM", "POLYHALO_CLANG", "POLYHALO_OCLOC"];

/// The compiled targets whose tools are here.
fn targets() -> Vec<&'static str> {
    let nvrtc = require::available("nvrtc", nvrtc::find()).is_some();
    let ptxas = require::available("ptxas", ptxas::find()).is_some();
    let nvdisasm = require::available("nvdisasm", ptxas::find_disassembler()).is_some();
    let clang = require::available("clang", clang::find()).is_some();
    let ocloc = require::available("ocloc", ocloc::find()).is_some();
    let there = [("ptx", nvrtc), ("sass", nvrtc && ptxas && nvdisasm), ("gcn", clang), ("pvc", ocloc)];
    there.into_iter().filter(|(_, there)| *there).map(|(target, _)| target).collect()
}

/// The rows of the first table after `title`, each by the words of its head.
fn rows(shown: &str, title: &str) -> Vec<BTreeMap<String, String>> {
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let (_, after) = shown.split_once(&format!("---- {title}")).unwrap_or_else(|| panic!("no {title} in\n{shown}"));
    let mut lines = after.lines().skip(1).take_while(|line| line.starts_with("  ")).map(cells);
    let head = lines.next().expect("a table has a head");
    lines.map(|row| head.iter().cloned().zip(row).collect()).collect()
}

/// The number in front of a cell such as `15 (120 B)`.
fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    let cell = row.get(column).unwrap_or_else(|| panic!("no {column} in {row:?}"));
    let first = cell.split(' ').next().and_then(|number| number.parse().ok());
    first.unwrap_or_else(|| panic!("{column} is no number in {row:?}"))
}

/// The bytes in a cell such as `15 (120 B)`.
fn bytes(row: &BTreeMap<String, String>, column: &str) -> f64 {
    let inside = row[column].split(['(', ')']).nth(1).and_then(|inside| inside.strip_suffix(" B")?.parse().ok());
    inside.unwrap_or_else(|| panic!("no bytes in {column} of {row:?}"))
}

/// The one row of `kernel`.
fn row<'a>(rows: &'a [BTreeMap<String, String>], kernel: &str) -> &'a BTreeMap<String, String> {
    rows.iter().find(|row| row["kernel"] == kernel).unwrap_or_else(|| panic!("no {kernel} in {rows:?}"))
}

#[test]
fn heat_takes_its_fifteen_values_and_spills_nothing_on_every_gpu() {
    for target in targets() {
        let shown = out(polyhalo(&["inspect", "examples/heat.rs", "--target", target]));
        let rows = rows(&shown, target);
        let point = row(&rows, "heat");
        assert_eq!((bytes(point, "loads"), bytes(point, "loads per point")), (120.0, 120.0), "{target}: {point:?}");
        assert_eq!((number(point, "stores"), bytes(point, "stores")), (1.0, 8.0), "{target}: {point:?}");
        for row in &rows {
            assert!((1.0..=15.0).contains(&number(row, "loads per point")), "{target}: {row:?}");
            if target == "ptx" {
                // Registers of PTX are virtual.
                assert!(!row.contains_key("registers") && !row.contains_key("spills"), "{row:?}");
                continue;
            }
            assert!((16.0..=128.0).contains(&number(row, "registers")), "{target}: {row:?}");
            for column in ["spills", "local", "shared"] {
                assert_eq!(number(row, column), 0.0, "{column} on {target}: {row:?}");
            }
        }
        let (text, waves) = match target {
            "ptx" => (".entry heat(", None),
            "sass" => ("LDG.E.64", None),
            "gcn" => ("global_load_dwordx2", Some("waves")),
            _ => (":df", None),
        };
        assert!(shown.contains(text), "no {text} in\n{shown}");
        assert!(waves.is_none_or(|waves| number(point, waves) >= 4.0), "{point:?}");
    }
}

#[test]
fn a_big_case_is_counted_on_every_gpu() {
    for target in targets() {
        let shown = out(polyhalo(&["inspect", "examples/kernels/elastic.rs:stress", "--target", target]));
        let rows = rows(&shown, target);
        let point = row(&rows, "stress");
        // 44 values of 8 bytes, some of them by one instruction, and six results.
        assert_eq!((bytes(point, "loads"), bytes(point, "stores")), (352.0, 48.0), "{target}: {point:?}");
        assert!((20.0..=44.0).contains(&number(point, "loads")), "{target}: {point:?}");
        match target {
            "sass" | "gcn" => {
                assert_eq!((number(point, "spills"), number(point, "local")), (0.0, 0.0), "{target}: {point:?}");
                assert!((40.0..=128.0).contains(&number(point, "registers")), "{target}: {point:?}");
            }
            // 32 points share 128 registers of 64 bytes there: 4 doubles less a point than this kernel has alive.
            "pvc" => assert!(number(point, "registers") >= 128.0 && number(point, "spills") < 8192.0, "{point:?}"),
            _ => {}
        }
    }
}

#[test]
fn a_row_kernel_is_counted_in_its_loop() {
    if !targets().contains(&"pvc") {
        return;
    }
    let shown = out(polyhalo(&["inspect", "examples/heat.rs", "--target", "pvc"]));
    let rows = rows(&shown, "pvc");
    let row = row(&rows, "heat_rows");
    // It has a loop for all points and one for every other point, each with all that a point takes.
    assert_eq!(
        (bytes(row, "loads"), bytes(row, "loop loads"), bytes(row, "loop stores")),
        (240.0, 120.0, 8.0),
        "{row:?}"
    );
}

#[test]
fn other_gpus_are_chosen_by_arch() {
    let there = targets();
    let mut arches = Vec::new();
    for (target, of_target) in [("sass", ["sm_80", "sm_90"]), ("gcn", ["gfx942", "gfx1100"]), ("pvc", ["pvc", "skl"])] {
        arches.extend(there.contains(&target).then_some(of_target).into_iter().flatten());
    }
    if arches.is_empty() {
        return;
    }
    let folder = file("arches");
    let _ = std::fs::remove_dir_all(&folder);
    let list = arches.join(",");
    let written =
        out(polyhalo(&["inspect", "examples/heat.rs", "--arch", &list, "--out", folder.to_str().expect("UTF-8")]));
    for arch in arches {
        let ending = match arch.get(..2) {
            Some("sm") => "sass",
            Some("gf") => "s",
            _ => "asm",
        };
        let name = format!("heat.{arch}.{ending}");
        let text = std::fs::read_to_string(folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains("heat") && written.contains(&name), "{written}");
    }
    assert!(written.contains("loads per point"), "{written}");
    // Only what was asked for.
    assert!(!written.contains("heat.cu"), "{written}");
}

#[test]
fn a_gpu_that_the_tool_does_not_know_is_an_error_that_names_those_it_knows() {
    let there = targets();
    for (target, arch, tool, known) in
        [("sass", "sm_999", "ptxas", "sm_90"), ("gcn", "gfx1", "clang", "gfx90a"), ("pvc", "volta", "ocloc", "pvc")]
    {
        if there.contains(&target) {
            let said = fails(polyhalo(&["inspect", "examples/heat.rs", "--arch", arch]), 2);
            assert!(said.contains(&format!("`{arch}` is no GPU that {tool} knows")) && said.contains(known), "{said}");
        }
    }
    if there.contains(&"pvc") {
        let said = fails(polyhalo(&["inspect", "examples/heat.rs", "--arch", "dg2"]), 2);
        assert!(said.contains("no pvc dg2: dg2 has no 64-bit floats"), "{said}");
    }
}

#[test]
fn a_tool_that_is_missing_is_named_with_its_install_command() {
    let without = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polyhalo"));
        command.args(["inspect", "examples/heat.rs"]).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
        VARIABLES.iter().for_each(|variable| {
            command.env(variable, "off");
        });
        run(command)
    };
    let install = [
        ("ptx", "pip install --no-deps --target DIR nvidia-cuda-nvrtc-cu12", "POLYHALO_NVRTC", "tests/install nvrtc"),
        ("gcn", "apt-get install clang-22 lld-22", "POLYHALO_CLANG", "tests/install clang"),
        ("pvc", "apt-get install intel-opencl-icd", "POLYHALO_OCLOC", "tests/install ocloc"),
    ];
    let all = out(without(&["--target", "all"]));
    for (target, command, variable, script) in install {
        let said = fails(without(&["--target", target]), 2);
        for part in [&format!("no {target}"), command, variable, script] {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
        let line = all.lines().find(|line| line.starts_with("left out: ") && line.contains(script));
        assert!(line.is_some_and(|line| line.contains(command)), "{target} is not left out in\n{all}");
    }
    assert!(all.contains("---- cuda ----\n//"), "{all}");
    // Each tool of a target for itself.
    for (variable, wheel) in
        [("POLYHALO_PTXAS", "nvidia-cuda-nvcc-cu12"), ("POLYHALO_NVDISASM", "nvidia-cuda-nvdisasm")]
    {
        if targets().contains(&"sass") {
            let mut command = Command::new(env!("CARGO_BIN_EXE_polyhalo"));
            command.args(["inspect", "examples/heat.rs", "--target", "sass"]).env(variable, "off");
            let said = fails(run(command), 2);
            assert!(said.contains("no sass sm_90") && said.contains(wheel) && said.contains(variable), "{said}");
        }
    }
    // In JSON too, where the rest is still told.
    let document: Value = serde_json::from_str(&out(without(&["--json"]))).expect("JSON");
    let targets = document["kernels"][0]["targets"].as_array().expect("targets");
    assert_eq!(targets.len(), 4);
    assert!(targets.iter().all(|target| target["missing"].is_string() && target["kernels"] == serde_json::json!([])));
}

#[test]
fn json_has_every_fact() {
    let said = out(polyhalo(&["inspect", "examples/heat.rs", "--json"]));
    let document: Value = serde_json::from_str(&said).expect("one JSON document and nothing else");
    let [heat] = document["kernels"].as_array().expect("kernels").as_slice() else { panic!("{document}") };
    assert_eq!((&heat["name"], &heat["function"]), (&Value::from("heat"), &Value::from("heat")));
    for (fact, value) in [("loads", 15), ("stores", 1), ("flops", 26), ("operations", 52), ("bytes", 32)] {
        assert_eq!(heat[fact], Value::from(value), "{fact} in {heat}");
    }
    assert_eq!(heat["flops_per_byte"], Value::from(0.8125));
    let u = &heat["fields"][0];
    assert_eq!((&u["name"], &u["halo"]), (&Value::from("u"), &serde_json::json!([[1, 1], [1, 1], [1, 1]])));
    assert_eq!(u["reads"].as_array().map(Vec::len), Some(7));
    assert_eq!(heat["scalars"][0]["name"], Value::from("beta"));
    assert_eq!(heat["forms"][0], serde_json::json!({ "entry": "heat", "walk": "point", "index_bits": 64 }));
    let forms: Vec<&str> =
        heat["forms"].as_array().into_iter().flatten().filter_map(|form| form["entry"].as_str()).collect();
    let there = targets();
    for target in heat["targets"].as_array().expect("targets") {
        let name = target["target"].as_str().expect("a name");
        if !there.contains(&name) {
            assert!(target["missing"].is_string(), "{target}");
            continue;
        }
        assert!(target["missing"].is_null() && target["tools"].is_string(), "{target}");
        let kernels = target["kernels"].as_array().expect("kernels");
        let point = kernels.iter().find(|kernel| kernel["kernel"] == "heat").expect("the kernel itself");
        assert_eq!(point["loaded_bytes_per_point"], Value::from(120.0), "{point}");
        assert_eq!(point["whole"]["stored_bytes"], Value::from(8), "{point}");
        assert_eq!(point["registers"].is_u64(), name != "ptx", "{point}");
        // OpenCL C has its own forms.
        for form in forms.iter().filter(|_| name != "pvc") {
            assert!(kernels.iter().any(|kernel| kernel["kernel"] == *form), "no {form} in {target}");
        }
    }
}

#[test]
fn json_and_texts_go_together() {
    let folder = file("json");
    let folder = folder.to_str().expect("UTF-8");
    let said = out(polyhalo(&["inspect", "examples/heat.rs", "--json", "--target", "cuda", "--out", folder]));
    let document: Value = serde_json::from_str(&said).expect("JSON");
    let heat = &document["kernels"][0];
    assert_eq!(heat["targets"], serde_json::json!([]));
    let written = heat["files"][0].as_str().expect("a file");
    assert!(std::fs::read_to_string(written).is_ok_and(|text| text.contains("__global__")), "{written}");
}
