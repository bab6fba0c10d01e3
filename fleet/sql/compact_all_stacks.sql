-- Each stack once.
SELECT DISTINCT stack_id, frames FROM stacks
ORDER BY stack_id
