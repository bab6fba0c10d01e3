//! What `/proc/PID/stat` has behind the name of a process (proc_pid_stat(5)).

/// Returns the fields of `/proc/PID/stat`, or of a thread's, from the third on: the state comes
/// first. The name before it stands in parentheses and may have any characters, parentheses and
/// blanks among them. None if that is no such line.
pub fn fields_behind_name(stat: &[u8]) -> Option<&str> {
    let name_end = memchr::memrchr(b')', stat)?;
    std::str::from_utf8(&stat[name_end + 1..]).ok()
}
