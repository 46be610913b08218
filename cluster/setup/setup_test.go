package setup

import (
	"context"
	"errors"
	"testing"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/storage/fault"
)

// start runs the metadata of a lone node until the test ends.
func start(t *testing.T) (*meta.Meta, *config.Holder) {
	t.Helper()
	settings, err := config.New(config.Options{
		Environ: []string{"DIVAN_CHTTPD__BIND_ADDRESS=0.0.0.0"},
		Hash:    func(password string) (string, error) { return "-pbkdf2-" + password + ",b,1", nil },
		Verify:  func(stored, password string) bool { return stored == "-pbkdf2-"+password+",b,1" },
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := meta.New(meta.Options{Self: meta.Node{Name: "a@host"}, Bootstrap: true, Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	if err := m.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m, settings
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func TestSetup(t *testing.T) {
	m, settings := start(t)
	ctx := t.Context()
	made := func(ctx context.Context, name string) error {
		_, err := m.CreateDatabase(ctx, meta.Create{Name: name, Q: 1, N: 1})
		return err
	}
	if got := Decide(settings.Load(), m.Databases(), nil); got != ClusterDisabled {
		t.Errorf("a new node is %s", got)
	}
	err := EnableSingleNode(ctx, m, settings.Load(), SingleNode{Create: made})
	wantKind(t, err, fault.BadRequest)
	if fault.Reason(err) != "Cluster setup requires admin account to be configured" {
		t.Error(err)
	}
	wantKind(t, EnableSingleNode(ctx, m, settings.Load(), SingleNode{Username: "root", Create: made}), fault.BadRequest)
	wantKind(t, EnableSingleNode(ctx, m, settings.Load(), SingleNode{Username: "root", PasswordHash: "x", Create: made}), fault.BadRequest)
	wantKind(t, EnableSingleNode(ctx, m, settings.Load(), SingleNode{Username: "root", Password: "x", Port: 70000, Create: made}), fault.BadRequest)
	if len(settings.Load().Admins) != 0 {
		t.Error("a refused set-up made an administrator")
	}
	if _, err := m.Config.Set(ctx, meta.ConfigChange{Section: "cluster", Key: "n", Value: "1"}); err != nil {
		t.Fatal(err)
	}
	if got := Decide(settings.Load(), m.Databases(), nil); got != SingleNodeDisabled {
		t.Errorf("with n=1 the node is %s", got)
	}
	again := SingleNode{Username: "root", Password: "apple", BindAddress: "127.0.0.1", Port: 5985, Create: made}
	for range 2 {
		if err := EnableSingleNode(ctx, m, settings.Load(), again); err != nil {
			t.Fatal(err)
		}
	}
	c := settings.Load()
	if got := Decide(settings.Load(), m.Databases(), nil); got != SingleNodeEnabled || c.Cluster.N != 1 || c.Chttpd.Port != 5985 {
		t.Errorf("set up, the node is %s, %+v", got, c.Cluster)
	}
	err = FinishCluster(ctx, m, nil, made)
	wantKind(t, err, fault.BadRequest)
	if fault.Reason(err) != "Cluster is already finished" {
		t.Error(err)
	}
	if got := Decide(settings.Load(), m.Databases(), []string{"more"}); got != SingleNodeDisabled {
		t.Errorf("without a database asked for: %s", got)
	}
	if err := FinishCluster(ctx, m, []string{"more"}, made); err != nil {
		t.Fatal(err)
	}
	if got := Decide(settings.Load(), m.Databases(), []string{"more"}); got != SingleNodeEnabled {
		t.Errorf("with it: %s", got)
	}
}

func TestDecide(t *testing.T) {
	admin := map[string]string{"root": "-pbkdf2-a,b,1"}
	var full meta.Databases
	for _, name := range SystemDatabases() {
		full.Set = full.With(&meta.Database{Name: name})
	}
	for _, c := range []struct {
		name   string
		values config.Values
		dbs    meta.Databases
		ensure []string
		want   State
	}{
		{"unconfigured", nil, meta.Databases{}, nil, ClusterDisabled},
		{"single node", config.Values{"couchdb": {"single_node": "true"}}, meta.Databases{}, nil, SingleNodeEnabled},
		{"single node, asked for a missing one", config.Values{"couchdb": {"single_node": "true"}}, full, []string{"x"}, SingleNodeDisabled},
		{"single node, asked for none", config.Values{"couchdb": {"single_node": "true"}}, full, []string{}, SingleNodeEnabled},
		{"n=1 without admin", config.Values{"cluster": {"n": "1"}}, full, nil, SingleNodeDisabled},
		{"n=1 without databases", config.Values{"cluster": {"n": "1"}, "admins": admin}, meta.Databases{}, nil, SingleNodeDisabled},
		{"n=1", config.Values{"cluster": {"n": "1"}, "admins": admin}, full, nil, SingleNodeEnabled},
		{"loopback", config.Values{"admins": admin}, full, nil, ClusterDisabled},
		{"loopback, with a cluster address", config.Values{"admins": admin, "cluster": {"advertise": "127.0.0.1:7001"}}, full, nil, ClusterFinished},
		{"loopback, with a cluster interface", config.Values{"admins": admin, "cluster": {"bind_address": "127.0.0.1"}}, meta.Databases{}, nil, ClusterEnabled},
		{"cluster address without admin", config.Values{"cluster": {"advertise": "127.0.0.1:7001"}}, full, nil, ClusterDisabled},
		{"no admin", config.Values{"chttpd": {"bind_address": "any"}}, full, nil, ClusterDisabled},
		{"enabled", config.Values{"admins": admin, "chttpd": {"bind_address": "0.0.0.0"}}, meta.Databases{}, nil, ClusterEnabled},
		{"finished", config.Values{"admins": admin, "chttpd": {"bind_address": "0.0.0.0"}}, full, nil, ClusterFinished},
	} {
		if got := Decide(config.FromValues(c.values), c.dbs, c.ensure); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
