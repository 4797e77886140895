//! Bytes arrive where they belong.

use super::*;

#[test]
fn boxes_are_written_copied_and_read_where_they_belong() {
    let n = [13, 7, 5];
    let strides = Strides::for_cells(n, 8).unwrap();
    let layout = layout(n, 0, strides);
    let count = layout.bytes / 8;
    let boxes = [
        (Box3 { lo: [0, 0, 2], hi: [13, 7, 3] }, [0, 0, -2]),
        (Box3 { lo: [12, 0, 0], hi: [13, 7, 5] }, [-12, 0, 0]),
        (Box3 { lo: [0, 6, 0], hi: [13, 7, 5] }, [0, -6, 0]),
        (Box3 { lo: [3, 2, 1], hi: [4, 3, 2] }, [5, 1, 2]),
        (Box3 { lo: [1, 1, 0], hi: [5, 4, 2] }, [6, 3, 3]),
        (Box3 { lo: [0, 0, 0], hi: [13, 7, 2] }, [0, 0, 3]),
    ];
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Auto, None);
        let fresh = Field::new(&device, layout, None);
        assert!(fresh.values(&device).iter().all(|value| value.to_bits() == 0), "new memory is zero");
        for (part, by) in boxes {
            let mut model = noise(count, 4);
            let other = noise(count, 5);
            let field = Field::new(&device, layout, Some(&model));
            let source = Field::new(&device, layout, Some(&other));
            let (here, there) = (layout.region(&part).unwrap(), layout.region(&part.shifted(by)).unwrap());
            // A written box, then one copied within the buffer, then one copied from another buffer; the last must win.
            let data = noise(here.bytes() / 8, 6);
            device.write(QueueId::COMPUTE, Place { buffer: field.buffer, region: &here }, &bytes_of(&data)).unwrap();
            let from = Place { buffer: field.buffer, region: &here };
            device.copy(QueueId::COMPUTE, from, Place { buffer: field.buffer, region: &there }).unwrap();
            let mut rows = data.chunks_exact(here.row_bytes / 8);
            for (to, copy) in here.row_starts().zip(there.row_starts()) {
                let row = rows.next().unwrap();
                model[to / 8..to / 8 + row.len()].copy_from_slice(row);
                model[copy / 8..copy / 8 + row.len()].copy_from_slice(row);
            }
            let from = Place { buffer: source.buffer, region: &there };
            device.copy(QueueId::COMPUTE, from, Place { buffer: field.buffer, region: &here }).unwrap();
            for (to, from) in here.row_starts().zip(there.row_starts()) {
                let cells = here.row_bytes / 8;
                model[to / 8..to / 8 + cells].copy_from_slice(&other[from / 8..from / 8 + cells]);
            }
            let mut bytes = vec![0; there.bytes()];
            device.read(QueueId::COMPUTE, Place { buffer: field.buffer, region: &there }, &mut bytes).unwrap();
            assert_eq!(values_of(&bytes), data, "{part} on {}", device.summary());
            assert_eq!(field.values(&device), model, "{part} on {}", device.summary());
        }
    });
}

#[test]
fn data_may_change_as_soon_as_a_write_returns() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Auto, None);
        let (bytes, pieces) = (1 << 20, 64);
        let buffer = device.alloc(&Layout::linear(ScalarType::F64, bytes * pieces / 8).unwrap()).unwrap();
        let mut data = vec![0_u8; bytes];
        for piece in 0..pieces {
            data.fill(piece as u8 + 1);
            let region = Region::run(piece * bytes, bytes);
            device.write(QueueId(piece as u32 % 3), Place { buffer, region: &region }, &data).unwrap();
            data.fill(0xff);
        }
        (0..3).for_each(|queue| device.finish(QueueId(queue)).unwrap());
        let mut found = vec![0; bytes * pieces];
        device.read(QueueId(7), Place { buffer, region: &Region::run(0, bytes * pieces) }, &mut found).unwrap();
        assert!(
            found.chunks_exact(bytes).enumerate().all(|(piece, part)| part.iter().all(|&byte| byte == piece as u8 + 1))
        );
    });
}

#[test]
fn a_write_too_long_to_stage_arrives_whole() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Auto, None);
        let layout = Layout::linear(ScalarType::F64, (9 << 20) + 3).unwrap();
        let values = noise(layout.bytes / 8, 8);
        let field = Field::new(&device, layout, Some(&values));
        assert!(field.values(&device) == values);
    });
}
