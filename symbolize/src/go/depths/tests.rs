use super::*;
use test_support::Random;

const LAYOUTS: [Layout; 3] = [Layout::Go1_16, Layout::Go1_18, Layout::Go1_20];

/// Makes a table of two functions at 0x1000 and 0x1040; the second has stack deltas.
fn table(layout: Layout) -> Depths {
    let names = b"main.main\0runtime.goexit\0";
    // An empty table, then: 0 up to 4, 24 up to 0x30, 0 up to the end.
    let values = [0, 2, 4, 48, 0x2c, 47, 0x10, 0];
    let values_at = names.len() as u64;
    let header = Header {
        layout,
        quantum: 1,
        functions: 2,
        text_start: 0,
        names: 0,
        units: 0,
        files: 0,
        pc_values: values_at,
        list: values_at + values.len() as u64,
    };
    let is_old = layout == Layout::Go1_16;
    let base = if is_old { 0x1000 } else { 0 };
    let word = header.list_word() as usize;
    let flags_at = if layout == Layout::Go1_20 { 37 } else { 33 };
    let address = |value: u64| value.to_le_bytes()[..word].to_vec();
    let record_bytes = word + 44;
    let mut data = [&names[..], &values].concat();
    for number in 0..3 {
        data.extend(address(base + 0x40 * number));
        data.extend(address((6 * word + number as usize * record_bytes) as u64));
    }
    for (number, name, deltas, flags) in [(0, 10u32, 0u32, TOP_FRAME), (1, 0, 1, 0)] {
        let mut record = address(base + 0x40 * number);
        record.resize(record_bytes, 0);
        record[word..word + 4].copy_from_slice(&name.to_le_bytes());
        record[word + 12..word + 16].copy_from_slice(&deltas.to_le_bytes());
        record[word + flags_at] = flags;
        data.extend(record);
    }
    Depths {
        data,
        header,
        text: 0x1000 - base,
    }
}

#[test]
fn functions_of_every_format() {
    for layout in LAYOUTS {
        let table = table(layout);
        let functions: Vec<Function> = table.functions().collect();
        let ranges: Vec<(u64, u64)> = functions.iter().map(|f| (f.start, f.end)).collect();
        assert_eq!(ranges, [(0x1000, 0x1040), (0x1040, 0x1080)], "{layout:?}");
        assert_eq!(table.name(&functions[0]), b"runtime.goexit");
        assert_eq!(table.name(&functions[1]), b"main.main");
        assert_eq!(table.flags(&functions[0]), TOP_FRAME);
        assert_eq!(table.flags(&functions[1]), 0);
        assert_eq!(table.stack_deltas(&functions[0]).count(), 0);
    }
}

#[test]
fn values_by_pc() {
    let table = table(Layout::Go1_20);
    let function = table.functions().nth(1).unwrap();
    // The table of deltas is after the first byte.
    let deltas: Vec<(u64, i32)> = table.stack_deltas(&function).collect();
    assert_eq!(deltas, [(0, 0), (4, 24), (0x30, 0)]);
    // An endless table ends with the function.
    let endless = Values {
        rest: &[2, 0x20].repeat(100),
        value: -1,
        at: 0,
        end: 0x40,
        quantum: 1,
    };
    assert_eq!(endless.collect::<Vec<_>>(), [(0, 0), (0x20, 1)]);
}

#[test]
fn cut_off_and_altered_tables_do_no_harm() {
    for layout in LAYOUTS {
        let whole = table(layout);
        let mut random = Random::new(1);
        for round in 0..4000 {
            let mut data = whole.data.clone();
            match round % 2 {
                0 => data.truncate(random.index(data.len())),
                _ => {
                    for _ in 0..3 {
                        let at = random.index(data.len());
                        data[at] = random.byte();
                    }
                }
            }
            let table = Depths {
                data,
                ..table(layout)
            };
            for function in table.functions() {
                assert!(function.start < function.end);
                table.name(&function);
                table.flags(&function);
                let deltas = table.stack_deltas(&function);
                assert!(deltas.map(|(at, _)| at).is_sorted());
            }
        }
    }
}
