-- The stacks of these samples: numbers of frames, innermost first.
SELECT stack_id, {{any}}(frames) AS frames FROM stacks
WHERE stack_id IN (SELECT stack_id FROM samples WHERE {{where}}){{of_samples}}
GROUP BY stack_id
LIMIT {{limit}}
