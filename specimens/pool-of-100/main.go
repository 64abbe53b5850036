// Ten thousand tasks at a time, each of which waits a millisecond for somebody else.
//
// defect:   a pool of 100 workers takes them one by one: 10,000 waits of 1 ms in 100 rows are 100 ms, whatever the machine.
// repaired: every task is a goroutine: all wait at once. (A pool would need, by Little's law, as many workers as tasks wait.)
package main

import (
	"sync"
	"time"
)

const (
	tasks = 10_000
	pool  = 100
	wait  = time.Millisecond
)

func task() {
	time.Sleep(wait)
}

//go:noinline
func poolWorker(queue <-chan func(), done *sync.WaitGroup) {
	for work := range queue {
		work()
		done.Done()
	}
}

func inPool(queue chan<- func(), done *sync.WaitGroup) {
	done.Add(tasks)
	for n := 0; n < tasks; n++ {
		queue <- task
	}
	done.Wait()
}

func allAtOnce(done *sync.WaitGroup) {
	done.Add(tasks)
	for n := 0; n < tasks; n++ {
		go func() {
			task()
			done.Done()
		}()
	}
	done.Wait()
}

func main() {
	repaired := begin()
	var done sync.WaitGroup
	queue := make(chan func())
	if !repaired {
		for n := 0; n < pool; n++ {
			go poolWorker(queue, &done)
		}
	}
	run, units := start(), int64(0)
	for !over.Load() {
		if repaired {
			allAtOnce(&done)
		} else {
			inPool(queue, &done)
		}
		units += tasks
	}
	run.end(units)
}
