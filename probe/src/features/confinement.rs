//! How our processes that parse untrusted files are confined, according to the kernel.

use super::Finding;
use crate::confine::Confined;
use crate::files;

/// Checks the status of a reader.
pub fn of_readers() -> Finding {
    judge(files::confined().as_ref())
}

fn judge(confined: Option<&Confined>) -> Finding {
    let Some(confined) = confined else {
        return Finding::warn(
            "confinement",
            "confinement: files of targets are opened by this process itself, with all its rights",
        );
    };
    let names = confined.capabilities.names();
    let capabilities = match &names[..] {
        [] => "no capabilities".to_owned(),
        names => names.join(" "),
    };
    let who = format!(
        "confinement: readers of files have uid {}, {capabilities}",
        confined.user
    );
    let unnamed = confined.capabilities.0.count_ones() as usize - names.len();
    if unnamed > 0 {
        return Finding::warn("confinement", format!("{who} and {unnamed} more"));
    }
    match (confined.is_filtered, confined.gains_nothing) {
        (true, true) => Finding::ok(
            "confinement",
            format!("{who}; filtered system calls, no new privileges"),
        ),
        (false, _) => Finding::warn(
            "confinement",
            format!("{who}; their system calls are not filtered"),
        )
        .fix("a kernel with CONFIG_SECCOMP_FILTER"),
        (true, false) => Finding::warn("confinement", format!("{who}; they may gain privileges")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use crate::privilege::{Capabilities, Capability};

    #[test]
    fn only_what_was_seen_is_told() {
        let all = Confined {
            user: 65_534,
            capabilities: Capabilities(1 << Capability::SysPtrace as u8),
            is_filtered: true,
            gains_nothing: true,
        };
        let told = judge(Some(&all));
        assert_eq!(told.level, Level::Ok);
        assert_eq!(
            told.what,
            "confinement: readers of files have uid 65534, CAP_SYS_PTRACE; \
             filtered system calls, no new privileges"
        );
        let unfiltered = Confined {
            is_filtered: false,
            ..all.clone()
        };
        assert_eq!(judge(Some(&unfiltered)).level, Level::Warn);
        let root = Confined {
            capabilities: Capabilities(u64::MAX >> 23),
            ..all
        };
        let told = judge(Some(&root));
        assert!(told.what.ends_with("and 33 more"), "{}", told.what);
        assert_eq!(told.level, Level::Warn);
        assert_eq!(judge(None).level, Level::Warn);
    }
}
