SELECT stack_id, function,
       max(CASE WHEN frame_id = first_id AND inline_depth = deepest THEN 1 ELSE 0 END) AS is_self
FROM (
  {{names_of_frames}}
) f
JOIN (
  SELECT stack_id, {{first}} AS first_id, {{each}} AS frame_id
  FROM (SELECT stack_id, {{any}}(frames) AS frames FROM {{stacks}} GROUP BY stack_id) d
) u USING (frame_id)
{{of_function}}GROUP BY stack_id, function
