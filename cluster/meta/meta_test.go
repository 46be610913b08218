package meta

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"divan/cluster/config"
	"divan/cluster/meta/dbsetting"
	"divan/shard/ring"
	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const self = "divan@127.0.0.1"

// quickHash stands in for the slow hash of passwords.
func quickHash(password string) (string, error) {
	sum := sha256.Sum256([]byte(password))
	return "-pbkdf2:sha256-" + hex.EncodeToString(sum[:4]) + ",aa,1", nil
}

func quickVerify(stored, password string) bool {
	want, _ := quickHash(password)
	return stored == want
}

func holder(tb testing.TB, o config.Options) *config.Holder {
	tb.Helper()
	o.Hash, o.Verify = quickHash, quickVerify
	h, err := config.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// start runs a Meta until the test ends; stop ends it earlier.
func start(tb testing.TB, o Options) (m *Meta, stop func()) {
	tb.Helper()
	if o.Self.Name == "" {
		o.Self.Name = self
	}
	if o.Config == nil {
		o.Config = holder(tb, config.Options{})
	}
	o.Bootstrap = true
	m, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(tb.Context()) }()
	stop = sync.OnceFunc(func() {
		if err := m.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
		if err := <-ended; err != nil {
			tb.Errorf("run: %v", err)
		}
	})
	tb.Cleanup(stop)
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	if err := m.WaitReady(ctx); err != nil {
		tb.Fatalf("not ready: %v", err)
	}
	return m, stop
}

func create(tb testing.TB, m *Meta, name string) *Database {
	tb.Helper()
	db, err := m.CreateDatabase(tb.Context(), Create{Name: name, Q: 2, N: 3})
	if err != nil {
		tb.Fatalf("create %s: %v", name, err)
	}
	return db
}

// whichever names a database without saying which one of that name.
func whichever(name string) *Database { return &Database{Name: name} }

func wantKind(tb testing.TB, err error, k fault.Kind) {
	tb.Helper()
	if !fault.Is(err, k) {
		tb.Fatalf("got error %v, want kind %d", err, k)
	}
}

func TestLifeOfADatabase(t *testing.T) {
	m, _ := start(t, Options{})
	ctx := t.Context()
	before := time.Now().Unix()
	db := create(t, m, "films")
	if db.N != 1 || db.Q() != 2 || db.Settings[dbsetting.RevsLimit] != 1000 || db.Settings[dbsetting.PurgedInfosLimit] != 1000 || db.Security != nil {
		t.Errorf("a new database is %+v", db)
	}
	if db.Created < before || db.Suffix != suffixOf(db.Created) {
		t.Errorf("created at %d with suffix %s, asked at %d", db.Created, db.Suffix, before)
	}
	if got := db.CopiesOn(self); len(got) != 2 || got[0] != "shards/00000000-7fffffff/films."+db.Suffix {
		t.Errorf("copies here: %v", got)
	}
	_, err := m.CreateDatabase(ctx, Create{Name: "films", Q: 1, N: 1})
	wantKind(t, err, fault.Exists)
	if fault.Reason(err) != "The database could not be created, the file already exists." {
		t.Errorf("reason %q", fault.Reason(err))
	}
	if err := m.SetSecurity(ctx, whichever("films"), []byte(`{"admins":{}}`)); err != nil {
		t.Fatal(err)
	}
	if err := m.Set(ctx, whichever("films"), dbsetting.RevsLimit, 7); err != nil {
		t.Fatal(err)
	}
	if err := m.Set(ctx, whichever("films"), dbsetting.PurgedInfosLimit, 9); err != nil {
		t.Fatal(err)
	}
	got, _ := m.Database("films")
	if string(got.Security) != `{"admins":{}}` || got.Settings[dbsetting.RevsLimit] != 7 || got.Settings[dbsetting.PurgedInfosLimit] != 9 || got.ID != db.ID {
		t.Errorf("after the changes: %+v", got)
	}
	if db.Settings[dbsetting.RevsLimit] != 1000 {
		t.Error("a change reached a database that was handed out")
	}
	if _, err := m.DeleteDatabase(ctx, "films"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		m.Set(ctx, whichever("films"), dbsetting.RevsLimit, 7),
		m.SetSecurity(ctx, whichever("films"), nil),
		second(m.DeleteDatabase(ctx, "films")),
		second(m.Require(ctx, "films")),
	} {
		wantKind(t, err, fault.NotFound)
	}
}

func second[T any](_ T, err error) error { return err }

func TestRefusals(t *testing.T) {
	m, _ := start(t, Options{})
	ctx := t.Context()
	for _, c := range []struct {
		create Create
		want   fault.Kind
	}{
		{Create{Name: "Films", Q: 1, N: 1}, fault.IllegalDatabaseName},
		{Create{Name: strings.Repeat("x", 300), Q: 1, N: 1}, fault.DatabaseNameTooLong},
		{Create{Name: "films", Q: 0, N: 1}, fault.BadRequest},
		{Create{Name: "films", Q: ring.MaxQ + 1, N: 1}, fault.BadRequest},
		{Create{Name: "films", Q: 1, N: 0}, fault.BadRequest},
		{Create{Name: "films", Q: 1, Placement: ring.Placement{{Zone: "z", N: 1}}}, fault.Unavailable},
		{Create{Name: "films", Q: 1, N: 1, Security: make([]byte, maxSecurity+1)}, fault.RequestTooLarge},
	} {
		_, err := m.CreateDatabase(ctx, c.create)
		wantKind(t, err, c.want)
	}
	large := ConfigChange{Section: "log", Key: "file", Value: strings.Repeat("x", maxSetting)}
	wantKind(t, second(m.Config.Set(ctx, large)), fault.RequestTooLarge)
	wantKind(t, m.Set(ctx, whichever("films"), dbsetting.RevsLimit, 0), fault.BadRequest)
	wantKind(t, m.Set(ctx, whichever("films"), dbsetting.PurgedInfosLimit, 0), fault.BadRequest)
	wantKind(t, m.PutNode(ctx, Node{}), fault.BadRequest)
	wantKind(t, m.RemoveNode(ctx, "nobody@nowhere"), fault.NotFound)
	if m.Databases().Len() != 0 {
		t.Error("a refused creation left something")
	}
}

// The largest security object that is accepted can be read back from a
// snapshot; a larger one is refused and changes nothing.
func TestLargestSecurity(t *testing.T) {
	stores := memoryStores()
	m, stop := start(t, Options{Stores: stores})
	create(t, m, "films")
	object := func(n int) []byte { return []byte(`{"x":"` + strings.Repeat("x", n-8) + `"}`) }
	for _, n := range []int{maxSecurity + 1, maxCommand - 64, maxCommand + 1} {
		wantKind(t, m.SetSecurity(t.Context(), whichever("films"), object(n)), fault.RequestTooLarge)
	}
	if db, _ := m.Database("films"); db.Security != nil {
		t.Error("a refused object is there")
	}
	if err := m.SetSecurity(t.Context(), whichever("films"), object(maxSecurity)); err != nil {
		t.Fatal(err)
	}
	if err := m.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	stop()
	m, _ = start(t, Options{Stores: stores})
	if db, ok := m.Database("films"); !ok || len(db.Security) != maxSecurity {
		t.Error("the security object did not come back")
	}
}

// A database that is made again gets another suffix even within the second.
func TestSuffixesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := start(t, Options{})
		last := int64(0)
		for range 5 {
			db := create(t, m, "films")
			if db.Created <= last {
				t.Fatalf("suffix %d after %d", db.Created, last)
			}
			last = db.Created
			if _, err := m.DeleteDatabase(t.Context(), "films"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestBubbleStartsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		m, _ := start(t, Options{})
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("a node alone took %v to start", took)
		}
		create(t, m, "films")
		time.Sleep(time.Hour)
		create(t, m, "books")
		if err := m.CatchUp(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRestartOnDisk(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	m, stop := start(t, Options{Dir: dir})
	uuid, secret := m.UUID(), m.Config.settings.Load().ChttpdAuth.Secret
	if len(uuid) != 32 || len(secret) != 32 {
		t.Fatalf("uuid %q, secret %q", uuid, secret)
	}
	create(t, m, "kept")
	gone := create(t, m, "gone")
	if _, err := m.DeleteDatabase(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	if err := m.SetSecurity(ctx, whichever("kept"), []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Config.Set(ctx, ConfigChange{Section: "log", Key: "level", Value: "debug"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Config.Delete(ctx, ConfigChange{Section: "cluster", Key: "q"}); err != nil {
		t.Fatal(err)
	}
	stop()
	wantKind(t, second(m.CreateDatabase(ctx, Create{Name: "late", Q: 1, N: 1})), fault.Closed)

	m, _ = start(t, Options{Dir: dir})
	if m.UUID() != uuid || m.Config.settings.Load().ChttpdAuth.Secret != secret {
		t.Error("another identity after the restart")
	}
	db, ok := m.Database("kept")
	if !ok || string(db.Security) != `{"a":1}` || m.Databases().Len() != 1 {
		t.Errorf("after the restart: %+v, %d databases", db, m.Databases().Len())
	}
	if m.Config.settings.Load().Log.Level != "debug" {
		t.Error("the configuration was lost")
	}
	if v, ok := m.Config.settings.Load().Get("cluster", "q"); ok {
		t.Errorf("a deleted key is back: %q", v)
	}
	if db := create(t, m, "gone"); db.Created <= gone.Created {
		t.Errorf("suffix %d again after %d", db.Created, gone.Created)
	}
}

func TestOtherNameIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, stop := start(t, Options{Dir: dir})
	stop()
	m, err := New(Options{Dir: dir, Self: Node{Name: "other@127.0.0.1"}, Config: holder(t, config.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), self) {
		t.Errorf("run under another name: %v", err)
	}
	wantKind(t, m.WaitReady(t.Context()), fault.Closed)
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	start(t, Options{Dir: dir})
	m, err := New(Options{Dir: dir, Self: Node{Name: self}, Config: holder(t, config.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second process on the directory: %v", err)
	}
}

// Without a group a node answers at once that it cannot decide.
func TestNoGroup(t *testing.T) {
	m, err := New(Options{Self: Node{Name: self}, Config: holder(t, config.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wantKind(t, second(m.CreateDatabase(ctx, Create{Name: "a", Q: 1, N: 1})), fault.Unavailable)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	wantKind(t, second(m.Require(ctx, "a")), fault.Unavailable)
	wantKind(t, second(m.Config.Set(ctx, ConfigChange{Section: "a", Key: "b", Value: "c"})), fault.Unavailable)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := m.WaitReady(ctx); err == nil {
		t.Error("ready without a group")
	}
}

// Of many creations of one name exactly one succeeds; the others are told that
// it exists.
func TestConcurrentCreations(t *testing.T) {
	m, _ := start(t, Options{})
	const names, clients = 20, 8
	var wg sync.WaitGroup
	wins := make([][names]bool, clients)
	for c := range clients {
		wg.Go(func() {
			for n := range names {
				_, err := m.CreateDatabase(t.Context(), Create{Name: fmt.Sprintf("db%d", n), Q: 2, N: 1})
				wins[c][n] = err == nil
				if err != nil && !fault.Is(err, fault.Exists) {
					t.Error(err)
				}
				if _, ok := m.Database(fmt.Sprintf("db%d", n)); !ok {
					t.Error("an answered creation is not visible here")
				}
			}
		})
	}
	wg.Wait()
	for n := range names {
		count := 0
		for c := range clients {
			if wins[c][n] {
				count++
			}
		}
		if count != 1 {
			t.Errorf("db%d was created %d times", n, count)
		}
	}
	if m.Databases().Len() != names {
		t.Errorf("%d databases", m.Databases().Len())
	}
}

func TestCanceledContext(t *testing.T) {
	m, _ := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.CreateDatabase(ctx, Create{Name: "a", Q: 1, N: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	if _, err := m.Require(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("require: %v", err)
	}
}

// unknownCommand is one that a later version may have.
func unknownCommand() []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 999, protowire.BytesType), []byte("what"))
}

// A log entry that this version does not understand stops the node.
func TestUnknownEntryStops(t *testing.T) {
	m, err := New(Options{Self: Node{Name: self}, Config: holder(t, config.Options{}), Bootstrap: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(t.Context()) }()
	if err := m.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := m.raft.Load().Apply(unknownCommand(), time.Second)
	if err := f.Error(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, errMalformed) || !strings.Contains(err.Error(), "a newer version wrote it") {
		t.Errorf("run ended with %v", err)
	}
}

func TestNodes(t *testing.T) {
	m, _ := start(t, Options{Self: Node{Name: self, HTTP: "127.0.0.1:5984", Zone: "z1"}})
	ctx := t.Context()
	for _, n := range []Node{{Name: "c@c", Zone: "z2"}, {Name: "b@b", Draining: true}, {Name: "c@c", Zone: "z2", HTTP: "c:1"}} {
		n.ClusterVersion = ClusterVersion
		if err := m.PutNode(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	got := m.Nodes()
	if len(got) != 3 || got[0].Name != "b@b" || got[1] != (Node{Name: "c@c", Zone: "z2", HTTP: "c:1", ClusterVersion: ClusterVersion}) || got[2].Zone != "z1" {
		t.Errorf("nodes %+v", got)
	}
	db, err := m.CreateDatabase(ctx, Create{Name: "films", Q: 4, N: 5})
	if err != nil {
		t.Fatal(err)
	}
	if db.N != 2 || db.Shards[0].On("b@b") {
		t.Errorf("placed %+v", db.Shards)
	}
	if err := m.RemoveNode(ctx, "c@c"); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Node("c@c"); ok {
		t.Error("a dropped node is still a member")
	}
}

// memoryStores survive a restart of the Meta on them.
func memoryStores() *Stores {
	mem := raft.NewInmemStore()
	return &Stores{Log: mem, Stable: mem, Snapshots: raft.NewInmemSnapshotStore()}
}

func TestSnapshotAndRestart(t *testing.T) {
	stores := memoryStores()
	m, stop := start(t, Options{Stores: stores})
	for i := range 50 {
		create(t, m, fmt.Sprintf("db%d", i))
	}
	if _, err := m.DeleteDatabase(t.Context(), "db7"); err != nil {
		t.Fatal(err)
	}
	if err := m.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	create(t, m, "after")
	want := dump(m.fsm)
	stop()
	m, _ = start(t, Options{Stores: stores})
	if got := dump(m.fsm); got != want {
		t.Errorf("restored\n%s\nwant\n%s", got, want)
	}
}
