-- Functions: their own time (self), time with what they call (total), hosts and samples behind it. Kind 4 is no
-- function: it says why a stack has no root, which the summary counts. It is left out unless it is a whole stack.
-- Functions and modules go by numbers until the end, as those are grouped much faster than names.
SELECT {{by}}coalesce(name, '') AS function, module_name AS module,
       CASE WHEN least_id = greatest_id THEN 1 ELSE 2 END AS modules, greatest_kind, self_time,
       total_time, self_samples, total_samples, hosts
FROM (
  SELECT {{by}}name, least_id, greatest_id, greatest_kind, self_time, total_time, self_samples,
         total_samples, hosts
  FROM (
    SELECT {{by}}function_id, min(least_id) AS least_id, max(greatest_id) AS greatest_id,
           max(kind) AS greatest_kind, sum(self_of_host) AS self_time, sum(total_of_host) AS total_time,
           sum(self_samples_of_host) AS self_samples, sum(total_samples_of_host) AS total_samples,
           count(*) AS hosts
    FROM (
      SELECT {{keys}}, function_id, min(least_id) AS least_id, max(greatest_id) AS greatest_id,
             max(kind) AS kind,
             sum(amount * is_self) AS self_of_host, sum(amount) AS total_of_host,
             sum(1e0 * counted * is_self) AS self_samples_of_host, sum(counted) AS total_samples_of_host
      FROM (
        SELECT {{keys}}, stack_id, sum({{amount}}) AS amount, sum(value) AS counted
        FROM samples WHERE {{where}}
        GROUP BY {{keys}}, stack_id
      ) s
      JOIN (
        {{functions_by_number}}
      ) p USING (stack_id)
      GROUP BY {{keys}}, function_id
    ) h
    GROUP BY {{by}}function_id
    HAVING greatest_kind <> 4 OR self_time > 0
  ) t
  LEFT JOIN (
    {{names_by_number}}
  ) n USING (function_id)
) k
JOIN (SELECT frame_id AS least_id, max(module) AS module_name FROM frames GROUP BY frame_id) m
  USING (least_id)
ORDER BY {{order}}, {{by}}function, module
LIMIT {{limit}}
