package replicator

import (
	"time"

	"divan/cluster/config"
	"divan/replicator/scheduler"
	"divan/replicator/spec"
	"divan/shard"
)

// settings reads the configuration of replications.
type settings struct{ holder *config.Holder }

func (s settings) config() *config.Replicator { return &s.holder.Load().Replicator }

// scheduler returns those of the scheduler.
func (s settings) scheduler() scheduler.Settings {
	c := s.config()
	return scheduler.Settings{
		MaxJobs: c.MaxJobs, MaxChurn: c.MaxChurn, MaxHistory: c.MaxHistory, Interval: c.Interval, HealthThreshold: c.HealthThreshold,
		Sharing: scheduler.Sharing{UsageCoeff: c.Shares.UsageCoeff, PriorityCoeff: c.Shares.PriorityCoeff, Shares: c.Shares.Of},
	}
}

func (s settings) jitter() time.Duration { return s.config().StartupJitter }

// defaults returns the values of what a user's request may leave out.
func (s settings) defaults(u shard.User) spec.Defaults {
	t := &s.config().Transfer
	return spec.Defaults{User: u, Options: spec.Options{
		UseCheckpoints: t.UseCheckpoints, CheckpointInterval: t.CheckpointInterval, UseBulkGet: t.UseBulkGet,
		Workers: t.Workers, BatchSize: t.BatchSize, Connections: t.Connections, ConnectionTimeout: t.ConnectionTimeout, Retries: t.Retries,
	}}
}

// uuid is that of the cluster, which is part of the ids of replications.
func (s settings) uuid() string { return s.holder.Load().CouchDB.UUID }
