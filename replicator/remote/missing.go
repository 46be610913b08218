package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Create implements endpoint.Target. As with CouchDB, opening the database
// tells of every refusal but that of the account.
func (d *Database) Create(ctx context.Context, o endpoint.CreateOptions) error {
	q := request{method: http.MethodPut}
	for _, p := range o.Query {
		if q.query != "" {
			q.query += "&"
		}
		q.query += url.QueryEscape(p[0]) + "=" + url.QueryEscape(p[1])
	}
	text, a, err := d.client.read(ctx, &q)
	if err != nil || text != nil {
		return err
	}
	switch {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden,
		a.status == http.StatusTooManyRequests, a.status >= http.StatusInternalServerError:
		return d.client.unopened(a)
	}
	if err := a.Body.Close(); err != nil {
		return fault.Wrap(fault.Unavailable, "create "+d.client.url, err)
	}
	return nil
}

// Missing implements endpoint.Target.
func (d *Database) Missing(ctx context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	body := []byte{'{'}
	for i := range ids {
		if i > 0 {
			body = append(body, ',')
		}
		body = doc.AppendString(body, ids[i].ID)
		body = append(body, ':')
		body = docformat.AppendRevs(body, ids[i].Revs)
	}
	hold := d.client.memory.Hold()
	defer hold.Release()
	text, a, err := d.client.read(ctx, &request{method: http.MethodPost, path: "_revs_diff", body: append(body, '}'), hold: &hold})
	if errors.Is(err, errLong) { // fewer at once may do
		return nil, fault.Wrap(fault.RequestTooLarge, fault.Reason(err), err)
	}
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, d.client.refusal(a)
	}
	asked := make(map[string][]doc.Rev, len(ids))
	for i := range ids {
		revs := ids[i].Revs
		if before, twice := asked[ids[i].ID]; twice { // as a continuous feed may tell of a document
			revs = slices.Concat(before, revs)
		}
		asked[ids[i].ID] = revs
	}
	out := make([]shard.IDMissing, 0, len(ids))
	err = doc.EachMember(text, func(id string, value []byte) error {
		m := shard.IDMissing{ID: id}
		var err error
		scanMembers(value, func(name, list []byte) {
			if err != nil {
				return
			}
			switch string(name) {
			case "missing":
				m.Missing, err = docformat.ParseRevs(list)
			case "possible_ancestors":
				m.PossibleAncestors, err = docformat.ParseRevs(list)
			}
		})
		if m.Missing = among(m.Missing, asked[id]); len(m.Missing) > 0 {
			out = append(out, m)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("_revs_diff of %s: %w", d.client.url, err)
	}
	return out, nil
}

// among leaves out revisions that were not asked about: a target has no right to documents that the
// replication does not bring there, a filter may hold them back. Servers mostly keep the order that
// they were asked in.
func among(answer, asked []doc.Rev) []doc.Rev {
	at := 0
	return slices.DeleteFunc(answer, func(r doc.Rev) bool {
		if i := slices.Index(asked[at:], r); i >= 0 {
			at += i
			return false
		}
		return !slices.Contains(asked[:at], r)
	})
}
