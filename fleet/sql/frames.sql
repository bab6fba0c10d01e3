-- The frames of these stacks, with a row for each function that is inlined there.
SELECT frame_id, inline_depth, max(file_off) AS offset_in_file, max(module) AS module_name,
       max(function) AS name, max(file) AS source_file, max(line) AS source_line, max(kind) AS frame_kind
FROM frames
WHERE frame_id IN (
  SELECT {{each}} AS frame_id FROM stacks
  WHERE stack_id IN (SELECT stack_id FROM samples WHERE {{where}}){{of_samples}}
)
GROUP BY frame_id, inline_depth
LIMIT {{limit}}
