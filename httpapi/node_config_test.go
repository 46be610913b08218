package httpapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"divan/httpapi/apitest"
)

const textLast = `{"error":"forbidden","reason":"The last server administrator cannot be deleted: nobody could set another one. Set that first."}`

// The last administrator stays, whichever way the node is named.
func TestLastAdminStays(t *testing.T) {
	a := nodeAPI(t, nil)
	const admins = "/_node/_local/_config/admins/"
	const malformed = `{"error":"bad_request","reason":"An administrator's password must not begin like the stored form of one, unless it is one."}`
	stored := "-hashed-" + strings.Repeat("ab", 20) + ",salt"
	follow(t, a, []visit{
		{"adm", "DELETE", admins + "adm", "", 403, textLast},
		{"adm", "DELETE", "/_node/divan@127.0.0.1/_config/admins/adm", "", 403, textLast},
		{"adm", "DELETE", "/_node/divan%40127.0.0.1/_config/admins/%61dm", "", 403, textLast},
		{"adm", "DELETE", admins + "nobody", "", 404, ""},
		{"adm", "PUT", admins + "adm", `"-pbkdf2:sha256-00,salt,1"`, 400, malformed},
		{"adm", "PUT", admins + "adm", `"-hashed-nothing"`, 400, malformed},
		{"adm", "PUT", admins + "adm", `""`, 400, ""},
		{"adm", "POST", "/_cluster_setup", `{"action":"enable_single_node","username":"adm","password_hash":"-pbkdf2-x"}`, 400, ""},
		{"adm", "PUT", admins + "other", `"` + stored + `"`, 200, `""`},
		{"adm", "DELETE", admins + "other", "", 200, `"` + stored + `"`},
		{"adm", "PUT", admins + "eve", `"apple"`, 200, `""`},
		{"eve:apple", "DELETE", admins + "adm", "", 200, ""},
		{"adm", "GET", "/_node/_local", "", 401, ""},
		{"eve:apple", "DELETE", admins + "eve", "", 403, textLast},
	})
	w := apitest.Ask(t, a, "DELETE "+admins+"eve", "", "Authorization: Basic ZXZlOmFwcGxl", "X-Couch-Persist: false")
	if w.Code != 403 {
		t.Errorf("in memory only: %d %s", w.Code, w.Body)
	}
}

// Through another node it is the same.
func TestLastAdminElsewhere(t *testing.T) {
	first, _ := couple(t)
	follow(t, first, []visit{{"adm", "DELETE", "/_node/two@127.0.0.1/_config/admins/adm", "", 403, textLast}})
}

// Of administrators that are deleted at the same time one stays.
func TestAdminsDeletedAtOnce(t *testing.T) {
	a := nodeAPI(t, nil)
	names := []string{"adm"}
	for i := range 5 {
		names = append(names, fmt.Sprint("a", i))
		follow(t, a, []visit{{"adm", "PUT", "/_node/_local/_config/admins/" + names[i+1], `"pass"`, 200, ""}})
	}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			apitest.Ask(t, a, "DELETE /_node/_local/_config/admins/"+name, "", "Authorization: Basic YWRtOnBhc3M=")
		})
	}
	all.Wait()
	if len(a.Deps.Config.Load().Admins) == 0 {
		t.Error("nobody is left")
	}
}
