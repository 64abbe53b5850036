// An HTTP/2 server that answers ten requests at a time on one connection, with pages larger than its write buffer.
//
// defect:   golang.org/x/net/http2 as it is published: a goroutine for each frame that does not fit the buffer.
// repaired: a copy with one writer for each connection.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/net/http2"
)

// Requests in flight, as many as a browser's page.
const inFlight = 10

// Bytes of the page: some frames of the usual 16 KiB.
const pageBytes = 40_000

// Which library this program was built with; the builder says.
var built = "defect"

var page = make([]byte, pageBytes)

func answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "private, max-age=0")
	w.Header().Set("Set-Cookie", "NID=511=abcdefghijklmnopqrstuvwxyz0123456789; path=/; HttpOnly")
	w.Write(page)
	progress()
}

func serve(listener net.Listener) {
	server := &http2.Server{}
	options := &http2.ServeConnOpts{Handler: http.HandlerFunc(answer)}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go server.ServeConn(conn, options)
	}
}

func plain(_ context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
	return net.Dial(network, address)
}

func ask(client *http.Client, address string) {
	for {
		response, err := client.Get("http://" + address + "/")
		if err != nil {
			os.Exit(1)
		}
		n, err := io.Copy(io.Discard, response.Body)
		if err != nil || n != pageBytes {
			os.Exit(1)
		}
		response.Body.Close()
	}
}

// client asks until it is killed.
func client(address string) {
	asking := &http.Client{Transport: &http2.Transport{AllowHTTP: true, DialTLSContext: plain}}
	var all sync.WaitGroup
	all.Add(inFlight)
	for range inFlight {
		go func() {
			defer all.Done()
			ask(asking, address)
		}()
	}
	all.Wait()
}

// start of the client's process, which does not outlive this thread.
func clientOf(address string) *exec.Cmd {
	own, err := os.Executable()
	check(err)
	command := exec.Command(own, "client", address)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(command.Start())
	return command
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// otherBuild goes on as the program with the other library.
func otherBuild() {
	own, err := os.Executable()
	check(err)
	other := filepath.Join(filepath.Dir(own), "program-repaired")
	check(syscall.Exec(other, append([]string{other}, os.Args[1:]...), os.Environ()))
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "client" {
		client(os.Args[2])
		return
	}
	if begin() && built != "repaired" {
		otherBuild()
	}
	runtime.LockOSThread()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go serve(listener)
	asking := clientOf(listener.Addr().String())
	for done.Load() < 100 {
		runtime.Gosched()
	}
	run, before := start(), done.Load()
	for !over.Load() {
		syscall.Nanosleep(&syscall.Timespec{Nsec: 10_000_000}, nil)
	}
	run.end(done.Load() - before)
	asking.Process.Kill()
	asking.Wait()
}
