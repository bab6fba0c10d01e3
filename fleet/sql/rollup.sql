-- Each hour without its hosts: a row for each service, version, event and stack. `squares` is the sum of the
-- squares of hosts' amounts, by which intervals can be told as if the hosts were there.
SELECT hour_ms, service, namespace, version, event, stack_id, sum(host_amount) AS amount,
       sum(host_counted) AS counted, count(*) AS hosts, sum(host_amount * host_amount) AS squares
FROM (
  SELECT host, hour_ms, service, namespace, version, event, stack_id, sum(sample_amount) AS host_amount,
         sum(sample_counted) AS host_counted
  FROM (
    SELECT host, begin_ms - begin_ms % 3600000 AS hour_ms, service, namespace, version, event, stack_id,
           {{amount}} AS sample_amount,
           1e0 * value AS sample_counted
    FROM samples WHERE {{where_begin}}
  ) s
  GROUP BY host, hour_ms, service, namespace, version, event, stack_id
) h
GROUP BY hour_ms, service, namespace, version, event, stack_id
ORDER BY hour_ms, service, version, event, stack_id, namespace
