//! Recordings without names of functions, or without build-ids: these are in no file, every number
//! is unchanged, and names can be found again.

use profile::formats::{self, Format};
use profile::{
    Cancel, Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, NoName, ProcessId,
    Query, RowName, Selection, SourceFrame, Store, View,
};
use std::path::Path;

const BUILD_ID: [u8; 20] = [0xcd; 20];

fn frame(address: u64) -> Frame {
    Frame {
        module: ModuleId(1),
        address,
        kind: FrameKind::User,
    }
}

/// A profile of `secret_a`, sampled at two addresses and called by `secret_b`, into which
/// `secret_c` is inlined.
fn view() -> View {
    let mut store = Store::new(Limits {
        keep: std::time::Duration::MAX,
        ..Limits::default()
    });
    store.add_module(ModuleId(1), "engine.so", "/usr/lib/engine.so");
    store.set_build_id(ModuleId(1), &BUILD_ID);
    store.add_process(ProcessId(1), 101, "ledgerd");
    for address in [0x10, 0x18, 0x10] {
        assert!(store.add_sample(NewSample {
            time_ns: 3_000_000_000,
            cpu: 1,
            process: ProcessId(1),
            tid: 101,
            comm: "ledgerd",
            frames: &[frame(address), frame(0x90)],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        }));
    }
    for id in store.frames_to_name(usize::MAX) {
        let outer = store.frame(id).expect("asked for").address == 0x90;
        let name = if outer { "secret_b" } else { "secret_a" };
        store.set_name(id, NameState::Named(name.into()));
        let link = |function| SourceFrame {
            function,
            file: "secret.c",
            line: 7,
        };
        if outer {
            store.set_source(id, &[link("secret_c"), link("")])
        } else {
            store.set_source(id, &[link("")])
        };
    }
    store.view()
}

fn select(view: &View, filter: &str) -> Selection {
    let query = Query {
        filter: filter.parse().expect("a filter"),
        ..Query::default()
    };
    view.select(&query, &Cancel::new())
        .expect("nobody cancels it")
}

/// Writes a file and returns all that a reader can find in it: its bytes as text, and for packed
/// formats their contents.
fn written(format: Format, selection: &Selection) -> String {
    let mut file = Vec::new();
    format
        .write_as(Path::new("x"), false, selection, &mut file)
        .expect("there is room");
    let mut text = String::from_utf8_lossy(&file).into_owned();
    if let Ok(opened) = formats::read(&*file, Limits::default()) {
        text += &format!("{:?}", opened.store.view());
    }
    text
}

fn totals(selection: &Selection) -> Vec<(String, u64, u64)> {
    let rows = selection.functions().into_iter();
    rows.map(|row| (row.name.to_string(), row.self_samples, row.total_samples))
        .collect()
}

#[test]
fn no_format_has_a_function_or_a_line() {
    for format in Format::ALL {
        assert!(
            written(format, &select(&view(), "")).contains("secret"),
            "{format:?}"
        );
        let bare = written(format, &select(&view(), "").without_symbols());
        assert!(!bare.contains("secret"), "{format:?}: {bare}");
        assert!(bare.contains("engine.so"), "{format:?}: {bare}");
    }
}

#[test]
fn functions_stay_functions_and_numbers_as_they_were() {
    let bare = select(&view(), "").without_symbols();
    let expected = [
        ("engine.so+0x10".into(), 3, 3),
        ("engine.so+0x90".into(), 0, 3),
    ];
    assert_eq!(totals(&bare), expected);
    let lacks = bare.completeness();
    assert_eq!((lacks.frames, lacks.named, lacks.pending), (6, 0, 0));
    assert_eq!(lacks.unnamed, [(NoName::LeftOut, 6)]);
    assert_eq!(
        bare.functions()[0].name_state,
        RowName::Unnamed(NoName::LeftOut)
    );
    assert!(
        bare.info()
            .notes
            .iter()
            .any(|note| note.contains("left out"))
    );
}

#[test]
fn what_was_chosen_by_a_name_stays_chosen() {
    let hidden = select(&view(), "hide:fn~secret_b").without_symbols();
    assert_eq!(totals(&hidden), [("engine.so+0x10".into(), 3, 3)]);
    let only_inlined = select(&view(), "only:fn~secret_c").without_symbols();
    assert_eq!(only_inlined.samples(), 3);
    assert_eq!(
        totals(&only_inlined).len(),
        1,
        "all that is left was inlined"
    );
}

#[test]
fn a_recording_gets_its_names_back() {
    let mut file = Vec::new();
    let bare = select(&view(), "").without_symbols();
    Format::Pft.write(&bare, &mut file).expect("there is room");
    let mut store = formats::read(&*file, Limits::default())
        .expect("ours")
        .store;
    assert_eq!(totals(&select(&store.view(), "")), totals(&bare));
    for (address, name) in [(0x10, "secret_a"), (0x18, "secret_a"), (0x90, "secret_b")] {
        let modules = (0..9).map(ModuleId);
        let mut found = modules.filter_map(|module| {
            store.find_frame(&Frame {
                module,
                ..frame(address)
            })
        });
        let id = found.next_back().expect("the address is there");
        store.set_name(id, NameState::Named(name.into()));
    }
    let found = totals(&select(&store.view(), ""));
    assert_eq!(
        found,
        [("secret_a".into(), 3, 3), ("secret_b".into(), 0, 3)]
    );
}

#[test]
fn no_format_has_a_build_id_that_was_left_out() {
    let debug = format!("{BUILD_ID:?}");
    let tells = |text: &str| {
        let text = text.to_lowercase();
        text.contains(&"cd".repeat(16)) || text.contains(&debug)
    };
    for format in Format::ALL {
        let text = written(format, &select(&view(), ""));
        assert_eq!(tells(&text), format.has_build_ids(), "{format:?}");
        let text = written(format, &select(&view(), "").without_build_ids());
        assert!(!tells(&text), "{format:?}: {text}");
        assert!(text.contains("secret_a"), "{format:?}");
    }
}
