package workload

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"divan/test/sim/history"
)

// security is a security object that carries a number.
type security struct {
	Admins  members `json:"admins"`
	Members members `json:"members"`
}

type members struct {
	Names []string `json:"names"`
	Roles []string `json:"roles"`
}

// metadata is work on databases that come and go.
type metadata struct{ *asker }

// operateAny does something with a database that comes and goes.
func (c *metadata) operateAny(ctx context.Context, _ string) {
	db := c.Temporary[c.rng.IntN(len(c.Temporary))]
	switch c.rng.IntN(10) {
	case 0, 1:
		c.operate(ctx, db, history.Create)
	case 2:
		c.operate(ctx, db, history.Delete)
	case 3, 4:
		c.operate(ctx, db, history.Look)
	case 5:
		c.operate(ctx, db, history.SetSecurity)
	case 6:
		c.operate(ctx, db, history.GetSecurity)
	case 7:
		c.renew(ctx, fmt.Sprint(c.Once, c.Log.Number()))
	default:
		c.writeTemporary(ctx, db)
	}
}

// renew makes a database, and makes it again as clients do that want an empty one: at
// once, and each step through any node. No other client uses it, so that the last
// documents have to be there in the end.
func (c *metadata) renew(ctx context.Context, db string) {
	c.operate(ctx, db, history.Create)
	c.writeTemporary(ctx, db)
	c.operate(ctx, db, history.Delete)
	c.operate(ctx, db, history.Create)
	c.writeTemporary(ctx, db)
	c.writeTemporary(ctx, db)
}

// operate carries out one operation on the metadata of a database.
func (c *metadata) operate(ctx context.Context, db string, kind history.MetaKind) {
	m := history.Meta{DB: db, Kind: kind}
	var r *request
	switch kind {
	case history.Create:
		r = c.call(ctx, http.MethodPut, fmt.Sprintf("/%s?q=%d", db, 1+c.rng.IntN(2)), nil, nil)
	case history.Delete:
		r = c.call(ctx, http.MethodDelete, "/"+db, nil, nil)
	case history.Look:
		r = c.call(ctx, http.MethodGet, "/"+db, nil, nil)
	case history.SetSecurity:
		m.Value = c.Log.Number()
		who := members{Names: []string{fmt.Sprint(m.Value)}, Roles: []string{}}
		r = c.call(ctx, http.MethodPut, "/"+db+"/_security", security{who, who}, nil)
	case history.GetSecurity:
		var got security
		r = c.call(ctx, http.MethodGet, "/"+db+"/_security", nil, &got)
		if len(got.Admins.Names) == 1 {
			m.Value, _ = strconv.Atoi(got.Admins.Names[0]) // only this package sets any
		}
	}
	m.Span, m.Node, m.Status = r.Span, r.target.Name, r.status
	if m.Status == http.StatusAccepted { // metadata are never only accepted
		c.unexpected(r)
	}
	c.Log.Note(func(h *history.History) { h.Metas = append(h.Metas, m) })
}

// writeTemporary writes a document that must not outlive its database.
func (c *metadata) writeTemporary(ctx context.Context, db string) {
	b := body{Number: c.Log.Number()}
	id := fmt.Sprint("t", b.Number)
	var res result
	r := c.call(ctx, http.MethodPut, path(db, id, nil), b, &res)
	e := history.Edit{Span: r.Span, Node: r.target.Name, DB: db, ID: id, Number: b.Number, Rev: res.Rev, Quorum: quorum, Outcome: history.OfStatus(r.status)}
	c.Log.Note(func(h *history.History) { h.Edits = append(h.Edits, e) })
}
