-- Under which kernels and at which rates the hosts of a side were sampled.
SELECT kernel, arch, rate_hz, count(*) AS hosts, sum(host_lost_samples) AS lost_samples,
       sum(host_lost_windows) AS lost_windows
FROM (
  SELECT host, kernel, arch, rate_hz, sum(lost_samples) AS host_lost_samples,
         max(lost_windows) - min(lost_windows) AS host_lost_windows
  FROM hosts
  JOIN (
    SELECT host, min(begin_ms) AS first_ms, max(begin_ms) AS last_ms
    FROM samples WHERE {{where}}
    GROUP BY host
  ) s USING (host)
  WHERE begin_ms <= last_ms AND end_ms > first_ms
  GROUP BY host, kernel, arch, rate_hz
) h
GROUP BY kernel, arch, rate_hz
ORDER BY kernel, arch, rate_hz
LIMIT {{limit}}
