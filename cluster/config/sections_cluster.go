package config

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/shard/ring"
)

// Clustering gathers the sections about nodes that work together; a Snapshot
// shows them as its own.
type Clustering struct {
	Cluster       Cluster
	Repair        Repair
	Fabric        Fabric
	GlobalChanges GlobalChanges
	Replicator    Replicator
	Reshard       Reshard
	PerUser       PerUser
}

func readClustering(r *reader) Clustering {
	return Clustering{
		Cluster:       readCluster(r),
		Repair:        readRepair(r),
		Fabric:        readFabric(r),
		GlobalChanges: readGlobalChanges(r),
		Replicator:    readReplicator(r),
		Reshard:       readReshard(r),
		PerUser:       readPerUser(r),
	}
}

// Cluster is section [cluster].
type Cluster struct {
	Q                 int            // shards of a new database
	N                 int            // copies of each shard
	Placement         ring.Placement // copies zone by zone; nil: zones do not matter
	SeedList          []string       // nodes to join, name@host or name@host:port
	NodeName          string         // name@host; empty: the command line or the default decides
	ReconnectInterval time.Duration
	NodeDownAfter     time.Duration // that another node may be silent before it counts as down

	BindAddress string // of the cluster port; empty: that of [chttpd]
	Port        int    // of TCP and UDP; 0 takes a free one
	Advertise   string // host:port where other nodes find the cluster port; empty: host of the node's name, and the port
	Secret      string // what nodes prove to each other that they know; empty: made up, or handed out by set-up
	Zone        string // of this node
	TLSCert     string // file, PEM; with TLSKey and TLSCA nodes show certificates to each other
	TLSKey      string // file, PEM
	TLSCA       string // file, PEM: who signs the certificates of nodes

	AutoRebalance bool          // copies move to new nodes by themselves
	ReplaceAfter  time.Duration // a member that is away for so long is taken out and its copies are made anew; 0: never
}

// DefaultNodeDownAfter is how long another node may be silent unless told otherwise.
const DefaultNodeDownAfter = time.Second

// DefaultClusterPort is where a node listens for other nodes unless told otherwise.
const DefaultClusterPort = 5986

func readCluster(r *reader) Cluster {
	const s = "cluster"
	c := Cluster{
		Q:                 r.count(s, "q", 2, between(1, ring.MaxQ)),
		N:                 r.count(s, "n", 3, between(1, 1000)),
		SeedList:          r.list(s, "seedlist"),
		NodeName:          r.text(s, "node_name", ""),
		ReconnectInterval: r.duration(s, "reconnect_interval_sec", 37*time.Second, time.Second, atLeast(1)),
		NodeDownAfter:     r.duration(s, "node_down_after", DefaultNodeDownAfter, time.Millisecond, between(250, 60_000)),
		BindAddress:       anyAddress(r.text(s, "bind_address", "")),
		Port:              r.count(s, "port", DefaultClusterPort, between(0, 65535)),
		Advertise:         r.text(s, "advertise", ""),
		Secret:            r.text(s, "secret", ""),
		Zone:              r.text(s, "zone", ""),
		TLSCert:           r.text(s, "tls_cert_file", ""),
		TLSKey:            r.text(s, "tls_key_file", ""),
		TLSCA:             r.text(s, "tls_ca_file", ""),
		AutoRebalance:     r.oneOf(s, "rebalance", "ask", "ask", "auto") == "auto",
		ReplaceAfter:      r.duration(s, "replace_after", 0, time.Second, atLeast(0)),
	}
	if c.ReplaceAfter > 0 && c.ReplaceAfter < minReplaceAfter {
		r.bad(s, "replace_after", "0, or at least 60 seconds")
		c.ReplaceAfter = 0
	}
	if v, found := r.lookup(s, "placement"); found != "" {
		p, err := ring.ParsePlacement(v)
		if err != nil {
			r.bad(s, "placement", "zone:n[,zone:n]")
		}
		c.Placement = p
	}
	if slices.ContainsFunc(c.SeedList, func(seed string) bool { _, _, ok := ParseSeed(seed); return !ok }) {
		r.bad(s, "seedlist", "a list of name@host or name@host:port")
		c.SeedList = nil
	}
	if c.Advertise != "" && !isHostPort(c.Advertise) {
		r.bad(s, "advertise", "host:port")
		c.Advertise = ""
	}
	if c.Secret != "" && len(c.Secret) < MinSecret { // it stays: a node with another one would be alone
		r.bad(s, "secret", shortSecret)
	}
	if len(c.Zone) > maxZone {
		r.bad(s, "zone", "a name of at most 64 bytes")
		c.Zone = ""
	}
	return c
}

// minReplaceAfter is the time that a node may take to start again.
const minReplaceAfter = time.Minute

// MinSecret is how long a cluster's secret is at least, in bytes: an attacker who sees one
// handshake can try secrets as fast as a processor computes hashes.
const MinSecret = 16

// shortSecret says what a secret has to be.
const shortSecret = "at least 16 characters that nobody guesses, as `openssl rand -hex 16` makes them"

// CheckSecret refuses a secret that is too short; an empty one is none.
func (c Cluster) CheckSecret() error {
	if c.Secret == "" || len(c.Secret) >= MinSecret {
		return nil
	}
	return errors.New("[cluster] secret (COUCHDB_ERLANG_COOKIE) has " + strconv.Itoa(len(c.Secret)) + " characters. It needs " + shortSecret +
		". Set the same on all nodes and start them again")
}

// maxZone keeps what a node gossips about itself small, in bytes.
const maxZone = 64

// ParseSeed splits an item of the seed list, name@host or name@host:port, into
// the name of the node and the address of its cluster port. ok is false when it
// is neither.
func ParseSeed(seed string) (node, address string, ok bool) {
	name, host, ok := strings.Cut(seed, "@")
	if !ok || name == "" || host == "" || strings.ContainsAny(seed, "/ \t") {
		return "", "", false
	}
	if isHostPort(host) {
		only, _, _ := net.SplitHostPort(host) // it just did
		return name + "@" + only, host, true
	}
	if strings.Contains(host, ":") && net.ParseIP(host) == nil {
		return "", "", false
	}
	return seed, net.JoinHostPort(host, strconv.Itoa(DefaultClusterPort)), true
}

func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// anyAddress spells CouchDB's word for all addresses of the machine.
func anyAddress(bind string) string {
	if bind == "any" {
		return "0.0.0.0"
	}
	return bind
}

// Fabric is section [fabric]: how long a coordinator waits.
type Fabric struct {
	RequestTimeout       time.Duration // 0: infinity
	AllDocsTimeout       time.Duration // 0: infinity
	AttachmentsTimeout   time.Duration // 0: infinity
	ViewTimeout          time.Duration // 0: infinity
	PartitionViewTimeout time.Duration // 0: infinity
	SearchTimeout        time.Duration // 0: infinity
	NouveauTimeout       time.Duration // 0: infinity
	ChangesDuration      time.Duration // longest life of a continuous feed; 0: infinity
	AllDocsConcurrency   int
}

func readFabric(r *reader) Fabric {
	ms := func(key string, def time.Duration) time.Duration {
		return r.duration("fabric", key, def, time.Millisecond, atLeastOrInfinity(1))
	}
	return Fabric{
		RequestTimeout:       ms("request_timeout", time.Minute),
		AllDocsTimeout:       ms("all_docs_timeout", 10*time.Second),
		AttachmentsTimeout:   ms("attachments_timeout", 10*time.Minute),
		ViewTimeout:          ms("view_timeout", 0),
		PartitionViewTimeout: ms("partition_view_timeout", 0),
		SearchTimeout:        ms("search_timeout", 0),
		NouveauTimeout:       ms("nouveau_timeout", 0),
		ChangesDuration:      ms("changes_duration", 0),
		AllDocsConcurrency:   r.count("fabric", "all_docs_concurrency", 10, atLeast(1)),
	}
}

// Repair is section [mem3]: how copies of the same range catch up with each
// other.
type Repair struct {
	SyncDelay         time.Duration // from an update of a copy until it is pushed to one that missed it
	SyncConcurrency   int           // pushes at work at once
	BatchSize         int           // documents in a batch
	BatchCount        int           // batches before a push makes space for another
	MaxBytesPerSecond int64         // that this node pushes; Infinity: as fast as it goes
}

func readRepair(r *reader) Repair {
	const s = "mem3"
	return Repair{
		SyncDelay:         r.duration(s, "sync_delay", 5*time.Second, time.Millisecond, atLeast(0)),
		SyncConcurrency:   r.count(s, "sync_concurrency", 10, atLeast(1)),
		BatchSize:         r.count(s, "sync_batch_size", 500, between(1, 10_000)),
		BatchCount:        r.count(s, "sync_batch_count", 5, atLeast(1)),
		MaxBytesPerSecond: r.integer(s, "sync_max_bytes_per_second", 100<<20, atLeastOrInfinity(1<<10)),
	}
}

// GlobalChanges is section [global_changes]: how databases' updates get into
// the database _global_changes.
type GlobalChanges struct {
	UpdateDB      bool          // write them at all
	MaxEventDelay time.Duration // that updates of a database are gathered for
	MaxWriteDelay time.Duration // from an update until it is written
}

func readGlobalChanges(r *reader) GlobalChanges {
	const s = "global_changes"
	return GlobalChanges{
		UpdateDB:      r.boolean(s, "update_db", true),
		MaxEventDelay: r.duration(s, "max_event_delay", 25*time.Millisecond, time.Millisecond, atLeast(0)),
		MaxWriteDelay: r.duration(s, "max_write_delay", 500*time.Millisecond, time.Millisecond, atLeast(0)),
	}
}
