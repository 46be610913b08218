// Package db serves databases, one and all: to create, describe, list and delete
// them, their settings, partitions and shard maps, and what compares or purges
// revisions.
package db
