package config

import (
	"strconv"
	"strings"
	"time"
)

// CouchDB is section [couchdb].
type CouchDB struct {
	UUID                    string // identifies the cluster; the same on all its nodes
	MaxDocumentSize         int64  // bytes of a document's JSON text
	MaxAttachmentSize       int64  // bytes
	MaxDocumentIDLength     int64  // bytes
	MaxPartitionSize        int64  // bytes; 0 or less: no limit
	MaxDBsOpen              int    // stores held open
	FileCompression         string // none, snappy, deflate_1 to deflate_9 or zstd
	DefaultSecurity         string // everyone, admin_only or admin_local
	MaintenanceMode         string // "" (off), "true" or "nolb"
	SingleNode              bool   // bootstrap alone, set-up is complete
	UsersDBSecurityEditable bool
	StemInteractiveUpdates  bool
	ChangesDocIDsThreshold  int           // up to that many ids a _doc_ids filter looks documents up instead of scanning
	AttachmentWriterTimeout time.Duration // longest pause of a client inside a body
	OSProcessTimeout        time.Duration // longest run of a JavaScript function
	JSEngine                string
}

func readCouchDB(r *reader) CouchDB {
	const s = "couchdb"
	mode := r.oneOf(s, "maintenance_mode", "false", "false", "true", "nolb")
	if mode == "false" {
		mode = ""
	}
	return CouchDB{
		UUID:                    r.text(s, "uuid", ""),
		MaxDocumentSize:         r.integer(s, "max_document_size", 8_000_000, atLeastOrInfinity(1)),
		MaxAttachmentSize:       r.integer(s, "max_attachment_size", 1<<30, atLeastOrInfinity(0)),
		MaxDocumentIDLength:     r.integer(s, "max_document_id_length", 64<<10, atLeastOrInfinity(1)),
		MaxPartitionSize:        r.integer(s, "max_partition_size", 10<<30, atLeastOrInfinity(-1)),
		MaxDBsOpen:              r.count(s, "max_dbs_open", 500, atLeast(1)),
		FileCompression:         r.oneOf(s, "file_compression", "snappy", fileCompressions()...),
		DefaultSecurity:         r.oneOf(s, "default_security", "admin_only", "everyone", "admin_only", "admin_local"),
		MaintenanceMode:         mode,
		SingleNode:              r.boolean(s, "single_node", false),
		UsersDBSecurityEditable: r.boolean(s, "users_db_security_editable", false),
		StemInteractiveUpdates:  r.boolean(s, "stem_interactive_updates", true),
		ChangesDocIDsThreshold:  r.count(s, "changes_doc_ids_optimization_threshold", 1000, atLeast(0)),
		AttachmentWriterTimeout: r.duration(s, "attachment_writer_timeout", 5*time.Minute, time.Millisecond, atLeastOrInfinity(1)),
		OSProcessTimeout:        r.duration(s, "os_process_timeout", 5*time.Second, time.Millisecond, atLeast(1)),
		JSEngine:                r.oneOf(s, "js_engine", "quickjs", "quickjs", "spidermonkey"),
	}
}

// fileCompressions returns CouchDB's words for it, and zstd.
func fileCompressions() []string {
	words := []string{"none", "snappy", "zstd"}
	for level := range 9 {
		words = append(words, "deflate_"+strconv.Itoa(level+1))
	}
	return words
}

// UUIDs is section [uuids].
type UUIDs struct {
	Algorithm   string // sequential, random, utc_random, utc_id or uuid_v7
	MaxCount    int64  // most that one request gets
	UTCIDSuffix string // appended by utc_id
}

func readUUIDs(r *reader) UUIDs {
	const s = "uuids"
	return UUIDs{
		Algorithm:   r.oneOf(s, "algorithm", "sequential", "sequential", "random", "utc_random", "utc_id", "uuid_v7"),
		MaxCount:    r.integer(s, "max_count", 1000, atLeastOrInfinity(0)),
		UTCIDSuffix: r.text(s, "utc_id_suffix", ""),
	}
}

// Attachments is section [attachments].
type Attachments struct {
	CompressionLevel  int      // 0 (off) to 9
	CompressibleTypes []string // media types, lower case; "*" stands for any text
}

func readAttachments(r *reader) Attachments {
	const s = "attachments"
	types := r.list(s, "compressible_types", "text/*", "application/javascript", "application/json", "application/xml")
	for i, t := range types {
		if lower := strings.ToLower(t); lower != t {
			types[i] = lower
		}
	}
	return Attachments{
		CompressionLevel:  r.count(s, "compression_level", 8, between(0, 9)),
		CompressibleTypes: types,
	}
}

// Compressible reports whether an attachment of that content type is stored
// compressed. Parameters of the type ("; charset=…") do not count.
func (a Attachments) Compressible(contentType string) bool {
	if a.CompressionLevel == 0 {
		return false
	}
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	for _, glob := range a.CompressibleTypes {
		if matchGlob(glob, media) {
			return true
		}
	}
	return false
}

// matchGlob matches text against a pattern in which "*" stands for any text.
func matchGlob(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, head)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// Limits gathers the numbers that shards and coordinators heed: sections
// [purge] and [query_server_config].
type Limits struct {
	PurgeMaxRevisions   int64         // revisions in one purge request
	PurgeMaxDocuments   int64         // documents in one purge request
	IndexLagWarn        time.Duration // an index that lags longer behind a purge is reported
	ReduceLimit         string        // "true", "false" or "log"
	ReduceThreshold     int64         // bytes of a reduction below which it may be any size
	ReduceRatio         float64       // of a reduction to its input
	QueryLimit          int64         // largest limit of a view query
	PartitionQueryLimit int64         // the same on a partition
	AllowEval           bool          // functions may make code of text
	MaxIndexMemory      int64         // bytes that the updates of all indexes take together; read at the start
	OSProcessLimit      int           // JavaScript machines at work at once
	OSProcessSoftLimit  int           // machines kept when idle
	OSProcessIdle       time.Duration // how long an idle machine is kept
}

func readLimits(r *reader) Limits {
	const query = "query_server_config"
	return Limits{
		PurgeMaxRevisions:   r.integer("purge", "max_revisions_number", Infinity, atLeastOrInfinity(1)),
		PurgeMaxDocuments:   r.integer("purge", "max_document_id_number", Infinity, atLeastOrInfinity(1)),
		IndexLagWarn:        r.duration("purge", "index_lag_warn_seconds", 24*time.Hour, time.Second, atLeast(1)),
		ReduceLimit:         r.oneOf(query, "reduce_limit", "true", "true", "false", "log"),
		ReduceThreshold:     r.integer(query, "reduce_limit_threshold", 5000, atLeast(0)),
		ReduceRatio:         r.float(query, "reduce_limit_ratio", 2),
		QueryLimit:          r.integer(query, "query_limit", Infinity, atLeastOrInfinity(0)),
		PartitionQueryLimit: r.integer(query, "partition_query_limit", Infinity, atLeastOrInfinity(0)),
		AllowEval:           r.boolean(query, "allow_eval", false),
		MaxIndexMemory:      r.integer(query, "max_index_memory", 256<<20, atLeast(16<<20)),
		OSProcessLimit:      r.count(query, "os_process_limit", 100, atLeast(1)),
		OSProcessSoftLimit:  r.count(query, "os_process_soft_limit", 100, atLeast(0)),
		OSProcessIdle:       r.duration(query, "os_process_idle_limit", 5*time.Minute, time.Second, atLeast(1)),
	}
}

// Mango is section [mango].
type Mango struct {
	DefaultLimit              int64
	IndexScanWarningThreshold int64 // documents scanned per document found
	IndexAllDisabled          bool
}

func readMango(r *reader) Mango {
	return Mango{
		DefaultLimit:              r.integer("mango", "default_limit", 25, atLeast(0)),
		IndexScanWarningThreshold: r.integer("mango", "index_scan_warning_threshold", 10, atLeast(0)),
		IndexAllDisabled:          r.boolean("mango", "index_all_disabled", false),
	}
}

// Log is section [log].
type Log struct {
	Level  string // debug, info, notice, warning, error, critical, alert, emergency or none
	Writer string // stderr, stdout or file
	File   string // of writer file
	Format string // console or json
}

func readLog(r *reader) Log {
	const s = "log"
	level := r.oneOf(s, "level", "info", "debug", "info", "notice", "warning", "warn", "error", "err",
		"critical", "crit", "alert", "emergency", "emerg", "none")
	switch level {
	case "warn", "err", "crit", "emerg":
		level = map[string]string{"warn": "warning", "err": "error", "crit": "critical", "emerg": "emergency"}[level]
	}
	return Log{
		Level:  level,
		Writer: r.oneOf(s, "writer", "stderr", "stderr", "stdout", "file", "syslog", "journald"),
		File:   r.text(s, "file", "./couch.log"),
		Format: r.oneOf(s, "format", "console", "console", "json"),
	}
}

// Prometheus is section [prometheus].
type Prometheus struct {
	AdditionalPort bool // serve the metrics on a port of their own too, without authentication
	BindAddress    string
	Port           int
	Interval       time.Duration
}

func readPrometheus(r *reader) Prometheus {
	const s = "prometheus"
	return Prometheus{
		AdditionalPort: r.boolean(s, "additional_port", false),
		BindAddress:    r.text(s, "bind_address", "127.0.0.1"),
		Port:           r.count(s, "port", 17986, between(0, 65535)),
		Interval:       r.duration(s, "interval", 5*time.Second, time.Second, atLeast(1)),
	}
}

// Vendor is section [vendor]: who packaged this server.
type Vendor struct{ Name, Version string }

func readVendor(r *reader) Vendor {
	return Vendor{Name: r.text("vendor", "name", "Divan"), Version: r.text("vendor", "version", "")}
}
