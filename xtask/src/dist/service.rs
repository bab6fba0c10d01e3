//! What the scripts of packages do with the service `proftop-recorder`. The package enables it for
//! nobody; a user may have done so. Commands do nothing on a machine that systemd has not started.

/// Makes systemd read the unit that is there now, or is there no more.
pub const RELOAD: &str = "[ ! -d /run/systemd/system ] || systemctl daemon-reload || true\n";

/// Starts the recorder again if it runs: it would go on with the program that was replaced.
pub const RESTART: &str =
    "[ ! -d /run/systemd/system ] || systemctl try-restart proftop-recorder || true\n";

/// Ends the recorder, and makes sure that nothing tries to start it without its program.
pub const STOP: &str =
    "[ ! -d /run/systemd/system ] || systemctl disable --now --quiet proftop-recorder || true\n";

/// Says where the recordings are that stay when the package is gone. systemd keeps them there, as the
/// user of the service has no fixed number.
pub const KEPT: &str = "[ ! -d /var/lib/private/proftop ] || echo 'proftop: what was recorded is kept in /var/lib/private/proftop'\n";
