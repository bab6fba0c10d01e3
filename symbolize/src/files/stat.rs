//! Parses `/proc/PID/stat` after the name of the process (proc_pid_stat(5)).

/// Returns the fields of `/proc/PID/stat`, or of a thread's, from the third one, the state, on. The
/// name before it is in parentheses and may contain any characters, also parentheses and blanks.
/// `None` if the line is malformed.
pub fn fields_behind_name(stat: &[u8]) -> Option<&str> {
    let name_end = memchr::memrchr(b')', stat)?;
    std::str::from_utf8(&stat[name_end + 1..]).ok()
}
