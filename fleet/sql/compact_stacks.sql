-- Each stack once, of those that samples of that time have.
SELECT DISTINCT stack_id, frames FROM stacks
WHERE stack_id IN (SELECT DISTINCT stack_id FROM samples WHERE {{where_begin}})
ORDER BY stack_id
