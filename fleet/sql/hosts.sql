-- Where a function is hot: each host's time in all, in the function, and in what it calls.
SELECT {{keys}}, sum(amount) AS all_time, sum(amount * coalesce(is_self, 0)) AS self_time,
       sum(amount * coalesce(is_within, 0)) AS total_time,
       sum(counted) AS all_samples,
       sum(1e0 * counted * coalesce(is_self, 0)) AS self_samples,
       sum(1e0 * counted * coalesce(is_within, 0)) AS total_samples
FROM (
  SELECT {{keys}}, stack_id, sum({{amount}}) AS amount, sum(value) AS counted
  FROM samples WHERE {{where}}
  GROUP BY {{keys}}, stack_id
) s
LEFT JOIN (
  SELECT stack_id, 1 AS is_within, max(is_self) AS is_self
  FROM (
    {{functions_of_stacks}}
  ) p
  GROUP BY stack_id
) i USING (stack_id)
GROUP BY {{keys}}
ORDER BY round(total_time, 6) DESC, {{keys}}
LIMIT {{limit}}
