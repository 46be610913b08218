package node

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"divan/httpapi/core"
	"divan/shard/script"
	"divan/storage/doc"
)

// nodeFigures asks the root for its numbers.
func nodeFigures(a *core.API) core.Figures {
	if a.Deps.Figures == nil {
		return core.Figures{}
	}
	return a.Deps.Figures()
}

// runtimeStats are figures of the process under the names of the machine
// below it: bytes where nothing else is said.
type runtimeStats struct {
	heap, stacks, code, released, other uint64
	goroutines                          int
	collections, freedWords             uint64
	switches                            uint64
	runnable                            uint64 // goroutines that wait for a processor
	read, written                       uint64 // bytes, of files and connections
}

// readRuntime reads the runtime's own counters; it does not stop the world.
func readRuntime() runtimeStats {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/frees:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"},
		{Name: "/sched/goroutines/runnable:goroutines"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			return samples[i].Value.Uint64()
		}
		return 0
	}
	s := runtimeStats{
		heap: value(0), stacks: value(1), released: value(3), collections: value(4), freedWords: value(5) / 8, code: value(6),
		runnable:   value(7),
		goroutines: runtime.NumGoroutine(),
	}
	if total := value(2); total > s.heap+s.stacks+s.released+s.code {
		s.other = total - s.heap - s.stacks - s.released - s.code
	}
	s.switches = sumOf("/proc/self/status", "ctxt_switches")
	s.read, s.written = sumOf("/proc/self/io", "rchar"), sumOf("/proc/self/io", "wchar")
	return s
}

// sumOf adds up the lines of a file of the kernel's whose names end so, 0 where the
// kernel does not tell.
func sumOf(file, ending string) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	var sum uint64
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.HasSuffix(name, ending) {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			if err == nil {
				sum += n
			}
		}
	}
	return sum
}

// openFiles returns the number of open file descriptors, 0 where the kernel
// does not tell.
func openFiles() float64 {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	names, err := dir.Readdirnames(-1)
	if closeErr := dir.Close(); err != nil || closeErr != nil {
		return 0
	}
	return float64(len(names))
}

// getSystem answers GET /_node/{name}/_system. The names are those of the
// Erlang machine; what has no counterpart here is 0.
func getSystem(c *core.Call) error {
	s, node := readRuntime(), nodeFigures(c.API)
	out := []byte(`{"uptime":`)
	out = strconv.AppendInt(out, int64(time.Since(c.API.Started).Seconds()), 10)
	out = append(out, `,"memory":{"other":`...)
	out = strconv.AppendUint(out, s.other, 10)
	out = append(out, `,"atom":0,"atom_used":0,"processes":`...)
	out = strconv.AppendUint(out, s.stacks, 10)
	out = append(out, `,"processes_used":`...)
	out = strconv.AppendUint(out, s.stacks, 10)
	out = append(out, `,"binary":`...)
	out = strconv.AppendUint(out, s.heap, 10)
	out = append(out, `,"code":`...)
	out = strconv.AppendUint(out, s.code, 10)
	out = append(out, `,"ets":0},"run_queue":`...)
	out = strconv.AppendUint(out, s.runnable, 10)
	out = append(out, `,"run_queue_dirty_cpu":0,"ets_table_count":0,"context_switches":`...)
	out = strconv.AppendUint(out, s.switches, 10)
	out = append(out, `,"reductions":0,"garbage_collection_count":`...)
	out = strconv.AppendUint(out, s.collections, 10)
	out = append(out, `,"words_reclaimed":`...)
	out = strconv.AppendUint(out, s.freedWords, 10)
	out = append(out, `,"io_input":`...)
	out = strconv.AppendUint(out, s.read, 10)
	out = append(out, `,"io_output":`...)
	out = strconv.AppendUint(out, s.written, 10)
	out = append(out, `,"os_proc_count":0,"stale_proc_count":0,"process_count":`...)
	out = strconv.AppendInt(out, int64(s.goroutines), 10)
	out = append(out, `,"process_limit":`...)
	out = strconv.AppendInt(out, goroutineLimit, 10)
	out = append(out, `,"message_queues":{"couch_file":{},"couch_db_updater":{},"couch_server":0,"index_server":0},"internal_replication_jobs":`...)
	out = strconv.AppendInt(out, int64(node.ReplicationBacklog), 10)
	out = append(out, `,"distribution":{},"distribution_events":{},"disk":`...)
	out = append(appendDisk(out, &node), `,"metadata":`...)
	return c.Response.SendJSON(http.StatusOK, append(appendMetadata(c.API, out), '}'))
}

// appendDisk appends the space on the disk of the data directory, null when it does not tell.
func appendDisk(dst []byte, node *core.Figures) []byte {
	if node.DiskSize == 0 {
		return append(dst, "null"...)
	}
	dst = strconv.AppendUint(append(dst, `{"free":`...), node.DiskFree, 10)
	dst = strconv.AppendUint(append(dst, `,"size":`...), node.DiskSize, 10)
	return append(dst, '}')
}

// goroutineLimit is told as process_limit: the runtime has none but memory.
const goroutineLimit = 1 << 31

// getVersions answers GET /_node/{name}/_versions. The collation figures are
// those of the ICU tables that keys are compared with. eval says whether functions
// of design documents may make code of text.
func getVersions(c *core.Call) error {
	out := []byte(`{"go":{"version":`)
	out = doc.AppendString(out, runtime.Version())
	out = append(out, `},"divan":{"version":`...)
	out = doc.AppendString(out, c.API.Deps.Version)
	out = append(out, `},"erlang":{"version":"none","supported_hashes":["sha","sha224","sha256","sha384","sha512"]},`+
		`"collation_driver":{"name":"divan","library_version":"72.1","collation_algorithm_version":"15.0","collator_version":"153.120"},`+
		`"javascript_engine":{"name":"`+script.EngineName+`","version":"`+script.EngineVersion+`","eval":`...)
	out = strconv.AppendBool(out, c.Config.Limits.AllowEval)
	out = append(out, `}}`...)
	return c.Response.SendJSON(http.StatusOK, out)
}

// runtimeFigure is one metric of the process under CouchDB's name for that of
// its own machine.
type runtimeFigure struct {
	name, help string
	kind       string // counter or gauge
	label      string // with its braces, or empty
	value      float64
}

// runtimeFigures lists the metrics that CouchDB's dashboards look for.
func runtimeFigures(a *core.API, now time.Time) []runtimeFigure {
	s := readRuntime()
	out := []runtimeFigure{
		{"divan_build_info", "1, with the version of the program", "gauge", fmt.Sprintf("{version=%q}", a.Deps.Version), 1},
		{"couchdb_uptime_seconds", "couchdb uptime", "gauge", "", now.Sub(a.Started).Seconds()},
		{"couchdb_erlang_gc_collections_total", "number of garbage collections by the runtime", "counter", "", float64(s.collections)},
		{"couchdb_erlang_gc_words_reclaimed_total", "number of words reclaimed by garbage collections", "counter", "", float64(s.freedWords)},
		{"couchdb_erlang_context_switches_total", "total number of context switches", "counter", "", float64(s.switches)},
		{"couchdb_erlang_io_recv_bytes_total", "total number of bytes read from files and connections", "counter", "", float64(s.read)},
		{"couchdb_erlang_io_sent_bytes_total", "total number of bytes written to files and connections", "counter", "", float64(s.written)},
		{"couchdb_erlang_scheduler_queues", "the number of goroutines that wait for a processor", "gauge", "", float64(s.runnable)},
	}
	for _, m := range []struct {
		name  string
		bytes uint64
	}{{"other", s.other}, {"atom", 0}, {"processes", s.stacks}, {"binary", s.heap}, {"code", s.code}, {"ets", 0}} {
		out = append(out, runtimeFigure{
			"couchdb_erlang_memory_bytes", "size of memory (in bytes) allocated by the runtime", "gauge",
			`{memory_type="` + m.name + `"}`, float64(m.bytes),
		})
	}
	return append(out,
		runtimeFigure{"couchdb_erlang_processes", "the number of goroutines", "gauge", "", float64(s.goroutines)},
		runtimeFigure{"couchdb_erlang_process_limit", "the number of goroutines there may be", "gauge", "", goroutineLimit},
	)
}
