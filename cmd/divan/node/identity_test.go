package node

import (
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The identity is durable when update returns, and there at every moment.
func TestIdentitySurvives(t *testing.T) {
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	syncRoot(t, fs)
	s, err := openIdentity(t.Context(), fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	first := s.load()
	if len(first.Secret) < 20 || first.UUID != "" {
		t.Errorf("%+v", first)
	}
	for i, change := range []func(*identity){
		func(*identity) {},
		func(i *identity) { i.UUID, i.Nodes = "u", map[string]string{"a@b": "b:1"} },
		func(i *identity) { i.Nodes["c@d"], i.Invited = "d:2", true },
		func(i *identity) {
			i.Secret, i.Settings = "s", map[string]map[string]string{"chttpd": {"port": "1"}}
		},
	} {
		if err := s.update(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		again, err := openIdentity(t.Context(), crashed, "data")
		if err != nil {
			t.Fatal(err)
		}
		if got := again.load(); !reflect.DeepEqual(got, s.load()) {
			t.Errorf("change %d: %+v, want %+v", i, got, s.load())
		}
	}
	if first.UUID != "" || first.Nodes != nil {
		t.Error("a change reaches what was handed out")
	}
}

func syncRoot(t *testing.T, fs vfs.FS) {
	t.Helper()
	d, err := fs.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestIdentityRefuses(t *testing.T) {
	for _, text := range []string{"", "{", `{"version":2,"secret":"s"}`, `{"version":1}`, "[]"} {
		fs := vfs.NewMem()
		f, err := fs.Create("cluster.json", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := openIdentity(t.Context(), fs, ""); err == nil {
			t.Errorf("%q is an identity", text)
		}
	}
}
