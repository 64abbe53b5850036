//go:build ignore

// Builds the server twice: with golang.org/x/net/http2 as it is published, and with a copy of it that has one writer for
// each connection instead of a goroutine for each frame.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The copy's folder, and the module file that leads to it.
const copied, copiedModule = "net-repaired", "repaired.mod"

// What is put in the place of what, in http2/server.go.
type change struct{ from, to string }

func changesOf() []change {
	return []change{
		{
			"\t\tgo sc.writeFrameAsync(wr, wd)\n",
			"\t\tsc.toWriter <- asyncWrite{wr, wd}\n",
		},
		{
			"\t\tgo sc.writeFrameAsync(wr, nil)\n",
			"\t\tsc.toWriter <- asyncWrite{wr, nil}\n",
		},
		{
			"\tgo sc.readFrames() // closed by defer sc.conn.Close above\n",
			"\tgo sc.readFrames()\n\tgo sc.writeFrames()\n\tdefer close(sc.toWriter)\n",
		},
		{
			"\t\twroteFrameCh: ",
			"\t\ttoWriter: make(chan asyncWrite, 1),\n\t\twroteFrameCh: ",
		},
		{
			"\twroteFrameCh     chan",
			"\ttoWriter chan asyncWrite\n\twroteFrameCh     chan",
		},
	}
}

const added = `
type asyncWrite struct {
	wr FrameWriteRequest
	wd *writeData
}

// writeFrames lives as long as the connection: its stack grows once. There is one frame at a time: nobody waits here.
func (sc *serverConn) writeFrames() {
	for next := range sc.toWriter {
		sc.writeFrameAsync(next.wr, next.wd)
	}
}
`

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func golang(words ...string) string {
	command := exec.Command("go", words...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	fail(err)
	return strings.TrimSpace(string(out))
}

func patch(server string) {
	text, err := os.ReadFile(server)
	fail(err)
	changed := string(text)
	for _, change := range changesOf() {
		if strings.Count(changed, change.from) != 1 {
			fail(fmt.Errorf("%s holds %q %d times", server, change.from, strings.Count(changed, change.from)))
		}
		changed = strings.Replace(changed, change.from, change.to, 1)
	}
	fail(os.WriteFile(server, []byte(changed+added), 0o600))
}

func repairedCopy() {
	golang("mod", "download", "golang.org/x/net", "golang.org/x/text")
	fail(os.RemoveAll(copied))
	fail(os.CopyFS(copied, os.DirFS(golang("list", "-m", "-f", "{{.Dir}}", "golang.org/x/net"))))
	server := filepath.Join(copied, "http2", "server.go")
	fail(os.Chmod(server, 0o600))
	patch(server)
	module, err := os.ReadFile("go.mod")
	fail(err)
	fail(os.WriteFile(copiedModule, append(module, "\nreplace golang.org/x/net => ./"+copied+"\n"...), 0o600))
	sums, err := os.ReadFile("go.sum")
	fail(err)
	fail(os.WriteFile("repaired.sum", sums, 0o600))
}

func main() {
	repairedCopy()
	golang("build", "-o", "program", "main.go", "harness.go")
	flags := "-X main.built=repaired"
	golang("build", "-modfile", copiedModule, "-ldflags", flags, "-o", "program-repaired", "main.go", "harness.go")
}
