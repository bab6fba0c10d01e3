-- Functions on two sides. With sums of squares and of products over hosts, as hosts are what is drawn:
-- samples of one host are not independent of each other.
-- Functions and modules go by numbers until the end, as those are grouped much faster than names.
SELECT coalesce(name, '') AS function, module_name AS module,
       CASE WHEN least_id = greatest_id THEN 1 ELSE 2 END AS modules, kind,
       self_a, self_b, self_aa, self_bb, self_ab, self_a_all_a, self_a_all_b, self_b_all_a, self_b_all_b,
       total_a, total_b, total_aa, total_bb, total_ab, total_a_all_a, total_a_all_b, total_b_all_a,
       total_b_all_b, samples_a, samples_b, hosts_a, hosts_b
FROM (
  SELECT name, least_id, greatest_id, kind,
         self_a, self_b, self_aa, self_bb, self_ab, self_a_all_a, self_a_all_b, self_b_all_a, self_b_all_b,
         total_a, total_b, total_aa, total_bb, total_ab, total_a_all_a, total_a_all_b, total_b_all_a,
         total_b_all_b, samples_a, samples_b, hosts_a, hosts_b
  FROM (
    SELECT function_id, min(least_of_host) AS least_id, max(greatest_of_host) AS greatest_id,
           max(kind_of_host) AS kind,
           sum(own_a) AS self_a, sum(own_b) AS self_b,
           sum(own_a * own_a) AS self_aa, sum(own_b * own_b) AS self_bb, sum(own_a * own_b) AS self_ab,
           sum(own_a * all_a) AS self_a_all_a, sum(own_a * all_b) AS self_a_all_b,
           sum(own_b * all_a) AS self_b_all_a, sum(own_b * all_b) AS self_b_all_b,
           sum(within_a) AS total_a, sum(within_b) AS total_b,
           sum(within_a * within_a) AS total_aa, sum(within_b * within_b) AS total_bb,
           sum(within_a * within_b) AS total_ab,
           sum(within_a * all_a) AS total_a_all_a, sum(within_a * all_b) AS total_a_all_b,
           sum(within_b * all_a) AS total_b_all_a, sum(within_b * all_b) AS total_b_all_b,
           sum(counted_a) AS samples_a, sum(counted_b) AS samples_b,
           sum(CASE WHEN within_a > 0 THEN 1 ELSE 0 END) AS hosts_a,
           sum(CASE WHEN within_b > 0 THEN 1 ELSE 0 END) AS hosts_b
    FROM (
      SELECT host, function_id, min(least_id) AS least_of_host, max(greatest_id) AS greatest_of_host,
             max(kind) AS kind_of_host,
             sum(amount_a * is_self) AS own_a, sum(amount_b * is_self) AS own_b,
             sum(amount_a) AS within_a, sum(amount_b) AS within_b,
             sum(stack_counted_a) AS counted_a, sum(stack_counted_b) AS counted_b
      FROM (
        SELECT host, stack_id,
               sum(CASE WHEN {{side_a}} THEN {{amount}} ELSE 0e0 END) AS amount_a,
               sum(CASE WHEN {{side_b}} THEN {{amount}} ELSE 0e0 END) AS amount_b,
               sum(CASE WHEN {{side_a}} THEN 1e0 * value ELSE 0e0 END) AS stack_counted_a,
               sum(CASE WHEN {{side_b}} THEN 1e0 * value ELSE 0e0 END) AS stack_counted_b
        FROM samples WHERE {{where}}
        GROUP BY host, stack_id
      ) s
      JOIN (
        {{functions_by_number}}
      ) p USING (stack_id)
      GROUP BY host, function_id
    ) h
    JOIN (
      SELECT host, sum(CASE WHEN {{side_a}} THEN {{amount}} ELSE 0e0 END) AS all_a,
             sum(CASE WHEN {{side_b}} THEN {{amount}} ELSE 0e0 END) AS all_b
      FROM samples WHERE {{where}}
      GROUP BY host
    ) t USING (host)
    GROUP BY function_id
  ) f
  LEFT JOIN (
    {{names_by_number}}
  ) n USING (function_id)
) k
JOIN (SELECT frame_id AS least_id, max(module) AS module_name FROM frames GROUP BY frame_id) m
  USING (least_id)
ORDER BY function, module
LIMIT {{limit}}
