//go:build race

package instance

// raceEnabled says whether the race detector is compiled in.
const raceEnabled = true
