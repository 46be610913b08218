package reshard

import (
	"errors"
	"net/http"
	"strconv"

	"divan/httpapi/core"
	"divan/reshard"
	"divan/reshard/job"
	"divan/storage/doc"
	"divan/storage/fault"
)

// stateName returns the API's name for whether jobs run.
func stateName(s reshard.State) string {
	if s.Stopped {
		return string(job.Stopped)
	}
	return string(job.Running)
}

// getSummary answers GET /_reshard.
func getSummary(c *core.Call) error {
	t := c.API.Deps.Reshard
	state, jobs, number := t.State(), t.Jobs(), map[job.State]int{}
	for _, j := range jobs {
		number[j.State]++
	}
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte {
		dst = doc.AppendString(append(dst, `{"state":`...), stateName(state))
		dst = appendText(append(dst, `,"state_reason":`...), state.Reason)
		for _, s := range []job.State{job.Completed, job.Failed, job.Running, job.Stopped} {
			dst = append(append(append(dst, `,"`...), s...), `":`...)
			dst = strconv.AppendInt(dst, int64(number[s]), 10)
		}
		dst = strconv.AppendInt(append(dst, `,"total":`...), int64(len(jobs)), 10)
		return append(dst, '}')
	})
}

// getState answers GET /_reshard/state.
func getState(c *core.Call) error {
	s := c.API.Deps.Reshard.State()
	return sendState(c, stateName(s), s.Reason)
}

// sendState sends a state and its reason.
func sendState(c *core.Call, state, reason string) error {
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte {
		dst = doc.AppendString(append(dst, `{"state":`...), state)
		return append(appendText(append(dst, `,"reason":`...), reason), '}')
	})
}

// appendText appends a text, null for none.
func appendText(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return doc.AppendString(dst, text)
}

// Reasons for which jobs are stopped when the request gives none.
const (
	allStopped = "Cluster-wide resharding stopped by the user"
	jobStopped = "Stopped by user"
)

// putState answers PUT /_reshard/state.
func putState(c *core.Call) error {
	run, reason, err := wanted(c, allStopped)
	if err != nil {
		return err
	}
	t, ctx := c.API.Deps.Reshard, c.Request.Context()
	if run {
		err = t.Start(ctx)
	} else {
		err = t.Stop(ctx, reason)
	}
	return done(c, err)
}

// getJobState answers GET /_reshard/jobs/{id}/state.
func getJobState(c *core.Call) error {
	j, err := c.API.Deps.Reshard.Job(c.Request.Context(), c.Path[2])
	if err != nil {
		return err
	}
	return sendState(c, string(j.State), j.Reason)
}

// putJobState answers PUT /_reshard/jobs/{id}/state.
func putJobState(c *core.Call) error {
	run, reason, err := wanted(c, jobStopped)
	if err != nil {
		return err
	}
	t, ctx, id := c.API.Deps.Reshard, c.Request.Context(), c.Path[2]
	if run {
		err = t.ResumeJob(ctx, id)
	} else {
		err = t.StopJob(ctx, id, reason)
	}
	return done(c, err)
}

// done answers what has changed a state.
func done(c *core.Call, err error) error {
	if errors.Is(err, reshard.ErrStopped) {
		return c.Response.SendAppended(http.StatusInternalServerError, func(dst []byte) []byte {
			return append(doc.AppendString(append(dst, `{"error":`...), err.Error()), '}')
		})
	}
	if err != nil {
		return err
	}
	return c.Response.SendOK(http.StatusOK)
}

// wanted reads the state that a body asks for; unsaid is the reason when it has none. The
// reason has either of two names (api.md section 20, row 8).
func wanted(c *core.Call, unsaid string) (run bool, reason string, err error) {
	body, err := object(c)
	if err != nil {
		return false, "", err
	}
	value := doc.Lookup(body, "state")
	if value == nil {
		return false, "", fault.New(fault.BadRequest, "Expected a `state` field")
	}
	switch state, _ := doc.Unquote(value); job.State(state) {
	case job.Running:
		return true, "", nil
	case job.Stopped:
	default:
		return false, "", fault.New(fault.BadRequest, "State field not `running` or `stopped`")
	}
	for _, name := range []string{"reason", "state_reason"} {
		value := doc.Lookup(body, name)
		text, isText := doc.Unquote(value)
		switch {
		case text != "":
			return false, text, nil
		case value != nil && !isText && string(value) != "null":
			return false, string(value), nil
		}
	}
	return false, unsaid, nil
}

// object reads a body that has to be a JSON object.
func object(c *core.Call) ([]byte, error) {
	if err := c.Body.RequireJSON(); err != nil {
		return nil, err
	}
	text, err := c.Body.ReadAll(0)
	if err != nil {
		return nil, err
	}
	return jsonObject(text)
}

// jsonObject returns the canonical text of a body that has to be a JSON object.
func jsonObject(text []byte) ([]byte, error) {
	body, err := doc.Canonical(nil, text)
	if err != nil {
		return nil, err
	}
	if !doc.IsObject(body) {
		return nil, fault.New(fault.BadRequest, "Request body must be a JSON object")
	}
	return body, nil
}
