package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// balanced is a node in a dry run.
type balanced struct {
	Node                string
	Before, After, Goal int64
}

// spread asks how full the nodes are, and what would move.
func (m *member) spread(t *testing.T) (nodes []balanced, moves int, bytes int64) {
	t.Helper()
	var plan struct {
		Total int `json:"total_moves"`
		Bytes int64
		Nodes []balanced
	}
	if status, err := m.call("POST", "/_cluster/rebalance", map[string]bool{"dry_run": true}, &plan); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	return plan.Nodes, plan.Total, plan.Bytes
}

// awaitRebalance waits until nothing more is to be moved.
func (m *member) awaitRebalance(t *testing.T, most time.Duration) {
	t.Helper()
	var is struct {
		State           string
		Running         []any
		Planned, Moved  struct{ Copies int }
		Failed, Waiting any
	}
	wait(t, most, "the rebalance ends", func() bool {
		status, err := m.call("GET", "/_cluster/rebalance", nil, &is)
		return err == nil && status == 200 && is.State != "running" && len(is.Running) == 0
	})
	if is.State != "completed" {
		t.Errorf("%+v", is)
	}
}

// growDatabases is how many databases TestGrowAndShrink has; DIVAN_GROW says another number.
const growDatabases = 6

// TestGrowAndShrink: a fourth node joins three and takes its part, one is drained and taken out,
// one is lost for good and its copies are made anew, all while clients write and read through the
// nodes that stay: none is refused.
func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("four processes, which take minutes under the race detector")
	}
	count, limit := growDatabases, 4*patience
	if text := os.Getenv("DIVAN_GROW"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		limit = 20 * time.Minute
	}
	a, b, c := threeNodes(t)
	random := rand.NewChaCha8([32]byte{})
	var ledgers []*ledger
	for i := range count {
		l := newLedger(t, a, fmt.Sprint("db", i), 2, 3)
		ledgers = append(ledgers, l)
		for k := range 8 { // of uneven sizes
			text := make([]byte, 50_000*(1+i%5)) // which no compression makes smaller than the logs of the stores
			_, _ = random.Read(text)             // never fails
			body := fmt.Sprintf(`{"text":"%x"}`, text)
			a.want(t, "PUT", fmt.Sprintf("/db%d/large%d", i, k), body, 201)
		}
	}
	busy := func(through []*member, do func()) {
		t.Helper()
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		end := meanwhile(t, func(i int) {
			<-pace.C
			l, m := ledgers[i%len(ledgers)], through[i%len(through)]
			id := fmt.Sprint("doc", i/len(ledgers)%5)
			if err := errors.Join(l.write(m, id, false), l.reads(m, map[string]told{id: l.sofar()[id]}, "")); err != nil {
				t.Error(err)
			}
		})
		do()
		end()
	}
	join := func(m *member) {
		t.Helper()
		_, port, _ := strings.Cut(m.listen, ":")
		a.want(t, "POST", "/_cluster_setup", `{"action":"add_node","host":"127.0.0.1","port":`+port+`,"username":"adm","password":"pass"}`, 201)
		eventually(t, m.name+" answers", func() bool {
			status, _, err := m.do("GET", "/_up", "", nil)
			return err == nil && status == 200
		})
	}
	d := newMember(t, 4)
	busy([]*member{a, b, c}, func() {
		join(d)
		_, moves, bytes := b.spread(t)
		begin := time.Now()
		c.want(t, "POST", "/_cluster/rebalance", "", 202)
		d.awaitRebalance(t, limit)
		nodes, _, _ := a.spread(t)
		t.Logf("%d copies, %d bytes were to move, which took %v: %+v", moves, bytes, time.Since(begin).Round(time.Second), nodes)
		for _, n := range nodes {
			if off := max(n.Before-n.Goal, n.Goal-n.Before); off*10 > n.Goal {
				t.Errorf("%+v", n)
			}
		}
	})
	busy([]*member{a, c, d}, func() {
		begin := time.Now()
		a.want(t, "POST", "/_node/"+b.name+"/_drain", "", 202)
		c.awaitRebalance(t, limit)
		var is struct{ Drained bool }
		if status, err := d.call("GET", "/_node/"+b.name+"/_drain", nil, &is); err != nil || status != 200 || !is.Drained {
			t.Errorf("%d, %v, %+v", status, err, is)
		}
		t.Logf("drained in %v", time.Since(begin).Round(time.Second))
		a.takeOut(t, b.name)
		b.die()
	})
	e := newMember(t, 5)
	join(e)
	eventually(t, "a new node votes, so that another may be lost", func() bool {
		var now struct{ Metadata struct{ Voters []string } }
		status, err := a.call("GET", "/_node/_local/_system", nil, &now)
		return err == nil && status == 200 && len(now.Metadata.Voters) >= 3 && !slices.Contains(now.Metadata.Voters, b.name)
	})
	c.die()
	busy([]*member{a, d, e}, func() {
		begin := time.Now()
		a.takeOut(t, c.name)
		d.want(t, "POST", "/_cluster/rebalance", "", 202)
		e.awaitRebalance(t, limit)
		t.Logf("complete again in %v", time.Since(begin).Round(time.Second))
	})
	for _, l := range ledgers {
		l.awaitAll(t, a, d, e)
		if l.other > 0 {
			t.Errorf("%s: %d requests were refused", l.db, l.other)
		}
	}
}

// takeOut takes a node out of the cluster.
func (m *member) takeOut(t *testing.T, name string) {
	t.Helper()
	var doc struct {
		Rev string `json:"_rev"`
	}
	path := "/_node/_local/_nodes/" + name
	if status, err := m.call("GET", path, nil, &doc); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	m.want(t, "DELETE", path+"?rev="+doc.Rev, "", 200)
}
