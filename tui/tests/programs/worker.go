// Computes the same again and again, with goroutines whose stacks grow and move, channels,
// maps and a lot of garbage, and prints the results.
package main

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"sync"
)

type shelf struct {
	mutex sync.Mutex
	items map[string]int
}

//go:noinline
func (s *shelf) put(key string, n int) {
	s.mutex.Lock()
	s.items[key] = n
	s.mutex.Unlock()
}

//go:noinline
func grow(n int, seed int) int {
	var room [64]int
	room[n%64] = seed
	if n > 0 {
		return grow(n-1, seed*31%65521) + room[n%64]
	}
	return seed
}

//go:noinline
func mix(seed int, n int) []byte {
	text := fmt.Sprint(seed, n, grow(n%200, seed))
	digest := sha256.Sum256([]byte(text))
	return append([]byte(nil), digest[:]...)
}

//go:noinline
func collect(parts <-chan []byte, count int) string {
	var all []string
	for i := 0; i < count; i++ {
		all = append(all, fmt.Sprintf("%x", <-parts))
	}
	sort.Strings(all)
	digest := sha256.Sum256([]byte(fmt.Sprint(all)))
	return fmt.Sprintf("%x", digest)
}

func main() {
	for {
		kept := &shelf{items: map[string]int{}}
		parts := make(chan []byte)
		for worker := 0; worker < 8; worker++ {
			go func(worker int) {
				for n := 0; n < 100; n++ {
					part := mix(worker, n)
					kept.put(string(part), n)
					parts <- part
				}
			}(worker)
		}
		result := collect(parts, 800)
		fmt.Println(result, len(kept.items))
	}
}
