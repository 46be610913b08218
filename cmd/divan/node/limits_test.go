package node

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/config"
)

// TestDivide: clients, tables and stores leave descriptors for the rest, and all of it is
// in the log.
func TestDivide(t *testing.T) {
	for _, limit := range []uint64{64, 256, 1024, 4096, 65_536, 1 << 40} {
		d := divide(limit)
		taken := uint64(d.connections + d.tables + descriptorsPerStore*d.stores)
		if d.limit != limit || d.connections < 1 || d.tables < 1 || d.stores < 1 || taken > limit-limit/8 {
			t.Errorf("%d: %+v", limit, d)
		}
		core, lines := observer.New(zap.InfoLevel)
		d.say(zap.New(core))
		told := lines.All()
		if len(told) != 1 || (told[0].Level == zap.WarnLevel) != (limit < 4096) {
			t.Fatalf("%d: %v", limit, told)
		}
		if got, want := fmt.Sprint(told[0].ContextMap()), fmt.Sprint(map[string]any{
			"limit": limit, "connections": d.connections, "tables": d.tables, "stores": d.stores,
		}); got != want {
			t.Errorf("told is %s, want %s", got, want)
		}
	}
	if d := divide(0); d.connections != maxConnections || d.tables != maxTables || d.stores != 0 {
		t.Errorf("without a limit: %+v", d)
	}
	none := config.FromValues(nil)
	if o := engineOptions(Config{}, none, divide(256), zap.NewNop()); o.MaxTables != 64 || o.MaxOpen != 16 {
		t.Errorf("tables %d, stores %d", o.MaxTables, o.MaxOpen)
	}
	few := config.FromValues(config.Values{"couchdb": {"max_dbs_open": "7"}})
	if o := engineOptions(Config{}, few, divide(1<<20), zap.NewNop()); o.MaxOpen != 7 {
		t.Errorf("%d stores stay open", o.MaxOpen)
	}
}

// TestMachineMemory: a control group counts when it has less than the machine.
func TestMachineMemory(t *testing.T) {
	const v2, v1 = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	for _, c := range []struct {
		files map[string]string
		want  int64
	}{
		{nil, 0},
		{map[string]string{"/proc/meminfo": "MemTotal:       16000 kB\nMemFree: 1 kB\n"}, 16_000 << 10},
		{map[string]string{"/proc/meminfo": "MemTotal: 16000 kB\n", v2: "1000000\n"}, 1_000_000},
		{map[string]string{"/proc/meminfo": "MemTotal: 16000 kB\n", v2: "max\n"}, 16_000 << 10},
		{map[string]string{"/proc/meminfo": "MemTotal: 16000 kB\n", v1: "9223372036854771712\n"}, 16_000 << 10},
		{map[string]string{"/proc/meminfo": "nonsense", v1: "2000000\n"}, 2_000_000},
		{map[string]string{"/proc/meminfo": "MemTotal: -1 kB", v2: "-5"}, 0},
	} {
		got := machineMemory(func(name string) ([]byte, error) {
			text, ok := c.files[name]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		})
		if got != c.want {
			t.Errorf("%q: %d, want %d", c.files, got, c.want)
		}
	}
}

// TestLimitsOfANode: a node has the limits of its machine, and refuses a cluster's secret
// that is too short.
func TestLimitsOfANode(t *testing.T) {
	h := start(t, onDisk(t.TempDir(), "DIVAN_PROMETHEUS__ADDITIONAL_PORT=true", "DIVAN_PROMETHEUS__PORT=0"))
	defer h.end()
	d := h.node.api.Deps
	if want := machineMemory(os.ReadFile) / 8; d.Limits.BodyMemory != want || d.Limits.Connections != divide(descriptorLimit()).connections {
		t.Errorf("bodies of %d bytes, want %d; %d connections", d.Limits.BodyMemory, want, d.Limits.Connections)
	}
	address := h.listening("metrics", 0)
	var conns []net.Conn
	for range maxScrapers + 1 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		conns = append(conns, c)
	}
	_ = conns[0].SetReadDeadline(time.Now().Add(10 * time.Second)) // of a connection that is open
	if _, err := conns[0].Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the port for metrics has no end of connections: %v", err)
	}
	if answer, err := h.try("GET", "http://"+address+"/_node/_local/_prometheus", ""); err != nil || !strings.HasPrefix(answer, "200") {
		t.Errorf("%.200s, %v", answer, err)
	}
	const short = "COUCHDB_ERLANG_COOKIE=fifteen-letters"
	_, err := New(t.Context(), onDisk(t.TempDir(), short, "DIVAN_CLUSTER__SEEDLIST=divan@10.0.0.1"))
	if err == nil || !strings.Contains(err.Error(), "has 15 characters") || !strings.Contains(err.Error(), "openssl rand") {
		t.Errorf("with a short secret: %v", err)
	}
}

// smallDisk is the real file system, which may have no space.
type smallDisk struct {
	vfs.FS
	full *atomic.Bool
}

// GetDiskUsage implements vfs.FS.
func (d smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.full.Load() {
		return vfs.DiskUsage{TotalBytes: 1 << 40}, nil
	}
	return vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 39}, nil
}

// TestNodeOnFullDisk: a node starts where not even the system databases have space, says
// so, and serves; with space again it takes writes within a second.
func TestNodeOnFullDisk(t *testing.T) {
	full := &atomic.Bool{}
	full.Store(true)
	cfg := onDisk(t.TempDir())
	cfg.FS = smallDisk{vfs.Default, full}
	h := start(t, cfg)
	defer h.end()
	if h.node.metadata.options().DiskFull() == nil {
		t.Error("the metadata do not know of it, and keep the lead")
	}
	if !h.logged(0, "a system database is not made") {
		t.Error("the log does not say so")
	}
	h.want("GET", "/_up", "", "200")
	h.want("GET", "/_all_dbs", "", "200 []")
	h.want("PUT", "/pond", "", "507")
	full.Store(false)
	eventually(t, "there is space", func() bool { return strings.HasPrefix(h.ask("PUT", "/pond", ""), "201") })
	h.want("PUT", "/pond/frog", "{}", "201")
	full.Store(true)
	eventually(t, "there is no space", func() bool { return strings.HasPrefix(h.ask("POST", "/pond", "{}"), "507") })
	h.want("GET", "/pond/frog", "", "200")
	h.want("PUT", "/lake", "", "507")
	full.Store(false)
	began := time.Now()
	eventually(t, "there is space again", func() bool { return strings.HasPrefix(h.ask("POST", "/pond", "{}"), "201") })
	if took := time.Since(began); took > time.Second {
		t.Errorf("writes are taken after %v", took)
	}
}

// TestRecoverOfAMember: metadata of a node that belongs to others come from those.
func TestRecoverOfAMember(t *testing.T) {
	cfg := onDisk(t.TempDir())
	store, err := openIdentity(t.Context(), cfg.fileSystem(), cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	cfg.NodeName = "divan@10.0.0.1"
	err = store.update(t.Context(), func(i *identity) {
		i.Nodes = map[string]string{"divan@10.0.0.1": "10.0.0.1:6984", "divan@10.0.0.2": "10.0.0.2:6984"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "belongs to a cluster with divan@10.0.0.2, and those have the metadata") {
		t.Errorf("recovered: %v", err)
	}
}
