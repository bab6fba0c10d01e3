//! What the terminal can show, according to the environment. Nothing is sent to it, so that nothing
//! can hang or be left on the screen.

use crate::geometry::{SIZE_FOR_ALL, SIZE_MIN, Size};
use probe::features::Finding;
use std::io::IsTerminal;

/// Returns the findings about the size, type, colors and characters of the terminal.
pub fn findings() -> Vec<Finding> {
    let size = std::io::stdout()
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok())
        .flatten()
        .map(|size| (size.ws_col, size.ws_row));
    judge(
        |name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        size,
    )
}

/// Judges the environment and the size, which is (columns, lines). The size is None if standard
/// output is not a terminal.
fn judge(env: impl Fn(&str) -> Option<String>, size: Option<(u16, u16)>) -> Vec<Finding> {
    let mut findings = vec![
        judge_size(size),
        judge_term(env("TERM"), color_depth(&env)),
        judge_charset(&env),
    ];
    if env("TMUX").is_some() {
        findings.push(Finding::ok("terminal-tmux", "terminal: inside tmux"));
    }
    findings
}

/// Says whether the screen has room. No terminal at all is no problem: reports need none.
fn judge_size(size: Option<(u16, u16)>) -> Finding {
    match size {
        None => Finding::ok(
            "terminal",
            "terminal: output is none; reports (-b) need none",
        ),
        Some((columns, lines)) => {
            let size = format!("terminal: {columns}x{lines}");
            if columns < SIZE_MIN.width || lines < SIZE_MIN.height {
                let Size { width, height } = SIZE_MIN;
                let what = format!("{size}: the screen needs {width}x{height}");
                Finding::warn("terminal", what)
                    .fix("make the window larger, or print reports: proftop -b")
            } else if columns < SIZE_FOR_ALL.width || lines < SIZE_FOR_ALL.height {
                let Size { width, height } = SIZE_FOR_ALL;
                let what = format!("{size}: below {width}x{height} the screen leaves lines out");
                Finding::ok("terminal", what)
            } else {
                Finding::ok("terminal", size)
            }
        }
    }
}

/// Says whether the terminal can place text. `TERM` may have any contents, so control characters
/// and blanks are not printed.
fn judge_term(term: Option<String>, depth: &str) -> Finding {
    match term.as_deref() {
        None | Some("dumb") => Finding::warn(
            "terminal-type",
            "terminal: TERM is not set, or dumb: the screen cannot be drawn",
        )
        .fix("set TERM, or print reports: proftop -b"),
        Some(name) => {
            let name: String = name.chars().filter(|c| c.is_ascii_graphic()).collect();
            Finding::ok("terminal-type", format!("terminal: {name}, {depth}"))
        }
    }
}

/// Returns the number of colors in words, decided in the same order as for the screen.
fn color_depth(env: &impl Fn(&str) -> Option<String>) -> &'static str {
    let term = env("TERM").unwrap_or_default();
    let colorterm = env("COLORTERM").unwrap_or_default();
    if env("NO_COLOR").is_some() {
        "no colors (NO_COLOR)"
    } else if term.is_empty() || term == "dumb" || term.starts_with("vt") {
        "no colors"
    } else if matches!(colorterm.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
        "24-bit colors"
    } else if term.contains("256") {
        "256 colors"
    } else {
        "16 colors"
    }
}

/// Says whether the screen is drawn in UTF-8. The first of the three variables that is set decides,
/// see locale(7).
fn judge_charset(env: &impl Fn(&str) -> Option<String>) -> Finding {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(env);
    let name = locale.unwrap_or_default().to_ascii_lowercase();
    let utf8 = name.contains("utf-8") || name.contains("utf8");
    let console = env("TERM").as_deref() == Some("linux");
    if utf8 && !console {
        return Finding::ok("terminal-charset", "terminal: UTF-8");
    }
    let why = if console {
        "the console's font lacks the characters"
    } else {
        "the locale is not UTF-8"
    };
    Finding::ok(
        "terminal-charset",
        format!("terminal: drawn with ASCII: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::features::Level;

    fn judged(vars: &[(&str, &str)], size: Option<(u16, u16)>) -> Vec<Finding> {
        let env = |name: &str| {
            let var = vars.iter().find(|(key, _)| *key == name)?;
            Some(var.1.to_owned())
        };
        judge(env, size)
    }

    fn text(vars: &[(&str, &str)], size: Option<(u16, u16)>) -> String {
        let lines: Vec<_> = judged(vars, size).into_iter().map(|f| f.what).collect();
        lines.join("\n")
    }

    #[test]
    fn a_modern_terminal() {
        let vars = [
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("LANG", "C"),
            ("LC_ALL", "en_US.UTF-8"),
            ("TMUX", "/tmp/x"),
        ];
        assert_eq!(
            text(&vars, Some((80, 24))),
            "terminal: 80x24\nterminal: xterm-256color, 24-bit colors\nterminal: UTF-8\nterminal: inside tmux"
        );
    }

    #[test]
    fn colors_by_what_is_said() {
        let depth = |vars: &[(&str, &str)]| judged(vars, None).remove(1).what;
        assert!(depth(&[("TERM", "xterm")]).ends_with("16 colors"));
        assert!(depth(&[("TERM", "tmux-256color")]).ends_with("256 colors"));
        assert!(depth(&[("TERM", "xterm"), ("NO_COLOR", "1")]).ends_with("(NO_COLOR)"));
        assert!(depth(&[("TERM", "x\x1b[2J")]).starts_with("terminal: x[2J,"));
    }

    #[test]
    fn the_console_and_other_locales_get_ascii() {
        assert!(text(&[("TERM", "linux"), ("LANG", "C.UTF-8")], None).contains("console"));
        assert!(text(&[("TERM", "xterm"), ("LANG", "C")], None).contains("not UTF-8"));
    }

    #[test]
    fn warns_where_the_screen_cannot_be_drawn() {
        let findings = judged(&[("TERM", "dumb")], Some((39, 8)));
        assert_eq!(findings[0].level, Level::Warn);
        assert!(findings[0].what.ends_with("the screen needs 40x8"));
        assert_eq!(findings[1].level, Level::Warn);
        assert_eq!(judged(&[("TERM", "xterm")], None)[0].level, Level::Ok);
        let small = &judged(&[("TERM", "xterm")], Some((60, 14)))[0];
        assert_eq!(small.level, Level::Ok);
        assert!(small.what.contains("below 60x15"));
    }
}
