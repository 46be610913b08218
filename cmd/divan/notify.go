package main

import (
	"context"
	"fmt"
	"net"
	"os"
)

// tellReady tells systemd that requests are answered: with Type=notify,
// `systemctl start` waits for that.
func tellReady(ctx context.Context) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixgram", socket)
	if err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	_, err = conn.Write([]byte("READY=1"))
	_ = conn.Close() // what matters was sent
	if err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	return nil
}
