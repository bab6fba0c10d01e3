-- What the hosts say of the time that was asked for: how much of it they recorded and lost.
SELECT host, sum(recorded_ms) AS recorded_ms, sum(lost_samples) AS lost_samples,
       max(lost_windows) - min(lost_windows) AS lost_windows, max(cores) AS cores,
       min(kernel) AS least_kernel, max(kernel) AS greatest_kernel,
       min(rate_hz) AS least_rate, max(rate_hz) AS greatest_rate
FROM hosts WHERE {{where_hosts}}
GROUP BY host
ORDER BY host
LIMIT {{limit}}
