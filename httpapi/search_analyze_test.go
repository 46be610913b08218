package httpapi

import (
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// What the transcripts do not show of the analyzers of the server.
func TestAnalyze(t *testing.T) {
	a := nodeAPI(t, nil)
	const admin = "Authorization: Basic YWRtOnBhc3M="
	for _, c := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"POST /_search_analyze", `{"analyzer":{"name":"standard","stopwords":["dogs"]},"text":"the dogs"}`, 200, `{"tokens":["the"]}`},
		{"POST /_search_analyze", `{"analyzer":["stand","ard"],"text":"the \"dogs\""}`, 200, `{"tokens":["dogs"]}`},
		{"POST /_search_analyze", `{"analyzer":["standard",3],"text":"x"}`, 400, `{"error":"bad_request","reason":"analyzer parameter must be a string or an object"}`},
		{"POST /_search_analyze", `{"analyzer":"nosuch","text":"x"}`, 400, `{"error":"unknown_error","reason":"no_such_analyzer"}`},
		{"GET /_search_analyze?analyzer=nosuch&text=x", "", 400, `{"error":"unknown_error","reason":"no_such_analyzer"}`},
		{"GET /_search_analyze?analyzer=keyword&text=", "", 200, `{"tokens":[""]}`},
		{"POST /_search_analyze", `["analyzer","text"]`, 400, `{"error":"bad_request","reason":"Request body must be a JSON object"}`},
		{"POST /_nouveau_analyze", `{"analyzer":"","text":"x"}`, 400, `{"error":"bad_request","reason":"analyzer must not be empty"}`},
		{"POST /_nouveau_analyze", `{"analyzer":"greek","text":"x"}`, 400, `{"error":"bad_request","reason":"greek is not a valid analyzer name"}`},
		{"POST /_nouveau_analyze", `{"analyzer":"portuguese","text":"os livros"}`, 200, `{"tokens":["livr"]}`},
	} {
		w := apitest.Ask(t, a, c.target, c.body, admin, "Content-Type: application/json")
		if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.want {
			t.Errorf("%s %s: %d %s, want %d %s", c.target, c.body, w.Code, w.Body, c.status, c.want)
		}
	}
	if w := apitest.Ask(t, a, "GET /_search_analyze", ""); w.Code != 401 {
		t.Errorf("a stranger is told what there is: %d %s", w.Code, w.Body)
	}
}
