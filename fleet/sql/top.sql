-- Functions: their own time (self), time with what they call (total), hosts and samples behind it. Kind 4 is no
-- function: it says why a stack has no root, which the summary counts. It is left out unless it is a whole stack.
SELECT {{by}}function, min(least_module) AS least_module, max(greatest_module) AS greatest_module,
       max(kind) AS greatest_kind, sum(self_of_host) AS self_time, sum(total_of_host) AS total_time,
       sum(self_samples_of_host) AS self_samples, sum(total_samples_of_host) AS total_samples,
       count(*) AS hosts
FROM (
  SELECT {{keys}}, function, nameless_in, min(least_module) AS least_module,
         max(greatest_module) AS greatest_module, max(kind) AS kind,
         sum(amount * is_self) AS self_of_host, sum(amount) AS total_of_host,
         sum(1e0 * counted * is_self) AS self_samples_of_host, sum(counted) AS total_samples_of_host
  FROM (
    SELECT {{keys}}, stack_id, sum({{amount}}) AS amount, sum(value) AS counted
    FROM samples WHERE {{where}}
    GROUP BY {{keys}}, stack_id
  ) s
  JOIN (
    {{functions_of_stacks}}
  ) p USING (stack_id)
  GROUP BY {{keys}}, function, nameless_in
) h
GROUP BY {{by}}function, nameless_in
HAVING greatest_kind <> 4 OR self_time > 0
ORDER BY {{order}}, {{by}}function, least_module
LIMIT {{limit}}
