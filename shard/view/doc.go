// Package view keeps the indexes of map/reduce views and of Mango, and answers
// queries of them on one copy of a shard (semantics.md section 12).
package view
