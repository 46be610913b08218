package node

import (
	"math"
	"strconv"
	"strings"
)

// bodyShare is the part of the memory that the bodies of requests may take: an
// eighth.
const bodyShare = 8

// machineMemory returns how many bytes of memory there are for the process: those of the
// machine, or fewer when its control group has fewer; 0: unknown. read is os.ReadFile.
func machineMemory(read func(name string) ([]byte, error)) int64 {
	least := int64(math.MaxInt64)
	if text, err := read("/proc/meminfo"); err == nil {
		least = min(least, memTotal(string(text)))
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := read(name)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 { // else "max"
			least = min(least, n)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// memTotal reads the first line of meminfo, which is in KB.
func memTotal(text string) int64 {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 2 || fields[0] != "MemTotal:" {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64>>10 {
		return math.MaxInt64
	}
	return n << 10
}
