package node

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"divan/cluster/meta"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// This file shows the members of the cluster and the shard maps as the
// documents that CouchDB keeps them in: tools that add and remove nodes, or
// look for the copies of a database, use those. They are not stored: their
// revisions are made of their content.

// nodeDocRoutes lists the endpoints below /_node/{name} for these documents.
func nodeDocRoutes(node func(path, allow string, m core.Methods) core.Route) []core.Route {
	return []core.Route{
		node("/_nodes", "GET,HEAD", core.Methods{Get: getNodeDocsInfo}),
		node("/_nodes/_all_docs", "GET,HEAD", core.Methods{Get: getNodeDocs}),
		node("/_nodes/{doc}", "DELETE,GET,HEAD,PUT", core.Methods{Get: getNodeDoc, Put: putNodeDoc, Delete: deleteNodeDoc}),
		node("/_dbs", "GET,HEAD", core.Methods{Get: getMapDocsInfo}),
		node("/_dbs/_all_docs", "GET,HEAD", core.Methods{Get: getMapDocs}),
		node("/_dbs/{doc}", "GET,HEAD,PUT", core.Methods{Get: getMapDoc, Put: putMapDoc}),
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
func sendMadeUp(c *core.Call, id string, body []byte) error {
	text, rev := madeUp(id, body)
	c.Response.SetETag(rev)
	return c.Response.SendJSON(http.StatusOK, text)
}

// sendMadeUpInfo answers with what there is to say about a database of such
// documents.
func sendMadeUpInfo(c *core.Call, name string, count int) error {
	out := doc.AppendString([]byte(`{"db_name":`), name)
	out = strconv.AppendInt(append(out, `,"doc_count":`...), int64(count), 10)
	return c.Response.SendJSON(http.StatusOK, append(out, `,"doc_del_count":0}`...))
}

// madeUpRows writes the rows of _all_docs of such documents.
func madeUpRows(c *core.Call, count int, each func(row func(id string, body []byte) error) error) error {
	docs, _ := c.QueryValue("include_docs")
	out := c.Stream("")
	out.Buf = strconv.AppendInt(append(out.Buf, `{"total_rows":`...), int64(count), 10)
	out.Buf = append(out.Buf, `,"offset":0,"rows":[`...)
	first := true
	err := each(func(id string, body []byte) error {
		if !first {
			out.Buf = append(out.Buf, ',')
		}
		first = false
		text, rev := madeUp(id, body)
		out.Buf = doc.AppendString(append(out.Buf, "\r\n{\"id\":"...), id)
		out.Buf = doc.AppendString(append(out.Buf, `,"key":`...), id)
		out.Buf = append(doc.AppendString(append(out.Buf, `,"value":{"rev":`...), rev), '}')
		if docs == "true" {
			out.Buf = append(append(out.Buf, `,"doc":`...), text...)
		}
		out.Buf = append(out.Buf, '}')
		return out.Spill()
	})
	if err != nil {
		return err
	}
	out.Buf = append(out.Buf, "\r\n]}\n"...)
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
func getNodeDocsInfo(c *core.Call) error {
	return sendMadeUpInfo(c, "_nodes", len(c.API.Deps.Meta.Nodes()))
}

// getNodeDocs answers GET /_node/{name}/_nodes/_all_docs.
func getNodeDocs(c *core.Call) error {
	nodes := c.API.Deps.Meta.Nodes()
	return madeUpRows(c, len(nodes), func(row func(string, []byte) error) error {
		for _, n := range nodes {
			if err := row(n.Name, nodeBody(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// getNodeDoc answers GET /_node/{name}/_nodes/{node}.
func getNodeDoc(c *core.Call) error {
	n, ok := c.API.Deps.Meta.Node(c.Path[3])
	if !ok {
		return fault.New(fault.NotFound, "missing")
	}
	return sendMadeUp(c, n.Name, nodeBody(n))
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
func putNodeDoc(c *core.Call) error {
	body, err := c.Body.ReadJSON()
	if err != nil {
		return err
	}
	wish, err := parseNodeWish(body)
	if err != nil {
		return err
	}
	name := c.Path[3]
	n, known := c.API.Deps.Meta.Node(name)
	if known {
		if rev := contentRev(nodeBody(n)); wish.rev != rev && (wish.rev != "" || wish.replaces == "") {
			return fault.New(fault.Conflict, "Document update conflict.")
		}
	}
	if err := fulfil(c, name, known, wish); err != nil {
		return err
	}
	n, _ = c.API.Deps.Meta.Node(name)
	return sendNodeRev(c, http.StatusCreated, name, contentRev(nodeBody(n)))
}

// fulfil does what was wished for a node.
func fulfil(c *core.Call, name string, known bool, wish *nodeWish) error {
	m, ctx := c.API.Deps.Meta, c.Request.Context()
	if !known {
		if err := inviteByName(c, name, wish); err != nil {
			return err
		}
	}
	if wish.replaces != "" {
		if err := c.API.Deps.Meta.ReplaceNode(ctx, wish.replaces, name, wish.force); err != nil {
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
func inviteByName(c *core.Call, name string, wish *nodeWish) error {
	_, host, ok := strings.Cut(name, "@")
	if !ok || host == "" {
		return fault.New(fault.BadRequest, "The name of a node is like name@host.")
	}
	to := remoteCall{host: cmp.Or(wish.host, host), port: wish.port, user: wish.username, password: wish.password}
	if to.user == "" {
		if user, password, ok := c.Request.BasicAuth(); ok {
			to.user, to.password = user, password
		}
	}
	err := invite(c, to, name)
	if f := (*fault.Error)(nil); wish.replaces != "" && errors.As(err, &f) && f.Kind == fault.BadRequest {
		return fault.Wrap(f.Kind, f.Reason+" "+name+" is not a member of the cluster: before it can replace another node it has to join, "+
			"through action add_node of POST /_cluster_setup or by a seed list.", err)
	}
	return err
}

// deleteNodeDoc answers DELETE /_node/{name}/_nodes/{node}: the node leaves the
// cluster. Its copies stay in the maps until another node takes its place.
func deleteNodeDoc(c *core.Call) error {
	name := c.Path[3]
	n, ok := c.API.Deps.Meta.Node(name)
	if !ok {
		return fault.New(fault.NotFound, "missing")
	}
	rev := contentRev(nodeBody(n))
	wanted, given := c.QueryValue("rev")
	tag := strings.Trim(c.Request.Header.Get("If-Match"), `"`)
	if !given && tag == "" || given && wanted != rev || tag != "" && tag != rev {
		return fault.New(fault.Conflict, "Document update conflict.")
	}
	if err := dropNode(c, name); err != nil {
		return err
	}
	return sendNodeRev(c, http.StatusOK, name, rev)
}

func sendNodeRev(c *core.Call, status int, id, rev string) error {
	c.Response.SetETag(rev)
	out := doc.AppendString([]byte(`{"ok":true,"id":`), id)
	return c.Response.SendJSON(status, append(doc.AppendString(append(out, `,"rev":`...), rev), '}'))
}
