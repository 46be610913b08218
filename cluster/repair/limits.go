package repair

import (
	"divan/cluster/meta"
	"divan/cluster/meta/dbsetting"
	"divan/shard"
)

// LimitsOf returns the limits of a database that hold for the edits of clients and for what one
// copy brings to another. The size of partitions is not among them: only clients are held to it.
func LimitsOf(db *meta.Database) shard.Limits {
	return shard.Limits{
		Revs: db.Settings[dbsetting.RevsLimit], PurgedInfos: db.Settings[dbsetting.PurgedInfosLimit], Partitioned: db.Partitioned,
	}
}
