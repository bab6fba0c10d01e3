-- The samples of many small files in the order in which they pack best, and are left out best by service.
SELECT begin_ms, dur_ms, host, service, namespace, version, container, event, stack_id, value, period_ns,
       weight
FROM samples WHERE {{where_begin}}
ORDER BY service, version, stack_id, host, begin_ms
