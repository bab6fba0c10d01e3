// A small web service of Go: JSON, compression, sorting, maps.
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
)

type item struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Price float64  `json:"price"`
}

var items []item

var page = template.Must(template.New("page").Parse(
	`<ul>{{range .}}<li>{{.Name}}: {{printf "%.2f" .Price}}{{range .Tags}} {{.}}{{end}}</li>{{end}}</ul>`))

func number(request *http.Request) int {
	n, _ := strconv.Atoi(request.URL.Query().Get("n"))
	return n
}

func list(answer http.ResponseWriter, request *http.Request) {
	found := []item{}
	for _, it := range items {
		if it.ID%13 == number(request)%13 {
			found = append(found, it)
		}
	}
	sort.Slice(found, func(a, b int) bool { return found[a].Name < found[b].Name })
	packed := gzip.NewWriter(answer)
	defer packed.Close()
	json.NewEncoder(packed).Encode(found)
}

func render(answer http.ResponseWriter, request *http.Request) {
	first := number(request) % 1000
	page.Execute(answer, items[first:first+60])
}

func count(answer http.ResponseWriter, request *http.Request) {
	counts := map[string]int{}
	for _, it := range items {
		for _, word := range strings.Fields(it.Name + " " + strings.Join(it.Tags, " ")) {
			counts[word]++
		}
	}
	fmt.Fprint(answer, len(counts), number(request))
}

func main() {
	for n := 0; n < 2000; n++ {
		tags := []string{fmt.Sprint("a", n%7), fmt.Sprint("b", n%11)}
		items = append(items, item{n, fmt.Sprint("item ", n), tags, float64(n * 7 % 101)})
	}
	http.HandleFunc("/list", list)
	http.HandleFunc("/page", render)
	http.HandleFunc("/count", count)
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
