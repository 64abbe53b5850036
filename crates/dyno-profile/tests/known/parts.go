// Three functions that take 60, 30 and 10 % of the CPU of one goroutine.
package main

//go:noinline
func workSixty(rounds uint64) uint64 {
	state := uint64(1442695040888963407)
	for i := uint64(0); i < rounds; i++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func workThirty(rounds uint64) uint64 {
	state := uint64(3037000493)
	for i := uint64(0); i < rounds; i++ {
		state = state*6364136223846793005 + 3037000493
	}
	return state
}

//go:noinline
func workTen(rounds uint64) uint64 {
	state := uint64(2654435761)
	for i := uint64(0); i < rounds; i++ {
		state = state*6364136223846793005 + 2654435761
	}
	return state
}

//go:noinline
func turn(rounds uint64) uint64 {
	sum := workSixty(6 * rounds)
	sum += workThirty(3 * rounds)
	sum += workTen(rounds)
	return sum
}

var sink uint64

func main() {
	done := make(chan bool)
	go func() {
		for {
			sink += turn(10000)
		}
	}()
	<-done
}
