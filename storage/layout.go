package storage

import "divan/storage/paths"

// Names inside the data directory.
const (
	shardsDir  = "shards"
	indexesDir = "indexes" // <range>/<database>.<suffix>/<signature> below it
	stagingDir = "staging" // stores that were dropped, to be removed

	madeFile = "made" // which stores were made here and not dropped
)

// OrphanedDir is where stores lie that were set aside, below the data directory.
const OrphanedDir = shardsDir + "/" + orphanedName

const orphanedName = ".orphaned"

// SmallDir is the directory of the instance that has the small stores, and its name among the
// stores that are open.
const SmallDir = "small-shards"

// formatMarker begins the name of the file that says in which format a store is. A new
// store without it is made in the oldest one and brought up to date step by
// step, with ten files and ten syncs.
const formatMarker = paths.EngineMarker + "000001."
