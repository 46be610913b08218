package repair

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"go.uber.org/zap"
)

// messenger sends messages to the repair of any node.
type messenger struct {
	node   string // this one
	answer func(ctx context.Context, from string, request []byte) ([]byte, error)
	remote func(ctx context.Context, node, service string, request []byte) ([]byte, error) // Options.Ask
	log    *zap.Logger
}

// ask sends a message to another node and returns the answer.
func (m *messenger) ask(ctx context.Context, node string, what message) ([]byte, error) {
	text, _ := json.Marshal(what) // strings and numbers: it cannot fail
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if node == m.node {
		return m.answer(ctx, node, text)
	}
	return m.remote(ctx, node, Service, text)
}

// send sends nodes their pairs, to all at once.
func (m *messenger) send(ctx context.Context, op string, byNode map[string][][2]string) {
	var wg sync.WaitGroup
	for node, pairs := range byNode {
		wg.Go(func() {
			for part := range slices.Chunk(pairs, maxNames) {
				if _, err := m.ask(ctx, node, message{Op: op, Pairs: part}); err != nil {
					m.log.Debug("another node was not asked for pushes", zap.String("node", node), zap.Error(err))
					return
				}
			}
		})
	}
	wg.Wait()
}
