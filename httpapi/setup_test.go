package httpapi

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/storage/fault"
)

// several are the settings of a node that may be one of several.
func several() config.Values {
	return config.Values{
		"couchdb": {"single_node": "false"}, "chttpd": {"bind_address": "0.0.0.0"},
	}
}

// served makes an API answer on a port of this machine.
func served(t *testing.T, h http.Handler) (host string, port string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	apitest.Must(t, err)
	return u.Hostname(), u.Port()
}

const setupOK = `{"ok":true}`

func refusal(reason string) string { return `{"error":"bad_request","reason":"` + reason + `"}` }

// TestSetupUntrusted: a node whose certificate no known authority has signed is not called
// a wrong address only.
func TestSetupUntrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	l := &link{self: "one@127.0.0.1", inv: core.Invitation{Cookie: "c", UUID: "u", Seeds: map[string]string{"one@127.0.0.1": "127.0.0.1:5986"}}}
	in := nodeAs(t, "one@127.0.0.1", several(), func(d *core.Deps) { d.Cluster = l })
	w := apitest.Ask(t, in, "POST /_cluster_setup", `{"action":"add_node","host":"`+s.URL+`"}`,
		"Authorization: Basic YWRtOnBhc3M=", "Content-Type: application/json")
	if w.Code != 400 || !strings.Contains(w.Body.String(), "Invalid Host and/or Port. The certificate there is not accepted (x509: ") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSetupRefusals(t *testing.T) {
	const invalid = "Invalid Action'"
	alone := nodeAPI(t, nil)
	none, err := net.Listen("tcp", "127.0.0.1:0") // a port without a listener
	apitest.Must(t, err)
	closed := none.Addr().(*net.TCPAddr).Port
	apitest.Must(t, none.Close())
	host, other := served(t, http.RedirectHandler("http://elsewhere.invalid/", http.StatusFound))
	_, page := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	l := &link{self: "one@127.0.0.1", inv: core.Invitation{Cookie: "c", UUID: "u", Seeds: map[string]string{"one@127.0.0.1": "127.0.0.1:5986"}}}
	in := nodeAs(t, "one@127.0.0.1", several(), func(d *core.Deps) { d.Cluster = l })
	const nobody = "Add node failed. Invalid Host and/or Port."
	for _, tc := range []struct {
		a      *API
		send   string
		reason string
	}{
		{alone, `[]`, "Missing JSON body'"},
		{alone, `{"action"`, "Missing JSON body'"},
		{alone, `{}`, invalid},
		{alone, `{"action":5}`, invalid},
		{alone, `{"action":"dance"}`, invalid},
		{alone, `{"action":"add_node","host":5}`, "`host` must be a string"},
		{alone, `{"action":"add_node","port":"x"}`, "`port` must be a positive integer"},
		{alone, `{"action":"add_node","port":65536}`, "`port` must be a positive integer"},
		{alone, `{"action":"enable_cluster","node_count":0}`, "`node_count` must be a positive integer"},
		{alone, `{"action":"finish_cluster","ensure_dbs_exist":"a"}`, "`ensure_dbs_exist` must be an array of strings"},
		{alone, `{"action":"finish_cluster","ensure_dbs_exist":[5]}`, "`ensure_dbs_exist` must be an array of strings"},
		{alone, `{"action":"receive_cookie","seeds":[]}`, "`seeds` must be an object of names of nodes and their addresses"},
		{alone, `{"action":"receive_cookie","seeds":{"a":5}}`, "`seeds` must be an object of names of nodes and their addresses"},
		{alone, `{"action":"add_node","host":"127.0.0.1"}`, "Cluster is not enabled."},
		{alone, `{"action":"remove_node"}`, "Cluster is not enabled."},
		{alone, `{"action":"enable_cluster","bind_address":"127.0.0.1","node_count":3}`, "Cluster setup requires a remote bind_address (not 127.0.0.1 nor ::1)"},
		{alone, `{"action":"enable_cluster","bind_address":"0.0.0.0"}`, "Cluster setup requires node_count to be configured"},
		{alone, `{"action":"enable_cluster","bind_address":"0.0.0.0","node_count":3,"username":"a"}`, "Cluster setup requires admin account to be configured"},
		{in, `{"action":"enable_cluster","bind_address":"0.0.0.0","node_count":3}`, "Cluster is already enabled"},
		{in, `{"action":"finish_cluster"}`, "Cluster is already finished"},
		{in, `{"action":"receive_cookie","cookie":"c"}`, "An invitation has the members `cookie`, `uuid` and `seeds`; action add_node of a member of the cluster sends it."},
		{in, `{"action":"add_node"}`, nobody},
		{in, fmt.Sprintf(`{"action":"add_node","host":"127.0.0.1","port":%d}`, closed), nobody},
		{in, `{"action":"add_node","host":"a b"}`, nobody},
		{in, `{"action":"add_node","host":"ftp://a"}`, nobody},
		{in, `{"action":"add_node","host":"a/b?c"}`, nobody},
		{in, `{"action":"add_node","host":"` + host + `","port":"` + other + `"}`, nobody},
		{in, `{"action":"add_node","host":"` + host + `","port":"` + page + `"}`, nobody},
		{in, `{"action":"enable_cluster","remote_node":"` + host + `","port":"` + page + `"}`, "Enable cluster failed. Invalid Host and/or Port."},
	} {
		follow(t, tc.a, []visit{{"adm", "POST", "/_cluster_setup", tc.send, 400, refusal(tc.reason)}})
	}
	for _, send := range []string{
		`{"action":"enable_cluster","bind_address":"0.0.0.0","node_count":3}`,
		`{"action":"receive_cookie","cookie":"c","uuid":"u","seeds":{"a@b":"b:5986"}}`,
	} {
		w := apitest.Ask(t, alone, "POST /_cluster_setup", send, "Authorization: Basic YWRtOnBhc3M=", "Content-Type: application/json")
		if w.Code != 400 || !strings.Contains(w.Body.String(), "single_node") {
			t.Errorf("%s: %d %s", send, w.Code, w.Body)
		}
	}
}

func TestEnableCluster(t *testing.T) {
	off := several()
	off["chttpd"]["bind_address"] = "127.0.0.1"
	there := nodeAs(t, "two@127.0.0.1", off, func(d *core.Deps) { d.Cluster = &link{} })
	host, port := served(t, there)
	here := nodeAs(t, "one@127.0.0.1", off, func(d *core.Deps) { d.Cluster = &link{} })
	const setup = "/_cluster_setup"
	follow(t, here, []visit{
		{"adm", "GET", setup, "", 200, `{"state":"cluster_disabled"}`},
		{"adm", "POST", setup, `{"action":"add_node","host":"x"}`, 400, refusal("Cluster is not enabled.")},
		{"adm", "POST", setup, `{"action":"enable_cluster","bind_address":"0.0.0.0","node_count":5,"username":"boss","password":"secret"}`, 201, setupOK},
		{"boss:secret", "GET", setup + "?ensure_dbs_exist=[]", "", 200, `{"state":"cluster_finished"}`},
		{"adm", "GET", "/_node/_local/_config/cluster/n", "", 200, `"3"`},
		{"adm", "POST", setup, `{"action":"enable_cluster","bind_address":"0.0.0.0","node_count":5}`, 400, refusal("Cluster is already enabled")},
		{"adm", "POST", setup, `{"action":"enable_cluster","remote_node":"` + host + `","remote_port":` + port + `,"bind_address":"0.0.0.0","node_count":2,` +
			`"username":"boss","password":"secret","remote_current_user":"adm","remote_current_password":"no"}`, 400, refusal("Enable cluster failed. Invalid admin credentials,")},
		{"adm", "POST", setup, `{"action":"enable_cluster","remote_node":"` + host + `","remote_port":` + port + `,"bind_address":"0.0.0.0","node_count":2,` +
			`"username":"boss","password":"secret","remote_current_user":"adm","remote_current_password":"pass"}`, 201, setupOK},
		{"adm", "POST", setup, `{"action":"enable_cluster","remote_node":"` + host + `","remote_port":` + port + `,"bind_address":"0.0.0.0","node_count":2,` +
			`"username":"boss","password":"secret"}`, 400, refusal("Cluster is already enabled")},
		{"adm", "POST", setup, `{"action":"finish_cluster","ensure_dbs_exist":["_users"]}`, 400, refusal("Cluster is already finished")},
	})
	follow(t, there, []visit{
		{"boss:secret", "GET", setup + "?ensure_dbs_exist=[]", "", 200, `{"state":"cluster_finished"}`},
		{"adm", "GET", "/_node/_local/_config/cluster/n", "", 200, `"2"`},
		{"adm", "GET", "/_node/_local/_config/chttpd/bind_address", "", 200, `"0.0.0.0"`},
	})
	if stored := there.Deps.Config.Load().Admins["boss"]; stored != here.Deps.Config.Load().Admins["boss"] {
		t.Error("the administrator is not the same on both")
	}
}

func TestAddNode(t *testing.T) {
	inv := core.Invitation{Cookie: "cookie", UUID: "uuid", Seeds: map[string]string{"one@127.0.0.1": "127.0.0.1:1"}}
	nodes := map[string]*API{"one@127.0.0.1": nil}
	here := nodeAs(t, "one@127.0.0.1", several(), func(d *core.Deps) { d.Cluster = &link{self: "one@127.0.0.1", inv: inv, nodes: nodes} })
	restarts := make(chan struct{}, 10)
	join := func(got core.Invitation) (core.NodeInfo, error) {
		if got.Cookie != inv.Cookie || got.UUID != inv.UUID || got.Seeds["one@127.0.0.1"] != "127.0.0.1:1" {
			t.Errorf("invited by %+v", got)
		}
		return core.NodeInfo{Name: "two@127.0.0.1", Address: "127.0.0.1:2"}, nil
	}
	l := &link{self: "two@127.0.0.1", taken: join}
	there := nodeAs(t, "two@127.0.0.1", several(), func(d *core.Deps) {
		d.Cluster = l
		d.Restart = func() {
			restarts <- struct{}{}
			apitest.Must(t, here.Deps.Meta.PutNode(context.WithoutCancel(t.Context()), meta.Node{Name: "two@127.0.0.1", ClusterVersion: meta.ClusterVersion}))
		}
	})
	nodes["two@127.0.0.1"] = there
	host, port := served(t, there)
	add := `{"action":"add_node","host":"` + host + `","port":` + port + `,"username":"adm","password":`
	follow(t, here, []visit{
		{"adm", "POST", "/_cluster_setup", add + `"wrong"}`, 400, refusal("Add node failed. Invalid admin credentials,")},
		{"adm", "POST", "/_cluster_setup", add + `"pass"}`, 201, setupOK},
	})
	if len(restarts) != 1 {
		t.Fatalf("%d restarts", len(restarts))
	}
	apitest.Must(t, there.Deps.Meta.PutNode(t.Context(), meta.Node{Name: "one@127.0.0.1", ClusterVersion: meta.ClusterVersion})) // what it learns by joining
	follow(t, here, []visit{
		{"adm", "POST", "/_cluster_setup", add + `"pass"}`, 201, setupOK},
		{"adm", "GET", "/_membership", "", 200, `{"all_nodes":["one@127.0.0.1","two@127.0.0.1"],"cluster_nodes":["one@127.0.0.1","two@127.0.0.1"]}`},
	})
	if len(restarts) != 1 {
		t.Errorf("a member restarts because it is invited again")
	}
	l.taken = func(core.Invitation) (core.NodeInfo, error) {
		return core.NodeInfo{}, fault.New(fault.BadRequest, "This node has databases of its own.")
	}
	follow(t, here, []visit{{"adm", "POST", "/_cluster_setup", add + `"pass"}`, 400, refusal("This node has databases of its own.")}})
}

// A node that is put into the list of nodes is invited, by the credentials of
// the request.
func TestAddNodeByName(t *testing.T) {
	inv := core.Invitation{Cookie: "cookie", UUID: "uuid", Seeds: map[string]string{"one@127.0.0.1": "127.0.0.1:1"}}
	nodes := map[string]*API{"one@127.0.0.1": nil}
	here := nodeAs(t, "one@127.0.0.1", several(), func(d *core.Deps) { d.Cluster = &link{self: "one@127.0.0.1", inv: inv, nodes: nodes} })
	there := nodeAs(t, "two@127.0.0.1", several(), func(d *core.Deps) {
		d.Cluster = &link{taken: func(core.Invitation) (core.NodeInfo, error) { return core.NodeInfo{Name: "two@127.0.0.1"}, nil }}
		d.Restart = func() {
			apitest.Must(t, here.Deps.Meta.PutNode(context.WithoutCancel(t.Context()), meta.Node{Name: "two@127.0.0.1", ClusterVersion: meta.ClusterVersion}))
		}
	})
	nodes["two@127.0.0.1"] = there
	_, port := served(t, there)
	const list = "/_node/_local/_nodes/"
	follow(t, here, []visit{
		{"adm", "PUT", list + "other@127.0.0.1", `{"port":` + port + `}`, 400, refusal("Add node failed. The node there is two@127.0.0.1.")},
		{"adm", "PUT", list + "two@127.0.0.1", `{"port":` + port + `,"username":"adm","password":"no"}`, 400, refusal("Add node failed. Invalid admin credentials,")},
		{"adm", "PUT", list + "two@127.0.0.1", `{"port":` + port + `,"zone":"z"}`, 201, ""},
		{"adm", "POST", "/_cluster_setup", `{"action":"enable_single_node"}`, 400, refusal("Cluster is already enabled")},
		{"adm", "GET", "/_membership", "", 200, `{"all_nodes":["one@127.0.0.1","two@127.0.0.1"],"cluster_nodes":["one@127.0.0.1","two@127.0.0.1"]}`},
	})
	if n, ok := here.Deps.Meta.Node("two@127.0.0.1"); !ok || n.Zone != "z" {
		t.Errorf("%+v %v", n, ok)
	}
}
