//! Tests with programs that are compiled here.

use super::*;
use crate::code::{Piece, Syntax};
use profile::FrameKind;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use symbolize::files::{Order, Proxy, Reply, Request};
use symbolize::parser::Parser;
use symbolize::{Files, Reason, RemoteFiles};
use test_support::Random;

const SOURCE: &str = "\
static inline int add(int a, int b)
{
    return a * 3 + b;
}

__attribute__((noinline)) int sum(const int *numbers, int count)
{
    int all = 0;
    for (int i = 0; i < count; i++)
        all += add(numbers[i], i);
    return all;
}

void large(void)
{
    __asm__ volatile(\".fill 300000, 1, 0x90\");
}

int main(int count, char **words)
{
    return sum(&count, count) + (words == 0);
}
";

struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

/// Compiles the program. None if there is no compiler.
fn compile(flags: &[&str]) -> Option<Program> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("sum.c");
    fs::write(&source, SOURCE).expect("written");
    let path = folder.path().join("sum");
    let flags = [&["-O2", "-fno-tree-vectorize"], flags].concat();
    test_support::compile(&source, &path, flags)?;
    Some(Program { folder, path })
}

/// Returns the offset of a function's code in the file.
fn start_of(path: &Path, function: &str) -> u64 {
    let file = fs::File::open(path).expect("it is there");
    let symbols = symbolize::ElfSymbols::read(&file).expect("an ELF file");
    let mut functions = symbols.functions();
    let found = functions
        .find(|symbol| symbol.name == function.as_bytes())
        .unwrap_or_else(|| panic!("no {function}"));
    symbols.segments().to_file(found.start).expect("code").0
}

fn build_id(path: &Path) -> Arc<[u8]> {
    let file = fs::File::open(path).expect("it is there");
    let object = symbolize::object::Object::read(&file).expect("an ELF file");
    object.build_id().unwrap_or_default().into()
}

fn wanted(path: &Path, function: &str, address: u64, host: Option<&str>) -> Wanted {
    Wanted {
        function: function.into(),
        module: "sum".into(),
        module_path: path.to_str().expect("UTF-8").into(),
        build_id: build_id(path),
        kind: FrameKind::User,
        is_recorded: true,
        pids: Vec::new(),
        hits: vec![Hit {
            address,
            samples: 1,
            host: host.map(Into::into),
            file: None,
            line: 0,
        }],
        visit: 0,
    }
}

fn body(wanted: &Wanted) -> Arc<Body> {
    FileLibrary::default().body(wanted)
}

fn text(piece: &Piece) -> Vec<String> {
    let instructions = piece.instructions.iter();
    instructions.map(|i| i.text(Syntax::Att)).collect()
}

const WITH_ID: &str = "-Wl,--build-id";

#[test]
fn a_function_with_its_lines_and_its_text() {
    let Some(program) = compile(&["-g", WITH_ID]) else {
        return;
    };
    let start = start_of(&program.path, "sum");
    let body = body(&wanted(&program.path, "sum", start + 1, None));
    assert_eq!(
        (&body.no_assembly, &body.no_text, &body.notes),
        (&None, &None, &vec![])
    );
    let [piece] = &body.pieces[..] else {
        panic!("{:?}", body.pieces);
    };
    assert_eq!(
        (piece.start, piece.range.start, piece.cut),
        (start, start, 0)
    );
    assert!(text(piece).contains(&"ret".to_owned()), "{:?}", text(piece));
    let file = body.main_file().expect("a file");
    assert!(body.files[file as usize].ends_with("/sum.c"));
    let source = body.text.as_ref().expect("a text");
    assert_eq!(source.line(10), Some("        all += add(numbers[i], i);"));
    // All instructions have a line of the function; that holds for inlined ones, too.
    let lines = piece.instructions.iter().filter_map(|i| i.place);
    assert!(
        lines
            .clone()
            .all(|place| place.file == file && (6..=12).contains(&place.line))
    );
    assert!(lines.clone().any(|place| place.line == 10));
    let mut inlined = piece
        .instructions
        .iter()
        .filter_map(|i| i.inlined.as_deref());
    assert_eq!(inlined.next(), Some("add (sum.c:3)"));
    // Targets of jumps inside the function are distances from its start.
    assert!(
        text(piece)
            .iter()
            .any(|text| text.starts_with('j') && text.contains(" +0x"))
    );

    // Of an inlined function only its own instructions are shown.
    let own = piece.instructions.iter().filter(|i| i.inlined.is_some());
    let own: Vec<u64> = own.map(|i| i.offset).collect();
    let body = self::body(&wanted(&program.path, "add", own[0], Some("sum")));
    let [piece] = &body.pieces[..] else {
        panic!("{:?}", body.pieces);
    };
    assert_eq!(piece.host.as_deref(), Some("sum"));
    let offsets: Vec<u64> = piece.instructions.iter().map(|i| i.offset).collect();
    assert_eq!(offsets, own);
    let mut lines = piece.instructions.iter().filter_map(|i| i.place);
    assert!(lines.all(|place| place.line == 3));
}

#[test]
fn what_is_too_long_is_cut() {
    let Some(program) = compile(&["-g", WITH_ID]) else {
        return;
    };
    let start = start_of(&program.path, "large");
    let mut wanted = wanted(&program.path, "large", start, None);
    wanted.hits.push(Hit {
        address: start + 299_000,
        ..wanted.hits[0].clone()
    });
    let body = body(&wanted);
    let [piece] = &body.pieces[..] else {
        panic!("{:?}", body.pieces.len());
    };
    assert_eq!(piece.range, start..start + (256 << 10));
    assert!(piece.cut > 300_000 - (256 << 10));
    // Samples beyond the limit are counted by their address.
    assert!(body.find(start + 100).is_some() && body.find(start + 299_000).is_none());
    assert!(body.covers(start + 299_000));
}

#[test]
fn calls_have_names() {
    let Some(program) = compile(&[WITH_ID]) else {
        return;
    };
    let start = start_of(&program.path, "main");
    let body = body(&wanted(&program.path, "main", start, None));
    let text = text(&body.pieces[0]);
    assert!(text.contains(&"call   sum".to_owned()), "{text:?}");
    let why = body.no_text.as_deref().expect("no debug information");
    assert!(why.contains("no debug information"), "{why}");
}

#[test]
fn what_cannot_be_had_says_why() {
    let Some(program) = compile(&["-g", WITH_ID]) else {
        return;
    };
    let path = &program.path;
    let start = start_of(path, "sum");
    let good = wanted(path, "sum", start, None);
    #[track_caller]
    fn check(wanted: &Wanted, expected: &str) {
        let body = body(wanted);
        let why = body.no_assembly.as_deref().unwrap_or_default();
        assert!(why.contains(expected), "{why}");
        assert!(wanted.hits.iter().all(|hit| body.covers(hit.address)));
        assert_eq!(body.instructions(), 0);
    }
    let other = Wanted {
        build_id: [7; 20].into(),
        ..good.clone()
    };
    check(&other, "is another build than the one that was recorded");
    let unknown = Wanted {
        build_id: [].into(),
        ..good.clone()
    };
    check(&unknown, "has no build-id");
    for (kind, expected) in [
        (FrameKind::Kernel, "the kernel's code is in no recording"),
        (FrameKind::Jit, "made at run time"),
    ] {
        check(
            &Wanted {
                kind,
                ..good.clone()
            },
            expected,
        );
    }
    let nowhere = Wanted {
        module_path: "[unknown]".into(),
        ..good.clone()
    };
    check(&nowhere, "not known which file");
    // Code for another processor: 243 is RISC-V.
    let mut bytes = fs::read(path).expect("read");
    bytes[18] = 243;
    fs::write(path, &bytes).expect("written");
    check(&good, "code of RISC-V is not written out");
    fs::remove_file(path).expect("removed");
    check(&good, "is not there");
    drop(program.folder);
}

/// Damage at any place of the file is survived.
#[test]
fn damaged_files_are_no_harm() {
    let Some(program) = compile(&["-g", WITH_ID]) else {
        return;
    };
    let start = start_of(&program.path, "sum");
    let good = wanted(&program.path, "sum", start, None);
    let bytes = fs::read(&program.path).expect("read");
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for visit in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + visit % 40 {
            let at = random.index(damaged.len());
            damaged[at] = random.byte();
        }
        fs::write(&program.path, &damaged).expect("written");
        let body = body(&Wanted {
            visit,
            ..good.clone()
        });
        for piece in &body.pieces {
            text(piece);
        }
    }
}

#[test]
fn what_was_found_is_kept_until_the_next_visit() {
    let Some(program) = compile(&["-g", WITH_ID]) else {
        return;
    };
    let start = start_of(&program.path, "sum");
    let mut library = FileLibrary::default();
    let wanted = wanted(&program.path, "sum", start, None);
    let first = library.body(&wanted);
    assert!(Arc::ptr_eq(&first, &library.body(&wanted)));
    // An address that has no code is looked for once.
    let mut more = wanted.clone();
    more.hits.push(Hit {
        address: 1,
        ..wanted.hits[0].clone()
    });
    let second = library.body(&more);
    assert!(!Arc::ptr_eq(&first, &second));
    assert!(Arc::ptr_eq(&second, &library.body(&more)));
    let again = Wanted { visit: 1, ..wanted };
    assert!(!Arc::ptr_eq(&second, &library.body(&again)));
    library.rest();
    assert!(library.symbolizer.is_none());
}

#[test]
fn what_is_read_of_debug_information_follows_the_free_memory() {
    let of = |text: &str| debug_bytes_max(text) >> 20;
    assert_eq!(of(""), 256, "nothing is known");
    assert_eq!(of("MemTotal: 1 kB\nMemAvailable:     204800 kB\n"), 256);
    assert_eq!(of("MemAvailable:    4194304 kB\n"), 1024);
    assert_eq!(of("MemAvailable: 99999999999999999 kB\n"), 2048);
    assert!(debug_bytes_max(&free_memory()) >= DEBUG_BYTES);
}

#[test]
fn more_debug_information_than_there_is_memory_for_is_said() {
    let Some(program) = compile(&["-g"]) else {
        return;
    };
    let address = start_of(&program.path, "sum");
    let wanted = wanted(&program.path, "sum", address, None);
    let symbolizer = Symbolizer::new().with_debug_bytes_max(64);
    let body = find(&wanted, &symbolizer, 300 << 20, &SourceMap::default());
    assert!(body.instructions() > 0, "code needs no debug information");
    let why = body.no_text.expect("a reason");
    assert!(
        why.ends_with("it has more debug information than the 300 MB that there is memory for"),
        "{why}"
    );
}

/// A parser in this process that does a number of orders, and is ended by all others.
#[derive(Debug)]
struct EndedParser {
    parser: Parser,
    orders_left: AtomicUsize,
}

impl Proxy for EndedParser {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        Files::from(remote).perform(request)
    }

    fn has_parsers(&self) -> bool {
        true
    }

    fn parse(&self, order: &Order<'_>) -> Option<Result<Reply, Reason>> {
        let one_less = |left: usize| left.checked_sub(1);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.orders_left.fetch_update(set, read, one_less).is_err() {
            return Some(Err(Reason::Refused));
        }
        let files = order.files.iter().map(|file| file.try_clone_to_owned());
        let files = files.collect::<Result<_, _>>().expect("descriptors");
        let way = Files::default();
        let reply = self
            .parser
            .perform(order.work, order.file, files, order.message, &way);
        Some(reply)
    }
}

#[test]
fn code_is_whole_or_has_a_reason_when_a_parser_is_ended() {
    let Some(program) = compile(&["-g", WITH_ID]) else {
        return;
    };
    let path = &program.path;
    let mut wanted = wanted(path, "sum", start_of(path, "sum"), None);
    wanted.hits.push(Hit {
        address: start_of(path, "main"),
        ..wanted.hits[0].clone()
    });
    let found_after = |orders: usize| {
        let parser = EndedParser {
            parser: Parser::default(),
            orders_left: AtomicUsize::new(orders),
        };
        let symbolizer = Symbolizer::new().with_files(Files::by(Arc::new(parser)));
        find(&wanted, &symbolizer, DEBUG_BYTES, &SourceMap::default())
    };
    // One order for the file with the debug information, and one for each function.
    for orders in 0..3 {
        let body = found_after(orders);
        let why = body.no_assembly.as_deref().expect("a reason");
        assert!(why.contains("could not be understood within"), "{why}");
        assert_eq!(body.no_text.as_deref(), Some(why), "it is said once");
        assert_eq!((body.pieces.len(), body.instructions()), (0, 0));
        assert!(wanted.hits.iter().all(|hit| body.covers(hit.address)));
    }
    let body = found_after(3);
    assert_eq!((body.pieces.len(), &body.no_assembly), (2, &None));
    // It is what is found without parsers.
    let here = find(
        &wanted,
        &Symbolizer::new(),
        DEBUG_BYTES,
        &SourceMap::default(),
    );
    assert_eq!(format!("{body:?}"), format!("{here:?}"));
}
