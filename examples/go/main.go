// A small server to climb: `go-server -listen 127.0.0.1:8080` answers GET /json with fifty items that are made and
// serialised for every request, so that the garbage collector has work and its settings matter. It prints nothing and
// ends on SIGTERM or an interrupt once the requests in progress are answered.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// Fifty items make an answer of some 4 kB and as many small allocations: enough for a collection every few thousand
// requests.
const items = 50

// How long requests in progress may take after the signal: what service managers commonly grant.
const drainTime = 10 * time.Second

type item struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Tags  []string `json:"tags"`
}

func list() []*item {
	all := make([]*item, 0, items)
	for id := 1; id <= items; id++ {
		name := "item " + strconv.Itoa(id)
		all = append(all, &item{ID: id, Name: name, Price: float64(id) * 1.25, Tags: []string{"small", name}})
	}
	return all
}

func serveJSON(reply http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(list())
	if err != nil {
		http.Error(reply, err.Error(), http.StatusInternalServerError)
		return
	}
	reply.Header().Set("Content-Type", "application/json")
	reply.Header().Set("Content-Length", strconv.Itoa(len(body)))
	// A client that went away is no failure of the server.
	_, _ = reply.Write(body)
}

// Settings in force, read from the runtime, one per line: what a proof needs to see.
func settings() string {
	percent := debug.SetGCPercent(-1)
	debug.SetGCPercent(percent)
	return "GOMAXPROCS=" + strconv.Itoa(runtime.GOMAXPROCS(0)) + "\nGOGC=" + strconv.Itoa(percent) + "\n"
}

// The exit code: 0 after a graceful end, 2 when it cannot listen or serve.
func run(addr string) int {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return 2
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/json", serveJSON)
	text := settings()
	routes.HandleFunc("/settings", func(reply http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(reply, text)
	})
	server := &http.Server{Handler: routes, ReadHeaderTimeout: drainTime}

	signals, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	select {
	case err := <-served:
		if !errors.Is(err, http.ErrServerClosed) {
			return 2
		}
	case <-signals.Done():
		deadline, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		if server.Shutdown(deadline) != nil {
			return 2
		}
	}
	return 0
}

func main() {
	addr := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	os.Exit(run(*addr))
}
