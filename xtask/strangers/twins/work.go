// Units of work on Go's own library and a module of the registry: program WORD COUNT FIRST SECOND. A part sums a megabyte
// FIRST times (xxhash), another hashes it SECOND times (SHA-256); each unit is written into the file COUNT when it is done.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

var (
	megabyte = make([]byte, 1<<20)
	out      *os.File
	done     int
	kept     uint64
)

func unitDone() {
	done++
	out.WriteAt([]byte(fmt.Sprintf("%12d\n", done)), 0)
}

func sum(times int) {
	for i := 0; i < times; i++ {
		kept += xxhash.Sum64(megabyte)
	}
}

func hash(times int) {
	for i := 0; i < times; i++ {
		digest := sha256.Sum256(megabyte)
		kept += uint64(digest[0])
	}
}

// A node of a tree that JSON writes by calling itself.
type node struct {
	Name     string
	Children []*node
}

func tree(depth int) *node {
	one := &node{Name: "a name of some length"}
	for i := 0; depth > 0 && i < 3; i++ {
		one.Children = append(one.Children, tree(depth-1))
	}
	return one
}

// Two goroutines with a channel between them: the first sums, the second hashes.
func pipeline(first, second int) {
	jobs := make(chan int, 4)
	go func() {
		for {
			sum(first)
			jobs <- 1
		}
	}()
	for range jobs {
		hash(second)
		unitDone()
	}
}

// Something at each tick of 10 ms.
func ticker(first, second int) {
	for range time.NewTicker(10 * time.Millisecond).C {
		sum(first)
		hash(second)
		unitDone()
	}
}

// A unit writes FIRST trees and hashes.
func recursion(first, second int) {
	root := tree(5)
	for {
		for i := 0; i < first; i++ {
			text, _ := json.Marshal(root)
			kept += uint64(len(text))
		}
		hash(second)
		unitDone()
	}
}

// Holds a tree of so many thousand nodes, and collects once in two hundred units, which is about once a second.
func collector(first, second int) {
	debug.SetGCPercent(-1)
	forest := make([]*node, 0, first)
	for i := 0; i < first; i++ {
		forest = append(forest, tree(6))
	}
	for {
		for i := 0; i < 200; i++ {
			hash(second)
			unitDone()
		}
		runtime.GC()
		runtime.KeepAlive(forest)
	}
}

func main() {
	words := map[string]func(int, int){"pipeline": pipeline, "ticker": ticker, "recursion": recursion, "collector": collector}
	first, _ := strconv.Atoi(os.Args[3])
	second, _ := strconv.Atoi(os.Args[4])
	out, _ = os.Create(os.Args[2])
	words[os.Args[1]](first, second)
}
