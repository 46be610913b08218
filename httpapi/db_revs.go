package httpapi

import (
	"net/http"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// revsDiff answers POST /{db}/_revs_diff: which revisions are not here, and
// what they may descend from. Documents of which nothing is missing are left
// out.
func revsDiff(c *call) error {
	answers, err := c.missing()
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
		out = appendRevs(append(out, `:{"missing":`...), a.Missing)
		if len(a.PossibleAncestors) > 0 {
			out = appendRevs(append(out, `,"possible_ancestors":`...), a.PossibleAncestors)
		}
		out = append(out, '}')
	}
	return c.sendJSON(http.StatusOK, append(out, '}'))
}

// missingRevs answers POST /{db}/_missing_revs.
func missingRevs(c *call) error {
	answers, err := c.missing()
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
		out = appendRevs(out, answers[i].Missing)
	}
	return c.sendJSON(http.StatusOK, append(out, "}}"...))
}

// missing reads the body of a comparison and asks the database.
func (c *call) missing() ([]shard.IDMissing, error) {
	asked, err := c.readRevisions()
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	return c.db.Missing(c.r.Context(), asked)
}

// readRevisions reads {"id":["rev",…],…}. An id that is given twice keeps its
// last list.
func (c *call) readRevisions() ([]shard.IDRevs, error) {
	if err := c.requireJSON(); err != nil {
		return nil, err
	}
	body, err := c.readJSON()
	if err != nil {
		return nil, err
	}
	return parseRevisions(body)
}

func parseRevisions(body []byte) ([]shard.IDRevs, error) {
	var out []shard.IDRevs
	places := map[string]int{}
	err := doc.EachMember(body, func(id string, value []byte) error {
		revs, err := parseRevList(value)
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
func purge(c *call) error {
	w, err := c.writeQuorum()
	if err != nil {
		return err
	}
	asked, err := c.readRevisions()
	if err != nil {
		return err
	}
	if err := c.checkPurge(asked); err != nil {
		return err
	}
	items := make([]shard.PurgeItem, len(asked))
	for i, a := range asked {
		items[i] = shard.PurgeItem{ID: a.ID, Revs: a.Revs}
	}
	c.api.stats.purgeRequests.Inc()
	outcomes, err := c.db.Purge(c.r.Context(), w, items)
	for i := range items {
		c.forgetUser(items[i].ID)
	}
	if err != nil {
		return err
	}
	return c.sendPurged(outcomes)
}

// checkPurge applies the limits of section [purge], and refuses ids that no
// document of this database has.
func (c *call) checkPurge(asked []shard.IDRevs) error {
	if int64(len(asked)) > c.cfg.Limits.PurgeMaxDocuments {
		return fault.New(fault.BadRequest, "Exceeded maximum number of documents.")
	}
	revs := 0
	for _, a := range asked {
		revs += len(a.Revs)
		if err := c.checkPartition(a.ID); err != nil {
			return err
		}
	}
	if int64(revs) > c.cfg.Limits.PurgeMaxRevisions {
		return fault.New(fault.BadRequest, "Exceeded maximum number of revisions.")
	}
	return nil
}

// sendPurged answers with what was purged. The status is the highest of all
// items: 201, 202 for one that fewer copies have than asked for, or that of an
// error.
func (c *call) sendPurged(outcomes []cluster.PurgeOutcome) error {
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
			f := c.describe(o.Err)
			c.logFailure(f, o.Err)
			status = max(status, f.status)
			out = f.appendJSON(out)
			c.api.stats.failedPurges.Inc()
			continue
		case o.Accepted:
			status = max(status, http.StatusAccepted)
		}
		out = appendRevs(out, o.Purged)
		c.api.stats.purgedDocuments.Inc()
		if len(o.Purged) > 0 {
			c.api.stats.databasePurges.Inc()
		}
	}
	return c.sendJSON(status, append(out, "}}"...))
}

// getPurgedInfos answers GET /{db}/_purged_infos: the log of purges.
func getPurgedInfos(c *call) error {
	infos, err := c.db.PurgedInfos(c.r.Context())
	if err != nil {
		return err
	}
	out := c.stream("")
	out.buf = append(out.buf, `{"purged_infos":[`...)
	for i := range infos {
		if i > 0 {
			out.buf = append(out.buf, ',')
		}
		out.buf = doc.AppendString(append(out.buf, `{"id":`...), infos[i].ID)
		out.buf = appendRevs(append(out.buf, `,"revs":`...), infos[i].Revs)
		out.buf = append(out.buf, '}')
		if err := out.spill(); err != nil {
			return err
		}
	}
	out.buf = append(out.buf, "]}\n"...)
	return out.Close()
}
