//! Runs the user's *editor*, which gets the terminal until it ends. It is started without a shell,
//! so that a path is an argument and nothing else.

use super::keys::Keys;
use super::{Event, Run};
use probe::privilege::UserRights;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command};

impl Run {
    /// Suspends the screen, waits for the editor, and restores the screen. Sampling goes on
    /// meanwhile.
    pub(super) async fn edit(&mut self, path: &Path, line: u32) -> io::Result<()> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let wanted = variable("VISUAL").or_else(|| variable("EDITOR"));
        // The default of sudo and cron.
        let wanted = wanted.unwrap_or_else(|| "vi".into());
        let Ok(wanted) = wanted.into_string() else {
            let why = "EDITOR is no text".to_owned();
            return self.handle_quiet_event(Event::Edited(Err(why)));
        };
        let Some((program, arguments)) = command(&wanted, path, line) else {
            return self.handle_quiet_event(Event::Edited(Err("EDITOR is blank".into())));
        };
        self.leave().await;
        // Our reader would take keys from the editor.
        self.keys = None;
        let mut editor = Command::new(&program);
        editor.args(arguments);
        // Under sudo the editor runs as the user, and so does all that it opens or starts.
        UserRights::current().apply_to(&mut editor);
        let edited = match editor.spawn() {
            Ok(child) => wait(child).await,
            Err(error) => Err(format!(
                "{program} does not start: {error}; EDITOR names the editor that you want"
            )),
        };
        // Keys in the editor, such as ^C, have also sent signals to this process.
        self.signals.forget();
        self.keys = Some(Keys::new());
        self.guard.enter()?;
        self.handle_quiet_event(Event::Edited(edited))?;
        self.repaint()
    }
}

/// Waits for the editor to end. If the editor is stopped (^Z), the user wants the shell back, so
/// this process stops as well. The shell continues both.
async fn wait(child: Child) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("the editor is lost: {error}");
    let pid = Pid::from_child(&child);
    let waiting = move || -> rustix::io::Result<Option<i32>> {
        loop {
            let status = match waitpid(Some(pid), WaitOptions::UNTRACED) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            match status {
                Some((_, status)) if status.stopped() => {
                    // The stop may take effect a moment later: returning from this call does not
                    // mean that the process was continued.
                    kill_process(getpid(), Signal::STOP)?;
                }
                Some((_, status)) => return Ok(status.exit_status()),
                None => return Ok(None),
            }
        }
    };
    match tokio::task::spawn_blocking(waiting).await {
        Ok(Ok(Some(0))) => Ok(()),
        Ok(Ok(Some(status))) => Err(format!("the editor ended with status {status}")),
        Ok(Ok(None)) => Err("the editor was killed".into()),
        Ok(Err(error)) => Err(failed(&error)),
        Err(error) => Err(failed(&error)),
    }
}

/// Returns the program and its arguments. The way to pass a line number depends on the editor.
fn command(wanted: &str, path: &Path, line: u32) -> Option<(String, Vec<OsString>)> {
    let mut words = wanted.split_whitespace();
    let program = words.next()?.to_owned();
    let mut arguments: Vec<OsString> = words.map(OsString::from).collect();
    let name = program.rsplit('/').next().unwrap_or(&program);
    let with_line = || {
        let mut place = path.as_os_str().to_owned();
        place.push(format!(":{line}"));
        place
    };
    match name {
        "code" | "codium" | "code-insiders" => arguments.extend(["-g".into(), with_line()]),
        "hx" | "helix" | "subl" | "zed" => arguments.push(with_line()),
        // vi, vim, nvim, nano, emacs, micro, kak, less and many more.
        _ => arguments.extend([format!("+{line}").into(), path.into()]),
    }
    Some((program, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_argument() {
        let path = Path::new("/src/a b; rm -rf $HOME.c");
        let of = |wanted| {
            let (program, arguments) = command(wanted, path, 7)?;
            let text = |word: OsString| word.into_string().expect("UTF-8");
            let arguments: Vec<String> = arguments.into_iter().map(text).collect();
            Some((program, arguments))
        };
        let path = "/src/a b; rm -rf $HOME.c";
        let expected = |program: &str, arguments: &[&str]| {
            let arguments = arguments.iter().map(|word| (*word).to_owned());
            Some((program.to_owned(), arguments.collect()))
        };
        assert_eq!(of("vi"), expected("vi", &["+7", path]));
        assert_eq!(of("/bin/vim -R"), expected("/bin/vim", &["-R", "+7", path]));
        let with_line = format!("{path}:7");
        assert_eq!(of("code -w"), expected("code", &["-w", "-g", &with_line]));
        assert_eq!(of("hx"), expected("hx", &[&with_line]));
        assert_eq!(of("  "), None);
    }
}
