// Package bench loads a server that speaks CouchDB's HTTP API and measures it:
// writes one by one and in bulk, point reads, scans, the changes feed, views,
// Mango queries, attachments, the creation of databases and replication. It uses nothing that CouchDB does
// not have, so that the same command measures both.
//
// What its figures are worth on a machine with other work: Run compares the processor time
// of a request with that of a handler that answers a constant, and Compare has two
// servers take turns.
//
// Its goroutines: one per client, and one that prints the progress. A workload
// waits for all of its own. In the process of the constant handler one waits for the
// end of the input.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Config says what to load and how hard.
type Config struct {
	URL             string        // of the server; may carry user and password
	Clients         int           // requests under way at the same time
	Duration        time.Duration // of each workload that has no fixed amount of work
	Docs            int           // documents of the bulk load, which the scans then read
	DocSize         int           // bytes of a document's JSON, about
	Batch           int           // documents per _bulk_docs
	AttachmentBytes int64         // size of one attachment
	Settle          time.Duration // between the bulk load and the first read, for what the server does behind a load
	Databases       int           // how many the creation workload makes
	Q               int           // shards per database; 0 leaves it to the server
	Only            []string      // names of workloads; empty means all
	RandomIDs       bool          // ids spread over the key space instead of ascending ones
	Peer            string        // URL of a second server, that databases are replicated to; empty: none
	Keep            bool          // leave the databases behind
	PIDs            []int         // processes of the server, when it is on this machine: their processor time is measured
	Constant        []string      // the command that starts the constant handler, see ServeConstant, which PIDs are compared with; empty: none
	Progress        io.Writer     // one line per workload while it runs; nil for none
}

// Result holds the figures of one workload.
type Result struct {
	Name      string  `json:"name"`
	Unit      string  `json:"unit"` // what PerSecond counts
	Count     int64   `json:"count"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	Errors    int64   `json:"errors"`
	// Latency of one request in milliseconds.
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
	// ServerCPU is the processor time that one request, or one document of a
	// replication, cost the processes of Config.PIDs, in milliseconds.
	ServerCPU float64 `json:"server_cpu_ms,omitempty"`
	// HandlerCPU is the processor time that one request like those of the workload cost the constant
	// handler, in milliseconds; 0 where not one request is the unit. Handlers is ServerCPU / HandlerCPU.
	HandlerCPU float64 `json:"handler_cpu_ms,omitempty"`
	Handlers   float64 `json:"handlers,omitempty"`
}

// Report is the outcome of a whole run.
type Report struct {
	Server  string   `json:"server"` // the Server header of the answer
	Started string   `json:"started"`
	Clients int      `json:"clients"`
	Docs    int      `json:"docs"`
	DocSize int      `json:"doc_size"`
	PIDs    []int    `json:"pids,omitempty"` // processes whose time the results tell
	Results []Result `json:"results"`
}

// workload is one thing to measure.
type workload struct {
	name string
	unit string
	of   func(b *bench) work
}

// work does a workload.
type work func(ctx context.Context, r *recorder) error

// workloads returns all of them in the order in which they run: the later ones
// read what the earlier ones wrote.
func workloads() []workload {
	return []workload{
		{"put", "documents", func(b *bench) work { return b.writes.put }},
		{"put_one", "documents", func(b *bench) work { return b.writes.putOne }},
		{"put_view", "documents", func(b *bench) work { return b.views.put }},
		{"update", "documents", func(b *bench) work { return b.writes.update }},
		{"update_hot", "documents", func(b *bench) work { return b.writes.updateHot }},
		{"bulk", "documents", func(b *bench) work { return b.writes.bulk }},
		{"get", "documents", func(b *bench) work { return b.reads.get }},
		{"get_r1", "documents", func(b *bench) work { return b.reads.getR1 }},
		{"all_docs", "rows", func(b *bench) work { return b.reads.allDocs }},
		{"all_docs_limit_20", "requests", func(b *bench) work { return b.reads.allDocsLimit }},
		{"changes", "rows", func(b *bench) work { return b.reads.changes }},
		{"view_build", "documents", func(b *bench) work { return b.views.build }},
		{"view_range", "requests", func(b *bench) work { return b.views.rangeOf }},
		{"view_reduce", "requests", func(b *bench) work { return b.views.reduce }},
		{"view_group", "requests", func(b *bench) work { return b.views.group }},
		{"view_fresh", "documents", func(b *bench) work { return b.views.fresh }},
		{"find_build", "documents", func(b *bench) work { return b.finds.build }},
		{"find", "requests", func(b *bench) work { return b.finds.find }},
		{"find_scan", "documents", func(b *bench) work { return b.finds.scan }},
		{"search_build", "documents", func(b *bench) work { return b.searches.build }},
		{"search_term", "requests", func(b *bench) work { return b.searches.term }},
		{"search_phrase", "requests", func(b *bench) work { return b.searches.phrase }},
		{"search_facet", "requests", func(b *bench) work { return b.searches.facet }},
		{"attachment_put", "bytes", func(b *bench) work { return b.attachments.put }},
		{"attachment_get", "bytes", func(b *bench) work { return b.attachments.get }},
		{"create_database", "databases", func(b *bench) work { return b.databases.create }},
		{"replicate_local", "documents", func(b *bench) work { return b.replications.local }},
		{replicateHTTP, "documents", func(b *bench) work { return b.replications.toPeer }},
		{"replicate_idle", "changes", func(b *bench) work { return b.replications.idle }},
	}
}

// Names returns the names of all workloads.
func Names() []string {
	var out []string
	for _, w := range workloads() {
		out = append(out, w.name)
	}
	return out
}

// rig holds the parts that the workloads of a run share.
type rig struct {
	cfg     Config
	server  *server
	clients *clients
	docs    *documents
}

// bench is one run.
type bench struct {
	rig
	writes       *writes
	reads        *reads
	views        *views
	finds        *finds
	searches     *searches
	attachments  *attachments
	databases    *databases
	replications *replications
}

// ErrUnknownWorkload is the error of a name in Config.Only that is none.
var ErrUnknownWorkload = errors.New("unknown workload")

// check refuses what no run can be made of.
func (cfg *Config) check() error {
	for _, name := range cfg.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("%w: %q (there are %s)", ErrUnknownWorkload, name, strings.Join(Names(), ", "))
		}
	}
	if cfg.Peer == "" && slices.Contains(cfg.Only, replicateHTTP) {
		return errNoPeer
	}
	_, err := processTime(cfg.PIDs)
	return err
}

// wants reports whether a run has that workload.
func (cfg *Config) wants(name string) bool {
	if name == replicateHTTP && cfg.Peer == "" {
		return false
	}
	return len(cfg.Only) == 0 || slices.Contains(cfg.Only, name)
}

// Run measures the workloads one after the other. It drops its databases at the
// end, unless told to keep them, also when it fails. The report has what was
// measured whole until then.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	b, server, err := open(cfg)
	if err != nil {
		return nil, err
	}
	defer b.cleanUp()
	if len(cfg.PIDs) > 0 && len(cfg.Constant) > 0 {
		if b.clients.constant, err = startConstant(ctx, cfg); err != nil {
			return nil, err
		}
		defer b.clients.constant.stop()
	}
	report := &Report{Server: server, Started: now(), Clients: cfg.Clients, Docs: cfg.Docs, DocSize: cfg.DocSize, PIDs: cfg.PIDs}
	for _, w := range workloads() {
		if !cfg.wants(w.name) {
			continue
		}
		result, err := b.measure(ctx, w)
		if err != nil {
			return report, fmt.Errorf("%s: %w", w.name, err)
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

// now is how reports write when they began.
func now() string { return time.Now().UTC().Format(time.RFC3339) }

// open makes sure that the server is there, and the second one of Config.Peer; it tells the server's name.
func open(cfg Config) (b *bench, server string, err error) {
	if b, err = newBench(cfg); err != nil {
		return nil, "", err
	}
	if server, err = b.server.hello(); err != nil {
		return nil, "", err
	}
	if cfg.Peer != "" {
		if b.replications.peer, err = newPeer(cfg, b.server.prefix); err != nil {
			return nil, "", fmt.Errorf("the server of --peer: %w", err)
		}
	}
	return b, server, nil
}

func newBench(cfg Config) (*bench, error) {
	s, err := newServer(cfg)
	if err != nil {
		return nil, err
	}
	c := &clients{server: s, number: cfg.Clients, duration: cfg.Duration, patience: time.Minute}
	r := rig{cfg: cfg, server: s, clients: c, docs: newDocuments(cfg)}
	w := &writes{rig: r}
	return &bench{
		rig: r, writes: w, reads: &reads{r, w}, views: &views{rig: r, writes: w}, finds: &finds{rig: r, writes: w},
		searches: &searches{rig: r, writes: w}, attachments: &attachments{r}, databases: &databases{r}, replications: &replications{rig: r, writes: w},
	}, nil
}

// newPeer makes sure that the second server is there. Its databases have the same prefix.
func newPeer(cfg Config, prefix string) (*server, error) {
	s, err := newServer(Config{URL: cfg.Peer})
	if err != nil {
		return nil, err
	}
	s.prefix = prefix
	_, err = s.hello()
	return s, err
}

func (b *bench) measure(ctx context.Context, w workload) (Result, error) {
	r := newRecorder(w, b.cfg)
	stop := r.showProgress(ctx)
	defer stop()
	err := w.of(b)(ctx, r)
	if ctx.Err() != nil { // what came until then is no measurement
		return Result{}, fmt.Errorf("interrupted: %w", ctx.Err())
	}
	if err != nil {
		return Result{}, err
	}
	return r.result(), nil
}

// cleanUp drops the databases of this run and closes its connections.
func (b *bench) cleanUp() {
	for _, s := range []*server{b.replications.peer, b.server} {
		if s == nil {
			continue
		}
		if !b.cfg.Keep {
			s.drop()
		}
		s.client.CloseIdleConnections()
	}
}
