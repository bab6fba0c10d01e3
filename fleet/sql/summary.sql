-- All that was asked for: its hosts, time and samples, and what is not known of it.
SELECT {{by}}count(*) AS hosts, sum(time_of_host) AS all_time, sum(samples_of_host) AS all_samples,
       sum(known_of_host) AS known_time, sum(nameless_of_host) AS nameless_time,
       sum(cut_of_host) AS cut_time, min(first_ms) AS first_ms, max(last_ms) AS last_ms,
       max(longest_period) AS longest_period, max(largest_weight) AS largest_weight
FROM (
  SELECT {{keys}}, sum(amount) AS time_of_host, sum(counted) AS samples_of_host,
         sum(amount * coalesce(is_known, 0)) AS known_of_host,
         sum(amount * coalesce(is_nameless, 0)) AS nameless_of_host,
         sum(amount * coalesce(is_cut, 0)) AS cut_of_host,
         min(first_ms) AS first_ms, max(last_ms) AS last_ms, max(longest_period) AS longest_period,
         max(largest_weight) AS largest_weight
  FROM (
    SELECT {{keys}}, stack_id, sum({{amount}}) AS amount, sum(value) AS counted,
           min(begin_ms) AS first_ms, max(begin_ms + dur_ms) AS last_ms,
           max(period_ns) AS longest_period, max(1e0 * weight) AS largest_weight
    FROM samples WHERE {{where}}
    GROUP BY {{keys}}, stack_id
  ) s
  LEFT JOIN (
    SELECT stack_id, 1 AS is_known, is_nameless, CASE WHEN root_kind = 4 THEN 1 ELSE 0 END AS is_cut
    FROM (
      SELECT stack_id, root_id, CASE WHEN name = '' THEN 1 ELSE 0 END AS is_nameless
      FROM (SELECT DISTINCT stack_id, {{first}} AS frame_id, {{last}} AS root_id FROM {{stacks}}) d
      JOIN (SELECT frame_id, max(function) AS name FROM frames GROUP BY frame_id) f USING (frame_id)
    ) n
    JOIN (SELECT frame_id AS root_id, max(kind) AS root_kind FROM frames GROUP BY frame_id) r
      USING (root_id)
  ) i USING (stack_id)
  GROUP BY {{keys}}
) h
{{group_by}}
