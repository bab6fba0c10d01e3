-- Samples, window by window, with the numbers of their stacks.
SELECT host, service, begin_ms, period_ns, stack_id, sum(1e0 * value * weight) AS counted,
       max(dur_ms) AS window_ms
FROM samples WHERE {{where}}{{of_samples}}
GROUP BY host, service, begin_ms, period_ns, stack_id
ORDER BY host, service, begin_ms, period_ns, stack_id
LIMIT {{limit}}
