-- Each frame once, of those in the table of stacks, with a name if any file has one.
SELECT frame_id, max(build_id) AS build_id, max(file_off) AS file_off, max(module) AS module,
       max(function) AS function, max(file) AS file, max(line) AS line, inline_depth, max(kind) AS kind
FROM (SELECT DISTINCT {{each}} AS frame_id FROM stacks) k
JOIN frames USING (frame_id)
GROUP BY frame_id, inline_depth
ORDER BY frame_id, inline_depth
