-- What the hosts say of themselves, as it is.
SELECT host, first_seen, last_seen, begin_ms, end_ms, recorded_ms, cores, kernel, arch, agent_version, rate_hz,
       lost_samples, lost_windows
FROM hosts WHERE {{where_begin}}
ORDER BY host, begin_ms
