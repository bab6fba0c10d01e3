SELECT frame_id, inline_depth, deepest, module_id, frame_kind AS kind,
       CASE WHEN name = '' THEN CAST(512 * (module_id % 18014398509481984) + 256 AS BIGINT)
            ELSE named_id END AS function_id
FROM (
  SELECT frame_id, inline_depth, name, named_id, frame_kind
  FROM (
    SELECT frame_id, inline_depth, max(function) AS name, max(kind) AS frame_kind
    FROM frames GROUP BY frame_id, inline_depth
  ) n
  JOIN (
    SELECT name, min(CAST(512 * (frame_id % 18014398509481984) + inline_depth AS BIGINT)) AS named_id
    FROM (
      SELECT frame_id, inline_depth, max(function) AS name FROM frames GROUP BY frame_id, inline_depth
    ) a
    GROUP BY name
  ) b USING (name)
) c
JOIN (
  SELECT frame_id, deepest, module_id
  FROM (
    SELECT frame_id, max(inline_depth) AS deepest, max(module) AS module_name FROM frames GROUP BY frame_id
  ) m
  JOIN (
    SELECT module_name, min(frame_id) AS module_id
    FROM (SELECT frame_id, max(module) AS module_name FROM frames GROUP BY frame_id) d
    GROUP BY module_name
  ) e USING (module_name)
) g USING (frame_id)
