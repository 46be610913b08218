package config

import (
	"testing"
	"time"
)

func TestReplicatorDefaults(t *testing.T) {
	r := Default().Replicator
	if r.MaxJobs != 500 || r.Interval != time.Minute || r.MaxChurn != 20 || r.MaxHistory != 20 || r.UpdateDocs {
		t.Errorf("scheduling: %+v", r)
	}
	if r.HealthThreshold != 2*time.Minute || r.StartupJitter != 5*time.Second {
		t.Errorf("times: %+v", r)
	}
	want := Transfer{
		Workers: 4, BatchSize: 500, Connections: 20, Retries: 5, ConnectionTimeout: 30 * time.Second,
		CheckpointInterval: 30 * time.Second, UseCheckpoints: true, UseBulkGet: true,
	}
	if r.Transfer != want {
		t.Errorf("transfer: %+v", r.Transfer)
	}
	if n := r.Shares.Of("_replicator"); n != 100 {
		t.Errorf("%d shares", n)
	}
}

func TestReplicatorSettings(t *testing.T) {
	s, problems := build(Values{
		"replicator":        {"max_jobs": "7", "interval": "1500", "health_threshold": "3", "usage_coeff": "4", "worker_batch_size": "none"},
		"replicator.shares": {"a/_replicator": "200", "b/_replicator": "0", "c/_replicator": ""},
	})
	r := s.Replicator
	if r.MaxJobs != 7 || r.Interval != 1500*time.Millisecond || r.HealthThreshold != 3*time.Second || r.Shares.UsageCoeff != 1 {
		t.Errorf("%+v", r)
	}
	if r.Transfer.BatchSize != 500 || r.Shares.Of("a/_replicator") != 200 || r.Shares.Of("b/_replicator") != 100 || r.Shares.Of("c/_replicator") != 100 {
		t.Errorf("%+v", r)
	}
	if len(problems) != 2 {
		t.Errorf("problems: %v", problems)
	}
}

func TestPerUserSettings(t *testing.T) {
	if got := Default().PerUser; got != (PerUser{Q: 1, Prefix: "userdb-"}) {
		t.Errorf("%+v", got)
	}
	s, problems := build(Values{"couch_peruser": {"enable": "true", "delete_dbs": "true", "q": "4", "database_prefix": "userdb_$()+--/"}})
	if got := s.PerUser; got != (PerUser{Enable: true, DeleteDBs: true, Q: 4, Prefix: "userdb_$()+--/"}) || len(problems) != 0 {
		t.Errorf("%+v, %v", got, problems)
	}
	s, problems = build(Values{"couch_peruser": {"enable": "true", "q": "0", "database_prefix": "Mine-"}})
	if got := s.PerUser; got != Default().PerUser || len(problems) != 2 {
		t.Errorf("%+v, %v", got, problems)
	}
}
