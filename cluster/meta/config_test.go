package meta

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/config"
	"divan/storage/fault"
)

func set(t *testing.T, m *Meta, c ConfigChange) string {
	t.Helper()
	old, err := m.Config.Set(t.Context(), c)
	if err != nil {
		t.Fatalf("set %s/%s: %v", c.Section, c.Key, err)
	}
	return old
}

func unset(t *testing.T, m *Meta, c ConfigChange) string {
	t.Helper()
	old, err := m.Config.Delete(t.Context(), c)
	if err != nil {
		t.Fatalf("delete %s/%s: %v", c.Section, c.Key, err)
	}
	return old
}

func get(m *Meta, section, key string) string {
	v, ok := m.Config.settings.Load().Get(section, key)
	if !ok {
		return "(unset)"
	}
	return v
}

func TestConfigOverHTTP(t *testing.T) {
	m, _ := start(t, Options{})
	ctx := t.Context()
	one := ConfigChange{Section: "golden", Key: "a", Value: "  one "}
	if old := set(t, m, one); old != "" {
		t.Errorf("old value %q", old)
	}
	one.Value = "two"
	if old := set(t, m, one); old != "one" {
		t.Errorf("old value %q", old)
	}
	if old := unset(t, m, one); old != "two" {
		t.Errorf("old value %q", old)
	}
	_, err := m.Config.Delete(ctx, one)
	wantKind(t, err, fault.NotFound)
	if fault.Reason(err) != "unknown_config_value" {
		t.Error(err)
	}
	for _, c := range []struct {
		change ConfigChange
		want   fault.Kind
	}{
		{ConfigChange{Section: "query_servers", Key: "python", Value: "x"}, fault.Forbidden},
		{ConfigChange{Section: "cluster", Key: "q", Value: "many"}, fault.BadRequest},
		{ConfigChange{Section: "cluster", Key: "q", Value: "0"}, fault.BadRequest},
		{ConfigChange{Section: "a]", Key: "q", Value: "0"}, fault.BadRequest},
		{ConfigChange{Section: "admins", Key: "root", Value: ""}, fault.BadRequest},
		{ConfigChange{Section: "a", Key: adminHashSection, Value: "0"}, fault.BadRequest},
		{ConfigChange{Section: adminHashSection, Key: "a", Value: "0"}, fault.BadRequest},
	} {
		_, err := m.Config.Set(ctx, c.change)
		wantKind(t, err, c.want)
	}
	wantKind(t, second(m.Config.Delete(ctx, ConfigChange{Section: "httpd_design_handlers", Key: "x"})), fault.Forbidden)
	if got := get(m, "cluster", "q"); got != "2" {
		t.Errorf("a refused value was set: %q", got)
	}
}

// What a client deletes stays deleted, wherever it came from.
func TestDeleteHidesWeakerLayers(t *testing.T) {
	m, _ := start(t, Options{Config: holder(t, config.Options{Environ: []string{"DIVAN_LOG__LEVEL=error"}})})
	if old := unset(t, m, ConfigChange{Section: "log", Key: "level"}); old != "error" {
		t.Errorf("old value %q", old)
	}
	if got := get(m, "log", "level"); got != "(unset)" || m.Config.settings.Load().Log.Level != "info" {
		t.Errorf("level %q", got)
	}
	set(t, m, ConfigChange{Section: "log", Key: "level", Value: "debug"})
	if got := get(m, "log", "level"); got != "debug" {
		t.Errorf("level %q", got)
	}
}

func TestVolatile(t *testing.T) {
	m, _ := start(t, Options{})
	ctx := t.Context()
	set(t, m, ConfigChange{Section: "x", Key: "k", Value: "kept"})
	if old := set(t, m, ConfigChange{Section: "x", Key: "k", Value: "memory", Volatile: true}); old != "kept" {
		t.Errorf("old value %q", old)
	}
	if got := get(m, "x", "k"); got != "memory" {
		t.Errorf("value %q", got)
	}
	unset(t, m, ConfigChange{Section: "x", Key: "k", Volatile: true})
	if got := get(m, "x", "k"); got != "(unset)" {
		t.Errorf("value %q", got)
	}
	if err := m.Config.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	if got := get(m, "x", "k"); got != "kept" {
		t.Errorf("after the reload %q", got)
	}
	set(t, m, ConfigChange{Section: "x", Key: "k", Value: "memory", Volatile: true})
	set(t, m, ConfigChange{Section: "x", Key: "k", Value: "new"})
	if got := get(m, "x", "k"); got != "new" {
		t.Errorf("a kept value is hidden by one in memory: %q", got)
	}
}

func TestReloadReadsFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "local.ini")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[log]\nlevel = error\n[admins]\nroot = apple\n")
	m, _ := start(t, Options{Config: holder(t, config.Options{Files: []string{file}})})
	apple, _ := quickHash("apple")
	if got := get(m, "admins", "root"); got != apple {
		t.Errorf("administrator %q", got)
	}
	write("[log]\nlevel = debug\n[admins]\nroot = pear\n")
	if err := m.Config.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	pear, _ := quickHash("pear")
	if got := get(m, "admins", "root"); got != pear || m.Config.settings.Load().Log.Level != "debug" {
		t.Errorf("after the reload: administrator %q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := m.Config.Reload(t.Context()); err == nil {
		t.Error("reload without the file succeeded")
	}
	if get(m, "admins", "root") != pear {
		t.Error("a failed reload changed something")
	}
}

// The stored form of a password from the environment is the same after a
// restart, so that sessions stay valid, and nothing ever shows the plain text.
func TestAdminsFromEnvironment(t *testing.T) {
	dir := t.TempDir()
	var log *observer.ObservedLogs
	hashes := 0
	run := func(password string) (*Meta, func()) {
		core, logs := observer.New(zapcore.DebugLevel)
		log = logs
		c, err := config.New(config.Options{
			Environ: []string{"COUCHDB_USER=root", "COUCHDB_PASSWORD=" + password},
			Logger:  zap.New(core),
			Hash: func(p string) (string, error) {
				hashes++
				stored, err := quickHash(p)
				return stored + string(rune('0'+hashes)), err
			},
			Verify: func(stored, p string) bool { return quickVerify(stored[:len(stored)-1], p) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Load().Admins) != 0 {
			t.Error("plain text in a snapshot")
		}
		return start(t, Options{Dir: dir, Config: c, Logger: zap.New(core)})
	}
	m, stop := run("apple")
	first := get(m, "admins", "root")
	if !config.IsHashed(first) {
		t.Fatalf("administrator %q", first)
	}
	for _, section := range m.Config.settings.Load().All() {
		for _, v := range section {
			if strings.Contains(v, "apple") {
				t.Error("the plain text is shown")
			}
		}
	}
	if _, ok := m.Config.settings.Load().All()[adminHashSection]; ok {
		t.Error("the section of hashes is shown")
	}
	stop()
	made := hashes // a leader that loses the lead before it has written one makes another

	m, stop = run("apple")
	if got := get(m, "admins", "root"); got != first || hashes != made {
		t.Errorf("after a restart %q, %d hashes", got, hashes)
	}
	set(t, m, ConfigChange{Section: "admins", Key: "root", Value: "plum"})
	changed := get(m, "admins", "root")
	for _, e := range log.All() {
		for _, v := range e.ContextMap() {
			if s, ok := v.(string); ok && (strings.Contains(s, "plum") || config.IsHashed(s)) {
				t.Errorf("logged: %v", e)
			}
		}
	}
	stop()

	m, _ = run("pear")
	if got := get(m, "admins", "root"); got != changed {
		t.Errorf("set through HTTP %q, after a restart %q", changed, got)
	}
}

// An administrator is one of the cluster, not of a node.
func TestSharedKeys(t *testing.T) {
	m, _ := start(t, Options{})
	set(t, m, ConfigChange{Section: "admins", Key: "root", Value: "apple"})
	set(t, m, ConfigChange{Section: "log", Key: "level", Value: "debug"})
	s := m.fsm.load()
	if !s.cluster.Has("admins", "root") || s.perNode[self].Has("admins", "root") {
		t.Error("an administrator was set for one node")
	}
	if s.cluster.Has("log", "level") || !s.perNode[self].Has("log", "level") {
		t.Error("the log level was set for all nodes")
	}
	set(t, m, ConfigChange{Section: "log", Key: "level", Value: "error", ClusterWide: true})
	if s := m.fsm.load(); s.perNode[self].Has("log", "level") || get(m, "log", "level") != "error" {
		t.Error("a value for all nodes is hidden by this node's own")
	}
	unset(t, m, ConfigChange{Section: "log", Key: "level"})
	if got := get(m, "log", "level"); got != "(unset)" {
		t.Errorf("level %q", got)
	}
}
