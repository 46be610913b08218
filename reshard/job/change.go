package job

// What requests and the work on a job change in it. Times are unix seconds; history is
// how many entries of the history are kept.

// Stop stops a job that has not ended, and reports whether that changed anything. One that
// was stopped already has another reason then.
func (j *Job) Stop(reason string, now int64, history int) bool {
	reason = cut(reason)
	if j.Ended() || j.State == Stopped && !j.Disabled && j.Reason == reason {
		return false
	}
	j.State, j.Reason, j.Disabled = Stopped, reason, false
	j.note(now, history)
	return true
}

// Disable stops a job because resharding is stopped everywhere, unless it does not run anyway.
func (j *Job) Disable(now int64, history int) bool {
	if j.State != New && j.State != Running {
		return false
	}
	j.State, j.Reason, j.Disabled = Stopped, Disabled, true
	j.note(now, history)
	return true
}

// Enable lets a job go on that Disable has stopped.
func (j *Job) Enable(now int64, history int) bool {
	return j.Disabled && j.State == Stopped && j.Resume(now, history)
}

// Resume lets a job go on that was stopped or has failed, and reports whether it was one.
func (j *Job) Resume(now int64, history int) bool {
	if j.State != Stopped && j.State != Failed {
		return false
	}
	j.State, j.Reason, j.Disabled, j.Retries = Running, "", false, 0
	if j.Step == StepNew {
		j.State, j.Updated = New, now // what is new is not in the history twice
		return true
	}
	j.note(now, history)
	return true
}

// Begin notes that something is begun, by what was seen, and reports whether that changed
// anything in the job.
func (j *Job) Begin(t *Todo, s *Seen, now int64, history int) (changed bool) {
	if t.Do == Add {
		changed = j.Copy != s.Source.ID
		j.Copy = s.Source.ID
	}
	if j.Step == t.Step && j.State == Running {
		return changed
	}
	j.Enter(t.Step, now, history)
	return true
}

// Did notes that it is done.
func (j *Job) Did() (changed bool) {
	changed = j.Retries > 0 || j.Reason != ""
	j.Retries, j.Reason = 0, ""
	return changed
}

// Enter begins a step.
func (j *Job) Enter(s Step, now int64, history int) {
	j.State, j.Step, j.Reason, j.Disabled = Running, s, "", false
	j.note(now, history)
}

// Tried notes that what was to be done has failed, and reports whether it is tried again:
// after retries failures in a row the job has failed.
func (j *Job) Tried(reason string, retries int, now int64, history int) (again bool) {
	if j.Retries++; j.Retries > retries {
		j.Fail(reason, now, history)
		return false
	}
	j.Reason, j.Updated = cut(reason), now
	return true
}

// Await notes why nothing can be done for now, and reports whether that is news.
func (j *Job) Await(reason string, now int64) (changed bool) {
	reason = cut(reason)
	changed = j.Reason != reason
	j.Reason, j.Updated = reason, now
	return changed
}

// Fail ends a job.
func (j *Job) Fail(reason string, now int64, history int) {
	j.State, j.Reason, j.Retries = Failed, cut(reason), 0
	j.note(now, history)
}

// Finish ends a job whose source is gone, with all steps that are left.
func (j *Job) Finish(now int64, history int) {
	for s := max(j.Step.place()+1, WaitSourceClose.place()); s < StepCompleted.place(); s++ {
		j.Enter(steps()[s], now, history)
	}
	j.State, j.Step, j.Reason, j.Retries = Completed, StepCompleted, "", 0
	j.note(now, history)
}
