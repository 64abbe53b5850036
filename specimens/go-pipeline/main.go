// Two goroutines and a channel with four places between them.
//
// defect:   the first does its work twice: the second waits for it.
// repaired: once; then the second is the slower one.
package main

var sink uint64

//go:noinline
func stageA(steps int) uint64 {
	x := uint64(steps)
	for i := 0; i < steps; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func stageB(steps int) uint64 {
	x := uint64(steps) + 1
	for i := 0; i < steps; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func makeAll(steps int, made chan<- uint64) {
	for !over.Load() {
		made <- stageA(steps)
	}
	close(made)
}

func main() {
	stepsA, stepsB := 4000*stepsPerUs, 2500*stepsPerUs
	if begin() {
		stepsA /= 2
	}
	stepsA, stepsB = less("stageA", stepsA), less("stageB", stepsB)
	made, units := make(chan uint64, 4), int64(0)
	run := start()
	go makeAll(stepsA, made)
	for one := range made {
		sink = one + stageB(stepsB)
		progress()
		units++
	}
	run.end(units)
}
