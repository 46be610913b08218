package cluster

import (
	"context"

	"divan/cluster/events"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// eventNode is the coordinator as the writer of the events of databases sees it.
type eventNode Coordinator

// eventWriter makes what writes the events of databases.
func (c *Coordinator) eventWriter() *events.Writer {
	return &events.Writer{Queue: &c.events, Meta: c.meta, Config: c.config, Log: c.log, Node: (*eventNode)(c)}
}

// Updated tells that a copy of this node has something new that is durable. It
// returns at once: it is called for every write.
func (c *Coordinator) Updated(copyName string) { c.events.Updated(copyName) }

// IsFirst implements events.Node.
func (n *eventNode) IsFirst(nodes []string) bool {
	for _, node := range nodes {
		if node == n.node {
			return true
		}
		if (*Coordinator)(n).copies(node) != nil {
			return false
		}
	}
	return false
}

// Touch implements events.Node.
func (n *eventNode) Touch(ctx context.Context, ids []string) error {
	c := (*Coordinator)(n)
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	m, ok := c.meta.Database(events.GlobalChanges)
	if !ok {
		return errNoDatabase()
	}
	return globalChanges{c.handles.get(m)}.touch(ctx, ids)
}

// globalChanges is the database behind _db_updates.
type globalChanges struct {
	*DB
}

// touch makes a new revision of each document. Another node may do so at the same time: a conflict
// means that the document has moved in the feed after the event, and that is all that it has to.
// But that is so only if the parent was the newest revision. The winner that one copy names may be
// older than the event, so that after a conflict the majority is asked.
func (d globalChanges) touch(ctx context.Context, ids []string) error {
	parents, err := d.winners(ctx, ids)
	if err != nil {
		return err
	}
	again, err := d.touchOn(ctx, ids, parents)
	if err != nil || len(again) == 0 {
		return err
	}
	clear(parents)
	for _, id := range again {
		newest, err := d.Open(ctx, OpenOptions{ID: id, HeadOnly: true})
		switch {
		case err == nil:
			parents[id] = newest.Rev
		case !isNotFound(err) || fault.Is(err, fault.NoDatabase):
			return err
		}
	}
	_, err = d.touchOn(ctx, again, parents)
	return err
}

// touchOn makes revisions on top of the given ones and returns the documents
// for which these were not the latest.
func (d globalChanges) touchOn(ctx context.Context, ids []string, parents map[string]doc.Rev) (again []string, err error) {
	edits := make([]shard.Edit, len(ids))
	for i, id := range ids {
		edits[i] = shard.Edit{ID: id, Parent: parents[id], Body: []byte("{}")}
	}
	results, err := d.Update(ctx, UpdateOptions{
		NewEdits: true, W: 1, User: shard.User{Roles: []string{shard.AdminRole}},
	}, edits)
	if err != nil {
		return nil, err
	}
	for i := range results {
		switch err := results[i].Err; {
		case fault.Is(err, fault.Conflict):
			again = append(again, ids[i])
		case err != nil:
			return nil, err
		}
	}
	return again, nil
}

// winners returns the live revisions of documents as one copy knows them; one
// that is not there has none.
func (d globalChanges) winners(ctx context.Context, ids []string) (map[string]doc.Rev, error) {
	rows, err := d.AllDocs(ctx, DocsQuery{HasKeys: true, Keys: ids, Limit: NoLimit})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[string]doc.Rev, len(ids))
	for rows.Next() {
		if row := rows.Row(); !row.Missing && !row.Deleted {
			out[row.ID] = doc.Rev{Pos: row.Rev.Pos, ID: row.Rev.ID}
		}
	}
	return out, rows.Err()
}
