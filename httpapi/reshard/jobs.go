package reshard

import (
	"net/http"
	"strconv"
	"time"

	"divan/httpapi/core"
	"divan/reshard/job"
	"divan/storage/doc"
)

// getJobs answers GET /_reshard/jobs: those of all nodes.
func getJobs(c *core.Call) error {
	jobs := c.API.Deps.Reshard.Jobs()
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte {
		dst = strconv.AppendInt(append(dst, `{"total_rows":`...), int64(len(jobs)), 10)
		dst = append(dst, `,"offset":0,"jobs":[`...)
		for i, j := range jobs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJob(append(dst, '\n'), j)
		}
		return append(dst, "]}"...)
	})
}

// getJob answers GET /_reshard/jobs/{id}.
func getJob(c *core.Call) error {
	j, err := c.API.Deps.Reshard.Job(c.Request.Context(), c.Path[2])
	if err != nil {
		return err
	}
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte { return appendJob(dst, j) })
}

// deleteJob answers DELETE /_reshard/jobs/{id}.
func deleteJob(c *core.Call) error {
	if err := c.API.Deps.Reshard.Remove(c.Request.Context(), c.Path[2]); err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}

// appendJob appends a job as CouchDB shows it.
func appendJob(dst []byte, j *job.Job) []byte {
	for i, m := range []struct{ name, value string }{
		{"id", j.ID()},
		{"type", string(j.Type)},
		{"job_state", string(j.State)},
		{"split_state", string(j.Step)},
		{"source", j.Name()},
		{"node", j.Node},
		{"start_time", timestamp(j.Started)},
		{"update_time", timestamp(j.Updated)},
	} {
		dst = append(dst, "{,"[min(i, 1)], '"')
		dst = append(append(dst, m.name...), `":`...)
		dst = doc.AppendString(dst, m.value)
	}
	if j.To != "" {
		dst = doc.AppendString(append(dst, `,"target_node":`...), j.To)
	}
	if j.Type == job.Merge {
		dst = core.AppendStrings(append(dst, `,"sources":`...), j.Sources())
	}
	dst = append(dst, `,"state_info":{`...)
	if j.Reason != "" {
		dst = doc.AppendString(append(dst, `"reason":`...), j.Reason)
	}
	dst = core.AppendStrings(append(dst, `},"target":`...), j.Targets())
	dst = append(dst, `,"history":[`...)
	for i, e := range j.History {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = doc.AppendString(append(dst, `{"timestamp":`...), timestamp(e.Time))
		dst = doc.AppendString(append(dst, `,"type":`...), string(e.Type))
		dst = append(appendText(append(dst, `,"detail":`...), e.Detail), '}')
	}
	return append(dst, "]}"...)
}

func timestamp(unix int64) string { return time.Unix(unix, 0).UTC().Format("2006-01-02T15:04:05Z") }
