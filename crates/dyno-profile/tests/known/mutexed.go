// Four goroutines stand at one mutex that a fifth holds while it sleeps; two wait in a channel into which nothing comes.
package main

import (
	"sync"
	"time"
)

var (
	one     sync.Mutex
	nothing = make(chan int)
)

//go:noinline
func hold() {
	one.Lock()
	time.Sleep(20 * time.Millisecond)
	one.Unlock()
}

//go:noinline
func holdsInTurn() {
	for {
		hold()
	}
}

//go:noinline
func hears() {
	<-nothing
}

func main() {
	for range 5 {
		go holdsInTurn()
	}
	for range 2 {
		go hears()
	}
	println("begun")
	// Nobody ends it where the test's process is killed.
	time.Sleep(2 * time.Minute)
}
