package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/httpapi/stats"
)

// metricNames parses metrics and returns their names.
func metricNames(t *testing.T, text []byte) []string {
	t.Helper()
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for name := range families {
		out = append(out, name)
	}
	return out
}

// The metrics have CouchDB's names, as far as these mean something here, and are what
// promtool calls clean.
func TestMetricNames(t *testing.T) {
	a := nodeAPI(t, nil)
	a.Deps.Version = "v1.2-3-gabc"
	a.Deps.Figures = func() core.Figures {
		return core.Figures{Commits: 7, LogLines: map[string]uint64{"error": 2, "info": 5}}
	}
	apitest.Ask(t, a, "PUT /pond", "", asAdmin)
	apitest.Ask(t, a, "GET /pond", "", asAdmin)
	apitest.Ask(t, a, "POST /pond/_bulk_docs", `{"docs":[{},{}]}`, asAdmin, asJSON)
	text := apitest.Ask(t, a, "GET /_node/_local/_prometheus", "", asAdmin).Body.Bytes()
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	list, err := os.ReadFile("testdata/couchdb_metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	here := metricNames(t, text)
	for _, name := range strings.Fields(string(list)) {
		if !slices.Contains(here, name) {
			t.Errorf("CouchDB has %s", name)
		}
	}
	for _, line := range []string{
		`divan_build_info{version="v1.2-3-gabc"} 1`, "couchdb_commits_total 7", "couchdb_dbinfo_seconds_count 1", "couchdb_httpd_bulk_docs_seconds_sum 0.002", "couchdb_httpd_bulk_docs_seconds_count 1",
		`couchdb_couch_log_requests_total{level="error"} 2`, "# TYPE couchdb_httpd_status_codes untyped",
	} {
		if !bytes.Contains(text, []byte("\n"+line+"\n")) {
			t.Errorf("no line %s", line)
		}
	}
}

// promlint has something to say: a counter must be called one.
func TestMetricLint(t *testing.T) {
	problems, err := promlint.New(strings.NewReader("# HELP couchdb_x x\n# TYPE couchdb_x counter\ncouchdb_x 1\n")).Lint()
	if err != nil || len(problems) != 1 {
		t.Errorf("%v, %v", problems, err)
	}
}

// What the dashboard shows is there.
func TestDashboard(t *testing.T) {
	a := nodeAPI(t, nil)
	a.Deps.Figures = func() core.Figures { return core.Figures{LogLines: map[string]uint64{"error": 2}} }
	text := apitest.Ask(t, a, "GET /_node/_local/_prometheus", "", asAdmin).Body.Bytes()
	here := metricNames(t, text)
	file, err := os.ReadFile("../deploy/grafana/divan.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(file, &board); err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`(?:couchdb|process|go)_[a-z_]+`).FindAllString(target.Expr, -1) {
				shown++
				known := func(n string) bool { return n == name || n+"_count" == name || n+"_sum" == name }
				if !slices.ContainsFunc(here, known) {
					t.Errorf("%s: no metric is called %s", panel.Title, name)
				}
			}
		}
	}
	if shown < 20 {
		t.Errorf("the dashboard shows %d metrics", shown)
	}
}

// Answers that are broken off, clients that have gone and queries that take too long
// are counted, each once; what goes well is not.
func TestFailuresAreCounted(t *testing.T) {
	a := nodeAPI(t, nil)
	ask := func(ctx context.Context, target, body string) *httptest.ResponseRecorder {
		method, path, _ := strings.Cut(target, " ")
		r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		r.SetBasicAuth("adm", "pass")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w
	}
	ask(t.Context(), "PUT /pond?q=1&partitioned=true", "")
	ask(t.Context(), "PUT /pond/_design/d", `{"views":{"v":{"map":"function (doc) { emit(1); }"}},"options":{"partitioned":false}}`)
	ask(t.Context(), "PUT /pond/_design/p", `{"views":{"v":{"map":"function (doc) { emit(1); }"}}}`)
	const selector = `{"selector":{"n":1}}`
	s := a.Stats
	figures := map[string]*stats.Counter{
		"GET /pond/_all_docs": &s.Timeouts.AllDocs, "GET /pond/_design/d/_view/v": &s.Timeouts.View, "POST /pond/_find": &s.Timeouts.Find,
		"GET /pond/_partition/p/_all_docs": &s.PartitionTimeouts.AllDocs, "GET /pond/_partition/p/_design/p/_view/v": &s.PartitionTimeouts.View,
		"POST /pond/_partition/p/_find": &s.PartitionTimeouts.Find,
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for target, figure := range figures {
		body := ""
		if strings.HasPrefix(target, "POST") {
			body = selector
		}
		if w := ask(t.Context(), target, body); w.Code != 200 || figure.Value() != 0 {
			t.Errorf("%s: %d %s, %v timeouts", target, w.Code, w.Body, figure.Value())
		}
		if w := ask(late, target, body); figure.Value() != 1 {
			t.Errorf("%s, too late: %d %s, %v timeouts", target, w.Code, w.Body, figure.Value())
		}
	}
	if s.Partitions.Find.Value() != 2 || s.Partitions.Explain.Value() != 0 || s.Broken.Aborted.Value() != 0 || s.Broken.Abandoned.Value() != 0 {
		t.Errorf("%v finds and %v explanations of partitions, %v aborted, %v abandoned",
			s.Partitions.Find.Value(), s.Partitions.Explain.Value(), s.Broken.Aborted.Value(), s.Broken.Abandoned.Value())
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	ask(gone, "GET /pond", "")
	if s.Broken.Aborted.Value() != 1 || s.Broken.Abandoned.Value() != 0 {
		t.Errorf("nobody waits: %v aborted, %v abandoned", s.Broken.Aborted.Value(), s.Broken.Abandoned.Value())
	}
	gone, hangUp = context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ask(gone, "GET /pond/_changes?feed=continuous&heartbeat=60000", "")
	}()
	apitest.WaitFor(t, func() bool { return a.OpenFeeds() == 1 })
	hangUp()
	<-ended
	if s.Broken.Aborted.Value() != 1 || s.Broken.Abandoned.Value() != 1 {
		t.Errorf("a feed without a reader: %v aborted, %v abandoned", s.Broken.Aborted.Value(), s.Broken.Abandoned.Value())
	}
}
