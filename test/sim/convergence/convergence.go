// Package convergence checks a cluster when its clients have done their work and nothing
// is broken any more: whether the copies have become the same, what the feeds hold from
// sequences that were handed out, and where the copies are.
package convergence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"divan/storage/pause"
	"divan/test/sim/history"
	"divan/test/sim/workload"
)

const (
	requestTimeout = 30 * time.Second
	retryEvery     = 500 * time.Millisecond
	quiet          = 10 * time.Second // how long no node must have had anything left to push
)

// Asker asks nodes as the administrator.
type Asker struct {
	HTTP           *http.Client
	User, Password string
}

// Get reads JSON from a node.
func (a Asker) Get(ctx context.Context, node workload.Target, path string, out any) error {
	return a.Send(ctx, node, Request{Method: http.MethodGet, Path: path}, out)
}

// Request is a request to a node.
type Request struct {
	Method, Path, Body string
}

// Send sends a request to a node and decodes the answer, which out may be nil
// for.
func (a Asker) Send(ctx context.Context, node workload.Target, r Request, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, node.URL+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	req.SetBasicAuth(a.User, a.Password)
	req.Header.Set("Content-Type", "application/json")
	res, err := a.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s through %s: %w", r.Method, r.Path, node.Name, &status{res.StatusCode, text.String()})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text.Bytes(), out); err != nil {
		return fmt.Errorf("%s %s through %s: %w", r.Method, r.Path, node.Name, err)
	}
	return nil
}

// status is an answer that is none.
type status struct {
	code int
	text string
}

func (s *status) Error() string { return fmt.Sprintf("%d %.200s", s.code, s.text) }

// Refused reports whether an error is that what was asked must not be or is there already.
func Refused(err error) bool {
	s := (*status)(nil)
	return errors.As(err, &s) && (s.code < http.StatusInternalServerError || strings.Contains(s.text, `"error":"job_already_exists"`))
}

// Until tries again each half second until f has no error, at most for so
// long; the error is f's last one.
func Until(ctx context.Context, limit time.Duration, f func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := f()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		_ = pause.For(ctx, retryEvery) // the loop looks at ctx
	}
}

// Converge waits until no node has anything left to push to another.
func (a Asker) Converge(ctx context.Context, nodes []workload.Target, limit time.Duration) error {
	calm := time.Now()
	return Until(ctx, limit, func() error {
		for _, n := range nodes {
			var system struct {
				Jobs int `json:"internal_replication_jobs"`
			}
			err := a.Get(ctx, n, "/_node/_local/_system", &system)
			if err == nil && system.Jobs > 0 {
				err = fmt.Errorf("%s has %d jobs left", n.Name, system.Jobs)
			}
			if err != nil {
				calm = time.Now()
				return err
			}
		}
		if since := time.Since(calm); since < quiet {
			return fmt.Errorf("quiet only since %v", since)
		}
		return nil
	})
}

// Replay reads a feed again from sequences that were handed out, through
// random nodes.
func (a Asker) Replay(ctx context.Context, log *history.Log, db string, through func() workload.Target, rng *rand.Rand) {
	places := []history.Since{{Page: history.Beginning}}
	log.Note(func(h *history.History) { places = append(places, pick(h, db, rng)...) })
	for _, at := range places {
		var seq string
		log.Note(func(h *history.History) { seq = h.Sequence(at) })
		r := a.replayFrom(ctx, through(), history.Replay{DB: db, Since: at, Rows: map[string][]string{}}, seq)
		log.Note(func(h *history.History) { h.Replays = append(h.Replays, r) })
	}
}

// replays is how many sequences of each database are gone on from.
const replays = 12

// pick returns places in the feeds of a database.
func pick(h *history.History, db string, rng *rand.Rand) []history.Since {
	var places []history.Since
	for range 20 * replays {
		if len(places) == replays || len(h.Pages) == 0 {
			break
		}
		i := rng.IntN(len(h.Pages))
		p := &h.Pages[i]
		rows := rng.IntN(len(p.Rows) + 1)
		if p.DB == db && (rows > 0 || len(p.Rows) == 0 && p.Last != "") {
			places = append(places, history.Since{Page: i, Rows: rows})
		}
	}
	return places
}

func (a Asker) replayFrom(ctx context.Context, node workload.Target, r history.Replay, seq string) history.Replay {
	var answer json.RawMessage
	err := a.Get(ctx, node, "/"+r.DB+"/_changes?style=all_docs&since="+url.QueryEscape(seq), &answer)
	var rows []history.Row
	if err == nil {
		rows, _, err = workload.Rows(answer, false)
	}
	if err != nil {
		r.Err = err.Error()
	}
	for _, row := range rows {
		r.Rows[row.ID] = row.Leaves
	}
	return r
}

// Placement is where the copies of one database must be.
type Placement struct {
	Suffix string
	Nodes  map[string][]string // range → nodes
}

// Placements asks a node where the copies of all databases are.
func (a Asker) Placements(ctx context.Context, node workload.Target) (map[string]Placement, error) {
	var names []string
	if err := a.Get(ctx, node, "/_all_dbs", &names); err != nil {
		return nil, err
	}
	out := map[string]Placement{}
	for _, db := range names {
		var shards struct {
			Suffix  []int               `json:"shard_suffix"`
			ByRange map[string][]string `json:"by_range"`
		}
		if err := a.Get(ctx, node, "/_node/_local/_dbs/"+url.PathEscape(db), &shards); err != nil {
			return nil, err
		}
		var suffix strings.Builder
		for _, c := range shards.Suffix {
			suffix.WriteByte(byte(c))
		}
		out[db] = Placement{strings.TrimPrefix(suffix.String(), "."), shards.ByRange}
	}
	return out, nil
}

// MissingCopies names every copy that is to be somewhere and is not among those that
// were found.
func MissingCopies(wanted map[string]Placement, found []history.Copy) []string {
	there := make(map[[3]string]bool, len(found))
	for _, c := range found {
		there[[3]string{c.DB, c.Range, c.Node}] = true
	}
	var out []string
	for db, p := range wanted {
		for span, nodes := range p.Nodes {
			for _, name := range nodes {
				if !there[[3]string{db, span, name}] {
					out = append(out, fmt.Sprintf("%s has no copy of %s %s", name, db, span))
				}
			}
		}
	}
	return out
}

// StrayCopies names every copy that was found where none is to be.
func StrayCopies(wanted map[string]Placement, found []history.Copy) []string {
	var out []string
	for _, c := range found {
		if !slices.Contains(wanted[c.DB].Nodes[c.Range], c.Node) {
			out = append(out, fmt.Sprintf("%s has a copy of %s %s that is not in the map", c.Node, c.DB, c.Range))
		}
	}
	return out
}
