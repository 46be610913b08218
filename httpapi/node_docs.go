package httpapi

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"divan/cluster/meta"
	"divan/storage/doc"
	"divan/storage/fault"
)

// This file shows the members of the cluster and the shard maps as the
// documents that CouchDB keeps them in: tools that add and remove nodes, or
// look for the copies of a database, use those. They are not stored: their
// revisions are made of their content.

// nodeDocRoutes lists the endpoints below /_node/{name} for these documents.
func nodeDocRoutes(node func(path, allow string, m methods) route) []route {
	return []route{
		node("/_nodes", "GET,HEAD", methods{get: getNodeDocsInfo}),
		node("/_nodes/_all_docs", "GET,HEAD", methods{get: getNodeDocs}),
		node("/_nodes/{doc}", "DELETE,GET,HEAD,PUT", methods{get: getNodeDoc, put: putNodeDoc, del: deleteNodeDoc}),
		node("/_dbs", "GET,HEAD", methods{get: getMapDocsInfo}),
		node("/_dbs/_all_docs", "GET,HEAD", methods{get: getMapDocs}),
		node("/_dbs/{doc}", "GET,HEAD,PUT", methods{get: getMapDoc, put: putMapDoc}),
	}
}

// contentRev returns the revision of a document that was made up: always the
// first one, of that content.
func contentRev(body []byte) string {
	sum := md5.Sum(body)
	return "1-" + hex.EncodeToString(sum[:])
}

// madeUp returns a document with that id and the members of body, an object's
// text, and its revision.
func madeUp(id string, body []byte) (text []byte, rev string) {
	rev = contentRev(body)
	text = doc.AppendString([]byte(`{"_id":`), id)
	text = doc.AppendString(append(text, `,"_rev":`...), rev)
	if len(body) > 2 {
		text = append(text, ',')
	}
	return append(text, body[1:]...), rev
}

// sendMadeUp answers with such a document.
func (c *call) sendMadeUp(id string, body []byte) error {
	text, rev := madeUp(id, body)
	c.setETag(rev)
	return c.sendJSON(http.StatusOK, text)
}

// sendMadeUpInfo answers with what there is to say about a database of such
// documents.
func (c *call) sendMadeUpInfo(name string, count int) error {
	out := doc.AppendString([]byte(`{"db_name":`), name)
	out = strconv.AppendInt(append(out, `,"doc_count":`...), int64(count), 10)
	return c.sendJSON(http.StatusOK, append(out, `,"doc_del_count":0}`...))
}

// madeUpRows writes the rows of _all_docs of such documents.
func (c *call) madeUpRows(count int, each func(row func(id string, body []byte) error) error) error {
	docs, _ := c.qs("include_docs")
	out := c.stream("")
	out.buf = strconv.AppendInt(append(out.buf, `{"total_rows":`...), int64(count), 10)
	out.buf = append(out.buf, `,"offset":0,"rows":[`...)
	first := true
	err := each(func(id string, body []byte) error {
		if !first {
			out.buf = append(out.buf, ',')
		}
		first = false
		text, rev := madeUp(id, body)
		out.buf = doc.AppendString(append(out.buf, "\r\n{\"id\":"...), id)
		out.buf = doc.AppendString(append(out.buf, `,"key":`...), id)
		out.buf = append(doc.AppendString(append(out.buf, `,"value":{"rev":`...), rev), '}')
		if docs == "true" {
			out.buf = append(append(out.buf, `,"doc":`...), text...)
		}
		out.buf = append(out.buf, '}')
		return out.spill()
	})
	if err != nil {
		return err
	}
	out.buf = append(out.buf, "\r\n]}\n"...)
	return out.Close()
}

// nodeBody returns the content of a member's document.
func nodeBody(n meta.Node) []byte {
	out := []byte{'{'}
	if n.Zone != "" {
		out = doc.AppendString(append(out, `"zone":`...), n.Zone)
	}
	if n.Draining {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, `"decom":true`...)
	}
	return append(out, '}')
}

// getNodeDocsInfo answers GET /_node/{name}/_nodes.
func getNodeDocsInfo(c *call) error {
	return c.sendMadeUpInfo("_nodes", len(c.api.deps.Meta.Nodes()))
}

// getNodeDocs answers GET /_node/{name}/_nodes/_all_docs.
func getNodeDocs(c *call) error {
	nodes := c.api.deps.Meta.Nodes()
	return c.madeUpRows(len(nodes), func(row func(string, []byte) error) error {
		for _, n := range nodes {
			if err := row(n.Name, nodeBody(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// getNodeDoc answers GET /_node/{name}/_nodes/{node}.
func getNodeDoc(c *call) error {
	n, ok := c.api.deps.Meta.Node(c.path[3])
	if !ok {
		return fault.New(fault.NotFound, "missing")
	}
	return c.sendMadeUp(n.Name, nodeBody(n))
}

// nodeWish is the body of PUT /_node/{name}/_nodes/{node}.
type nodeWish struct {
	rev, zone, replaces string
	drain               bool
	force               bool   // give up what only the node that is replaced has
	host                string // of a node that is to join; empty: that of its name
	port                int
	username, password  string
}

// parseNodeWish reads the body; members that mean nothing here are ignored.
func parseNodeWish(body []byte) (*nodeWish, error) {
	value, err := doc.Canonical(nil, body)
	if err != nil {
		return nil, err
	}
	if !doc.IsObject(value) {
		return nil, fault.New(fault.BadRequest, "Document must be a JSON object")
	}
	w := &nodeWish{}
	texts := map[string]*string{
		"_rev": &w.rev, "zone": &w.zone, "replaces": &w.replaces, "host": &w.host, "username": &w.username, "password": &w.password,
	}
	err = doc.EachMember(value, func(name string, value []byte) error {
		if to, ok := texts[name]; ok {
			return setupText(to, name, value)
		}
		switch name {
		case "port":
			return setupNumber(&w.port, name, value, maxPort)
		case "decom":
			return wishFlag(&w.drain, name, value)
		case "force":
			return wishFlag(&w.force, name, value)
		}
		return nil
	})
	return w, err
}

// wishFlag reads a member that is true or false, or the text of it.
func wishFlag(to *bool, name string, value []byte) error {
	text, _ := doc.Unquote(value)
	if *to = string(value) == "true" || text == "true"; !*to && string(value) != "false" && text != "false" {
		return fault.Newf(fault.BadRequest, "`%s` must be true or false", name)
	}
	return nil
}

// putNodeDoc answers PUT /_node/{name}/_nodes/{node}: a member's zone and
// whether it gets new copies, a new node that joins, or one that takes the
// place of another.
func putNodeDoc(c *call) error {
	body, err := c.readJSON()
	if err != nil {
		return err
	}
	wish, err := parseNodeWish(body)
	if err != nil {
		return err
	}
	name := c.path[3]
	n, known := c.api.deps.Meta.Node(name)
	if known {
		if rev := contentRev(nodeBody(n)); wish.rev != rev && (wish.rev != "" || wish.replaces == "") {
			return fault.New(fault.Conflict, "Document update conflict.")
		}
	}
	if err := c.fulfil(name, known, wish); err != nil {
		return err
	}
	n, _ = c.api.deps.Meta.Node(name)
	return c.sendNodeRev(http.StatusCreated, name, contentRev(nodeBody(n)))
}

// fulfil does what was wished for a node.
func (c *call) fulfil(name string, known bool, wish *nodeWish) error {
	m, ctx := c.api.deps.Meta, c.r.Context()
	if !known {
		if err := c.inviteByName(name, wish); err != nil {
			return err
		}
	}
	if wish.replaces != "" {
		if err := c.api.deps.Coordinator.ReplaceNode(ctx, wish.replaces, name, wish.force); err != nil {
			return err
		}
	}
	n, _ := m.Node(name)
	if n.Zone == wish.zone && n.Draining == wish.drain || !known && wish.zone == "" && !wish.drain {
		return nil
	}
	if n.Draining != wish.drain {
		if err := m.SetDraining(ctx, name, wish.drain); err != nil {
			return err
		}
	}
	if n.Zone != wish.zone {
		return m.SetZone(ctx, name, wish.zone)
	}
	return nil
}

// inviteByName has a node join that is known by its name only: it is looked
// for on the host of that name, with the credentials of this request unless the
// body has others.
func (c *call) inviteByName(name string, wish *nodeWish) error {
	_, host, ok := strings.Cut(name, "@")
	if !ok || host == "" {
		return fault.New(fault.BadRequest, "The name of a node is like name@host.")
	}
	to := remoteCall{host: cmp.Or(wish.host, host), port: wish.port, user: wish.username, password: wish.password}
	if to.user == "" {
		if user, password, ok := c.r.BasicAuth(); ok {
			to.user, to.password = user, password
		}
	}
	err := c.invite(to, name)
	if f := (*fault.Error)(nil); wish.replaces != "" && errors.As(err, &f) && f.Kind == fault.BadRequest {
		return fault.Wrap(f.Kind, f.Reason+" "+name+" is not a member of the cluster: before it can replace another node it has to join, "+
			"through action add_node of POST /_cluster_setup or by a seed list.", err)
	}
	return err
}

// deleteNodeDoc answers DELETE /_node/{name}/_nodes/{node}: the node leaves the
// cluster. Its copies stay in the maps until another node takes its place.
func deleteNodeDoc(c *call) error {
	name := c.path[3]
	n, ok := c.api.deps.Meta.Node(name)
	if !ok {
		return fault.New(fault.NotFound, "missing")
	}
	rev := contentRev(nodeBody(n))
	wanted, given := c.qs("rev")
	tag := strings.Trim(c.r.Header.Get("If-Match"), `"`)
	if !given && tag == "" || given && wanted != rev || tag != "" && tag != rev {
		return fault.New(fault.Conflict, "Document update conflict.")
	}
	if err := c.dropNode(name); err != nil {
		return err
	}
	return c.sendNodeRev(http.StatusOK, name, rev)
}

func (c *call) sendNodeRev(status int, id, rev string) error {
	c.setETag(rev)
	out := doc.AppendString([]byte(`{"ok":true,"id":`), id)
	return c.sendJSON(status, append(doc.AppendString(append(out, `,"rev":`...), rev), '}'))
}
