package spec

import (
	"strings"
	"time"

	"divan/replicator/endpoint"
	"divan/shard"
)

// Spec describes one replication.
type Spec struct {
	Source, Target Address
	Options
	Filter       endpoint.Filter
	CreateTarget bool
	CreateParams endpoint.CreateOptions
	Continuous   bool
	WinnerOnly   bool         // winning_revs_only
	Since        endpoint.Seq // since_seq; 0: given, and the beginning; empty: not given
	User         shard.User   // on whose account local databases are opened
	// Database and DocID name the document it comes from, Owner the account that has
	// written it; empty for a request.
	Database, DocID, Owner string
}

// Account names whose turns and whose memory a replication takes: the account that asks
// for it, or the replicator database where a document names none.
func (s *Spec) Account() string {
	switch {
	case s.Database == "":
		return "account " + s.User.Name
	case s.Owner == "":
		return "database " + s.Database
	}
	return "account " + s.Owner
}

// Options are the settings of [replicator] that a request may override.
type Options struct {
	UseCheckpoints     bool
	CheckpointInterval time.Duration
	UseBulkGet         bool
	Workers            int // worker_processes
	BatchSize          int // worker_batch_size
	Connections        int // http_connections
	ConnectionTimeout  time.Duration
	Retries            int // retries_per_request
}

// Address is where a database is, as asked for.
type Address struct {
	// URL of the database without credentials and with a slash at its end, or
	// the bare name of a database of this node.
	URL string
	// Name is the bare name; empty for a URL.
	Name string
	// Username and Password are those of the URL or of auth.basic.
	Username, Password string
	Headers            [][2]string // in the order given
	Proxy              string      // URL, credentials included; empty: none
}

// IsDatabase reports whether the documents of a database describe replications.
func IsDatabase(name string) bool {
	return name == "_replicator" || strings.HasSuffix(name, "/_replicator")
}
