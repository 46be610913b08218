package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for want, figures := range map[float64][]float64{0: nil, 3: {3}, 2.5: {4, 1}, 5: {9, 5, 1}, 4: {8, 1, 3, 5}} {
		before := slices.Clone(figures)
		if got := median(figures); got != want || !slices.Equal(figures, before) {
			t.Errorf("%v of %v", got, figures)
		}
	}
}

func TestRatioOf(t *testing.T) {
	for name, c := range map[string]struct {
		first, second []float64
		want          Ratio
	}{
		"none":              {nil, nil, Ratio{}},
		"one":               {[]float64{6}, []float64{3}, Ratio{2, 2, 2, 1}},
		"odd":               {[]float64{1, 8, 3}, []float64{2, 2, 3}, Ratio{1, 0.5, 4, 3}},
		"even":              {[]float64{1, 8, 3, 4}, []float64{2, 2, 3, 2}, Ratio{1.5, 0.5, 4, 4}},
		"paired by round":   {[]float64{10, 100}, []float64{10, 100}, Ratio{1, 1, 1, 2}},
		"less than a step":  {[]float64{0, 6, 5}, []float64{1, 3, 0}, Ratio{2, 2, 2, 1}},
		"nothing is a step": {[]float64{0, 0}, []float64{0, 1}, Ratio{}},
	} {
		if got := ratioOf(c.first, c.second); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOrderAlternates(t *testing.T) {
	for round, want := range [][2]int{{0, 1}, {1, 0}, {0, 1}, {1, 0}} {
		if got := order(round); got != want {
			t.Errorf("round %d: %v", round, got)
		}
	}
}

func TestCompared(t *testing.T) {
	got := compared(workload{name: "get", unit: "documents"}, &[2][]Result{
		{{PerSecond: 100, ServerCPU: 0.2, Errors: 1}, {PerSecond: 300, ServerCPU: 0.1}, {PerSecond: 200, ServerCPU: 0.3, Errors: 2}},
		{{PerSecond: 200, ServerCPU: 0.1}, {PerSecond: 200, ServerCPU: 0.2}, {PerSecond: 200, ServerCPU: 0}},
	})
	want := Compared{
		Name: "get", Unit: "documents", Rounds: 3,
		Servers:   [2]Figures{{PerSecond: 200, ServerCPU: 0.2, Errors: 3}, {PerSecond: 200, ServerCPU: 0.1}},
		PerSecond: Ratio{1, 0.5, 1.5, 3}, ServerCPU: Ratio{1.25, 0.5, 2, 2},
	}
	if got != want {
		t.Errorf("%+v", got)
	}
}

func TestPrintComparison(t *testing.T) {
	c := &Comparison{
		Servers: [2]Side{{Address: "127.0.0.1:1", Server: "A"}, {Address: "127.0.0.1:2", Server: "B"}}, Rounds: 3,
		Workloads: []Compared{{
			Name: "attachment_get", Unit: "bytes", Rounds: 3, Servers: [2]Figures{{PerSecond: 7e6}, {PerSecond: 5e6, Errors: 4}}, PerSecond: Ratio{1.4, 1.2, 1.6, 3},
		}},
	}
	for _, pids := range [][]int{nil, {1}} {
		c.Servers[0].PIDs = pids
		var out, machine bytes.Buffer
		if err := errors.Join(c.Print(&out), c.PrintJSON(&machine)); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		want := []string{"attachment_get", "3", "MB", "|", "7", "5", "1.400", "1.200", "1.600", "|"}
		if pids != nil {
			want = append(want, "0.000", "0.000", "-", "-", "-", "|")
		}
		if got := strings.Fields(lines[len(lines)-2]); !slices.Equal(got, append(want, "0", "4")) {
			t.Errorf("%s\n%q", &out, got)
		}
		for _, title := range lines[4:6] {
			if bar := strings.LastIndex(title, "|"); bar != strings.LastIndex(lines[6], "|") {
				t.Errorf("columns are not below their titles:\n%s", &out)
			}
		}
		var again Comparison
		if err := json.Unmarshal(machine.Bytes(), &again); err != nil || !slices.Equal(again.Workloads, c.Workloads) {
			t.Errorf("%v: %s", err, &machine)
		}
	}
}

// visits are the servers that wrote documents, in their order, each once for all that it wrote
// without another in between.
type visits struct {
	mu  sync.Mutex
	all []string
	dbs map[string]bool
}

// server returns one that notes its visits under a name.
func (v *visits) server(t *testing.T, name string, c *couch) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if db, id, isDoc := strings.Cut(r.URL.Path[1:], "/"); isDoc && r.Method == http.MethodPut && id != "" {
			v.mu.Lock()
			v.dbs[db] = true
			if visit := name + " " + db[strings.LastIndexByte(db, '_')+1:]; len(v.all) == 0 || v.all[len(v.all)-1] != visit {
				v.all = append(v.all, visit)
			}
			v.mu.Unlock()
		}
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestCompare: the servers take turns in each workload, in an order that alternates, with databases of each round,
// which are gone then.
func TestCompare(t *testing.T) {
	seen := &visits{dbs: map[string]bool{}}
	a, b := &couch{revs: map[string]string{}}, &couch{revs: map[string]string{}}
	first, second := seen.server(t, "a", a), seen.server(t, "b", b)
	cfg := Config{URL: withPassword(first), Clients: 2, Duration: 30 * time.Millisecond, DocSize: 300, Only: []string{"put", "put_one"}}
	against := Against{URL: withPassword(second), Rounds: 2}
	if runtime.GOOS == "linux" {
		cfg.PIDs, against.PIDs = []int{os.Getpid()}, []int{os.Getpid()}
		cfg.Constant = []string{"/none"} // it is not started
	}
	report, err := Compare(t.Context(), cfg, against)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen.all, ", "); got != "a put, b put, a one, b one, b put, a put, b one, a one" {
		t.Errorf("the order is %s", got)
	}
	if len(seen.dbs) != 8 || len(a.revs)+len(b.revs) > 0 {
		t.Errorf("%d databases, %d documents are left", len(seen.dbs), len(a.revs)+len(b.revs))
	}
	if len(report.Workloads) != 2 || report.Servers[0].Server != "Couch" || report.Servers[1].Address != strings.TrimPrefix(second.URL, "http://") {
		t.Errorf("%+v", report)
	}
	for _, w := range report.Workloads {
		if w.Rounds != 2 || w.PerSecond.Rounds != 2 || w.PerSecond.Least > w.PerSecond.Median || w.PerSecond.Median > w.PerSecond.Most {
			t.Errorf("%+v", w)
		}
	}
}

// TestCompareFails: what was measured on both servers until then is told.
func TestCompareFails(t *testing.T) {
	refusing := &couch{revs: map[string]string{}, refuses: true}
	first, second := httptest.NewServer(&couch{revs: map[string]string{}}), httptest.NewServer(refusing)
	defer first.Close()
	defer second.Close()
	cfg := Config{URL: withPassword(first), Clients: 2, Duration: 20 * time.Millisecond, DocSize: 300, Only: []string{"put", "update_hot"}}
	report, err := Compare(t.Context(), cfg, Against{URL: withPassword(second), Rounds: 2})
	if err == nil || !strings.HasPrefix(err.Error(), "update_hot on the second server in round 1: the history was not written") {
		t.Errorf("error %v", err)
	}
	if len(report.Workloads) != 1 || report.Workloads[0].Rounds != 1 || len(refusing.revs) > 0 {
		t.Errorf("%+v, %d documents are left", report, len(refusing.revs))
	}
	for message, c := range map[string]struct {
		cfg     Config
		against Against
	}{
		"the second server: the server does not answer as it should": {cfg, Against{URL: "http://127.0.0.1:1", Rounds: 1}},
		"the second server: the server refuses us with status 401":   {cfg, Against{URL: second.URL, Rounds: 1}},
		"the first server: the server's URL must look like":          {Config{URL: "https://x"}, Against{URL: second.URL, Rounds: 1}},
		"needs one round at least (--rounds), not -1":                {cfg, Against{URL: second.URL, Rounds: -1}},
		"--against-pid, and that one needs":                          {cfg, Against{URL: second.URL, Rounds: 1, PIDs: []int{1}}},
		"unknown workload":                                           {Config{Only: []string{"dance"}}, Against{Rounds: 1}},
	} {
		if _, err := Compare(t.Context(), c.cfg, c.against); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", message, err)
		}
	}
	if runtime.GOOS == "linux" {
		cfg.PIDs = []int{os.Getpid()}
		if _, err := Compare(t.Context(), cfg, Against{URL: second.URL, Rounds: 1, PIDs: []int{-1}}); err == nil || !strings.HasPrefix(err.Error(), "the second server: process -1") {
			t.Errorf("error %v", err)
		}
	}
}
