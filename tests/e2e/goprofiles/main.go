// SPDX-License-Identifier: Apache-2.0

// Goprofiles writes profiles of Go's own runtime into a folder: cpu, heap, mutex, block, goroutine,
// each of two halves of the run (cpu) or at two moments (the others).
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sort"
	"sync"
	"time"
)

type node struct{ left, right *node }

var kept [][]byte

func build(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{build(depth - 1), build(depth - 1)}
}

func (n *node) count() int {
	if n == nil {
		return 0
	}
	return 1 + n.left.count() + n.right.count()
}

func compress() {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	for i := 0; i < 200; i++ {
		fmt.Fprintf(w, "line %d of %d\n", i, i*i)
	}
	w.Close()
	kept = append(kept, out.Bytes())
}

func fight(rounds int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := 0; g < 4; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < rounds; i++ {
				mu.Lock()
				time.Sleep(50 * time.Microsecond)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
}

func work(until time.Time) {
	words := make([]int, 20000)
	for time.Now().Before(until) {
		pprof.Do(context.Background(), pprof.Labels("phase", "tree"), func(context.Context) { build(14).count() })
		pprof.Do(context.Background(), pprof.Labels("phase", "gzip", "id", "7"), func(context.Context) { compress() })
		for i := range words {
			words[i] = (i * 7919) % 20011
		}
		sort.Slice(words, func(a, b int) bool { return words[a] < words[b] })
	}
}

func dump(folder string, half int) {
	for _, name := range []string{"heap", "mutex", "block", "goroutine"} {
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s%d.pb.gz", name, half)))
		if err == nil {
			err = pprof.Lookup(name).WriteTo(f, 0)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func main() {
	folder := os.Args[1]
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	runtime.MemProfileRate = 128 << 10
	for half := 1; half <= 2; half++ {
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("cpu%d.pb.gz", half)))
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		work(time.Now().Add(1500 * time.Millisecond))
		fight(100)
		pprof.StopCPUProfile()
		f.Close()
		dump(folder, half)
	}
}
