-- The two sides as wholes: hosts, their time in all with its sums of squares and products, the time of
-- windows with samples and of those that they stand for, and samples that are on both sides.
SELECT sum(CASE WHEN windows_a > 0 THEN 1 ELSE 0 END) AS hosts_a,
       sum(CASE WHEN windows_b > 0 THEN 1 ELSE 0 END) AS hosts_b,
       sum(CASE WHEN windows_a > 0 AND windows_b > 0 THEN 1 ELSE 0 END) AS hosts_both,
       sum(host_a) AS all_a, sum(host_b) AS all_b, sum(host_a * host_a) AS all_aa,
       sum(host_b * host_b) AS all_bb, sum(host_a * host_b) AS all_ab,
       sum(host_counted_a) AS samples_a, sum(host_counted_b) AS samples_b,
       sum(host_ms_a) AS recorded_ms_a, sum(host_ms_b) AS recorded_ms_b,
       sum(host_shared) AS shared, max(host_period) AS longest_period
FROM (
  SELECT host, sum(window_a) AS host_a, sum(window_b) AS host_b, sum(counted_a) AS host_counted_a,
         sum(counted_b) AS host_counted_b, sum(is_a) AS windows_a, sum(is_b) AS windows_b,
         sum(1e0 * window_ms * is_a) AS host_ms_a, sum(1e0 * window_ms * is_b) AS host_ms_b,
         sum(window_shared) AS host_shared, max(window_period) AS host_period
  FROM (
    SELECT host, begin_ms, max(1e0 * dur_ms * weight) AS window_ms,
           sum(CASE WHEN {{side_a}} THEN {{amount}} ELSE 0e0 END) AS window_a,
           sum(CASE WHEN {{side_b}} THEN {{amount}} ELSE 0e0 END) AS window_b,
           sum(CASE WHEN {{side_a}} THEN 1e0 * value ELSE 0e0 END) AS counted_a,
           sum(CASE WHEN {{side_b}} THEN 1e0 * value ELSE 0e0 END) AS counted_b,
           max(CASE WHEN {{side_a}} THEN 1 ELSE 0 END) AS is_a,
           max(CASE WHEN {{side_b}} THEN 1 ELSE 0 END) AS is_b,
           sum(CASE WHEN ({{side_a}}) AND ({{side_b}}) THEN 1e0 * value ELSE 0e0 END) AS window_shared,
           max(period_ns) AS window_period
    FROM samples WHERE {{where}}
    GROUP BY host, begin_ms
  ) w
  GROUP BY host
) h
