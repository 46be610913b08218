package designdocs

import (
	"context"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/fanout"
)

// Service is the service of a node that drops what it holds of a database; the
// request is the tail of the names of its copies.
const Service = "designdocs"

// Times of telling other nodes of a write.
const (
	// noticeTime is within which both ends of a connection have noticed that it is
	// gone (package wire: three turns of a ping each second, and a quarter).
	noticeTime = 2500 * time.Millisecond
	// tellTime bounds how long a node may take to drop an entry.
	tellTime = 10 * time.Second
)

// Answer serves [Service].
func (c *Cache) Answer(_ context.Context, _ string, tail []byte) ([]byte, error) {
	c.drop(string(tail))
	return nil, nil
}

// Written is called before a request is answered that may have changed a design
// document. It returns when no node gives out any more what was there before: each
// has dropped it, or, if it cannot be reached, surely knows that it is cut off and
// has read anew since.
func (c *Cache) Written(ctx context.Context, db *cluster.DB) {
	tail := db.Instance()
	c.drop(tail)
	nodes := c.others()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime) // a client that goes away does not end it
	defer cancel()
	_ = fanout.Each(len(nodes), func(i int) error {
		c.tell(ctx, nodes[i], tail)
		return nil
	})
}

// tell has one node drop its entry.
func (c *Cache) tell(ctx context.Context, node, tail string) {
	if c.o.Peers.Reachable(node) {
		_, err := c.o.Peers.Ask(ctx, node, Service, []byte(tail))
		if err == nil {
			return
		}
		c.o.Logger.Warn("a node was not told of a design document", zap.String("node", node), zap.Error(err))
	}
	c.mu.Lock()
	since, known := c.mu.down[node]
	c.mu.Unlock()
	wait := partedLife
	if left := noticeTime - time.Since(since); !known || left > 0 {
		wait += min(left, noticeTime)
	}
	cutOff := time.NewTimer(wait)
	defer cutOff.Stop()
	<-cutOff.C
}
