//! If a user has assigned another key to every action, no sentence names an old key.

use super::*;
use crate::action::{Key, Keymap, Rebound};
use crate::fixture::tree_step;
use regex::Regex;

/// Returns a keymap in which each action has one key, a letter that no other table uses.
fn other_keys() -> Keymap {
    let mut keymap = Keymap::default();
    let mut names: Vec<&str> = keymap.all().iter().map(|binding| binding.name).collect();
    names.sort_unstable();
    names.dedup();
    for (name, letter) in names.into_iter().zip('\u{400}'..='\u{45f}') {
        assert_eq!(keymap.rebind(name, &[Key::Char(letter)]), Rebound::Done);
    }
    for binding in keymap.all() {
        assert_eq!(binding.keys.len(), 1, "{}", binding.name);
    }
    keymap
}

struct Other {
    hand: Hand,
    old: Regex,
}

impl Other {
    fn new(width: u16, height: u16, snapshot: Snapshot) -> Self {
        let mut hand = Hand::new(width, height);
        hand.app.input.keymap = other_keys();
        hand.show(snapshot).wait(2_000);
        let words = "Enter|Esc|Bksp|Backspace|Space|PgDn|PgUp|[!-~]";
        let hint = format!(r"(?:^|[\s(;,│])(?:{words}): ");
        let whole = r"\? help|q quit|8 Health|1 Func|\(Enter|, \. |Esc close|: \. |: \.$";
        Other {
            hand,
            old: Regex::new(&format!("{hint}|{whole}")).expect("a pattern"),
        }
    }

    /// Returns the key of an action.
    fn key(&self, name: &str) -> char {
        let mut bindings = self.hand.app.input.keymap.all().iter();
        let found = bindings.find(|binding| binding.name == name);
        match found.expect("an action").keys[..] {
            [Key::Char(letter)] => letter,
            ref other => panic!("{other:?}"),
        }
    }

    fn act(&mut self, names: &str) -> &mut Self {
        for name in names.split(' ') {
            let letter = self.key(name);
            self.hand.code(KeyCode::Char(letter));
        }
        self
    }

    /// Checks that `text` is on the screen, with `{name}` replaced by the key of that action, and
    /// that no old key is.
    #[track_caller]
    fn reads(&mut self, text: &str) -> &mut Self {
        let names = Regex::new(r"\{([a-z-]+)\}").expect("a pattern");
        let key = |found: &regex::Captures<'_>| self.key(&found[1]).to_string();
        let wanted = names.replace_all(text, key);
        let frame = self.hand.frame();
        assert!(frame.contains(&*wanted), "{wanted} is not in\n{frame}");
        // In these lines, the digits are not keys.
        let is_other = |line: &&str| !line.contains("from row 1: ") && !line.contains("0 s: ");
        for line in frame.lines().filter(is_other) {
            assert!(!self.old.is_match(line), "an old key: {line}\n{frame}");
        }
        self
    }
}

#[test]
fn the_frame_around_everything_names_the_keys_that_there_are() {
    let mut other = Other::new(120, 40, tree_step(0));
    other.reads("[{view-functions} Func] {view-tree} Tree ");
    other.reads(" {help} help");
    other.act("help").reads(" {back} close ");
    other.act("back output").reads("no command was started");
    let mut tiny = Other::new(41, 7, postgres());
    tiny.reads("{quit} quit");
}

#[test]
fn states_name_them() {
    let mut other = Other::new(120, 40, tree_step(0));
    other.act("freeze").reads("{freeze}: go on");
    other.act("freeze find");
    other.hand.keys("nosuchname\n");
    other.reads("{back}: end the find");
    other.act("back filter");
    other.hand.keys("nosuchname\n");
    other.reads("{back}: undo");
    let mut lost = postgres();
    lost.health.lost = 9;
    Other::new(120, 40, lost).reads("{view-health} Health");
    let mut idle = postgres();
    Arc::make_mut(&mut idle.report).samples = 0;
    Arc::make_mut(&mut idle.report).functions.clear();
    Other::new(120, 40, idle).reads("longer window: {longer-window}");
}

#[test]
fn notices_name_them() {
    let mut other = Other::new(120, 40, tree_step(0));
    other.act("find-next").reads("{find} opens the find line");
    other
        .act("difference")
        .reads("{baseline} makes what is shown A");
    other.act("mark").reads("{mark}: mark anew, {back}: undo");
    other.act("back mouse").reads("{mouse}: on");
    other.act("mouse").reads("{mouse}: off");
    other.act("find");
    other.hand.keys("heap\n");
    other.act("find-next");
    other.reads("{find-next} {find-previous}: next, previous");
    other
        .act("back baseline")
        .reads("{difference}: what differs from them");
    other.act("difference find");
    other.reads("{difference} goes back to the functions");
}

#[test]
fn views_name_them() {
    let mut other = Other::new(100, 40, tree_step(0));
    other.act("view-health view-code");
    other.reads("in {view-functions}, {view-tree} or {view-flame}, and press {code} there");
    other
        .act("view-functions code")
        .reads("{layout}: source+asm");
    other.act("syntax").reads("{syntax}: the other");
    other
        .act("hot-next")
        .reads("{hot-previous} {hot-next}: others");
    other.act("view-functions page").reads("{copy-stack}: copy");
    other
        .act("view-flame down same-name")
        .reads("{same-name}: next");
    other.act("view-tree hot-path open");
    while !other.hand.frame().contains("show them") {
        other.act("down");
    }
    other.reads("{open-or-close}: show them");
    other.act("explain").reads("{open-or-close} shows them");
    other
        .act("view-time")
        .reads("{mark-time}: mark  {use-time}: this second");
    other
        .act("mark-time right")
        .reads("{use-time}: as the window");
    other.act("use-time");
    other.reads("{shorter-window} {longer-window} back to now");
    // The pane beside the view names its own key.
    let mut wide = Other::new(160, 45, tree_step(0));
    wide.act("view-functions code").reads("{syntax}: ");
}

#[test]
fn what_has_no_key_is_not_offered() {
    let mut hand = Hand::new(120, 40);
    for name in ["freeze", "mark", "back", "longer-window", "help"] {
        assert_eq!(hand.app.input.keymap.rebind(name, &[]), Rebound::Done);
    }
    hand.show(tree_step(0)).wait(2_000);
    hand.keys(":mark\n");
    let frame = hand.frame();
    assert!(frame.contains("marked: the window begins now\n"), "{frame}");
    assert!(!frame.contains(" help\n"), "{frame}");
    hand.keys(":freeze\n");
    assert!(!hand.frame().contains("go on"), "{}", hand.frame());
}

#[test]
fn the_mouse_needs_no_key() {
    use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let mut other = Other::new(80, 24, tree_step(0));
    let press = |other: &mut Other, button| {
        other.hand.event(Event::Mouse(MouseEvent {
            kind: MouseEventKind::Down(button),
            column: 40,
            row: 8,
            modifiers: KeyModifiers::NONE,
        }));
    };
    press(&mut other, MouseButton::Left);
    press(&mut other, MouseButton::Left);
    assert_eq!(other.hand.app.view, ViewId::Page);
    press(&mut other, MouseButton::Right);
    assert_eq!(other.hand.app.view, ViewId::Functions);
}
