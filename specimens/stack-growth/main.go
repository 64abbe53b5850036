// Frames of a connection, written one after another.
//
// defect:   each frame is written by a goroutine of its own. It begins with a small stack, and writing needs a deep one:
//           the runtime makes a larger stack and copies the old one, four times for every frame.
// repaired: one goroutine lives as long as the connection and writes all frames: its stack has grown once.
package main

// Bytes of a frame's part that one level of encoding works on.
const partBytes = 1024

// Levels: flow control, header fields, compression, encryption, the socket.
const levels = 20

type frame struct {
	number uint64
	sum    uint64
}

//go:noinline
func encode(level int, f *frame) uint64 {
	var part [partBytes]byte
	for at := 0; at < partBytes; at += 64 {
		part[at] = byte(f.number) + byte(at)
	}
	if level == 0 {
		return uint64(part[f.number%partBytes])
	}
	below := encode(level-1, f)
	return below + uint64(part[below%partBytes])
}

//go:noinline
func writeFrame(f *frame, written chan<- *frame) {
	f.sum += encode(levels, f)
	written <- f
}

//go:noinline
func writeFrames(frames <-chan *frame, written chan<- *frame) {
	for f := range frames {
		writeFrame(f, written)
	}
}

func main() {
	repaired := begin()
	frames, written := make(chan *frame), make(chan *frame)
	if repaired {
		go writeFrames(frames, written)
	}
	f, units := &frame{}, int64(0)
	run := start()
	for !over.Load() {
		f.number++
		if repaired {
			frames <- f
		} else {
			go writeFrame(f, written)
		}
		f = <-written
		progress()
		units++
	}
	run.end(units)
}
