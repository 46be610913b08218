package scheduler

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func someSettings() Settings {
	return Settings{
		MaxJobs: 3, MaxChurn: 2, MaxHistory: 20, Interval: time.Minute, HealthThreshold: 2 * time.Minute,
		Sharing: Sharing{UsageCoeff: 0.5, PriorityCoeff: 0.98},
	}
}

// model runs the jobs of a queue in virtual time.
type model struct {
	q       *Queue
	s       Settings
	now     time.Time
	jobs    []*Job
	running map[*Job]bool
	next    int
}

func newModel(s Settings) *model {
	return &model{q: NewQueue(), s: s, now: time.Unix(1_700_000_000, 0), running: map[*Job]bool{}}
}

func (m *model) add(share string, continuous, transient bool) *Job {
	m.next++
	j := &Job{ID: fmt.Sprint(m.next), Share: share, Continuous: continuous, Transient: transient}
	m.q.Add(j, m.now, &m.s)
	m.jobs = append(m.jobs, j)
	return j
}

// fill starts what may start, and checks the invariants I1 to I3.
func (m *model) fill(t interface{ Errorf(string, ...any) }) []*Job {
	started := m.q.Fill(m.now, &m.s)
	for _, j := range started {
		if m.running[j] {
			t.Errorf("job %s was started twice", j.ID)
		}
		for other := range m.running {
			if other.ID == j.ID {
				t.Errorf("another run of job %s has not ended", j.ID)
			}
		}
		if j.due.After(m.now) {
			t.Errorf("job %s was started before its pause was over", j.ID)
		}
		m.running[j] = true
	}
	if len(started) > 0 && len(m.running) > m.s.MaxJobs {
		t.Errorf("%d jobs run", len(m.running))
	}
	return started
}

func (m *model) end(j *Job, how Outcome) {
	delete(m.running, j)
	m.q.Ended(j, how, "broken", m.now, &m.s)
}

func (m *model) cycle() {
	for _, j := range m.q.Cycle(m.now, &m.s) {
		m.end(j, Interrupted)
	}
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(someSettings())
		pick := func() *Job {
			if len(m.jobs) == 0 {
				return nil
			}
			return m.jobs[rapid.IntRange(0, len(m.jobs)-1).Draw(t, "job")]
		}
		stopping := map[*Job]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				m.add(rapid.SampledFrom([]string{"", "_replicator"}).Draw(t, "share"), rapid.Bool().Draw(t, "continuous"), rapid.Bool().Draw(t, "transient"))
			},
			"again": func(t *rapid.T) { // the same id once more, after the first was removed
				if j := pick(); j != nil && m.q.jobs[j.ID] == nil {
					again := &Job{ID: j.ID, Continuous: true}
					m.q.Add(again, m.now, &m.s)
					m.jobs = append(m.jobs, again)
				}
			},
			"remove": func(t *rapid.T) {
				if j := pick(); j != nil {
					m.q.Remove(j)
				}
			},
			"end": func(t *rapid.T) {
				if j := pick(); j != nil && m.running[j] {
					m.end(j, rapid.SampledFrom([]Outcome{Interrupted, Done, Failed}).Draw(t, "how"))
					delete(stopping, j)
				}
			},
			"cycle": func(t *rapid.T) {
				for _, j := range m.q.Cycle(m.now, &m.s) {
					if stopping[j] || !m.running[j] || !j.Continuous {
						t.Errorf("job %s cannot be stopped", j.ID)
					}
					stopping[j] = true
				}
			},
			"settings": func(t *rapid.T) { m.s.MaxJobs = rapid.IntRange(1, 5).Draw(t, "max_jobs") },
			"time": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) { m.fill(t) },
		})
		for j := range m.running {
			m.end(j, Done)
		}
		if m.q.running != 0 || m.q.stopping != 0 || len(m.q.leaving) != 0 {
			t.Errorf("%d run, %d stop, %d leave when all have ended", m.q.running, m.q.stopping, len(m.q.leaving))
		}
	})
}

// No job starves: continuous jobs of shares of any weight all run within a bounded number of
// cycles.
func TestNobodyStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someSettings()
		s.MaxJobs = rapid.IntRange(1, 5).Draw(t, "max_jobs")
		s.MaxChurn = rapid.IntRange(1, 5).Draw(t, "max_churn")
		weights := map[string]int{"a": rapid.IntRange(1, 10).Draw(t, "a"), "b": rapid.IntRange(1, 10).Draw(t, "b"), "c": 10}
		s.Shares = func(share string) int { return weights[share] }
		m := newModel(s)
		for share := range weights {
			for range rapid.IntRange(1, 6).Draw(t, "jobs") {
				m.add(share, true, false)
			}
		}
		ran := map[*Job]bool{}
		for range 1500 {
			for _, j := range m.fill(t) {
				ran[j] = true
			}
			m.now = m.now.Add(s.Interval)
			m.cycle()
		}
		if len(ran) != len(m.jobs) {
			t.Fatalf("%d of %d jobs have run", len(ran), len(m.jobs))
		}
	})
}

// Equal jobs take turns: the longest waiting first, and none runs much more than
// another.
func TestTurns(t *testing.T) {
	s := someSettings()
	m := newModel(s)
	for range 7 {
		m.add("_replicator", true, false)
	}
	var order []string
	runs := map[string]int{}
	for range 70 {
		for _, j := range m.fill(t) {
			order = append(order, j.ID)
			runs[j.ID]++
		}
		m.now = m.now.Add(s.Interval)
		m.cycle()
	}
	if got := fmt.Sprint(order[:7]); got != "[1 2 3 4 5 6 7]" {
		t.Errorf("order %s", got)
	}
	for id, n := range runs {
		if n < 15 || n > 25 {
			t.Errorf("job %s has run %d times of 140", id, n)
		}
	}
}

// A share with twice the shares of another one runs more.
func TestShares(t *testing.T) {
	s := someSettings()
	s.MaxJobs, s.MaxChurn = 4, 4
	s.Shares = func(share string) int { return map[string]int{"rich": 200, "poor": 100}[share] }
	m := newModel(s)
	for range 20 {
		m.add("rich", true, false)
		m.add("poor", true, false)
	}
	runs := map[string]int{}
	for range 400 {
		m.fill(t)
		for j := range m.running {
			runs[j.Share]++
		}
		m.now = m.now.Add(s.Interval)
		m.cycle()
	}
	if runs["rich"] < runs["poor"]*5/4 || runs["poor"] < 100 {
		t.Errorf("runs: %v", runs)
	}
}

func TestBackOff(t *testing.T) {
	m := newModel(someSettings())
	j := m.add("", true, false)
	want := 30 * time.Second
	for n := 1; n <= 14; n++ {
		if started := m.fill(t); len(started) != 1 {
			t.Fatalf("run %d does not start", n)
		}
		m.now = m.now.Add(time.Second)
		m.end(j, Failed)
		if s := j.state(m.now, m.s.HealthThreshold); !s.Crashing || s.Crashes != n || s.Reason != "broken" || len(s.History) > 20 {
			t.Fatalf("state after %d crashes: %+v", n, s)
		}
		if got := m.q.Next(m.now, &m.s).Sub(m.now); got != want {
			t.Fatalf("pause %v after %d crashes, want %v", got, n, want)
		}
		m.now = m.now.Add(want - 1)
		if len(m.fill(t)) != 0 {
			t.Fatal("started too early")
		}
		m.now = m.now.Add(1)
		want = min(2*want, 30*time.Second<<10)
	}
	m.fill(t)
	m.now = m.now.Add(m.s.HealthThreshold + 1)
	if s := j.state(m.now, m.s.HealthThreshold); !s.Running || s.Crashes != 0 {
		t.Errorf("a healthy run: %+v", s)
	}
	m.end(j, Failed)
	if j.crashes != 1 {
		t.Errorf("%d crashes after a healthy run", j.crashes)
	}
}

// One-shot jobs are not stopped for others, and no job is stopped when none waits.
func TestNotStopped(t *testing.T) {
	m := newModel(someSettings())
	for range 3 {
		m.add("", false, false)
	}
	m.fill(t)
	m.add("", true, false)
	m.now = m.now.Add(time.Hour)
	if stop := m.q.Cycle(m.now, &m.s); len(stop) != 0 {
		t.Errorf("%d one-shot jobs are to stop", len(stop))
	}
	m = newModel(someSettings())
	for range 3 {
		m.add("", true, false)
	}
	m.fill(t)
	m.now = m.now.Add(time.Hour)
	if stop := m.q.Cycle(m.now, &m.s); len(stop) != 0 {
		t.Errorf("%d jobs are to stop for nobody", len(stop))
	}
	m.s.MaxJobs = 1
	if stop := m.q.Cycle(m.now, &m.s); len(stop) != 2 {
		t.Errorf("%d of 3 jobs are to stop when one may run", len(stop))
	}
}
