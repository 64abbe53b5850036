// What every Go specimen shares: which side runs, for how long, and the line of figures at its end.
//
// `program defect|repaired [--for SECONDS] [--less PART=PERCENT]...` prints "ready" when its preparations are over, works
// until the time is up or SIGTERM or SIGINT comes, and prints {"units":N,"elapsed_ns":N,"cpu_ns":N,"notes":{}}. --less
// really shortens a part of the work, where a specimen has parts. The specimen is in the other file.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

var over atomic.Bool

type run struct {
	start time.Time
	cpu   time.Duration
}

// begin reads the command line; whether the repaired side is to run.
func begin() bool {
	if len(os.Args) < 2 || (os.Args[1] != "defect" && os.Args[1] != "repaired") {
		fmt.Fprintln(os.Stderr, "usage: program defect|repaired [--for SECONDS] [--less PART=PERCENT]...")
		os.Exit(2)
	}
	return os.Args[1] == "repaired"
}

// start tells that preparations are over: from here on units, time and CPU count.
func start() run {
	var limit <-chan time.Time
	for _, value := range values("--for") {
		if seconds, err := strconv.ParseFloat(value, 64); err == nil {
			limit = time.After(time.Duration(seconds * float64(time.Second)))
		}
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		select {
		case <-limit:
		case <-ended:
		}
		over.Store(true)
	}()
	fmt.Println("ready")
	return run{time.Now(), cpuTime()}
}

// values of a flag that may be given again.
func values(flag string) []string {
	var found []string
	for at := 2; at+1 < len(os.Args); at += 2 {
		if os.Args[at] == flag {
			found = append(found, os.Args[at+1])
		}
	}
	return found
}

// less is what --less leaves of a part's steps.
func less(part string, steps int) int {
	for _, value := range values("--less") {
		name, percent, _ := strings.Cut(value, "=")
		if shorter, err := strconv.ParseFloat(percent, 64); err == nil && name == part {
			return int(float64(steps)*(1-shorter/100) + 0.5)
		}
	}
	return steps
}

// stepsPerUs is what a microsecond holds of steps, about.
const stepsPerUs = 500

var done atomic.Int64

// progress is called when a unit is done: where a causal profile counts. It calls something, so that it begins with a
// push: a probe is cheapest there.
//
//go:noinline
func progress() {
	counted(&done)
}

//go:noinline
func counted(units *atomic.Int64) {
	units.Add(1)
}

// end prints the last line.
func (r run) end(units int64) {
	elapsed, cpu := time.Since(r.start).Nanoseconds(), (cpuTime() - r.cpu).Nanoseconds()
	fmt.Printf("{\"units\":%d,\"elapsed_ns\":%d,\"cpu_ns\":%d,\"notes\":{}}\n", units, elapsed, cpu)
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
