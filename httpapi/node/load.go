package node

import "divan/httpapi/core"

// loadFigures lists the metrics about resources of the node that are limited.
func loadFigures(a *core.API) []runtimeFigure {
	c, logins, node := a.Connections.Stats(), a.Deps.Auth.Figures(), nodeFigures(a)
	out := []runtimeFigure{
		{"couchdb_connections", "connections of clients", "gauge", "", float64(c.Open)},
		{"couchdb_connections_evicted_total", "connections that were cut off to make space for others", "counter", "", float64(c.Evicted)},
		{"couchdb_connections_refused_total", "connections for which there was no space", "counter", "", float64(c.Refused)},
		{"couchdb_request_bodies_bytes", "memory that the bodies of requests take", "gauge", "", float64(a.Memory.Used())},
		{"couchdb_block_cache_bytes", "blocks of stores that are kept in memory", "gauge", "", float64(node.CacheBytes)},
		{"couchdb_memtable_bytes", "memory that the memtables of open stores take at most", "gauge", "", float64(node.MemtableBytes)},
		{"couchdb_small_stores_open", "small stores that are held open", "gauge", "", float64(node.OpenSmall)},
		{"couchdb_small_stores_bytes", "memory that small stores take which are held open", "gauge", "", float64(node.SmallBytes)},
		{"couchdb_small_stores_damaged", "1 while files of small stores are damaged and not yet written anew", "gauge", "", truth(node.SmallDamaged)},
		{"couchdb_corrected_flips_total", "bits of files of stores that were other ones than their checksums say, and were set right", "counter", "", float64(node.BitsCorrected)},
		{"couchdb_javascript_engines", "JavaScript engines that exist", "gauge", "", float64(node.ScriptEngines)},
		{"couchdb_index_documents_left_out_total", "documents that indexes have left out since the start, because they cannot be indexed", "counter", "", float64(node.IndexLeftOut)},
		{"couchdb_javascript_bytes", "memory that JavaScript engines have outside of the heap of the runtime", "gauge", "", float64(node.ScriptBytes)},
		{"couchdb_logins_waiting", "logins that wait for their turn to be checked", "gauge", "", float64(logins.Waiting)},
	}
	if node.DiskSize > 0 { // the disk tells
		out = append(out,
			runtimeFigure{"couchdb_disk_free_bytes", "bytes free on the disk of the data directory", "gauge", "", float64(node.DiskFree)},
			runtimeFigure{"couchdb_disk_size_bytes", "bytes of the disk of the data directory", "gauge", "", float64(node.DiskSize)})
	}
	return out
}
