package migrate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"divan/replicator/endpoint"
	"divan/replicator/protocol"
	"divan/replicator/remote"
	"divan/replicator/spec"
	"divan/storage/doc"
)

// database is what is known of a database of the source. It belongs to whoever
// brings it.
type database struct {
	name      string
	source    info
	target    info
	through   endpoint.Seq // everything up to here is on the target
	left      int64        // changes of the source behind that; -1: it does not say
	complete  bool         // all that the source had when it was last looked at
	designs   bool         // it has design documents, or had some
	judges    []string     // of them, those that wait for the cut-over, as they validate documents
	own       uint64       // design documents that are left behind because the target has such rules itself
	refusals  refusals
	different []string // what is not the same here
	err       error    // why it could not be brought
	told      string   // the last trouble that was told while following
}

// has reports whether everything is here that the source has.
func (db *database) has(source info) bool {
	return db.complete && bytes.Equal(db.source.UpdateSeq, source.UpdateSeq)
}

// short reports whether documents are missing that no change of the meantime
// explains.
func (db *database) short() bool {
	return db.left == 0 && (db.target.Documents < db.expected() || db.target.Deleted < db.source.Deleted)
}

// expected is how many documents the target should have.
func (db *database) expected() uint64 {
	return db.source.Documents - db.own - uint64(len(db.judges))
}

// brought is what became of a database.
type brought struct {
	text    string // for people
	written int64  // revisions
	trouble bool
}

// bring brings one database.
func (m *migration) bring(ctx context.Context, db *database) brought {
	start := time.Now()
	db.complete, db.err = false, nil
	meter := m.show.database(db.name, db.source.all())
	before := db.refusals.count()
	err := m.copy(ctx, db, meter)
	db.complete = err == nil
	meter.end(db.complete)
	refused := int64(db.refusals.count() - before)
	out := brought{written: meter.written.Load(), trouble: err != nil || refused > 0}
	switch {
	case err != nil && ctx.Err() != nil: // the report tells how far it is
		out.text = "interrupted after " + count(out.written, "revision")
	case err != nil:
		db.err = err
		out.text = "failed: " + reason(err)
	case m.cfg.DryRun:
		out.text = fmt.Sprintf("%s, %s deleted", count(int64(db.source.Documents), "document"), humanize.Comma(int64(db.source.Deleted)))
	case out.written == 0 && refused <= 0:
		out.text = "nothing new"
	default:
		out.text = fmt.Sprintf("%s, %s in %v", count(out.written, "revision"), humanize.Bytes(uint64(meter.bytes.Load())),
			time.Since(start).Round(time.Millisecond))
		if refused > 0 {
			out.text += fmt.Sprintf(", %s refused", humanize.Comma(refused))
		}
	}
	out.text = db.name + ": " + out.text
	return out
}

// count is a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return humanize.Comma(n) + " " + thing + "s"
}

// copy brings settings, documents and design documents, in this order.
func (m *migration) copy(ctx context.Context, db *database, meter *meter) error {
	different, err := m.designs(ctx, db)
	if err != nil {
		return err
	}
	if m.cfg.DryRun {
		db.different = different
		db.target, _, err = m.target.info(ctx, db.name)
		return err
	}
	if err := m.create(ctx, db.name, db.source); err != nil {
		return err
	}
	settings, err := m.settings(ctx, db.name)
	if err != nil {
		return err
	}
	db.different = append(settings, different...)
	if err := m.replicate(ctx, db, meter, ""); err != nil {
		return err
	}
	if db.designs {
		if err := m.replicate(ctx, db, meter, designsOnly); err != nil {
			return err
		}
	}
	return m.compare(ctx, db)
}

// designsOnly is the built-in filter that passes design documents.
const designsOnly = "_design"

// replicate is one replication from its start to its end: of all documents but
// design documents, or of these.
func (m *migration) replicate(ctx context.Context, db *database, meter *meter, filter string) error {
	s := m.spec(db.name, filter)
	source, err := m.open(s.Source, s.Options)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // nothing is under way
	target, err := m.open(s.Target, s.Options)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	wanted := filter == designsOnly
	// Not the id that a replication of everything would have: its checkpoints
	// would be about more documents.
	salt := "import "
	if wanted && m.cfg.Continuous {
		salt = "import without validations "
	}
	progress := &protocol.Progress{}
	_, err = protocol.Run(ctx, protocol.Options{
		Spec: s,
		ID:   s.ID(salt+m.target.about.UUID, ""),
		Source: &selectedSource{Source: source, meter: meter, keep: func(id string) bool {
			isDesign := strings.HasPrefix(id, doc.DesignPrefix)
			db.designs = db.designs || isDesign // the feed is read by one goroutine
			return isDesign == wanted && id != builtIn(db.name) && !slices.Contains(db.judges, id)
		}},
		Target:   &watchedTarget{Target: target, meter: meter, refusals: &db.refusals},
		Progress: progress, Logger: m.cfg.Logger,
	})
	if through := progress.Snapshot().ThroughSeq; filter == "" && through != "" {
		db.through = through
	}
	return err
}

// checkpointEvery is how much work an interruption may cost.
const checkpointEvery = 10 * time.Second

// spec is what such a replication would be asked for by.
func (m *migration) spec(db, filter string) *spec.Spec {
	address := func(s *side) spec.Address {
		return spec.Address{URL: s.URL + path(db) + "/", Username: s.User, Password: s.Password}
	}
	options := spec.Options{
		UseCheckpoints: !m.cfg.FromStart, CheckpointInterval: checkpointEvery, UseBulkGet: true,
		Workers: 4, BatchSize: 500, Connections: 20, ConnectionTimeout: 30 * time.Second, Retries: 5, // CouchDB's defaults
	}
	return &spec.Spec{Source: address(m.source), Target: address(m.target), Options: options, Filter: endpoint.Filter{Function: filter}}
}

func (m *migration) open(a spec.Address, o spec.Options) (*remote.Database, error) {
	return remote.New(remote.Options{Address: a, Options: o, UserAgent: m.cfg.UserAgent, Network: m.network})
}

// compare looks at what both sides have in the end.
func (m *migration) compare(ctx context.Context, db *database) error {
	var err error
	if db.source, _, err = m.source.info(ctx, db.name); err != nil {
		return err
	}
	if err := m.behind(ctx, db); err != nil {
		return err
	}
	db.target, _, err = m.target.info(ctx, db.name)
	return err
}

// behind finds out how many changes of the source are not on the target.
func (m *migration) behind(ctx context.Context, db *database) error {
	s := m.spec(db.name, "")
	source, err := m.open(s.Source, s.Options)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // nothing is under way
	db.left, err = source.Pending(ctx, db.through)
	return err
}
