// Bottlenecks of Go programs, one an argument.
// CULPRIT alloc on-cpu buildTree
// CULPRIT json on-cpu encodeAll
package main

import (
	"encoding/json"
	"os"
)

type node struct{ left, right *node }

var sink any

//go:noinline
func buildTree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{buildTree(depth - 1), buildTree(depth - 1)}
}

//go:noinline
func encodeAll(rows []map[string]int) []byte {
	text, _ := json.Marshal(rows)
	return text
}

func main() {
	rows := make([]map[string]int, 1000)
	for i := range rows {
		rows[i] = map[string]int{"a": i, "b": 2 * i, "c": 3 * i}
	}
	for {
		switch os.Args[1] {
		case "alloc":
			sink = buildTree(18)
		case "json":
			sink = encodeAll(rows)
		default:
			os.Exit(2)
		}
	}
}
