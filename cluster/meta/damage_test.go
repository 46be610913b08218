package meta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"divan/cluster/config"
	"divan/cluster/meta/checksum"
	"divan/cluster/meta/dbsetting"
	"divan/shard/ring"
)

// inventory is all that must survive.
func inventory(m *Meta) string {
	var b strings.Builder
	s := m.fsm.load()
	fmt.Fprintln(&b, s.uuid, s.secret, slices.Sorted(maps.Keys(s.nodes)), s.cluster.Set, s.perNode[self].Set)
	for db := range m.Databases().All() {
		fmt.Fprintln(&b, db.Name, db.Suffix, db.ID, db.Partitioned, db.Shards, string(db.Security), db.Settings[dbsetting.RevsLimit], db.Settings[dbsetting.PurgedInfosLimit])
	}
	return b.String()
}

// city makes metadata on disk, with a snapshot of Raft in the middle, and returns
// what they are.
func city(t *testing.T, dir string) string {
	t.Helper()
	m, stop := start(t, Options{Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery")})
	for i := range 10 {
		create(t, m, fmt.Sprintf("db%d", i))
	}
	if _, err := m.DeleteDatabase(t.Context(), "db3"); err != nil {
		t.Fatal(err)
	}
	if err := m.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		create(t, m, fmt.Sprintf("later/%d", i))
	}
	if _, err := m.Config.Set(t.Context(), ConfigChange{Section: "mine", Key: "a", Value: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := m.SetSecurity(t.Context(), whichever("db5"), []byte(`{"members":{"names":["ann"]}}`)); err != nil {
		t.Fatal(err)
	}
	if err := m.Set(t.Context(), whichever("later/2"), dbsetting.RevsLimit, 7); err != nil {
		t.Fatal(err)
	}
	want := inventory(m)
	stop()
	return want
}

// try starts metadata that may be damaged.
func try(t *testing.T, dir string) (got string, err error) {
	t.Helper()
	m, err := New(Options{
		Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery"), Self: Node{Name: self},
		Config: holder(t, config.Options{}), Bootstrap: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(t.Context()) }()
	select {
	case err := <-ended:
		return "", err
	case <-m.Ready():
	case <-time.After(20 * time.Second):
		t.Error("neither ready nor refused")
	}
	got = inventory(m)
	return got, errors.Join(m.Close(), <-ended)
}

func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// files returns the paths below a directory that match, with their content.
func files(t *testing.T, dir string, match func(name string) bool) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !match(path) {
			return err
		}
		out[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func everything(string) bool { return true }

// TestDamagedMetadata changes a byte here and there: either it means nothing, or
// the start is refused and everything can be made again.
func TestDamagedMetadata(t *testing.T) {
	whole := t.TempDir()
	want := city(t, whole)
	all := files(t, filepath.Join(whole, "meta"), everything)
	names := slices.Sorted(maps.Keys(all))
	rng, refused := rand.New(rand.NewPCG(1, 2)), 0
	rounds := 30
	if testing.Short() {
		rounds = 15
	}
	for range rounds {
		name := names[rng.IntN(len(names))]
		text := all[name]
		at := rng.IntN(len(text))
		for text[at] == 0 && rng.IntN(20) > 0 { // zeros mean little
			at = rng.IntN(len(text))
		}
		dir := copyTree(t, whole)
		short, err := filepath.Rel(whole, name)
		if err != nil {
			t.Fatal(err)
		}
		broken := slices.Clone(text)
		broken[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(filepath.Join(dir, short), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := try(t, dir)
		if err == nil {
			if got != want {
				t.Errorf("%s, byte %d: starts with\n%s instead of\n%s", short, at, got, want)
			}
			continue
		}
		refused++
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, byte %d: %v", short, at, err)
		}
		wantRecovered(t, dir, want)
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	t.Logf("%d of %d refused", refused, rounds)
}

// wantRecovered makes the metadata of a directory again, which must be these.
func wantRecovered(t *testing.T, dir, want string) {
	t.Helper()
	o := Remake{Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery"), Self: self}
	if _, err := Recover(o); err != nil {
		t.Errorf("recover: %v", err)
		return
	}
	for range 2 { // and again, as they are sound now
		if got, err := try(t, dir); err != nil || got != want {
			t.Errorf("recovered is\n%s instead of\n%s; %v", got, want, err)
		}
	}
	if _, err := Recover(o); !errors.Is(err, ErrSound) {
		t.Errorf("recovered once more: %v", err)
	}
}

// TestMetadataWithoutFiles: parts of the directory are gone.
func TestMetadataWithoutFiles(t *testing.T) {
	whole := t.TempDir()
	want := city(t, whole)
	for _, gone := range []string{"meta/raft.db", "meta/snapshots", "meta/snapshots/*/meta.json", "meta/snapshots/*/state.bin"} {
		t.Run(gone, func(t *testing.T) {
			dir := copyTree(t, whole)
			found, err := filepath.Glob(filepath.Join(dir, gone))
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			if err := os.RemoveAll(found[0]); err != nil {
				t.Fatal(err)
			}
			if gone == "meta/snapshots" { // the log still has what is in it
				if got, err := try(t, dir); err != nil || got != want {
					t.Errorf("starts with\n%s instead of\n%s, %v", got, want, err)
				}
				return
			}
			if _, err := try(t, dir); !errors.Is(err, ErrDamaged) {
				t.Errorf("starts: %v", err)
			}
			wantRecovered(t, dir, want)
		})
	}
}

// TestLogWithoutItsEnd: the file is that of an earlier moment, and sound.
func TestLogWithoutItsEnd(t *testing.T) {
	dir := t.TempDir()
	m, stop := start(t, Options{Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery")})
	create(t, m, "early")
	stop()
	early, err := os.ReadFile(filepath.Join(dir, "meta", logFile))
	if err != nil {
		t.Fatal(err)
	}
	m, stop = start(t, Options{Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery")})
	create(t, m, "late")
	want := inventory(m)
	stop()
	if err := os.WriteFile(filepath.Join(dir, "meta", logFile), early, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := try(t, dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "was agreed on") {
		t.Errorf("starts: %v", err)
	}
	found := Inspect(filepath.Join(dir, "meta"), filepath.Join(dir, "recovery"), nil)
	if len(found.Problems) != 1 || !strings.Contains(found.Problems[0], "was agreed on") {
		t.Errorf("examined: %q", found.Problems)
	}
	wantRecovered(t, dir, want)
}

// TestCopiesInTurn: the newest copy is read, and the one before where that is damaged
// or was never finished.
func TestCopiesInTurn(t *testing.T) {
	c := copier{dir: t.TempDir()}
	index := func() uint64 {
		s, at := readCopies(c.dir)
		if at < 0 {
			return 0
		}
		return s.state.index
	}
	for i := uint64(1); i <= 4; i++ {
		s := &snapshot{state: newState(), tombstones: newTombstones()}
		s.state.uuid, s.state.index = randomHex(), i
		if err := c.write(s); err != nil {
			t.Fatal(err)
		}
		if got := index(); got != i {
			t.Fatalf("copy %d is read as %d", i, got)
		}
		newest := filepath.Join(c.dir, copyFiles()[1-c.next])
		whole, err := os.ReadFile(newest)
		if err != nil {
			t.Fatal(err)
		}
		flipped := slices.Clone(whole)
		flipped[len(flipped)/3] ^= 1
		for what, text := range map[string][]byte{"cut off": whole[:len(whole)/2], "flipped": flipped, "emptied": nil} {
			if err := os.WriteFile(newest, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := index(); got != i-1 {
				t.Errorf("copy %d, %s, is read as %d", i, what, got)
			}
		}
		if err := os.WriteFile(newest, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecoverFromOldCopy: the file of the log is whole but for one entry, and the
// copies are of the moment before.
func TestRecoverFromOldCopy(t *testing.T) {
	dir := t.TempDir()
	copies := filepath.Join(dir, "recovery")
	_, stop := start(t, Options{Dir: filepath.Join(dir, "meta"), CopyDir: copies})
	stop() // before anything is made
	before := files(t, copies, everything)
	m, stop := start(t, Options{Dir: filepath.Join(dir, "meta"), CopyDir: copies})
	create(t, m, "pond")
	want := inventory(m)
	stop()
	for path := range files(t, copies, everything) {
		text, old := before[path]
		if !old {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if len(text) > 0 {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(dir, "meta", logFile)
	bolt, err := raftboltdb.New(boltOptions(path))
	if err != nil {
		t.Fatal(err)
	}
	var first raft.Log
	if err := errors.Join(bolt.GetLog(1, &first), bolt.DeleteRange(1, 1), bolt.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := try(t, dir); !errors.Is(err, ErrDamaged) {
		t.Fatalf("starts: %v", err)
	}
	wantRecovered(t, dir, want)
}

// TestMetadataWithoutChecksums: a value or an entry without a checksum is damaged.
func TestMetadataWithoutChecksums(t *testing.T) {
	for what, strip := range map[string]func(bolt *raftboltdb.BoltStore, checked *checksum.Store) error{
		"value": func(bolt *raftboltdb.BoltStore, checked *checksum.Store) error {
			name, err := checked.Get(nameKey())
			return errors.Join(err, bolt.Set(nameKey(), name))
		},
		"entry": func(bolt *raftboltdb.BoltStore, checked *checksum.Store) error {
			last, err := bolt.LastIndex()
			var l raft.Log
			return errors.Join(err, checked.GetLog(last, &l), bolt.StoreLog(&l))
		},
	} {
		dir := t.TempDir()
		want := city(t, dir)
		bolt, err := raftboltdb.New(boltOptions(filepath.Join(dir, "meta", logFile)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(strip(bolt, &checksum.Store{BoltStore: bolt}), bolt.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := try(t, dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("starts with a %s that has no checksum: %v", what, err)
		}
		wantRecovered(t, dir, want)
	}
}

// TestEachValueHasAChecksum: whichever byte of a value is another one, that is noticed, and
// that a value or an entry is missing.
func TestEachValueHasAChecksum(t *testing.T) {
	dir := t.TempDir()
	city(t, dir)
	dir = filepath.Join(dir, "meta")
	db, err := bbolt.Open(filepath.Join(dir, logFile), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	change := func(do func(tx *bbolt.Tx) error) (problems []string) {
		t.Helper()
		if err := db.Update(do); err != nil {
			t.Fatal(err)
		}
		return look(dir, false).problems
	}
	put := func(bucket string, key, value []byte) []string {
		return change(func(tx *bbolt.Tx) error {
			if value == nil {
				return tx.Bucket([]byte(bucket)).Delete(key)
			}
			return tx.Bucket([]byte(bucket)).Put(key, value)
		})
	}
	values := map[string][]byte{}
	var entries [][2][]byte
	sound := change(func(tx *bbolt.Tx) error {
		return errors.Join(tx.Bucket([]byte("conf")).ForEach(func(k, v []byte) error {
			values[string(k)] = slices.Clone(v)
			return nil
		}), tx.Bucket([]byte("logs")).ForEach(func(k, v []byte) error {
			entries = append(entries, [2][]byte{slices.Clone(k), slices.Clone(v)})
			return nil
		}))
	})
	if len(sound) != 0 || len(values) < 4 || len(entries) < 5 {
		t.Fatalf("%q; %d values, %d entries", sound, len(values), len(entries))
	}
	for key, value := range values {
		for i := range value {
			broken := slices.Clone(value)
			broken[i] ^= 4
			if len(put("conf", []byte(key), broken)) == 0 {
				t.Errorf("%s: byte %d of %d is another one", key, i, len(value))
			}
		}
		put("conf", []byte(key), value)
	}
	if len(put("conf", checksum.LastKey(), nil)) == 0 {
		t.Error("the last value is missing")
	}
	put("conf", checksum.LastKey(), values[string(checksum.LastKey())])
	if hole := entries[len(entries)/2]; len(put("logs", hole[0], nil)) == 0 {
		t.Errorf("entry %x is missing", hole[0])
	} else if p := put("logs", hole[0], hole[1]); len(p) != 0 {
		t.Errorf("all is as it was: %q", p)
	}
}

// TestRecoverFromShards: nothing is left but the names of the shards.
func TestRecoverFromShards(t *testing.T) {
	dir := t.TempDir()
	o := Remake{Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery"), Self: self}
	if _, err := Recover(o); err == nil {
		t.Error("metadata were made of nothing")
	}
	shards := func(name, suffix string, q int, without ...int) {
		for i, r := range ring.Split(q) {
			if !slices.Contains(without, i) {
				o.Copies = append(o.Copies, DiskCopy{Name: ring.CopyName(r, name, suffix), Partitioned: name == "parted"})
			}
		}
	}
	shards("pond", "1763600000", 2)
	shards("team//x", "1763600001", 1)
	shards("parted", "1763600002", 3)
	shards("holed", "1763600003", 8, 0, 5)
	shards("two", "1763600004", 2)
	shards("two", "1763600009", 1)
	shards("odd", "1763600004", 2, 1)
	shards("odd", "1763600004", 3, 1, 2)
	shards("ahead", "4102444800", 2, 1) // of a clock that was wrong
	shards("ahead", "4102444800", 3, 1, 2)
	o.Copies = append(o.Copies, DiskCopy{Name: "shards/00000000-ffffffff/what"})
	made, err := Recover(o)
	if err != nil {
		t.Fatal(err)
	}
	if made.Databases != 5 || made.Aside != "" {
		t.Errorf("%+v", made)
	}
	notes := strings.Join(made.Notes, "\n")
	for _, want := range []string{
		"no copy of the metadata was found", "pond: known from its shards only (q=2)", "team//x: known from its shards only (q=1)",
		"shards/00000000-1fffffff/holed.1763600003 is not there", "shards/a0000000-bfffffff/holed.1763600003 is not there",
		"two of 1763600004: a newer database has the name", "odd of 1763600004: its ranges do not fit together",
		"shards/00000000-ffffffff/what: not the name of a shard",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	m, _ := start(t, Options{Dir: o.Dir, CopyDir: o.CopyDir})
	for name, q := range map[string]int{"pond": 2, "team//x": 1, "parted": 3, "holed": 8, "two": 1} {
		db, ok := m.Database(name)
		if !ok || db.Q() != q || string(db.Security) != adminOnly || db.Partitioned != (name == "parted") || !db.Shards[0].On(self) {
			t.Errorf("%s is %+v", name, db)
		}
	}
	if plan := Reconcile(m.Databases(), self, nil); len(plan.Create) != 15 {
		t.Errorf("%q", plan.Create)
	}
	if db := create(t, m, "ahead"); db.Created <= 4102444800 {
		t.Errorf("made anew with the suffix %s", db.Suffix)
	}
}

// TestRecoverRefuses what only the other nodes can give.
func TestRecoverRefuses(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery")}
	m, stop := start(t, o)
	if err := m.PutNode(context.WithoutCancel(t.Context()), Node{Name: "other@127.0.0.1", ClusterVersion: ClusterVersion}); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Fatal(err)
	}
	_, err := Recover(Remake{Dir: o.Dir, CopyDir: o.CopyDir, Self: self})
	if err == nil || !strings.Contains(err.Error(), "belongs to a cluster with other@127.0.0.1;") || exists(o.Dir) {
		t.Errorf("recovered: %v", err)
	}
	alone := t.TempDir()
	city(t, alone)
	r := Remake{Dir: filepath.Join(alone, "meta"), CopyDir: filepath.Join(alone, "recovery"), Self: "other@127.0.0.1"}
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err = Recover(r); err == nil || !strings.Contains(err.Error(), "--name "+self) || exists(r.Dir) {
		t.Errorf("recovered under another name: %v", err)
	}
}

// TestRecoverKeepsToItself: a deleted database stays deleted, even if some of its files are left,
// and copies of another node are not taken.
func TestRecoverKeepsToItself(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery")}
	m, stop := start(t, o)
	left := create(t, m, "gone").CopiesOn(self)
	create(t, m, "pond")
	if _, err := m.DeleteDatabase(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	want := inventory(m)
	stop()
	r := Remake{Dir: o.Dir, CopyDir: o.CopyDir, Self: self}
	for _, name := range left {
		r.Copies = append(r.Copies, DiskCopy{Name: name})
	}
	recovered := func(note string) {
		t.Helper()
		made, err := Recover(r)
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(made.Notes, "\n"); !strings.Contains(notes, note) {
			t.Errorf("the notes lack %q: %s", note, notes)
		}
		if got, err := try(t, dir); err != nil || got != want {
			t.Errorf("recovered is\n%s instead of\n%s; %v", got, want, err)
		}
	}
	whole := copyTree(t, dir)
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Fatal(err)
	}
	recovered(": was deleted; its shards are left as they are")

	other := t.TempDir()
	city(t, other)
	for _, move := range [][2]string{{filepath.Join(whole, "meta"), o.Dir}, {filepath.Join(other, "recovery"), o.CopyDir}} {
		if err := errors.Join(os.RemoveAll(move[1]), os.CopyFS(move[1], os.DirFS(move[0]))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(o.Dir, "snapshots", "1-1-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	recovered("are of another node or cluster and were not used")
}
