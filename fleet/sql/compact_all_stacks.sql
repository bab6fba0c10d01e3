-- Each stack once.
SELECT stack_id, {{any}}(frames) AS frames FROM stacks
GROUP BY stack_id
ORDER BY stack_id
