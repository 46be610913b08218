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
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
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
	run  func(b *bench, ctx context.Context, r *recorder) error
}

// workloads returns all of them in the order in which they run: the later ones
// read what the earlier ones wrote.
func workloads() []workload {
	return []workload{
		{"put", "documents", (*bench).put},
		{"put_one", "documents", (*bench).putOne},
		{"put_view", "documents", (*bench).putView},
		{"update", "documents", (*bench).update},
		{"update_hot", "documents", (*bench).updateHot},
		{"bulk", "documents", (*bench).bulk},
		{"get", "documents", (*bench).get},
		{"get_r1", "documents", (*bench).getR1},
		{"all_docs", "rows", (*bench).allDocs},
		{"all_docs_limit_20", "requests", (*bench).allDocsLimit},
		{"changes", "rows", (*bench).changes},
		{"view_build", "documents", (*bench).viewBuild},
		{"view_range", "requests", (*bench).viewRange},
		{"view_reduce", "requests", (*bench).viewReduce},
		{"view_group", "requests", (*bench).viewGroup},
		{"view_fresh", "documents", (*bench).viewFresh},
		{"find_build", "documents", (*bench).findBuild},
		{"find", "requests", (*bench).find},
		{"find_scan", "documents", (*bench).findScan},
		{"search_build", "documents", (*bench).searchBuild},
		{"search_term", "requests", (*bench).searchTerm},
		{"search_phrase", "requests", (*bench).searchPhrase},
		{"search_facet", "requests", (*bench).searchFacet},
		{"attachment_put", "bytes", (*bench).attachmentPut},
		{"attachment_get", "bytes", (*bench).attachmentGet},
		{"create_database", "databases", (*bench).createDatabases},
		{"replicate_local", "documents", (*bench).replicateLocal},
		{replicateHTTP, "documents", (*bench).replicatePeer},
		{"replicate_idle", "changes", (*bench).replicateIdle},
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

// bench is one run.
type bench struct {
	cfg      Config
	client   *fasthttp.HostClient
	constant *constant     // nil: requests are not compared with it
	auth     string        // value of the Authorization header, or empty
	prefix   string        // of the databases of this run
	idPrefix string        // of ascending ids
	loaded   bool          // the bulk database is there
	settled  bool          // and the server has had its time with them
	viewed   bool          // its views are built
	indexed  bool          // its Mango index is built
	searched bool          // the search database and its index are there
	words    words         // of the texts that are searched
	copied   bool          // the database rep is a copy of it
	peer     *bench        // the second server; nil: none
	text     text          // of the documents
	patience time.Duration // with a small request
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
		if b.constant, err = startConstant(ctx, cfg); err != nil {
			return nil, err
		}
		defer b.constant.stop()
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
	if server, err = b.hello(); err != nil {
		return nil, "", err
	}
	if cfg.Peer != "" {
		if err := b.addPeer(); err != nil {
			return nil, "", fmt.Errorf("the server of --peer: %w", err)
		}
	}
	return b, server, nil
}

func newBench(cfg Config) (*bench, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("the server's URL: %w", err)
	}
	if u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("the server's URL must look like http://user:password@host:port, not %q", u.Redacted())
	}
	now := uint64(time.Now().UnixNano())
	b := &bench{cfg: cfg, prefix: fmt.Sprintf("bench_%x_", now&0xffffffffff), idPrefix: fmt.Sprintf("%016x%016x", mix(now), mix(now+1))}
	b.text, b.patience = newText(cfg.DocSize), time.Minute
	b.client = newHostClient(u.Host, cfg.Clients+16)
	if u.User != nil {
		password, _ := u.User.Password()
		b.auth = basic(u.User.Username(), password)
	}
	return b, nil
}

func newHostClient(address string, conns int) *fasthttp.HostClient {
	return &fasthttp.HostClient{
		Addr: address, MaxConns: conns, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10,
		StreamResponseBody: true, MaxResponseBodySize: 1 << 20, // what is larger is not read at once
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
		MaxIdemponentCallAttempts: 1, // a request that fails is counted, not repeated
	}
}

// addPeer makes sure that the second server is there.
func (b *bench) addPeer() (err error) {
	if b.peer, err = newBench(Config{URL: b.cfg.Peer, Keep: b.cfg.Keep}); err != nil {
		return err
	}
	b.peer.prefix = b.prefix
	_, err = b.peer.hello()
	return err
}

// hello checks that the server answers and lets us in, and tells its name.
func (b *bench) hello() (string, error) {
	a := b.newCall()
	defer a.release()
	err := a.do(fasthttp.MethodGet, []byte("/_all_dbs?limit=1"), nil, fasthttp.StatusOK, fasthttp.StatusUnauthorized, fasthttp.StatusForbidden)
	if err != nil {
		return "", fmt.Errorf("the server does not answer as it should: %w", err)
	}
	if status := a.resp.StatusCode(); status != fasthttp.StatusOK {
		return "", fmt.Errorf("the server refuses us with status %d: give a server administrator in the URL", status)
	}
	return string(a.resp.Header.Server()), nil
}

func (b *bench) measure(ctx context.Context, w workload) (Result, error) {
	r := newRecorder(w, b.cfg)
	stop := r.showProgress(ctx)
	defer stop()
	err := w.run(b, ctx, r)
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
	defer b.client.CloseIdleConnections()
	if b.cfg.Keep {
		return
	}
	if b.peer != nil {
		b.peer.cleanUp()
	}
	names := []string{"put", "one", "warm", "hot", "bulk", "fresh", "search", "att", "rep"}
	for i := range b.cfg.Databases {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	a := b.newCall()
	defer a.release()
	for _, n := range names {
		// a workload that did not run made none, then the answer is 404
		_ = a.do(fasthttp.MethodDelete, []byte("/"+b.prefix+n), nil)
	}
}
