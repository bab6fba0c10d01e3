SELECT frame_id, inline_depth, deepest, name AS function, module_name AS module, frame_kind AS kind,
       CASE WHEN name = '' THEN module_name ELSE '' END AS nameless_in
FROM (
  SELECT frame_id, inline_depth, max(function) AS name, max(module) AS module_name, max(kind) AS frame_kind
  FROM frames GROUP BY frame_id, inline_depth
) n
JOIN (SELECT frame_id, max(inline_depth) AS deepest FROM frames GROUP BY frame_id) m USING (frame_id)
