package clusterctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"divan/cmd/divan/httpclient"
	"divan/cmd/divan/progress"
)

// JobRequest says which jobs are made. Empty members are not part of the request.
type JobRequest struct {
	Type     string `json:"type"` // split, merge or move
	Database string `json:"db"`
	Range    string `json:"range,omitempty"`
	Node     string `json:"node,omitempty"`
	Target   string `json:"target,omitempty"`
}

// jobSteps are the steps of a job in their order.
func jobSteps() []string {
	return []string{
		"new", "initial_copy", "topoff1", "build_indices", "topoff2", "copy_local_docs", "update_shardmap",
		"wait_source_close", "topoff3", "source_delete", "completed",
	}
}

// made is the outcome of a request for a job.
type made struct {
	ID    string
	Error string
	Node  string
	Shard string
}

// Reshard makes jobs, and follows them.
func Reshard(ctx context.Context, cfg Config, request JobRequest, noWait bool) error {
	return run(ctx, cfg, func(ctx context.Context, c *command) error {
		all, err := c.makeJobs(ctx, request)
		if err != nil {
			return err
		}
		s := &jobSource{c: c, began: time.Now(), jobs: map[string]*job{}}
		refused := ""
		for _, m := range all {
			if m.Error != "" {
				refused = fmt.Sprintf("%s on %s: %s", m.Shard, m.Node, oneLine(m.Error))
				if _, err := fmt.Fprintln(c.cfg.Progress, "refused: "+refused); err != nil {
					return err
				}
				continue
			}
			s.ids = append(s.ids, m.ID)
		}
		if err := c.printf("%s of %s.\n", count(len(s.ids), "job", "jobs"), count(len(all), "shard copy", "shard copies")); err != nil {
			return err
		}
		if noWait || len(s.ids) == 0 {
			err = c.printf("Look at them: divan cluster status %s\n", c.url())
		} else {
			err = c.followJobs(ctx, request.Type, s)
		}
		if err == nil && refused != "" {
			err = fmt.Errorf("%s could not be made; the last one: %s", count(len(all)-len(s.ids), "job", "jobs"), refused)
		}
		return err
	})
}

// makeJobs asks for jobs.
func (c *command) makeJobs(ctx context.Context, request JobRequest) ([]made, error) {
	var out []made
	err := c.send(ctx, http.MethodPost, jobsPath, request, &out)
	var r *httpclient.Refusal
	// When no job could be made the answer lists why, with the status of an error.
	if errors.As(err, &r) && json.Unmarshal(r.Body, &out) == nil && len(out) > 0 {
		return nil, fmt.Errorf("status %d: %s on %s: %s", r.HTTPStatus, out[0].Shard, out[0].Node, oneLine(out[0].Error))
	}
	return out, err
}

func (c *command) followJobs(ctx context.Context, name string, s *jobSource) error {
	hint := fmt.Sprintf("The jobs go on. Look at them: divan cluster status %s. Give one up: %s -X DELETE %s%s",
		c.url(), c.curl(), c.client.URL, jobPath(s.ids[0]))
	if err := c.follow(ctx, name, s, hint); err != nil {
		return err
	}
	return s.outcome()
}

// jobSource follows jobs.
type jobSource struct {
	c     *command
	ids   []string
	began time.Time
	jobs  map[string]*job // as of the last look
}

func ended(state string) bool {
	return slices.Contains([]string{jobCompleted, jobFailed, jobStopped}, state)
}

// look implements source.
func (s *jobSource) look(ctx context.Context, show *progress.Display) (extent, bool, error) {
	steps := jobSteps()
	e := extent{all: int64(len(s.ids) * (len(steps) - 1))}
	var under []string
	told, done := 0, 0
	for _, id := range s.ids {
		before := s.jobs[id]
		if before == nil || !ended(before.State) {
			now, err := s.ask(ctx, id)
			if err != nil {
				return extent{}, false, err
			}
			s.jobs[id] = now
			if ended(now.State) {
				if told++; told <= linesAtOnce && (now.State != jobCompleted || !s.c.cfg.Terminal) {
					show.Line("%s", now.end())
				}
			}
		}
		j := s.jobs[id]
		if ended(j.State) {
			done++
			e.done += int64(len(steps) - 1)
			continue
		}
		e.done += int64(max(0, slices.Index(steps, j.Step)))
		text := j.Step
		if j.Info.Reason != "" {
			text += " (" + oneLine(j.Info.Reason) + ")"
		}
		under = append(under, text)
	}
	e.text = fmt.Sprintf("%d of %s done", done, count(len(s.ids), "job", "jobs"))
	if len(under) > 0 {
		e.text += "; " + tally(under)
	}
	e.brief = e.text
	return e, done == len(s.ids), nil
}

// ask asks for a job. One that is not known is not known yet, when another node has taken the request, or was
// removed.
func (s *jobSource) ask(ctx context.Context, id string) (*job, error) {
	j := &job{}
	err := s.c.client.Get(ctx, jobPath(id), j)
	switch {
	case !refusedAs(err, http.StatusNotFound):
		return j, err
	case s.jobs[id] == nil && time.Since(s.began) < patience:
		return &job{ID: id, State: "new", Step: "new"}, nil
	case s.jobs[id] == nil:
		return nil, err
	}
	gone := *s.jobs[id]
	gone.State, gone.Info.Reason = jobStopped, "it was removed"
	return &gone, nil
}

// end is a line about a job that has ended.
func (j *job) end() string {
	out := j.of() + ": " + j.State
	if j.Info.Reason != "" {
		out += " (" + oneLine(j.Info.Reason) + ")"
	}
	return out
}

// outcome prints how the jobs have ended, and returns an error unless all succeeded.
func (s *jobSource) outcome() error {
	var last *job
	bad := 0
	for _, id := range s.ids {
		if j := s.jobs[id]; j.State != jobCompleted {
			bad++
			last = j
		}
	}
	if err := s.c.printf("%d completed in %v.\n", len(s.ids)-bad, time.Since(s.began).Round(100*time.Millisecond)); err != nil {
		return err
	}
	if last != nil {
		return fmt.Errorf("%d of %s not completed; the last one: %s", bad, count(len(s.ids), "job", "jobs"), last.end())
	}
	return nil
}
