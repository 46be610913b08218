package designdocs

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"divan/shard"
	"divan/shard/script"
	"divan/storage/doc"
	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// one returns the documents of a database that has one.
func one(scripts *script.Engine, rev uint64, body string) *set {
	d := &shard.Doc{ID: "_design/d", Rev: doc.Rev{Pos: rev, ID: "a"}, Body: []byte(body)}
	return newSet([][]*Document{{newDocument(scripts, "db", d)}})
}

// begin starts a load for an entry.
func begin(c *Cache, tail string) (*entry, *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entryLocked(tail)
	e.flight = &flight{done: make(chan struct{})}
	return e, e.flight
}

// A read that finds what it needs is a hit, one that has to wait for a load is none.
func TestReads(t *testing.T) {
	c := New(Options{})
	const tail = "/db.1763600000"
	e, f := begin(c, tail)
	waits, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.read(waits, tail, "db"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, err := c.fly(t.Context(), e, f, func(context.Context) (*set, error) { return one(nil, 1, `{}`), nil })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.read(t.Context(), tail, "db"); err != nil {
			t.Fatal(err)
		}
	}
	if hits, misses := c.Reads(); hits != 2 || misses != 1 {
		t.Errorf("%d hits, %d misses", hits, misses)
	}
}

// A load that a drop has overtaken is given to the callers that waited for it already, and to no
// other ones.
func TestOvertakenLoadsAreNotKept(t *testing.T) {
	c := New(Options{})
	const tail = "/db.1763600000"
	for _, drop := range []func(){
		func() { c.Drop("shards/00000000-ffffffff" + tail) },
		func() { c.changed("n2", false) },
		func() { c.changed("n2", true) },
		func() {
			if _, err := c.Answer(t.Context(), "n2", []byte(tail)); err != nil {
				t.Error(err)
			}
		},
	} {
		e, f := begin(c, tail)
		got, err := c.fly(t.Context(), e, f, func(context.Context) (*set, error) {
			drop()
			return one(nil, 1, `{}`), nil
		})
		if err != nil || len(got.all) != 1 {
			t.Errorf("who waited got %v, %v", got, err)
		}
		if e.valid || e.flight != nil {
			t.Error("an overtaken load was kept")
		}
		e, f = begin(c, tail)
		later := &flight{}
		if _, err := c.fly(t.Context(), e, f, func(context.Context) (*set, error) {
			drop()
			e.flight = later // a read after the drop has begun to load
			return one(nil, 1, `{}`), nil
		}); err != nil || e.valid || e.flight != later {
			t.Errorf("an overtaken load has ended a later one: %v", err)
		}
	}
	e, f := begin(c, tail)
	if _, err := c.fly(t.Context(), e, f, func(context.Context) (*set, error) { return one(nil, 2, `{}`), nil }); err != nil || !e.valid {
		t.Errorf("a load was not kept: %v", err)
	}
}

// A load that fails is tried again by the next read; who waits is told.
func TestFailedLoads(t *testing.T) {
	c := New(Options{})
	e, f := begin(c, "/db.1763600000")
	failure := errors.New("no copy")
	if _, err := c.fly(t.Context(), e, f, func(context.Context) (*set, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
	if e.valid || e.flight != nil || f.err == nil {
		t.Errorf("%+v", e)
	}
	e, f = begin(c, "/db.1763600000")
	func() {
		defer func() { _ = recover() }()
		_, _ = c.fly(t.Context(), e, f, func(context.Context) (*set, error) { panic("broken") })
	}()
	<-f.done
	if !fault.Is(f.err, fault.Internal) || e.flight != nil {
		t.Errorf("after a panic: %v", f.err)
	}
}

// The texts that are kept are bounded; what was used last stays.
func TestBound(t *testing.T) {
	c := New(Options{})
	text := `{"a":"` + string(make([]byte, 1<<20)) + `"}`
	for i := range 100 {
		e, f := begin(c, fmt.Sprint("/db.", i))
		if _, err := c.fly(t.Context(), e, f, func(context.Context) (*set, error) { return one(nil, 1, text), nil }); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.entryLocked("/db.0")
		c.mu.Unlock()
	}
	kept := c.mu.entries.Len()
	if !c.mu.entries.Contains("/db.0") || !c.mu.entries.Contains("/db.99") || c.mu.bytes > maxBytes || kept < 20 || kept > 40 {
		t.Errorf("%d entries of %d bytes", kept, c.mu.bytes)
	}
}

// A document that has not changed is not parsed again, and its functions stay.
func TestUnchangedDocumentsStay(t *testing.T) {
	before := one(nil, 1, `{"validate_doc_update":"x"}`)
	d := before.all[0]
	found := &shard.Doc{ID: d.ID, Rev: d.Rev, Body: d.Body}
	later := &shard.Doc{ID: d.ID, Rev: doc.Rev{Pos: 2, ID: "a"}, Body: d.Body}
	other := &shard.Doc{ID: d.ID, Rev: d.Rev, Body: []byte(`{"other":1}`)}
	if before.same(found) != d || before.same(later) != nil || before.same(other) != nil || (*set)(nil).same(found) != nil {
		t.Error("the wrong document")
	}
	if len(before.validating) != 1 || len(one(nil, 1, `{"validate_doc_update":null}`).validating) != 0 || len(one(nil, 1, `{}`).validating) != 0 {
		t.Error("which documents validate")
	}
}

func TestDocument(t *testing.T) {
	scripts := script.New(script.Options{})
	defer func() { _ = scripts.Close() }()
	d := one(scripts, 3, `{"language":"javascript","views":{"v":{"map":"function (doc) { emit(1); }"}},"filters":{"f":"function (d) { return this._rev === '3-a' && d.n > 1; }"}}`).all[0]
	if d.Name() != "d" || string(d.Member("views", "v")) == "" || d.Member("views", "w") != nil || d.Member("shows", "x") != nil {
		t.Errorf("%+v", d)
	}
	for _, partitioned := range []bool{false, true} {
		def, err := d.Definition(partitioned)
		if err != nil || len(def.Views) != 1 || def.Partitioned != partitioned {
			t.Errorf("%v: %+v, %v", partitioned, def, err)
		}
	}
	pass, err := d.Functions().Filter(t.Context(), "f", [][]byte{[]byte(`{"n":1}`), []byte(`{"n":2}`)}, []byte("{}"))
	if err != nil || fmt.Sprint(pass) != "[false true]" {
		t.Errorf("%v, %v", pass, err)
	}
}

// What validation functions see of a document, its predecessor, the user and the
// database.
func TestValidate(t *testing.T) {
	scripts := script.New(script.Options{})
	defer func() { _ = scripts.Close() }()
	s := one(scripts, 1, `{"validate_doc_update":"function (n, o, u, s) { throw({forbidden: JSON.stringify([n, o, u, s])}); }"}`)
	rev := doc.Rev{Pos: 1, ID: "a"}
	for _, tt := range []struct {
		r    shard.ValidateRequest
		want string
	}{
		{
			shard.ValidateRequest{DB: "db", User: shard.User{Anonymous: true}, New: &shard.Doc{ID: "x\"", Body: []byte(`{"n":1}`)}},
			`[{"_id":"x\"","n":1},null,{"db":"db","name":null,"roles":[]},{}]`,
		},
		{
			shard.ValidateRequest{
				DB: "db", User: shard.User{Name: "jan", Roles: []string{"a", "b"}}, Security: []byte(`{"own":1}`),
				New: &shard.Doc{ID: "x", Rev: rev, Deleted: true, Body: []byte(`{}`), Revisions: doc.Path{Start: 1, IDs: []string{rev.ID}}},
				Old: &shard.Doc{ID: "x", Rev: rev, Body: []byte(`{"n":0}`), Revisions: doc.Path{Start: 1, IDs: []string{rev.ID}}},
			},
			`[{"_id":"x","_rev":"1-a","_deleted":true,"_revisions":{"start":1,"ids":["a"]}},` +
				`{"_id":"x","_rev":"1-a","n":0,"_revisions":{"start":1,"ids":["a"]}},{"db":"db","name":"jan","roles":["a","b"]},{"own":1}]`,
		},
	} {
		if err := validate(t.Context(), s.validating, tt.r); !fault.Is(err, fault.Forbidden) || fault.Reason(err) != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	broken := one(scripts, 2, `{"validate_doc_update":"function ("}`)
	if err := validate(t.Context(), broken.validating, shard.ValidateRequest{New: &shard.Doc{ID: "x", Body: []byte(`{}`)}}); err == nil {
		t.Error("a function that does not compile lets a document through")
	}
	endless := script.New(script.Options{Timeout: func() time.Duration { return 50 * time.Millisecond }})
	defer func() { _ = endless.Close() }()
	loop := one(endless, 3, `{"validate_doc_update":"function () { for (;;) { } }"}`)
	if err := validate(t.Context(), loop.validating, shard.ValidateRequest{New: &shard.Doc{ID: "x", Body: []byte(`{}`)}}); err == nil {
		t.Error("a function that does not end lets a document through")
	}
}

// Where a design document that a database ought to have is not there, its function
// counts all the same; one of that id counts instead of it, and so does none in it.
func TestStandardDocument(t *testing.T) {
	scripts := script.New(script.Options{})
	defer func() {
		if err := scripts.Close(); err != nil {
			t.Error(err)
		}
	}()
	refusing := func(text string) string {
		return `{"validate_doc_update":"function () { throw({forbidden: '` + text + `'}); }"}`
	}
	c := New(Options{Scripts: scripts, Standard: func(db string) *shard.Doc {
		if db != "db" {
			return nil
		}
		return &shard.Doc{ID: "_design/d", Body: []byte(refusing("standard"))}
	}})
	for i, tc := range []struct {
		db   string
		docs *set
		want string
	}{
		{"db", newSet(nil), "standard"},
		{"db", one(scripts, 1, refusing("own")), "own"},
		{"db", one(scripts, 1, `{}`), ""},
		{"other", newSet(nil), ""},
	} {
		tail := fmt.Sprintf("/%s.%d", tc.db, i)
		e, f := begin(c, tail)
		if _, err := c.fly(t.Context(), e, f, func(context.Context) (*set, error) { return tc.docs, nil }); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			judge, err := c.Validator(t.Context(), "shards/00000000-ffffffff"+tail, tc.db)
			if err != nil {
				t.Fatal(err)
			}
			if judge != nil {
				err = judge(t.Context(), shard.ValidateRequest{DB: tc.db, New: &shard.Doc{ID: "x", Body: []byte(`{}`)}})
			}
			if got := fault.Reason(err); got != tc.want {
				t.Errorf("%s %d: %q, want %q", tc.db, i, got, tc.want)
			}
		}
	}
}
