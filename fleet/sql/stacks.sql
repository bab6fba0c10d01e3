-- The stacks of these samples: numbers of frames, innermost first.
SELECT DISTINCT stack_id, frames FROM stacks
WHERE stack_id IN (SELECT stack_id FROM samples WHERE {{where}}){{of_samples}}
LIMIT {{limit}}
