// Small programs on Go's own library, one for each word.
package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"
)

type node struct {
	left, right *node
	text        [64]byte
}

var kept *node

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

func count(rounds int) int {
	total := 1
	for at := 0; at < rounds; at++ {
		total = total*31 + total>>7 + at
	}
	return total
}

func threads(many int, step func()) {
	for n := 0; n < many; n++ {
		go func() {
			for {
				step()
			}
		}()
	}
}

func serve(answer func(http.ResponseWriter, *http.Request)) {
	http.HandleFunc("/", answer)
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[2], nil))
}

func file() *os.File {
	out, err := os.Create("log")
	if err != nil {
		panic(err)
	}
	return out
}

func main() {
	var gate sync.Mutex
	switch os.Args[1] {
	case "fsync":
		out := file()
		threads(8, func() {
			gate.Lock()
			out.WriteString("a line\n")
			out.Sync()
			gate.Unlock()
		})
	case "log-sync", "log-plain":
		out := file()
		serve(func(w http.ResponseWriter, r *http.Request) {
			gate.Lock()
			out.WriteString("a line\n")
			if os.Args[1] == "log-sync" {
				out.Sync()
			}
			gate.Unlock()
			fmt.Fprint(w, "hello")
		})
	case "mutex":
		sum := 0
		threads(8, func() {
			gate.Lock()
			sum += count(30000)
			gate.Unlock()
			_ = count(3000)
		})
	case "held":
		threads(8, func() {
			gate.Lock()
			time.Sleep(time.Millisecond)
			gate.Unlock()
			_ = count(3000)
		})
	case "one-cpu":
		threads(4, func() { _ = count(2000000) })
	case "one-cpu-paced":
		threads(4, func() {
			_ = count(200000)
			time.Sleep(10 * time.Millisecond)
		})
	case "tree":
		threads(2, func() { kept = tree(12) })
	case "format":
		threads(1, func() { _ = fmt.Sprintf("%d %s %v %6.2f", 42, "word", []int{1, 2, 3}, 3.14) })
	case "bytes":
		out, _ := os.OpenFile("/dev/null", os.O_WRONLY, 0)
		threads(1, func() { out.Write([]byte{1}) })
	case "hello":
		serve(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	case "turn", "turns":
		many := 256
		if os.Args[1] == "turn" {
			many = 2
		}
		turns := make(chan struct{}, many)
		serve(func(w http.ResponseWriter, r *http.Request) {
			turns <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-turns
			fmt.Fprint(w, "hello")
		})
	case "asked":
		jobs := make(chan chan int)
		go func() {
			for job := range jobs {
				time.Sleep(10 * time.Millisecond)
				job <- 1
			}
		}()
		serve(func(w http.ResponseWriter, r *http.Request) {
			job := make(chan int)
			jobs <- job
			fmt.Fprint(w, <-job)
		})
	case "fan":
		serve(func(w http.ResponseWriter, r *http.Request) {
			parts := make(chan int, 4)
			for n := 0; n < 4; n++ {
				go func() { parts <- count(5000) }()
			}
			for n := 0; n < 4; n++ {
				<-parts
			}
			fmt.Fprint(w, "hello")
		})
	case "workers":
		work := make(chan int)
		for n := 0; n < 4; n++ {
			go func() {
				for range work {
					_ = count(200000)
				}
			}()
		}
		for {
			work <- 1
			time.Sleep(2 * time.Millisecond)
		}
	case "regexp":
		pattern := regexp.MustCompile(`(a+)+b`)
		text := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"
		threads(2, func() { pattern.MatchString(text) })
	}
	select {}
}
