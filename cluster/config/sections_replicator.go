package config

import (
	"strconv"
	"strings"
	"time"
)

// Replicator is section [replicator].
type Replicator struct {
	Interval        time.Duration // between decisions about which jobs run
	MaxJobs         int           // that run
	MaxChurn        int           // jobs that make space for others at an interval
	MaxHistory      int           // events of a job
	HealthThreshold time.Duration // a run that was longer forgives crashes
	StartupJitter   time.Duration // over which starts of jobs are spread
	UpdateDocs      bool          // documents tell that they are triggered, and errors
	Shares          ReplicatorShares
	Transfer        Transfer
	Peers           ReplicatorPeers
}

// ReplicatorShares say how jobs of several replicator databases share the
// places: section [replicator.shares], and coefficients of [replicator].
type ReplicatorShares struct {
	UsageCoeff    float64 // what is left of past usage after an interval, 0 to 1
	PriorityCoeff float64 // what is left of a priority after an interval, 0 to 1
	shares        map[string]int
}

// Of returns the shares of a replicator database.
func (s ReplicatorShares) Of(db string) int {
	if n, ok := s.shares[db]; ok {
		return n
	}
	return defaultShares
}

// Transfer is how a replication works unless its request says otherwise.
type Transfer struct {
	Workers            int // worker_processes
	BatchSize          int // worker_batch_size: changes that are looked at together
	Connections        int // http_connections to each side
	Retries            int // retries_per_request
	ConnectionTimeout  time.Duration
	CheckpointInterval time.Duration
	UseCheckpoints     bool
	UseBulkGet         bool
}

// ReplicatorPeers is how other servers are spoken to, and which may be.
type ReplicatorPeers struct {
	EndpointProtocols []string // schemes of URLs
	ProxyProtocols    []string // schemes of proxies
	VerifyTLS         bool     // verify_ssl_certificates
	TLSMaxDepth       int      // of a chain of certificates
	TrustedCAFile     string   // PEM; empty: those of the system
	CertFile, KeyFile string   // PEM of this client; empty: none
	KeyPassword       string
}

const (
	defaultShares = 100
	maxShares     = 1000
)

func readReplicator(r *reader) Replicator {
	const s = "replicator"
	return Replicator{
		Interval:        r.duration(s, "interval", time.Minute, time.Millisecond, atLeast(1)),
		MaxJobs:         r.count(s, "max_jobs", 500, atLeast(0)),
		MaxChurn:        r.count(s, "max_churn", 20, atLeast(0)),
		MaxHistory:      r.count(s, "max_history", 20, atLeast(1)),
		HealthThreshold: r.duration(s, "health_threshold", 2*time.Minute, time.Second, atLeast(0)),
		StartupJitter:   r.duration(s, "startup_jitter", 5*time.Second, time.Millisecond, atLeast(0)),
		UpdateDocs:      r.boolean(s, "update_docs", false),
		Shares: ReplicatorShares{
			UsageCoeff:    min(r.float(s, "usage_coeff", 0.5), 1),
			PriorityCoeff: min(r.float(s, "priority_coeff", 0.98), 1),
			shares:        readShares(r),
		},
		Transfer: Transfer{
			Workers:            r.count(s, "worker_processes", 4, atLeast(1)),
			BatchSize:          r.count(s, "worker_batch_size", 500, atLeast(1)),
			Connections:        r.count(s, "http_connections", 20, atLeast(1)),
			Retries:            r.count(s, "retries_per_request", 5, atLeast(0)),
			ConnectionTimeout:  r.duration(s, "connection_timeout", 30*time.Second, time.Millisecond, atLeast(1)),
			CheckpointInterval: r.duration(s, "checkpoint_interval", 30*time.Second, time.Millisecond, atLeast(1)),
			UseCheckpoints:     r.boolean(s, "use_checkpoints", true),
			UseBulkGet:         r.boolean(s, "use_bulk_get", true),
		},
		Peers: readReplicatorPeers(r),
	}
}

func readReplicatorPeers(r *reader) ReplicatorPeers {
	const s = "replicator"
	return ReplicatorPeers{
		EndpointProtocols: r.list(s, "valid_endpoint_protocols", "http", "https"),
		ProxyProtocols:    r.list(s, "valid_proxy_protocols", "http", "https", "socks5"),
		VerifyTLS:         r.boolean(s, "verify_ssl_certificates", false),
		TLSMaxDepth:       r.count(s, "ssl_certificate_max_depth", 3, atLeast(0)),
		TrustedCAFile:     r.text(s, "ssl_trusted_certificates_file", ""),
		CertFile:          r.text(s, "cert_file", ""),
		KeyFile:           r.text(s, "key_file", ""),
		KeyPassword:       r.text(s, "password", ""),
	}
}

// readShares reads section [replicator.shares]: the names of replicator
// databases and how many shares their jobs have.
func readShares(r *reader) map[string]int {
	const s = "replicator.shares"
	out := map[string]int{}
	for db, value := range r.values[s] {
		n, err := strconv.Atoi(strings.TrimSpace(value))
		switch {
		case value == "":
		case err != nil || n < 1 || n > maxShares:
			r.bad(s, db, between(1, maxShares).String())
		default:
			out[db] = n
		}
	}
	return out
}
