package scheduler

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// addOf adds a job of an account.
func (m *model) addOf(account string, continuous bool) *Job {
	m.next++
	j := &Job{ID: fmt.Sprint(m.next), Account: account, Share: "_replicator", Continuous: continuous}
	m.q.Add(j, m.now, &m.s)
	m.jobs = append(m.jobs, j)
	return j
}

// runs counts the jobs that run, by account.
func (m *model) runs() map[string]int {
	n := map[string]int{}
	for j := range m.running {
		n[j.Account]++
	}
	return n
}

func accountsOf() []string { return []string{"a", "b", "c", "d"} }

// Places go to accounts one by one: none has two more than another one that waits.
func TestPlacesByTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someSettings()
		s.MaxJobs = rapid.IntRange(1, 12).Draw(t, "max_jobs")
		m := newModel(s)
		wanted := map[string]int{}
		for _, account := range accountsOf() {
			wanted[account] = rapid.IntRange(0, 12).Draw(t, account)
			for range wanted[account] {
				m.addOf(account, rapid.Bool().Draw(t, "continuous"))
			}
		}
		m.fill(t)
		runs, total := m.runs(), 0
		for a, n := range wanted {
			total += n
			for b := range wanted {
				if runs[a] < n && runs[b] > runs[a]+1 {
					t.Errorf("%s waits with %d jobs while %s has %d", a, runs[a], b, runs[b])
				}
			}
		}
		if len(m.running) != min(total, s.MaxJobs) {
			t.Errorf("%d of %d jobs run", len(m.running), total)
		}
	})
}

// I4, after any history; and an account that is alone is never interrupted but by a cycle.
func TestFirstJobStartsAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someSettings()
		s.MaxJobs = rapid.IntRange(1, 6).Draw(t, "max_jobs")
		m := newModel(s)
		accounts := accountsOf()[:rapid.IntRange(1, 4).Draw(t, "accounts")]
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				account := rapid.SampledFrom(accounts).Draw(t, "account")
				for range rapid.IntRange(1, 8).Draw(t, "jobs") {
					m.addOf(account, rapid.Bool().Draw(t, "continuous"))
				}
			},
			"end": func(t *rapid.T) {
				j := rapid.SampledFrom(append([]*Job{nil}, m.jobs...)).Draw(t, "job")
				if j != nil && m.running[j] {
					m.end(j, rapid.SampledFrom([]Outcome{Done, Failed}).Draw(t, "how"))
				}
			},
			"cycle": func(*rapid.T) { m.cycle() },
			"time": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				stop := m.q.Preempt(m.now, &m.s)
				if len(accounts) == 1 && len(stop) > 0 {
					t.Fatalf("%d jobs make space for others of their account", len(stop))
				}
				for _, j := range stop {
					m.end(j, Interrupted)
				}
				m.fill(t)
				runs, ready := m.runs(), m.q.fairShare(m.now, &m.s.Sharing)
				for account, a := range ready.accounts {
					for other, n := range runs {
						if len(a.ready) > 0 && runs[account] == 0 && n > 1 {
							t.Fatalf("%s has no job that runs, and %s has %d", account, other, n)
						}
					}
				}
				if next := m.q.Next(m.now, &m.s); !next.IsZero() && !next.After(m.now) {
					t.Fatalf("it is to be asked again at %v, which is now", next)
				}
			},
		})
	})
}

// An account that has taken all places gives them up to its share, MaxChurn in each cycle,
// also where its jobs are not continuous; and then all continuous jobs have their turns.
func TestSharesOfAccounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someSettings()
		s.MaxJobs = rapid.IntRange(2, 8).Draw(t, "max_jobs")
		s.MaxChurn = rapid.IntRange(1, 4).Draw(t, "max_churn")
		m := newModel(s)
		once := rapid.Bool().Draw(t, "one-shot")
		for range 20 {
			m.addOf("a", !once)
		}
		m.fill(t)
		for range 20 {
			m.addOf("b", true)
		}
		for n := 0; n < s.MaxJobs; n += s.MaxChurn {
			m.now = m.now.Add(s.Interval)
			before := m.runs()
			stop := m.q.Cycle(m.now, &m.s)
			if len(stop) > s.MaxChurn {
				t.Fatalf("%d jobs make space in a cycle", len(stop))
			}
			for _, j := range stop {
				m.end(j, Interrupted)
			}
			m.fill(t)
			if after := m.runs(); after["b"] < before["b"] {
				t.Fatalf("%v became %v", before, after)
			}
		}
		if runs := m.runs(); runs["a"] > runs["b"]+1 || runs["b"] > runs["a"]+1 {
			t.Errorf("%v of %d places", runs, s.MaxJobs)
		}
		ran := map[*Job]bool{}
		for range 300 {
			m.now = m.now.Add(s.Interval)
			m.cycle()
			for _, j := range m.fill(t) {
				ran[j] = true
			}
		}
		for _, j := range m.jobs {
			if j.Continuous && !ran[j] && !m.running[j] {
				t.Errorf("job %s of %s has not run", j.ID, j.Account)
			}
		}
	})
}

// A replicator database with more shares than another one has more of its jobs run, as long
// as both have jobs of accounts of their own.
func TestSharesOfDatabases(t *testing.T) {
	s := someSettings()
	s.MaxJobs = 9
	s.Shares = func(share string) int { return map[string]int{"rich": 200, "poor": 100}[share] }
	m := newModel(s)
	for range 20 {
		m.addOf("a", true).Share = "rich"
		m.addOf("b", true).Share = "poor"
	}
	m.fill(t)
	if runs := m.runs(); runs["a"] != 6 || runs["b"] != 3 {
		t.Errorf("%v", runs)
	}
}

// Five hundred jobs that hang do not keep another account's first job waiting, be they
// continuous or not.
func TestRunnerFirstJob(t *testing.T) {
	for _, continuous := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := someSettings()
			s.MaxJobs = 50
			r := running(t, s)
			for i := range 500 {
				r.Add(&Job{ID: fmt.Sprint(i), Account: "greedy", Continuous: continuous, Run: untilStopped})
			}
			synctest.Wait()
			began, started := time.Now(), atomic.Int64{}
			for i := range 3 {
				r.Add(&Job{ID: fmt.Sprint("mine", i), Account: "modest", Run: func(context.Context) error {
					started.Add(1)
					return nil
				}})
			}
			synctest.Wait()
			if n := started.Load(); n != 3 || time.Since(began) != 0 {
				t.Errorf("%d of 3 jobs have started after %v", n, time.Since(began))
			}
			if f := r.Figures(); f.Running != s.MaxJobs || f.Total != 500 {
				t.Errorf("%+v", f)
			}
		})
	}
}
