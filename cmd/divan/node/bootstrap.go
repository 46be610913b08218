package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi"
	"divan/storage/pause"
)

const (
	serviceSeed = "seed"          // the service of a node that tells whether it belongs to a cluster
	seedTimeout = 2 * time.Second // for its answer
	seedAgain   = time.Second     // after which those of the seed list are asked again
)

// seedAnswer is a node's answer to the question whether it belongs to a cluster.
type seedAnswer struct {
	Member bool              `json:"member"`
	UUID   string            `json:"uuid,omitempty"`  // of the cluster
	Nodes  map[string]string `json:"nodes,omitempty"` // its members, with their addresses
}

// heard is the outcome of asking one node.
type heard struct {
	seedAnswer
	at  time.Time // zero: not asked
	err error
}

func (h heard) answered() bool { return !h.at.IsZero() && h.err == nil }

// verdict is how a node without metadata becomes part of a cluster.
type verdict struct {
	found   bool     // found the cluster
	join    []string // nodes to join through
	trouble string   // why it can do neither, if that calls for an operator; else it has to ask again
}

// decideBootstrap decides for a node with a seed list. seeds is the list in its
// order, uuid the cluster that the node belonged to when it still had its
// metadata, empty if none. The first of the list founds the cluster, and only
// when every other one has said that it belongs to none: so no two nodes found
// one, and a node that lost its disk does not found another.
func decideBootstrap(self, uuid string, seeds []string, answers map[string]heard) verdict {
	var v verdict
	found := uuid
	for _, seed := range slices.Sorted(maps.Keys(answers)) {
		a := answers[seed]
		switch {
		case !a.answered() || !a.Member:
		case found != "" && a.UUID != found:
			return verdict{trouble: fmt.Sprintf("%s belongs to cluster %s, which is not %s", seed, a.UUID, found)}
		default:
			found = a.UUID
			v.join = append(v.join, seed)
		}
	}
	if len(v.join) > 0 {
		return v
	}
	if uuid != "" || len(seeds) == 0 || seeds[0] != self {
		return v
	}
	for _, seed := range seeds {
		if seed != self && !answers[seed].answered() {
			return v
		}
	}
	return verdict{found: true}
}

// bootstrapper finds out how this node becomes part of a cluster.
type bootstrapper struct {
	self  string
	seeds []string // the seed list, names in its order; empty: there is none
	ask   func(ctx context.Context, node, service string, request []byte) ([]byte, error)
	// occupied reports whether a node other than this one answers at the
	// address of a cluster port.
	occupied func(ctx context.Context, address string) bool
	id       *identityStore
	log      *zap.Logger

	begun         chan struct{} // closed when it is known whether there is metadata on disk
	onceBegun     sync.Once
	undecided     chan struct{} // closed when the seeds were asked once and could not decide
	onceUndecided sync.Once
	looking       atomic.Bool // this node belongs to no cluster and asks the seeds for one
	mu            struct {
		sync.Mutex
		answers map[string]heard
	}
}

func newBootstrapper(self string, seeds []string, id *identityStore, log *zap.Logger) *bootstrapper {
	f := &bootstrapper{self: self, id: id, log: log, begun: make(chan struct{}), undecided: make(chan struct{})}
	for _, s := range seeds {
		if name, _, ok := config.ParseSeed(s); ok && !slices.Contains(f.seeds, name) {
			f.seeds = append(f.seeds, name)
		}
	}
	f.mu.answers = map[string]heard{}
	return f
}

// begin notes that it is known whether there is metadata on disk.
func (f *bootstrapper) begin() { f.onceBegun.Do(func() { close(f.begun) }) }

// free reports whether this node certainly belongs to no cluster, once that is
// known: it has neither metadata nor an identity, and still looks for others.
func (f *bootstrapper) free(ctx context.Context) bool {
	select {
	case <-f.begun:
		return f.looking.Load()
	case <-ctx.Done():
		return false
	}
}

// found is asked by the metadata when there is none on disk.
func (f *bootstrapper) found(ctx context.Context) (meta.BootstrapPlan, error) {
	defer f.begin()
	id := f.id.load()
	if id.UUID != "" && (id.Invited || len(id.others(f.self)) > 0) {
		// Invited, or the metadata were lost: the others have them.
		return meta.BootstrapPlan{Seeds: id.others(f.self)}, nil
	}
	if len(f.seeds) == 0 {
		return meta.BootstrapPlan{New: true}, nil
	}
	f.looking.Store(id.UUID == "")
	defer f.looking.Store(false)
	f.begin()
	trouble := ""
	for {
		f.askAll(ctx)
		v := decideBootstrap(f.self, id.UUID, f.seeds, f.answers())
		if len(v.join) > 0 {
			v = f.checkName(ctx, v)
		}
		switch {
		case v.found:
			f.log.Info("no node of the seed list belongs to a cluster: this one founds it")
			return meta.BootstrapPlan{New: true}, nil
		case len(v.join) > 0:
			f.log.Info("join the cluster of the seed list", zap.Strings("through", v.join))
			return meta.BootstrapPlan{Seeds: v.join}, nil
		case v.trouble != trouble:
			f.log.Error("the seed list leads nowhere", zap.String("because", v.trouble))
		}
		trouble = v.trouble
		f.onceUndecided.Do(func() { close(f.undecided) })
		if pause.For(ctx, seedAgain) != nil {
			return meta.BootstrapPlan{}, ctx.Err()
		}
	}
}

// checkName refuses to join a cluster in which another node has this one's
// name: two nodes of a name would take each other's place in turn. A member of
// that name that does not answer is this node, before it lost its disk.
func (f *bootstrapper) checkName(ctx context.Context, v verdict) verdict {
	answers := f.answers()
	for _, seed := range v.join {
		if address := answers[seed].Nodes[f.self]; address != "" && f.occupied(ctx, address) {
			return verdict{trouble: fmt.Sprintf("the cluster has a node %s at %s; give this one another name", f.self, address)}
		}
	}
	return v
}

func (f *bootstrapper) answers() map[string]heard {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.mu.answers)
}

// askAll asks every other node of the seed list, all at once.
func (f *bootstrapper) askAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, seedTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for _, seed := range f.seeds {
		if seed == f.self {
			continue
		}
		asking.Go(func() {
			var h heard
			b, err := f.ask(ctx, seed, serviceSeed, nil)
			if err == nil {
				err = json.Unmarshal(b, &h.seedAnswer)
			}
			h.at, h.err = time.Now(), err
			f.mu.Lock()
			defer f.mu.Unlock()
			f.mu.answers[seed] = h
		})
	}
	asking.Wait()
}

// status returns the report of /_up about the seed list. A node that has no other node to
// join counts as joined while it founds its own cluster; one that was invited, or lost its
// metadata, has no seed list either and waits for the members it knows.
func (f *bootstrapper) status(joined bool) httpapi.SeedStatus {
	id := f.id.load()
	nobody := len(f.seeds) == 0 && !id.Invited && len(id.others(f.self)) == 0
	s := httpapi.SeedStatus{Joined: joined || nobody}
	for name, h := range f.answers() {
		seed := httpapi.Seed{Name: name, Asked: h.at, Answer: "ok"}
		if h.err != nil {
			seed.Answer = h.err.Error()
		}
		s.Seeds = append(s.Seeds, seed)
	}
	slices.SortFunc(s.Seeds, func(a, b httpapi.Seed) int { return strings.Compare(a.Name, b.Name) })
	return s
}
