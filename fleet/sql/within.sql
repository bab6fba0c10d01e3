 AND stack_id IN (
    SELECT stack_id
    FROM (SELECT stack_id, {{each}} AS frame_id FROM stacks) w
    JOIN (SELECT frame_id AS frame_id FROM frames WHERE function = {{name}}) n USING (frame_id)
  )
