SELECT CAST(512 * (frame_id % 18014398509481984) + inline_depth AS BIGINT) AS function_id,
       max(function) AS name
FROM frames GROUP BY frame_id, inline_depth
