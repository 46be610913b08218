package migrate

import (
	"context"
	"time"

	"go.uber.org/zap"

	"divan/replicator/protocol"
	"divan/replicator/remote"
	"divan/replicator/spec"
)

// transfer replicates databases from one side to the other.
type transfer struct {
	source, target *side
	network        *remote.Network
	userAgent      string
	logger         *zap.Logger
	accounts       []*remote.Database // keep the session at each side while no other database is open
}

// logIn opens a database at each side, which is not asked.
func (t *transfer) logIn() error {
	s := t.spec(usersDB)
	for _, address := range []spec.Address{s.Source, s.Target} {
		account, err := t.open(address, s.Options)
		if err != nil {
			return err
		}
		t.accounts = append(t.accounts, account)
	}
	return nil
}

func (t *transfer) logOut() {
	for _, account := range t.accounts {
		_ = account.Close() // it was never asked
	}
}

// replicate is one replication, of the documents that keep reports.
func (t *transfer) replicate(ctx context.Context, o protocol.Options, db *database, meter *meter, keep func(id string) bool) error {
	source, err := t.open(o.Spec.Source, o.Spec.Options)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // nothing is under way
	target, err := t.open(o.Spec.Target, o.Spec.Options)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	o.Source = &selectedSource{Source: source, meter: meter, keep: keep}
	o.Target = &watchedTarget{Target: target, meter: meter, refusals: &db.refusals}
	o.Logger = t.logger
	_, err = protocol.Run(ctx, o)
	return err
}

// checkpointEvery is how much work an interruption may cost.
const checkpointEvery = 10 * time.Second

// spec returns the request for a replication of everything.
func (t *transfer) spec(db string) *spec.Spec {
	address := func(s *side) spec.Address {
		return spec.Address{URL: s.URL + path(db) + "/", Username: s.User, Password: s.Password, Proxy: s.through}
	}
	options := spec.Options{
		CheckpointInterval: checkpointEvery, UseBulkGet: true,
		Workers: 4, BatchSize: 500, Connections: 20, ConnectionTimeout: 30 * time.Second, Retries: 5, // CouchDB's defaults
	}
	return &spec.Spec{Source: address(t.source), Target: address(t.target), Options: options}
}

func (t *transfer) open(a spec.Address, o spec.Options) (*remote.Database, error) {
	return remote.New(remote.Options{Address: a, Options: o, UserAgent: t.userAgent, Network: t.network})
}
