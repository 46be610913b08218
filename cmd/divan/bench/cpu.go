package bench

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/prometheus/procfs"
)

// errNoProcessTimes is the error of Config.PIDs on a system that is not Linux.
var errNoProcessTimes = errors.New("the processor time of a server can be read on Linux only")

// processTime returns the seconds of processor time, user and system, that the
// processes have used so far. The kernel counts it in hundredths of a second.
func processTime(pids []int) (float64, error) {
	if len(pids) > 0 && runtime.GOOS != "linux" {
		return 0, errNoProcessTimes
	}
	var total float64
	for _, pid := range pids {
		process, err := procfs.NewProc(pid)
		if err != nil {
			return 0, fmt.Errorf("process %d: %w", pid, err)
		}
		stat, err := process.Stat()
		if err != nil {
			return 0, fmt.Errorf("process %d: %w", pid, err)
		}
		total += stat.CPUTime()
	}
	return total, nil
}
