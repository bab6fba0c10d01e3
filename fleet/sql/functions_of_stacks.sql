SELECT stack_id, function, nameless_in, min(module) AS least_module, max(module) AS greatest_module,
       max(kind) AS kind,
       max(CASE WHEN frame_id = first_id AND inline_depth = deepest THEN 1 ELSE 0 END) AS is_self
FROM (
  SELECT stack_id, {{first}} AS first_id, {{each}} AS frame_id
  FROM (SELECT DISTINCT stack_id, frames FROM stacks{{of_stacks}}) d
) u
JOIN (
  {{names_of_frames}}
) f USING (frame_id)
{{of_function}}GROUP BY stack_id, function, nameless_in
