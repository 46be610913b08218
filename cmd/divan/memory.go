package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how far the heap may grow between two collections. Most of it
// are blocks and memtables without a pointer in them, so that a collection
// costs little, while Go's usual 100 would double the memory of the caches.
const gcPercent = 40

// tuneMemory sets the pace of the garbage collector, unless GOGC does.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
