// Package porttest finds ports for the programs that tests start.
package porttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Free returns a port of 127.0.0.1 on which no program listens, neither with TCP nor with UDP.
// Systems give none of its range to outgoing connections (from 32768 on in Linux, from
// 49152 elsewhere), so that a program that is started again finds it free.
func Free(ctx context.Context) (int, error) {
	var last error
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		if last = bindable(ctx, fmt.Sprintf("127.0.0.1:%d", port)); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port is free: %w", last)
}

func bindable(ctx context.Context, address string) error {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	p, err := c.ListenPacket(ctx, "udp", address)
	if err == nil {
		err = p.Close()
	}
	return errors.Join(err, l.Close())
}
