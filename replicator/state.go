package replicator

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// docState is a state that is written into a document.
type docState struct {
	name, reason string
	id           string // empty: the state does not tell it, see keepsID
	stats        *protocol.Stats
	began        time.Time
}

// keepsID reports whether an id that the document has stays, as in CouchDB: one that a
// passing state has told goes with that, unless documents tell passing states.
func (s *docState) keepsID(body []byte, passing bool) bool {
	before, _ := doc.Unquote(doc.Lookup(body, "_replication_state"))
	return s.id == "" && (passing || before != "triggered" && before != "error")
}

// The states that end the replication of a document; documents tell them always.
const (
	Completed = "completed"
	Failed    = "failed"
)

// appendMembers appends the members of the state, each with a comma in front.
func (s *docState) appendMembers(dst []byte, now time.Time) []byte {
	text := func(name, value string) {
		if value != "" {
			dst = append(append(append(dst, `,"_replication_`...), name...), `":`...)
			dst = doc.AppendString(dst, value)
		}
	}
	text("id", s.id)
	text("state", s.name)
	text("state_time", timestamp(now))
	text("state_reason", s.reason)
	if s.stats != nil {
		dst = append(dst, `,"_replication_stats":`...)
		dst = appendInfo(dst, s.stats, false)
		dst = doc.AppendString(append(dst[:len(dst)-1], `,"start_time":`...), timestamp(s.began))
		dst = append(dst, '}')
	}
	return dst
}

// timestamp prints a time as documents and the scheduler have it.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// stateWriter writes states into documents.
type stateWriter struct {
	coordinator *cluster.Coordinator
	owners      *ownership.Table
	config      settings
	stats       *counters
	log         *zap.Logger
}

// maxAttempts bounds how often a state is written over an edit that came in
// between.
const maxAttempts = 10

// write writes a state into a document, if it is still what the client
// wrote, and this node's. It reports whether there is nothing more to do.
func (w *stateWriter) write(ctx context.Context, d *document, state docState) bool {
	if err := w.owners.Check(ctx, d.slot, d.term); err != nil {
		return errors.Is(err, ownership.ErrLost)
	}
	err := w.coordinator.Do(ctx, d.key.db, func(db *cluster.DB) error {
		for range maxAttempts {
			err := w.writeOnce(ctx, db, d, &state)
			if !fault.Is(err, fault.Conflict) {
				return err
			}
		}
		return fault.New(fault.Conflict, "Document update conflict.")
	})
	switch {
	case err == nil:
		w.stats.stateWritten(state.name)
		return true
	case fault.Is(err, fault.NotFound):
		return true
	}
	if ctx.Err() == nil {
		w.log.Warn("the state of a replication is not written", zap.String("database", d.key.db), zap.String("document", d.key.id), zap.Error(err))
	}
	return false
}

// writeOnce writes a state over the revision that is there. The error is
// fault.NotFound when the document is another one now.
func (w *stateWriter) writeOnce(ctx context.Context, db *cluster.DB, d *document, state *docState) error {
	now, err := db.Open(ctx, cluster.OpenOptions{ID: d.key.id})
	if err != nil {
		return err
	}
	if clientText(now.Body) != d.text {
		return fault.New(fault.NotFound, "the document was edited")
	}
	keepsID := state.keepsID(now.Body, w.config.config().UpdateDocs)
	body := make([]byte, 0, len(now.Body)+256)
	err = doc.EachMember(now.Body, func(name string, value []byte) error {
		if !serverMember(name) || keepsID && name == "_replication_id" {
			body = doc.AppendString(append(body, ','), name)
			body = append(append(body, ':'), value...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	body = append(state.appendMembers(body, time.Now()), '}')
	body[0] = '{'
	edit := shard.Edit{ID: d.key.id, Parent: now.Rev, Body: body}
	for _, a := range now.Atts {
		edit.Atts = append(edit.Atts, shard.EditAttachment{Attachment: a, Stub: true})
	}
	server := shard.User{Anonymous: true, Roles: []string{shard.AdminRole, "_replicator"}}
	results, err := db.Update(ctx, cluster.UpdateOptions{NewEdits: true, User: server}, []shard.Edit{edit})
	if err != nil {
		return err
	}
	return results[0].Err
}
