package node

import "go.uber.org/zap"

// descriptors divides the process's file descriptors: half of them are for connections of
// clients, a quarter for tables, an eighth for stores, and the rest is for the log, the
// metadata, the cluster port and replications. So clients never take what their requests
// need to be answered.
type descriptors struct {
	limit       uint64 // soft; 0: there is none
	connections int
	tables      int
	stores      int // kept open while unused
}

// What there may be of each, however many descriptors there are. A connection
// takes some ten KB of memory, and a store takes two descriptors.
const (
	maxConnections      = 100_000
	maxTables           = 2_000
	descriptorsPerStore = 2
)

// divide shares a limit out.
func divide(limit uint64) descriptors {
	if limit == 0 {
		return descriptors{connections: maxConnections, tables: maxTables}
	}
	part := func(of uint64, most int) int { return int(max(1, min(limit/of, uint64(most)))) }
	return descriptors{
		limit: limit, connections: part(2, maxConnections), tables: part(4, maxTables),
		stores: part(8*descriptorsPerStore, maxConnections),
	}
}

// say writes down what there is.
func (d descriptors) say(log *zap.Logger) {
	fields := []zap.Field{
		zap.Uint64("limit", d.limit), zap.Int("connections", d.connections), zap.Int("tables", d.tables), zap.Int("stores", d.stores),
	}
	const enough = 4096
	if d.limit != 0 && d.limit < enough {
		log.Warn("few file descriptors; raise the hard limit (ulimit -H -n, LimitNOFILE)", fields...)
		return
	}
	log.Info("file descriptors", fields...)
}
