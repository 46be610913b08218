package db

import (
	"bytes"
	"net/http"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// revsDiff answers POST /{db}/_revs_diff: which revisions are not here, and
// what they may descend from. Documents of which nothing is missing are left
// out.
func revsDiff(c *core.Call) error {
	answers, err := missing(c)
	if err != nil {
		return err
	}
	out := []byte{'{'}
	for i := range answers {
		a := &answers[i]
		if len(a.Missing) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = doc.AppendString(out, a.ID)
		out = docformat.AppendRevs(append(out, `:{"missing":`...), a.Missing)
		if len(a.PossibleAncestors) > 0 {
			out = docformat.AppendRevs(append(out, `,"possible_ancestors":`...), a.PossibleAncestors)
		}
		out = append(out, '}')
	}
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}

// missingRevs answers POST /{db}/_missing_revs.
func missingRevs(c *core.Call) error {
	answers, err := missing(c)
	if err != nil {
		return err
	}
	const start = `{"missing_revs":{`
	out := []byte(start)
	for i := range answers {
		if len(answers[i].Missing) == 0 {
			continue
		}
		if len(out) > len(start) {
			out = append(out, ',')
		}
		out = append(doc.AppendString(out, answers[i].ID), ':')
		out = docformat.AppendRevs(out, answers[i].Missing)
	}
	return c.Response.SendJSON(http.StatusOK, append(out, "}}"...))
}

// missing reads the body of a comparison and asks the database.
func missing(c *core.Call) ([]shard.IDMissing, error) {
	asked, err := readRevisions(c, "Invalid revisions, must be a list")
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	answers, err := c.DB.Missing(c.Request.Context(), asked)
	if err != nil {
		return nil, err
	}
	space := c.Memory.HoldInSteps()
	for i := range answers { // a document with many branches has many ancestors
		if err := space(revSpace * (len(answers[i].Missing) + len(answers[i].PossibleAncestors))); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// readRevisions reads {"id":["rev",…],…}. An id that is given twice keeps its
// last list. A value that is no list is refused with the reason noList, which CouchDB words
// in two ways.
func readRevisions(c *core.Call, noList string) ([]shard.IDRevs, error) {
	if err := c.Body.RequireJSON(); err != nil {
		return nil, err
	}
	body, err := c.Body.ReadJSON()
	if err != nil {
		return nil, err
	}
	return parseRevisions(body, noList, c.Memory.InSteps())
}

// Bytes that are made of what is compared.
const (
	idSpace  = 128 // of an id, which may be the empty text
	revSpace = 64  // of a revision, which has three
)

func parseRevisions(body []byte, noList string, space func(n int) error) ([]shard.IDRevs, error) {
	var out []shard.IDRevs
	places := map[string]int{}
	err := doc.EachMember(body, func(id string, value []byte) error {
		if err := space(idSpace + revSpace*bytes.Count(value, []byte{','})); err != nil {
			return err
		}
		if value[0] != '[' {
			return fault.New(fault.BadRequest, noList)
		}
		revs, err := docformat.ParseRevs(value)
		if err != nil {
			return err
		}
		if at, ok := places[id]; ok {
			out[at].Revs = revs
			return nil
		}
		places[id] = len(out)
		out = append(out, shard.IDRevs{ID: id, Revs: revs})
		return nil
	})
	return out, err
}

// purge answers POST /{db}/_purge.
func purge(c *core.Call) error {
	w, err := c.WriteQuorum()
	if err != nil {
		return err
	}
	asked, err := readRevisions(c, "Invalid list of revisions")
	if err != nil {
		return err
	}
	if err := checkPurge(c, asked); err != nil {
		return err
	}
	items := make([]shard.PurgeItem, len(asked))
	for i, a := range asked {
		items[i] = shard.PurgeItem{ID: a.ID, Revs: a.Revs}
	}
	c.API.Stats.Purges.Requests.Inc()
	outcomes, err := c.DB.Purge(c.Request.Context(), w, items)
	for i := range items {
		c.Rights().Written(items[i].ID)
	}
	if err != nil {
		return err
	}
	return sendPurged(c, outcomes)
}

// checkPurge applies the limits of section [purge], and refuses ids that no
// document of this database has.
func checkPurge(c *core.Call, asked []shard.IDRevs) error {
	if int64(len(asked)) > c.Config.Limits.PurgeMaxDocuments {
		return fault.New(fault.BadRequest, "Exceeded maximum number of documents.")
	}
	revs := 0
	for _, a := range asked {
		revs += len(a.Revs)
		if err := c.Rights().CheckPartition(a.ID); err != nil {
			return err
		}
	}
	if int64(revs) > c.Config.Limits.PurgeMaxRevisions {
		return fault.New(fault.BadRequest, "Exceeded maximum number of revisions.")
	}
	return nil
}

// sendPurged answers with what was purged. The status is the highest of all
// items: 201, 202 for one that fewer copies have than asked for, or that of an
// error.
func sendPurged(c *core.Call, outcomes []cluster.PurgeOutcome) error {
	status := http.StatusCreated
	out := []byte(`{"purge_seq":null,"purged":{`)
	for i := range outcomes {
		o := &outcomes[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(doc.AppendString(out, o.ID), ':')
		switch {
		case o.Err != nil:
			f := c.Describe(o.Err)
			c.LogFailure(f, o.Err)
			status = max(status, f.Status)
			out = f.AppendJSON(out)
			c.API.Stats.Purges.Failed.Inc()
			continue
		case o.Accepted:
			status = max(status, http.StatusAccepted)
		}
		out = docformat.AppendRevs(out, o.Purged)
		c.API.Stats.Purges.Documents.Inc()
		if len(o.Purged) > 0 {
			c.API.Stats.Purges.Databases.Inc()
		}
	}
	return c.Response.SendJSON(status, append(out, "}}"...))
}

// getPurgedInfos answers GET /{db}/_purged_infos: the log of purges.
func getPurgedInfos(c *core.Call) error {
	infos, err := c.DB.PurgedInfos(c.Request.Context())
	if err != nil {
		return err
	}
	out := c.Stream("")
	out.Buf = append(out.Buf, `{"purged_infos":[`...)
	for i := range infos {
		if i > 0 {
			out.Buf = append(out.Buf, ',')
		}
		out.Buf = doc.AppendString(append(out.Buf, `{"id":`...), infos[i].ID)
		out.Buf = docformat.AppendRevs(append(out.Buf, `,"revs":`...), infos[i].Revs)
		out.Buf = append(out.Buf, '}')
		if err := out.Spill(); err != nil {
			return err
		}
	}
	out.Buf = append(out.Buf, "]}\n"...)
	return out.Close()
}
