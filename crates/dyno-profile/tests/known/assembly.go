// One goroutine that spends its time in hand-written assembly of the standard library.
package main

import "crypto/sha256"

//go:noinline
func digest(data []byte) byte {
	sum := sha256.Sum256(data)
	return sum[0]
}

var sink byte

func main() {
	data := make([]byte, 64<<10)
	for {
		sink += digest(data)
	}
}
