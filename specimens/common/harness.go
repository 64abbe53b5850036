// What every Go specimen shares: which side runs, for how long, and the line of figures at its end.
//
// `program defect|repaired [--for SECONDS]` prints "ready" when its preparations are over, works until the time is up or
// SIGTERM or SIGINT comes, and prints {"units":N,"elapsed_ns":N,"cpu_ns":N,"notes":{}}. The specimen is in the other
// file.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
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
		fmt.Fprintln(os.Stderr, "usage: program defect|repaired [--for SECONDS]")
		os.Exit(2)
	}
	return os.Args[1] == "repaired"
}

// start tells that preparations are over: from here on units, time and CPU count.
func start() run {
	var limit <-chan time.Time
	if len(os.Args) > 3 && os.Args[2] == "--for" {
		if seconds, err := strconv.ParseFloat(os.Args[3], 64); err == nil {
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
