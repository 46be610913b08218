package apitest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/designdocs"
	"divan/cluster/indexes"
	"divan/cluster/meta"
	"divan/cluster/setup"
	clusterview "divan/cluster/view"
	"divan/httpapi/auth"
	"divan/httpapi/core"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/query"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/indexer"
	"divan/shard/search/postings"
	"divan/shard/view"
	"divan/storage"
	"divan/storage/fault"
)

// noUsers is an authentication database without documents.
type noUsers struct{}

func (noUsers) Get(context.Context, string, string) (auth.UserDoc, error) {
	return auth.UserDoc{}, fault.New(fault.NotFound, "missing")
}

func (noUsers) Put(context.Context, string, auth.UserDoc) error {
	return fault.New(fault.NotFound, "missing")
}

func (noUsers) Watch(context.Context, string, func(), func(string)) error { return nil }

// storedUsers reads the user documents of a coordinator.
type storedUsers struct{ c *cluster.Coordinator }

func (s storedUsers) Get(ctx context.Context, db, name string) (auth.UserDoc, error) {
	d, err := s.c.DB(ctx, db)
	if err != nil {
		return auth.UserDoc{}, err
	}
	got, err := d.Open(ctx, cluster.OpenOptions{ID: auth.UserPrefix + name, Conflicts: true})
	if err != nil {
		return auth.UserDoc{}, err
	}
	return auth.UserDoc{Name: name, Rev: got.Rev, Body: got.Body, Conflicted: len(got.Conflicts) > 0}, nil
}

func (s storedUsers) Put(context.Context, string, auth.UserDoc) error { return nil }

func (s storedUsers) Watch(context.Context, string, func(), func(string)) error { return nil }

// FrontDeps are the dependencies of an API without databases: enough for every request
// that is answered before a database is looked at. The administrator is adm with password
// pass.
func FrontDeps(tb testing.TB, values config.Values) core.Deps {
	tb.Helper()
	holder := configured(tb, "-hashed-0e4a5b8e8a0ab13f6a6d3b4d2c3b9f4a40f1b1d6,salt", values)
	m, err := meta.New(meta.Options{Self: meta.Node{Name: "divan@127.0.0.1"}, Config: holder})
	Must(tb, err)
	return core.Deps{
		Coordinator: &cluster.Coordinator{}, Meta: m, Config: holder, Logger: zap.NewNop(), Version: "0.1.0",
		Designs: designdocs.New(designdocs.Options{}), Scripts: script.New(script.Options{}),
		Auth: auth.New(auth.Options{Config: holder, Users: noUsers{}, Logger: zap.NewNop()}),
	}
}

// NodeDeps are the dependencies of the API of a whole node: a file system in memory, one
// copy of each shard, a Raft group of one, and the administrator adm with password pass.
func NodeDeps(tb testing.TB, name string, values config.Values) core.Deps {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var running sync.WaitGroup
	run := func(what string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil {
				tb.Errorf("%s: %v", what, err)
			}
		})
	}
	stored, err := auth.HashAdmin(ctx, "pass", "pbkdf2", "sha256", 1)
	Must(tb, err)
	holder := configured(tb, stored, values)
	engine, err := storage.NewEngine(storage.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20, JoinIndex: postings.Join})
	Must(tb, err)
	scripts := script.New(script.Options{})
	var coordinator *cluster.Coordinator
	designs := designdocs.New(designdocs.Options{
		Scripts: scripts, BuiltIn: auth.Rules, Standard: auth.Standard(holder),
		DB: func(ctx context.Context, name string) (*cluster.DB, error) { return coordinator.DB(ctx, name) },
	})
	local := shard.New(shard.Options{
		Engine: engine, Validator: designs.Validator, CompileFunction: designs.Filter, OnDesignDoc: designs.Drop,
		CompileSelector: func(text []byte) (shard.BatchMatcher, error) { return query.Compile(text, nil) },
	})
	manager := index.New(index.Options{Engine: engine, Shards: local})
	views := view.New(view.Options{Indexes: manager, Shards: local, Scripts: scripts})
	searches := search.New(manager, indexer.New(scripts))
	run("indexes", manager.Run)
	group, err := meta.New(meta.Options{Self: meta.Node{Name: name}, Bootstrap: true, Config: holder})
	Must(tb, err)
	run("metadata", group.Run)
	wait, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	Must(tb, group.WaitReady(wait))
	coordinator, err = cluster.New(cluster.Options{
		NodeName: group.Self(), Meta: group, Config: holder, Local: local, Indexes: manager, Views: views, Searches: searches, Logger: zap.NewNop(), DesignWritten: designs.Written,
	})
	Must(tb, err)
	run("coordinator", coordinator.Run)
	queries, err := clusterview.New(clusterview.Options{Coordinator: coordinator, Config: holder, Designs: designs, Indexes: views, Logger: zap.NewNop()})
	Must(tb, err)
	kept, err := indexes.New(indexes.Options{Coordinator: coordinator, Designs: designs, Manager: manager, Logger: zap.NewNop()})
	Must(tb, err)
	tb.Cleanup(func() {
		Must(tb, coordinator.Close())
		cancel()
		running.Wait()
		Must(tb, designs.Close())
		Must(tb, manager.Close())
		Must(tb, local.Close())
		Must(tb, scripts.Close())
		Must(tb, engine.Close())
	})
	for _, name := range setup.SystemDatabases() {
		Must(tb, coordinator.CreateDB(ctx, name, cluster.CreateOptions{}))
	}
	return core.Deps{
		Coordinator: coordinator, Meta: group, Config: holder, Logger: zap.NewNop(), Version: "0.1.0",
		Designs: designs, Scripts: scripts, Views: queries, Indexes: kept,
		Auth: auth.New(auth.Options{Config: holder, Users: storedUsers{coordinator}, Logger: zap.NewNop()}),
	}
}

// configured is the configuration of a node of its own with the administrator
// adm, whose password is stored as given; values come on top.
func configured(tb testing.TB, stored string, values config.Values) *config.Holder {
	tb.Helper()
	flags := config.Values{
		"couchdb": {"single_node": "true"}, "chttpd_auth": {"iterations": "1"}, "admins": {"adm": stored},
	}
	for section, keys := range values {
		if flags[section] == nil {
			flags[section] = map[string]string{}
		}
		for k, v := range keys {
			flags[section][k] = v
		}
	}
	holder, err := config.New(config.Options{
		Flags: flags,
		Hash: func(password string) (string, error) {
			return auth.HashAdmin(context.WithoutCancel(tb.Context()), password, "pbkdf2", "sha256", 1)
		},
	})
	Must(tb, err)
	return holder
}

// Ask sends a request to an API and returns the answer. The line is "METHOD
// target", headers are "Name: value".
func Ask(tb testing.TB, h http.Handler, line, body string, headers ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := Request(tb, line, body, headers)
	if body == "" {
		r.Body = http.NoBody
		r.ContentLength = 0
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
