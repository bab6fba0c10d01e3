// Bottlenecks of a program for node, one an argument.
// CULPRIT sum on-cpu sumRows
// CULPRIT sort on-cpu page.js:13
const rows = Array.from({ length: 100000 }, (_, i) => ({ value: (i * 2654435761) % 65521 }));

function sumRows() {
  let sum = 0;
  for (const row of rows) sum = (sum * 31 + row.value) % 1000003;
  return sum;
}

function sortRows() {
  return rows.slice().sort((a, b) => a.value - b.value);
}

const work = { sum: sumRows, sort: sortRows }[process.argv[2]];
for (;;) work();
