package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseSeed(t *testing.T) {
	for _, c := range []struct {
		seed, node, address string
		ok                  bool
	}{
		{"divan@db1.example", "divan@db1.example", "db1.example:5986", true},
		{"divan@db1.example:7000", "divan@db1.example", "db1.example:7000", true},
		{"divan@127.0.0.1:1", "divan@127.0.0.1", "127.0.0.1:1", true},
		{"divan@[::1]:7000", "divan@::1", "[::1]:7000", true},
		{"divan@::1", "divan@::1", "[::1]:5986", true},
		{"db1.example", "", "", false},
		{"@db1", "", "", false},
		{"divan@", "", "", false},
		{"divan@db1:0", "", "", false},
		{"divan@db1:port", "", "", false},
		{"divan@db1:70000", "", "", false},
		{"divan@:7000", "", "", false},
		{"http://divan@db1", "", "", false},
	} {
		node, address, ok := ParseSeed(c.seed)
		if node != c.node || address != c.address || ok != c.ok {
			t.Errorf("%s: %q %q %v", c.seed, node, address, ok)
		}
	}
}

func TestClusterSettings(t *testing.T) {
	s := FromValues(Values{
		"cluster": {
			"seedlist": "divan@a, divan@b:7000", "bind_address": "any", "port": "7001", "advertise": "c.example:7002", "secret": "sixteen-letters-",
			"zone": "z1", "node_down_after": "2500", "tls_cert_file": "c.pem", "tls_key_file": "k.pem", "tls_ca_file": "ca.pem",
		},
		"mem3":           {"sync_delay": "10", "sync_concurrency": "2", "sync_batch_size": "7", "sync_batch_count": "3", "sync_max_bytes_per_second": "infinity"},
		"global_changes": {"max_event_delay": "1", "max_write_delay": "2", "update_db": "false"},
		"reshard":        {"max_jobs": "3", "max_history": "0", "max_retries": "0", "retry_interval_sec": "2", "max_bytes_per_second": "infinity", "require_node_param": "true"},
	})
	want := Clustering{
		Cluster: Cluster{
			Q: 2, N: 3, SeedList: []string{"divan@a", "divan@b:7000"}, ReconnectInterval: 37 * time.Second, NodeDownAfter: 2500 * time.Millisecond,
			BindAddress: "0.0.0.0", Port: 7001, Advertise: "c.example:7002", Secret: "sixteen-letters-", Zone: "z1",
			TLSCert: "c.pem", TLSKey: "k.pem", TLSCA: "ca.pem",
		},
		Repair:        Repair{SyncDelay: 10 * time.Millisecond, SyncConcurrency: 2, BatchSize: 7, BatchCount: 3, MaxBytesPerSecond: Infinity},
		Fabric:        Default().Fabric,
		GlobalChanges: GlobalChanges{MaxEventDelay: time.Millisecond, MaxWriteDelay: 2 * time.Millisecond},
		Replicator:    Default().Replicator,
		Reshard:       Reshard{MaxJobs: 3, MaxHistory: 20, MaxRetries: 0, RetryInterval: 2 * time.Second, MaxBytesPerSecond: Infinity, RequireNode: true},
		PerUser:       Default().PerUser,
	}
	if !reflect.DeepEqual(s.Clustering, want) {
		t.Errorf("%+v", s.Clustering)
	}
}

// A value that does not parse counts as unset, and can not be set through HTTP.
func TestBadClusterSettings(t *testing.T) {
	for _, c := range [][3]string{
		{"cluster", "seedlist", "divan@a, b"},
		{"cluster", "advertise", "host"},
		{"cluster", "advertise", ":5986"},
		{"cluster", "port", "65536"},
		{"cluster", "zone", string(make([]byte, 65))},
		{"mem3", "sync_concurrency", "0"},
		{"mem3", "sync_batch_size", "0"},
		{"mem3", "sync_delay", "-1"},
		{"global_changes", "max_write_delay", "soon"},
	} {
		if err := Check(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v is accepted", c)
		}
		if got := FromValues(Values{c[0]: {c[1]: c[2]}}).Clustering; !reflect.DeepEqual(got, Default().Clustering) {
			t.Errorf("%v: %+v", c, got)
		}
	}
}

// A short secret is refused wherever it comes from, and never taken for none: a node
// with another one than the others would be alone.
func TestShortSecret(t *testing.T) {
	short, long := strings.Repeat("x", MinSecret-1), strings.Repeat("x", MinSecret)
	if err := Check("cluster", "secret", short); err == nil || !strings.Contains(err.Error(), "openssl rand -hex 16") {
		t.Errorf("set through HTTP: %v", err)
	}
	c := FromValues(Values{"cluster": {"secret": short}}).Cluster
	if err := c.CheckSecret(); c.Secret != short || err == nil || strings.Contains(err.Error(), short) || !strings.Contains(err.Error(), "15 characters") {
		t.Errorf("%q: %v", c.Secret, err)
	}
	for _, good := range []string{"", long} {
		if err := (Cluster{Secret: good}).CheckSecret(); err != nil || Check("cluster", "secret", good) != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestCookieOfTheContainerImage(t *testing.T) {
	h := newHolder(t, Options{Environ: []string{"COUCHDB_ERLANG_COOKIE=monsters-of-the-deep"}})
	if got := h.Load().Cluster.Secret; got != "monsters-of-the-deep" {
		t.Errorf("secret %q", got)
	}
	if !Sensitive("cluster", "secret") {
		t.Error("the secret may be logged")
	}
}
