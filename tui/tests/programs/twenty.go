// A web server with eight clients of its own, which counts the calls of twenty of its
// functions: handlers, what they call, methods, and functions whose stack has to grow.
// Prints `NAME TAB CALLS TAB 0` of each, and a checksum of its work.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var calls [20]int64

var names = [20]string{
	"main.index", "main.item", "main.search", "main.slow", "main.missing", "main.deepPage",
	"main.deep", "main.render", "main.escape", "main.parse", "main.sum", "main.spread",
	"main.(*store).get", "main.(*store).put", "main.(*store).size", "main.list.Len",
	"main.worker", "main.checked", "main.fetch", "main.clean",
}

func called(number int) { atomic.AddInt64(&calls[number], 1) }

type store struct {
	mutex sync.Mutex
	items map[int]string
}

//go:noinline
func (s *store) get(n int) (string, bool) {
	called(12)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	text, ok := s.items[n]
	return text, ok
}

//go:noinline
func (s *store) put(n int, text string) {
	called(13)
	s.mutex.Lock()
	s.items[n] = text
	s.mutex.Unlock()
}

//go:noinline
func (s *store) size() int { called(14); s.mutex.Lock(); defer s.mutex.Unlock(); return len(s.items) }

type list []string

//go:noinline
func (l list) Len() int { called(15); return len(l) }

var kept = &store{items: map[int]string{}}

//go:noinline
func index(w http.ResponseWriter, r *http.Request) { called(0); io.WriteString(w, render("index", 3)) }

//go:noinline
func item(w http.ResponseWriter, r *http.Request) {
	called(1)
	n, err := parse(r.URL.Query().Get("n"))
	if err != nil {
		missing(w)
		return
	}
	text, ok := kept.get(n)
	if !ok {
		text = render("item", n)
		kept.put(n, text)
	}
	io.WriteString(w, text)
}

//go:noinline
func search(w http.ResponseWriter, r *http.Request) {
	called(2)
	words := list(strings.Split(clean(r.URL.Query().Get("q")), " "))
	sort.Strings(words)
	fmt.Fprint(w, words.Len(), escape(strings.Join(words, ",")))
}

//go:noinline
func slow(w http.ResponseWriter, r *http.Request) {
	called(3)
	time.Sleep(200 * time.Microsecond)
	io.WriteString(w, render("slow", 1))
}

//go:noinline
func missing(w http.ResponseWriter) { called(4); http.Error(w, "missing", http.StatusNotFound) }

//go:noinline
func deepPage(w http.ResponseWriter, r *http.Request) { called(5); fmt.Fprint(w, deep(60)) }

//go:noinline
func deep(n int) int {
	called(6)
	var room [40]int
	room[n%40] = n
	if n > 0 {
		return deep(n-1) + room[(n+1)%40] + 1
	}
	return 0
}

//go:noinline
func render(name string, n int) string {
	called(7)
	return "<p>" + escape(name) + strings.Repeat("!", n%5) + "</p>"
}

//go:noinline
func escape(text string) string { called(8); return strings.ReplaceAll(text, "&", "&amp;") }

//go:noinline
func parse(text string) (int, error) { called(9); return strconv.Atoi(text) }

//go:noinline
func sum(text string) int {
	called(10)
	all := 7
	for _, letter := range text {
		all = all*31%1000003 + int(letter)
	}
	return all
}

//go:noinline
func spread(n int, parts int) []int {
	called(11)
	all := make([]int, parts)
	for i := range all {
		all[i] = n*parts + i
	}
	return all
}

//go:noinline
func checked(text string, err error) int {
	called(17)
	if err != nil {
		return 1
	}
	return sum(text)
}

//go:noinline
func clean(text string) string { called(19); return strings.TrimSpace(text) }

//go:noinline
func fetch(client *http.Client, address string) (string, error) {
	called(18)
	answer, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	bytes, err := io.ReadAll(answer.Body)
	return string(bytes), err
}

//go:noinline
func worker(base string, number int, total *int64) {
	called(16)
	client := &http.Client{Transport: &http.Transport{}}
	for _, n := range spread(number, 25) {
		query := strconv.Itoa(n % 30)
		for _, path := range []string{"/", "/item?n=" + query, "/item?n=none", "/search?q=+b+a%26+" + query, "/slow", "/deep"} {
			atomic.AddInt64(total, int64(checked(fetch(client, base+path))))
		}
		kept.size()
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.HandleFunc("/", index)
	http.HandleFunc("/item", item)
	http.HandleFunc("/search", search)
	http.HandleFunc("/slow", slow)
	http.HandleFunc("/deep", deepPage)
	go http.Serve(listener, nil)
	var all sync.WaitGroup
	total := int64(0)
	for number := 0; number < 8; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			worker("http://"+listener.Addr().String(), number, &total)
		}(number)
	}
	all.Wait()
	for number, name := range names {
		fmt.Fprintf(os.Stderr, "%s\t%d\t0\n", name, atomic.LoadInt64(&calls[number]))
	}
	fmt.Fprintf(os.Stderr, "checksum\t%d\t0\n", total)
}
