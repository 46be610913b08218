package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// A user has only the roles that an administrator gave: neither those of a deletion of the
// own document beside the live revision, nor former ones, nor those of a revision that is
// no leaf, which is not judged.
func TestNoRolesFromOtherRevisions(t *testing.T) {
	const (
		admin = "Authorization: Basic YWRtOnBhc3M="
		eve   = "Authorization: Basic ZXZlOnB3" // eve:pw
		id    = `"_id":"org.couchdb.user:eve",`
		boss  = `"name":"eve","type":"user","roles":["boss"],"password":"pw"`
		plain = `"name":"eve","type":"user","roles":[],"password":"pw"`
		gone  = `"_deleted":true,"name":"eve","roles":["boss"]`
	)
	// replicated is a revision with those before it.
	replicated := func(members string, pos int, ids ...string) string {
		return fmt.Sprintf(`"_rev":"%d-%s","_revisions":{"start":%d,"ids":["%s"]},%s`, pos, ids[0], pos, strings.Join(ids, `","`), members)
	}
	for name, attack := range map[string]func(first, second string) (theirs, edits []string){
		"a deletion": func(first, second string) (theirs, edits []string) {
			return []string{replicated(gone, 2, "aa", first)}, []string{`"_rev":"2-aa",` + boss, `"_rev":"2-` + second + `","_deleted":true`}
		},
		"a former revision": func(first, second string) (theirs, edits []string) {
			return []string{replicated(boss, 2, "aa", first), replicated(gone, 3, "bb", second)}, nil
		},
		"no leaf": func(_, second string) (theirs, edits []string) {
			return []string{
				replicated(gone, 4, "cc", "bb", second), replicated(boss, 3, "bb", second), replicated(boss, 4, "dd", "bb", second),
			}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := nodeAPI(t, config.Values{"couchdb": {"users_db_security_editable": "true"}})
			ask := func(line, body, who string) string {
				t.Helper()
				return apitest.Ask(t, a, line, body, jsonBody, who).Body.String()
			}
			write := func(members string) (rev string) {
				t.Helper()
				_, rest, _ := strings.Cut(ask("POST /_users", "{"+id+members+"}", admin), `"rev":"`)
				rev, _, _ = strings.Cut(rest, `"`)
				return rev
			}
			bulk := func(newEdits string, docs []string) {
				if len(docs) > 0 {
					t.Log(ask("POST /_users/_bulk_docs", `{"new_edits":`+newEdits+`,"docs":[{`+id+strings.Join(docs, "},{"+id)+`}]}`, eve))
				}
			}
			ask("PUT /_users/_security", `{}`, admin)
			first := write(boss)
			second := write(`"_rev":"` + first + `",` + plain)
			theirs, edits := attack(strings.TrimPrefix(first, "1-"), strings.TrimPrefix(second, "2-"))
			bulk("false", theirs)
			bulk("true", edits)
			if got := ask("GET /_session", "", eve); strings.Contains(got, "boss") {
				t.Error(got)
			}
		})
	}
}
