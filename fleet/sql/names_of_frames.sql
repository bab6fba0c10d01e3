SELECT frame_id, inline_depth, deepest, name AS function
FROM (SELECT frame_id, inline_depth, max(function) AS name FROM frames GROUP BY frame_id, inline_depth) n
JOIN (SELECT frame_id, max(inline_depth) AS deepest FROM frames GROUP BY frame_id) m USING (frame_id)
