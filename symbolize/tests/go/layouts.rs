//! Every layout of the table, made by hand.

use std::path::Path;
use std::sync::Arc;

use symbolize::debug_file::DebugFiles;
use symbolize::resolver::Resolver;
use symbolize::{FileSource, GoSymbols, LinkAddr, RemoteFiles};

use crate::elf::TEXT;
use crate::program::{END, F, G, INLINED, LAYOUTS, Layout, elf, elf_called_at};

fn chain(symbols: &GoSymbols, addr: u32) -> Vec<String> {
    let frames = symbols.find(LinkAddr(TEXT + u64::from(addr)));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let frames = frames.iter();
    frames
        .map(|f| format!("{} {}:{}", text(&f.name), text(&f.file), f.line))
        .collect()
}

#[test]
fn functions_lines_and_inlined_calls() {
    for layout in LAYOUTS {
        for with_section in [true, false] {
            let mut elf = elf(layout, with_section);
            elf.section_headers = with_section;
            let symbols = GoSymbols::read(&Arc::new(elf.object())).unwrap();
            let at = |addr| chain(&symbols, addr);
            let case = format!("{layout:?}, section {with_section}");
            assert_eq!(at(F), ["main.f /src/f.go:10"], "{case}");
            assert_eq!(at(F + 0x3f), ["main.f /src/f.go:11"], "{case}");
            assert_eq!(at(G), ["main.g /src/g.go:20"], "{case}");
            assert_eq!(at(END - 1), ["main.g /src/g.go:22"], "{case}");
            assert!(at(END).is_empty(), "{case}");
            let inlined: &[&str] = match layout {
                // Without its caller, which this layout does not store.
                Layout::Go1_2 => &["main.g /src/f.go:10"],
                // With the line of the call in the inline tree, or with the line of the instruction
                // before.
                Layout::Go1_16 | Layout::Go1_18 => &["main.f /src/f.go:10", "main.g /src/g.go:21"],
                _ => &["main.f /src/f.go:10", "main.g /src/g.go:20"],
            };
            assert_eq!(at(INLINED.start), inlined, "{case}");
            assert_eq!(at(INLINED.end - 1), inlined, "{case}");
            let complete = symbols.find_complete(LinkAddr(TEXT + u64::from(INLINED.start)));
            let has_calls = layout != Layout::Go1_2;
            assert_eq!(complete.is_some(), has_calls, "{case}");
            let starts: Vec<u64> = symbols.starts().map(|addr| addr.0 - TEXT).collect();
            assert_eq!(starts, [u64::from(F), u64::from(G)], "{case}");
            let extent = |addr| symbols.extent(LinkAddr(TEXT + u64::from(addr)));
            let [f, g, end] = [F, G, END].map(|addr| TEXT + u64::from(addr));
            assert_eq!(extent(F + 1), Some(f..g), "{case}");
            assert_eq!(extent(END - 1), Some(g..end), "{case}");
            assert_eq!(extent(END), None, "{case}");
        }
    }
}

/// Go 1.24 makes such trees for some large `init` functions.
#[test]
fn a_call_that_was_inlined_into_itself() {
    let elf = elf_called_at(Layout::Go1_20, true, INLINED.start);
    let symbols = GoSymbols::read(&Arc::new(elf.object())).unwrap();
    let inlined = ["main.f /src/f.go:10", "main.g :0"];
    assert_eq!(chain(&symbols, INLINED.start), inlined);
    let addr = LinkAddr(TEXT + u64::from(INLINED.start));
    assert!(symbols.find_complete(addr).is_none());
}

#[test]
fn answers_about_a_stripped_file() {
    let source = FileSource::new(Path::new("/nonexistent/program"));
    let files = || DebugFiles::of(&source, RemoteFiles::Skip);
    let object = elf(Layout::Go1_26, true).object();
    let resolver = Resolver::of_file(object, files, 1 << 20).unwrap();
    let resolved = resolver.resolve(LinkAddr(TEXT + u64::from(INLINED.start)));
    assert_eq!(resolved.symbol.as_deref(), Ok(&b"main.g"[..]));
    let frames = resolved.frames.iter();
    let frames: Vec<_> = frames.map(|f| (&*f.function, &*f.path, f.line)).collect();
    let expected: [(&[u8], &[u8], u32); 2] =
        [(b"main.f", b"/src/f.go", 10), (b"main.g", b"/src/g.go", 20)];
    assert_eq!(frames, expected);
    let outside = resolver.resolve(LinkAddr(TEXT + u64::from(END)));
    assert!(outside.symbol.is_err() && outside.frames.is_empty());
}

#[test]
fn files_without_a_table() {
    for elf in [
        crate::elf::Elf::new(),
        crate::elf::Elf::new().with(".gopclntab", 0x3_0000, vec![0; 100]),
        crate::elf::Elf::new().with(".gopclntab", 0x3_0000, Vec::new()),
    ] {
        assert!(GoSymbols::read(&Arc::new(elf.object())).is_none());
    }
}
