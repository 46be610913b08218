// Package workload is the clients of a test of a cluster: they do random
// things through random nodes and note what they were told.
package workload

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"divan/test/sim/history"
)

// Target is a node that can be asked.
type Target struct {
	Name string
	URL  string // http://host:port
}

// Options configures the clients.
type Options struct {
	Log            *history.Log
	Clock          func() time.Duration // since the start of the run
	Targets        func() []Target      // at least one
	HTTP           *http.Client
	User, Password string
	Databases      []string      // that are there and stay
	Temporary      []string      // names of databases that come and go
	Once           string        // prefix of names that are used only once
	Pause          time.Duration // between two requests, on average
	Timeout        time.Duration // of a request
}

// quorum is r and w of databases with three copies.
const quorum = 2

// Client is one client. It is used by one goroutine.
type Client struct {
	*asker
	feeds     *feeds
	registers *registers
	metadata  *metadata
	views     *views
	known     map[string][]string          // by database/id: revisions, the latest last
	paths     map[string][]string          // by database/id/rev: its ancestors down to the first, newest first
	atts      map[string]map[string]string // by database/id/rev: name → sum of all attachments
}

// New returns client number id of the options.
func New(o Options, id int, rng *rand.Rand) *Client {
	a := &asker{Options: o, id: id, rng: rng}
	return &Client{
		asker: a, feeds: &feeds{a, map[string]history.Since{}}, registers: &registers{asker: a}, metadata: &metadata{a}, views: &views{a},
		known: map[string][]string{}, paths: map[string][]string{}, atts: map[string]map[string]string{},
	}
}

// Run does random things until ctx ends.
func (c *Client) Run(ctx context.Context) {
	for ctx.Err() == nil {
		c.Step(ctx)
		wait := time.NewTimer(time.Duration(c.rng.Int64N(int64(2 * c.Pause))))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
}

// Step does one random thing.
func (c *Client) Step(ctx context.Context) {
	works := []struct {
		weight int
		do     func(ctx context.Context, db string)
	}{
		{22, c.put},
		{5, c.remove},
		{8, c.bulk},
		{6, c.replicate},
		{8, c.attach},
		{3, c.readAttachment},
		{16, c.read},
		{3, c.readAll},
		{3, c.list},
		{2, c.diff},
		{8, c.views.read},
		{12, c.feeds.read},
		{4, c.registers.write},
		{3, c.registers.read},
		{12, c.purge},
		{1, c.compact},
		{14, c.metadata.operateAny},
	}
	total := 0
	for _, w := range works {
		total += w.weight
	}
	db := c.Databases[c.rng.IntN(len(c.Databases))]
	n := c.rng.IntN(total)
	for _, w := range works {
		if n -= w.weight; n < 0 {
			w.do(ctx, db)
			return
		}
	}
}

// learn remembers a revision as the latest that this client knows.
func (c *Client) learn(db, id string, revs ...string) {
	const keep = 6
	key := db + "/" + id
	all := append(c.known[key], revs...)
	c.known[key] = all[max(0, len(all)-keep):]
}

// remember notes the ancestors of a revision if they are all there: histories
// that were cut cannot be joined again on every copy.
func (c *Client) remember(db, id, rev string, ancestors []string) {
	first := rev
	if len(ancestors) > 0 {
		first = ancestors[len(ancestors)-1]
	}
	if strings.HasPrefix(first, "1-") {
		c.paths[db+"/"+id+"/"+rev] = ancestors
	}
}

// parent chooses the revision to name in an edit: mostly the latest, sometimes
// an old one or none.
func (c *Client) parent(db, id string) string {
	revs := c.known[db+"/"+id]
	switch {
	case len(revs) == 0 || c.rng.IntN(12) == 0:
		return ""
	case c.rng.IntN(8) == 0:
		return revs[c.rng.IntN(len(revs))]
	}
	return revs[len(revs)-1]
}
