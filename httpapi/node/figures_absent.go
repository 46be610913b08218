package node

import (
	"strings"

	"divan/httpapi/stats"
)

// absentFigure is a number of CouchDB's _stats about a part that this server does not
// have, or does not count: it is there for those who read it, and stays 0.
// docs/operations.md lists all of them.
type absentFigure struct{ path, desc string }

// absentCounters returns them, counters all.
func absentCounters() []absentFigure {
	return []absentFigure{
		{"couch_log.level.alert", "number of logged alert messages"},
		{"couch_log.level.critical", "number of logged critical messages"},
		{"couch_log.level.emergency", "number of logged emergency messages"},
		{"couch_log.level.notice", "number of logged notice messages"},
		{"couch_replicator.changes_manager_deaths", "number of failed replicator changes managers"},
		{"couch_replicator.changes_queue_deaths", "number of failed replicator changes work queues"},
		{"couch_replicator.changes_reader_deaths", "number of failed replicator changes readers"},
		{"couch_replicator.connection.closes", "number of times a worker is gracefully shut down"},
		{"couch_replicator.connection.owner_crashes", "number of times a connection owner crashes while owning at least one connection"},
		{"couch_replicator.connection.releases", "number of times ownership of a connection is released"},
		{"couch_replicator.connection.worker_crashes", "number of times a worker unexpectedly terminates"},
		{"couch_replicator.docs.dbs_deleted", "number of db shard deletions seen by replicator doc processor"},
		{"couch_replicator.worker_deaths", "number of failed replicator workers"},
		{"couch_replicator.workers_started", "number of replicator workers started"},
		{"couchdb.coalesced_updates.interactive", "number of coalesced interactive updates"},
		{"couchdb.coalesced_updates.replicated", "number of coalesced replicated updates"},
		{"couchdb.couch_server.lru_skip", "number of couch_server LRU operations skipped"},
		{"couchdb.httpd.temporary_view_reads", "number of temporary view reads"},
		{"couchdb.io_queue.search", "Search IO directly triggered by client requests"},
		{"couchdb.io_queue2.search.count", "Search IO directly triggered by client requests"},
		{"couchdb.legacy_checksums", "number of legacy checksums found in couch_file instances"},
		{"couchdb.query_server.calls.add_fun", "number of add_fun requests"},
		{"couchdb.query_server.calls.ddoc_new", "number of ddoc new requests"},
		{"couchdb.query_server.calls.other", "number of other requests"},
		{"couchdb.query_server.calls.reset", "number of reset requests"},
		{"couchdb.query_server.time.add_fun", "accumulated number of microseconds spent processing add_fun requests"},
		{"couchdb.query_server.time.ddoc_new", "accumulated number of microseconds spent processing ddoc new requests"},
		{"couchdb.query_server.time.other", "accumulated number of microseconds spent processing other requests"},
		{"couchdb.query_server.time.reset", "accumulated number of microseconds spent processing reset requests"},
		{"couchdb.query_server.time.spawn_proc", "accumulated number of microseconds spent spawning os query processes"},
		{"ddoc_cache.recovery", "number of design doc cache recoveries"},
		{"fabric.doc_update.mismatched_errors", "number of document update errors with multiple error types"},
		{"fabric.open_shard.timeouts", "number of open shard timeouts"},
		{"fabric.worker.timeouts", "number of worker timeouts"},
		{"fsync.count", "number of fsync calls"},
		{"global_changes.db_writes", "number of db writes performed by global changes"},
		{"global_changes.event_doc_conflict", "number of conflicted event docs encountered by global changes"},
		{"global_changes.listener_pending_updates", "number of global changes updates pending writes in global_changes_listener"},
		{"global_changes.rpcs", "number of rpc operations performed by global_changes"},
		{"global_changes.server_pending_updates", "number of global changes updates pending writes in global_changes_server"},
		{"mem3.shard_cache.eviction", "number of shard cache evictions"},
		{"mem3.shard_cache.hit", "number of shard cache hits"},
		{"mem3.shard_cache.miss", "number of shard cache misses"},
		{"nouveau.active_searches", "number of active search requests"},
		{"pread.exceed_eof", "number of the attempts to read beyond end of db file"},
		{"pread.exceed_limit", "number of the attempts to read beyond set limit"},
		{"rexi.buffered", "number of rexi messages buffered"},
		{"rexi.down", "number of rexi_DOWN messages handled"},
		{"rexi.dropped", "number of rexi messages dropped from buffers"},
		{"rexi.streams.timeout.init_stream", "number of rexi stream initialization timeouts"},
		{"rexi.streams.timeout.stream", "number of rexi stream timeouts"},
		{"rexi.streams.timeout.wait_for_ack", "number of rexi stream timeouts while waiting for acks"},
	}
}

// absentHistograms returns those that are distributions.
func absentHistograms() []absentFigure {
	return []absentFigure{
		{"couchdb.collect_results_time", "microsecond latency for calls to couch_db:collect_results/3"},
		{"couchdb.db_open_time", "milliseconds required to open a database"},
		{"dreyfus.index.await", "length of an dreyfus_index await request"},
		{"dreyfus.index.group1", "length of an dreyfus_index group1 request"},
		{"dreyfus.index.group2", "length of an dreyfus_index group2 request"},
		{"dreyfus.index.info", "length of an dreyfus_index info request"},
		{"dreyfus.index.search", "length of an dreyfus_index search request"},
		{"dreyfus.rpc.group1", "length of a group1 RPC worker"},
		{"dreyfus.rpc.group2", "length of a group2 RPC worker"},
		{"dreyfus.rpc.info", "length of an info RPC worker"},
		{"dreyfus.rpc.search", "length of a search RPC worker"},
		{"fsync.time", "microseconds to call fsync"},
		{"nouveau.update_latency", "Distribution of time during search waiting for the index to be updated"},
	}
}

// absentFigures are the figures that stay 0.
func absentFigures() []figure {
	none := &stats.Histogram{}
	var out []figure
	for _, f := range absentCounters() {
		kind := "counter"
		if strings.HasSuffix(f.path, "_pending_updates") {
			kind = "gauge"
		}
		out = append(out, figure{path: strings.Split(f.path, "."), kind: kind, desc: f.desc})
	}
	for _, f := range absentHistograms() {
		out = append(out, figure{path: strings.Split(f.path, "."), kind: "histogram", desc: f.desc, hist: none, milli: true})
	}
	return out
}
