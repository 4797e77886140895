//! Checkpoints of every type, and everything that can be wrong with them.

use std::io::Cursor;

use super::*;
use crate::error::CheckpointDifference as Difference;
use crate::testing::{Folder, noise};

fn field(name: &str, ty: ScalarType, cells: [usize; 3]) -> StoredField {
    StoredField { name: name.into(), ty, cells }
}

fn scalar(name: &str, ty: ScalarType, bits: u64) -> StoredScalar {
    StoredScalar { name: name.into(), ty, bits }
}

fn sample() -> Header {
    Header {
        program: fingerprint(["heat"]),
        grid: [3, 2, 4],
        steps: 1234,
        fields: ScalarType::ALL
            .into_iter()
            .map(|ty| field(ty.name(), ty, [3, 2, 4]))
            .chain([field("staggered é", ScalarType::F32, [4, 2, 4]), field("profile", ScalarType::F64, [3, 1, 1])])
            .collect(),
        scalars: vec![
            scalar("dt", ScalarType::F64, 0x7ff8_0000_0000_1234),
            scalar("on", ScalarType::Bool, 1),
            scalar("n", ScalarType::I32, 0xffff_fffe),
        ],
        counters: vec![Counter { name: "step 0".into(), count: 1234 }],
        records: vec![
            StoredRecord { name: "receiver".into(), ty: ScalarType::F32, points: 2, values: (0..24).collect() },
            StoredRecord { name: "empty".into(), ty: ScalarType::F64, points: 1, values: Vec::new() },
        ],
    }
}

/// The bytes of a field, as this machine stores them: they tell fields and places apart.
fn bytes(header: &Header, number: usize) -> Vec<u8> {
    let StoredField { ty, cells, .. } = &header.fields[number];
    let values = 0..cells.iter().product::<usize>() * ty.bytes();
    values.map(|n| if *ty == ScalarType::Bool { (n % 3 == 1).into() } else { (n * 7 + number * 31) as u8 }).collect()
}

fn save(path: &Path, header: &Header) -> Result<()> {
    write(path, header, |number, sink| {
        let width = header.fields[number].ty.bytes();
        bytes(header, number).chunks(5 * width).try_for_each(sink)
    })
}

fn load<F: Read + Seek>(checkpoint: &mut Checkpoint<F>, number: usize) -> Vec<u8> {
    let (mut bytes, mut next) = (Vec::new(), 0);
    checkpoint
        .read_field(number, |planes, piece| {
            assert_eq!(planes.start, next);
            next = planes.end;
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .unwrap();
    assert_eq!(next, checkpoint.header().fields[number].cells[2]);
    bytes
}

/// A file whose checksum and length are right, whatever else is in it.
fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    let body = file.len() - SUFFIX as usize;
    let length = file.len() as u64;
    file[20..28].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32fast::hash(&file[..body]);
    file[body..].copy_from_slice(&checksum.to_le_bytes());
    file
}

#[test]
fn everything_comes_back_bit_for_bit() {
    let folder = Folder::new("checkpoint");
    let (path, header) = (folder.path("run.checkpoint"), sample());
    for _ in 0..2 {
        save(&path, &header).unwrap();
        let mut checkpoint = open(&path).unwrap();
        assert_eq!(checkpoint.header(), &header);
        checkpoint.fits(&header).unwrap();
        for number in (0..header.fields.len()).rev() {
            assert_eq!(load(&mut checkpoint, number), bytes(&header, number), "{number}");
        }
    }
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
    let nothing = Header::default();
    save(&path, &nothing).unwrap();
    assert_eq!(open(&path).unwrap().header(), &nothing);
}

#[test]
fn large_fields_come_in_whole_planes() {
    let folder = Folder::new("checkpoint-large");
    let path = folder.path("large");
    let header = Header { fields: vec![field("u", ScalarType::U8, [1 << 12, 1 << 12, 9])], ..Header::default() };
    let plane = vec![7; 1 << 24];
    write(&path, &header, |_, sink| (0..9).try_for_each(|_| sink(&plane))).unwrap();
    let mut pieces = Vec::new();
    let mut checkpoint = open(&path).unwrap();
    checkpoint
        .read_field(0, |planes, bytes| {
            assert_eq!(bytes.len(), planes.len() << 24);
            pieces.push(planes);
            Ok(())
        })
        .unwrap();
    assert_eq!(pieces, [0..4, 4..8, 8..9]);
    let stopped = checkpoint.read_field(0, |planes, _| {
        if planes.start == 0 { Ok(()) } else { Err(Error::Stopped { steps: 1, checkpoint: None }) }
    });
    assert!(matches!(stopped, Err(Error::Stopped { steps: 1, checkpoint: None })));
}

#[test]
fn the_bytes_of_the_format_stay_as_they_are() {
    let folder = Folder::new("checkpoint-format");
    let path = folder.path("small");
    let header = Header {
        program: 0x0102,
        grid: [2, 1, 1],
        steps: 3,
        fields: vec![field("u", ScalarType::U8, [2, 1, 1])],
        scalars: vec![scalar("a", ScalarType::Bool, 1)],
        counters: vec![Counter { name: "c".into(), count: 5 }],
        records: vec![StoredRecord { name: "r".into(), ty: ScalarType::I8, points: 1, values: vec![9] }],
    };
    write(&path, &header, |_, sink| sink(&[0xaa, 0xbb])).unwrap();
    let mut expected = b"\x89PHALO\r\n\x01\0\0\0".to_vec();
    let number = |n: u64| n.to_le_bytes().to_vec();
    let named = |name: &[u8]| [&number(1), name].concat();
    let head = [
        0x0102_u128.to_le_bytes().to_vec(),
        [2, 1, 1, 3].map(number).concat(),
        [number(1), named(b"u"), vec![8], [2, 1, 1].map(number).concat()].concat(),
        [number(1), named(b"a"), vec![9], number(1)].concat(),
        [number(1), named(b"c"), number(5)].concat(),
        [number(1), named(b"r"), vec![5], number(1), number(1), vec![9]].concat(),
    ]
    .concat();
    expected
        .extend([number(head.len() as u64), number(28 + head.len() as u64 + 2 + 4), head, vec![0xaa, 0xbb]].concat());
    expected.extend(crc32fast::hash(&expected).to_le_bytes());
    assert_eq!(fs::read(&path).unwrap(), expected);
}

#[test]
fn every_changed_byte_and_every_length_is_noticed() {
    let folder = Folder::new("checkpoint-damage");
    let (path, header) = (folder.path("run"), sample());
    save(&path, &header).unwrap();
    let whole = fs::read(&path).unwrap();
    let refused = |file: &[u8], what: &str| match examine(&path, Cursor::new(file), file.len() as u64) {
        Err(Error::DamagedCheckpoint { .. } | Error::NoCheckpoint { .. } | Error::CheckpointVersion { .. }) => {}
        other => panic!("{what}: {other:?}"),
    };
    for at in 0..whole.len() {
        for change in [1, 0x80, 0xff] {
            let mut file = whole.clone();
            file[at] ^= change;
            refused(&file, &format!("byte {at} changed by {change}"));
        }
        refused(&whole[..at], &format!("{at} bytes"));
    }
    refused(&[&whole[..], &[0]].concat(), "a byte more");
    // A file that changes while it is read is an error too.
    let grown = examine(&path, Cursor::new(&whole[..whole.len() - 1]), whole.len() as u64);
    assert!(matches!(grown, Err(Error::Read { .. })), "{grown:?}");
    examine(&path, Cursor::new(&whole), whole.len() as u64).unwrap();
}

#[test]
fn a_header_that_lies_behind_a_right_checksum_is_refused_or_read_and_never_trusted() {
    let folder = Folder::new("checkpoint-lies");
    let (path, header) = (folder.path("run"), sample());
    save(&path, &header).unwrap();
    let whole = fs::read(&path).unwrap();
    let head = header.encode().len();
    let check = |file: Vec<u8>| {
        let length = file.len() as u64;
        match examine(&path, Cursor::new(sealed(file)), length) {
            Ok(mut checkpoint) => {
                for number in 0..checkpoint.header().fields.len() {
                    load(&mut checkpoint, number);
                }
            }
            Err(Error::DamagedCheckpoint { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    };
    for at in (12..20).chain(28..28 + head) {
        for change in [1, 2, 0x40, 0x80, 0xff] {
            let mut file = whole.clone();
            file[at] ^= change;
            check(file);
        }
    }
    for length in 32..whole.len() {
        check(whole[..length].to_vec());
    }
}

#[test]
fn headers_of_any_bytes_are_refused_or_come_back() {
    let whole = sample().encode();
    let mut noise = noise(7);
    let mut below = |bound: usize| (noise() * bound as f64) as usize;
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..below(6) {
            let at = below(whole.len());
            bytes[at] = below(256) as u8;
        }
        if below(4) == 0 {
            bytes.truncate(below(whole.len() + 1));
            bytes.extend((0..below(80)).map(|_| below(256) as u8));
        }
        if let Ok(header) = Header::decode(&bytes) {
            assert_eq!(header.encode(), bytes);
            accepted += 1;
        }
    }
    assert!((2_000..18_000).contains(&accepted), "both happen often: {accepted}");
}

#[test]
fn a_header_without_sense_is_damaged() {
    let check = |change: &dyn Fn(&mut Header), expected: &str| {
        let mut header = sample();
        change(&mut header);
        assert_eq!(Header::decode(&header.encode()), Err(expected));
    };
    let names = "two things of one kind have the same name";
    check(&|header| header.fields[1].name = "f64".into(), names);
    check(&|header| header.scalars[1].name = "dt".into(), names);
    check(&|header| header.records[0].name = "empty".into(), names);
    check(&|header| header.counters.push(header.counters[0].clone()), names);
    let value = "a scalar in its header is no value of its type";
    check(&|header| header.scalars[1].bits = 2, value);
    check(&|header| header.scalars[2].bits = 1 << 32, value);
    check(&|header| header.records[0].points = 5, "a record in its header ends inside a step");
    check(&|header| header.records[0].points = 0, "a record in its header ends inside a step");
    check(&|header| header.records[0].points = usize::MAX / 2, "a record in its header has too many points");
    let mut uncounted = sample();
    uncounted.fields[0].cells = [1 << 40, 1 << 40, 1];
    assert_eq!(uncounted.field_bytes(), None);
    uncounted.fields[0].cells = [1 << 31, 1 << 31, 0];
    assert_eq!(uncounted.field_bytes(), None);
}

#[test]
fn bytes_that_are_no_truth_values_are_refused() {
    let folder = Folder::new("checkpoint-bool");
    let path = folder.path("run");
    let header = Header { fields: vec![field("flag", ScalarType::Bool, [2, 1, 1])], ..Header::default() };
    write(&path, &header, |_, sink| sink(&[0, 1])).unwrap();
    open(&path).unwrap();
    write(&path, &header, |_, sink| sink(&[0, 2])).unwrap();
    let Err(Error::DamagedCheckpoint { reason, .. }) = open(&path) else { panic!("2 is taken for a truth value") };
    assert_eq!(reason, "field `flag` holds bytes that are no truth values");
}

#[test]
fn each_fact_that_differs_is_named() {
    let folder = Folder::new("checkpoint-other");
    let path = folder.path("run.checkpoint");
    save(&path, &sample()).unwrap();
    let checkpoint = open(&path).unwrap();
    let check = |change: &dyn Fn(&mut Header), expected: &str| {
        let mut simulation = sample();
        change(&mut simulation);
        match checkpoint.fits(&simulation) {
            Err(Error::OtherCheckpoint { difference, .. }) => assert_eq!(difference.to_string(), expected),
            other => panic!("{expected}: {other:?}"),
        }
    };
    check(&|header| header.grid[1] = 5, "its grid is 3x2x4, and the simulation's is 3x5x4");
    check(
        &|header| {
            header.fields.remove(0);
            header.fields[0].name = "v".into();
        },
        "it has no fields `v`, which the simulation has, and it has fields `f64`, `f32`, which the simulation hasn't",
    );
    check(&|header| header.scalars.clear(), "it has scalars `dt`, `on`, `n`, which the simulation hasn't");
    check(
        &|header| header.counters[0].name = "x".into(),
        "it has no step counters `x`, which the simulation has, and it has step counters `step 0`, which the simulation hasn't",
    );
    check(&|header| header.records.truncate(1), "it has records `empty`, which the simulation hasn't");
    check(&|header| header.fields[1].ty = ScalarType::F64, "field `f32` holds f32, and the simulation's holds f64");
    check(&|header| header.fields[0].cells[0] = 4, "field `f64` has 3x2x4 cells, and the simulation's has 4x2x4");
    check(&|header| header.scalars[0].ty = ScalarType::F32, "scalar `dt` holds f64, and the simulation's holds f32");
    check(&|header| header.records[1].ty = ScalarType::F32, "record `empty` holds f64, and the simulation's holds f32");
    check(
        &|header| header.records[0].points = 3,
        "record `receiver` has 2 values per step, and the simulation's has 3",
    );
    check(
        &|header| header.program = 0,
        "it was written by a program with other kernels or steps, and would not go on as it began; use the program that wrote it",
    );
    let mut other = sample();
    other.grid[0] = 4;
    let error = checkpoint.fits(&other).unwrap_err();
    assert!(
        matches!(
            &error,
            Error::OtherCheckpoint { difference: Difference::Grid { found: [3, 2, 4], expected: [4, 2, 4] }, .. }
        ),
        "{error:?}"
    );
    let text = format!("the checkpoint {} doesn't fit this simulation: its grid is", path.display());
    assert!(error.to_string().starts_with(&text), "{error}");
}

#[test]
fn order_and_numbers_are_no_difference() {
    let folder = Folder::new("checkpoint-order");
    let path = folder.path("run");
    save(&path, &sample()).unwrap();
    let mut other = sample();
    other.fields.reverse();
    other.scalars.reverse();
    other.records.reverse();
    other.scalars[0].bits = 0;
    other.records[0].values.clear();
    other.records[1].values.clear();
    (other.steps, other.counters[0].count) = (0, 0);
    open(&path).unwrap().fits(&other).unwrap();
}

#[test]
fn a_failure_leaves_the_last_checkpoint_whole_and_nothing_else() {
    let folder = Folder::new("checkpoint-failure");
    let (path, header) = (folder.path("run"), sample());
    save(&path, &header).unwrap();
    let result = write(&path, &header, |number, sink| match number {
        0 => sink(&bytes(&header, 0)),
        _ => Err(Error::Stopped { steps: 5, checkpoint: None }),
    });
    assert!(matches!(result, Err(Error::Stopped { steps: 5, checkpoint: None })));
    assert_eq!(load(&mut open(&path).unwrap(), 3), bytes(&header, 3));
    let mut twice = sample();
    twice.fields[1].name = "f64".into();
    let Err(Error::Write { reason, .. }) = save(&path, &twice) else { panic!("a name may be there twice") };
    assert_eq!(reason, "two things of one kind have the name `f64`");
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
}

/// A reader goes on with the file that it has opened, whatever becomes of the name.
#[cfg(unix)]
#[test]
fn an_open_checkpoint_may_be_replaced() {
    let folder = Folder::new("checkpoint-replaced");
    let (path, header) = (folder.path("run"), sample());
    save(&path, &header).unwrap();
    let mut old = open(&path).unwrap();
    save(&path, &Header::default()).unwrap();
    assert_eq!(load(&mut old, 2), bytes(&header, 2));
}

#[test]
fn what_is_no_checkpoint_is_told_so() {
    let folder = Folder::new("checkpoint-none");
    let path = folder.path("file");
    for text in ["", "polyhalo", "\u{89}PHALO\r\n, as text", "P6 512 512 255"] {
        fs::write(&path, text).unwrap();
        assert!(matches!(open(&path), Err(Error::NoCheckpoint { .. })), "{text:?}");
    }
    fs::write(&path, [&MARK[..], &7_u32.to_le_bytes()].concat()).unwrap();
    assert!(matches!(open(&path), Err(Error::CheckpointVersion { found: 7, known: 1, .. })));
    for absent in [folder.path("absent"), folder.path("")] {
        assert!(matches!(open(&absent), Err(Error::Read { .. })), "{absent:?}");
    }
}

#[test]
fn fingerprints_tell_texts_and_their_bounds_apart() {
    let prints = [
        fingerprint([]),
        fingerprint([""]),
        fingerprint(["", ""]),
        fingerprint(["a", "bc"]),
        fingerprint(["ab", "c"]),
        fingerprint(["abc"]),
    ];
    assert!(prints.iter().enumerate().all(|(n, print)| !prints[..n].contains(print)), "{prints:x?}");
    // It is stored in files: it may never change.
    assert_eq!(fingerprint(["a"]), 0x426d_5675_4e03_ad9a_db79_f299_c730_f21f);
}
