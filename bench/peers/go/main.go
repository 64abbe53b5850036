// Go's net/http as a peer: `peer-go ADDR`, one P. net/http writes Date itself.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
)

type message struct {
	Message string `json:"message"`
}

func serveJSON(reply http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(message{Message: "Hello, World!"})
	if err != nil {
		http.Error(reply, err.Error(), http.StatusInternalServerError)
		return
	}
	write(reply, "application/json", body)
}

func servePlaintext(reply http.ResponseWriter, _ *http.Request) {
	write(reply, "text/plain", []byte("Hello, World!"))
}

func write(reply http.ResponseWriter, contentType string, body []byte) {
	header := reply.Header()
	header.Set("Server", "go")
	header.Set("Content-Type", contentType)
	// A client that went away is no failure of the server.
	_, _ = reply.Write(body)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peer-go ADDR")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	http.HandleFunc("/json", serveJSON)
	http.HandleFunc("/plaintext", servePlaintext)
	if err := http.ListenAndServe(os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
