// Package stats counts requests and what they did, for _stats and _prometheus.
package stats
