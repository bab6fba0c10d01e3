-- Each stack once, of those that samples of that time have. The number of a stack tells its frames, so that any of
-- its rows will do.
SELECT stack_id, frames
FROM (SELECT DISTINCT stack_id FROM samples WHERE {{where_begin}}) k
JOIN (SELECT stack_id, {{any}}(frames) AS frames FROM stacks GROUP BY stack_id) s USING (stack_id)
ORDER BY stack_id
