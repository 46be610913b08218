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
	"divan/storage/doc"
)

// database holds the known facts about a database of the source. It belongs to the
// goroutine that brings it.
type database struct {
	name     string
	source   info
	target   info
	through  endpoint.Seq // everything up to here is on the target
	left     int64        // changes of the source behind that; -1: it does not say
	complete bool         // all that the source had when it was last looked at
	designs  []string     // ids of design documents that are still to come, deleted ones too
	listed   bool         // those that were there before this run are among them, or have come
	judges   []string     // ids of those that wait for the cut-over, as they validate documents
	own      uint64       // design documents that are left behind because the target has such rules itself
	theirs   uint64       // those of the target
	refusals refusals
	again    bool   // refusals tells of all there are
	findings        // about its settings and design documents
	err      error  // why it could not be brought
	told     string // the last trouble that was told while following
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
	return db.source.Documents - db.own - uint64(len(db.judges)) + db.theirs
}

// brought is the outcome of bringing a database.
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
	found, err := m.designs(ctx, db)
	if err != nil {
		return err
	}
	if m.cfg.DryRun {
		db.findings = found
		return m.lookAtTarget(ctx, db)
	}
	if err := m.create(ctx, db.name, db.source); err != nil {
		return err
	}
	settings, err := m.settings(ctx, db.name)
	if err != nil {
		return err
	}
	db.findings = findings{append(settings, found.different...), found.failing}
	if err := m.documents(ctx, db, meter); err != nil {
		return err
	}
	if err := m.replicateDesigns(ctx, db, meter); err != nil {
		return err
	}
	return m.compare(ctx, db)
}

// documents replicates all documents but design documents, whose ids it notes.
// What an earlier import was refused is behind its checkpoint: then all is looked
// at again, once.
func (m *migration) documents(ctx context.Context, db *database, meter *meter) error {
	progress, err := m.documentsFrom(ctx, db, meter, m.cfg.FromStart)
	if err == nil && !m.cfg.FromStart && !db.again && progress.Snapshot().DocWriteFailures > int64(db.refusals.count()) {
		_, err = m.documentsFrom(ctx, db, meter, true)
	}
	db.again = db.again || err == nil
	return err
}

func (m *migration) documentsFrom(ctx context.Context, db *database, meter *meter, start bool) (*protocol.Progress, error) {
	s := m.transfer.spec(db.name)
	s.UseCheckpoints = !start
	progress := &protocol.Progress{}
	err := m.transfer.replicate(ctx, protocol.Options{
		Spec: s, Progress: progress,
		// Not the id that a replication of everything would have: its checkpoints
		// would be about more documents.
		ID: s.ID("import "+m.target.about.UUID, ""),
	}, db, meter, func(id string) bool {
		isDesign := strings.HasPrefix(id, doc.DesignPrefix)
		if isDesign && id != builtIn(db.name) && !slices.Contains(db.designs, id) {
			db.designs = append(db.designs, id) // the feed is read by this goroutine
		}
		return !isDesign
	})
	if through := progress.Snapshot().ThroughSeq; through != "" {
		db.through = through
	}
	return progress, err
}

// replicateDesigns brings the design documents that are still to come. They are
// so few that checkpoints are not worth it.
func (m *migration) replicateDesigns(ctx context.Context, db *database, meter *meter) error {
	ids := slices.DeleteFunc(slices.Clone(db.designs), func(id string) bool { return slices.Contains(db.judges, id) })
	if len(ids) > 0 {
		s := m.transfer.spec(db.name)
		s.UseCheckpoints = false
		s.Filter = endpoint.Filter{DocIDs: ids, HasIDs: true}
		all := func(string) bool { return true }
		if err := m.transfer.replicate(ctx, protocol.Options{Spec: s, ID: s.ID("import "+m.target.about.UUID, "")}, db, meter, all); err != nil {
			return err
		}
	}
	db.designs = nil
	return nil
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
	return m.lookAtTarget(ctx, db)
}

// lookAtTarget finds out what the target has of a database.
func (m *migration) lookAtTarget(ctx context.Context, db *database) error {
	own, err := m.target.hasBuiltIn(ctx, db.name)
	if err != nil {
		return err
	}
	db.theirs = 0
	if own {
		db.theirs = 1
	}
	db.target, _, err = m.target.info(ctx, db.name)
	return err
}

// behind finds out how many changes of the source are not on the target.
func (m *migration) behind(ctx context.Context, db *database) error {
	s := m.transfer.spec(db.name)
	source, err := m.transfer.open(s.Source, s.Options)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // nothing is under way
	db.left, err = source.Pending(ctx, db.through)
	return err
}
