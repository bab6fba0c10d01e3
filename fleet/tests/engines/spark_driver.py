"""Runs statements on a cluster of Spark: one a line as a JSON text, answered by a line with rows or an error."""

import json
import sys

from pyspark.sql import SparkSession

session = (
    SparkSession.builder.master(sys.argv[1])
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.executor.memory", "600m")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
session.sparkContext.setLogLevel("ERROR")
for line in sys.stdin:
    try:
        question = json.loads(line)
        if question == "executors":
            # The driver is one of them.
            answer = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        else:
            answer = [list(row) for row in session.sql(question).collect()]
        answer = {"rows": answer}
    except Exception as error:
        answer = {"error": str(error)[:2000]}
    # Sums of whole numbers are decimals there.
    print("ANSWER " + json.dumps(answer, default=str), flush=True)
