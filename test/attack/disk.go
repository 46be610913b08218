package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"divan/test/child"
)

const diskSize = "256m"

// smallDisk gives a server a file system of its own: a process that does nothing
// has it mounted, and the server runs where that one is.
func (w *world) smallDisk(ctx context.Context, s *server, size string) (inside string, err error) {
	unshare := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	script := `mount -t tmpfs -o size=` + size + ` none "$1" && echo mounted && exec sleep 1d`
	cmd := exec.CommandContext(context.WithoutCancel(ctx), unshare[0], append(unshare[1:], "sh", "-c", script, "sh", s.dir)...)
	holder, err := child.Start(cmd, s.dir+".mount")
	if err != nil {
		return "", err
	}
	w.helpers = append(w.helpers, holder)
	for {
		text, err := os.ReadFile(s.dir + ".mount")
		if err == nil && strings.Contains(string(text), "mounted") {
			break
		}
		if !holder.Running() || !rest(ctx, 20*time.Millisecond) {
			return "", fmt.Errorf("no file system can be mounted (root, or user namespaces, are needed): %s", text)
		}
	}
	s.inside = []string{"nsenter", "--target", strconv.Itoa(holder.PID()), "--mount"}
	if os.Getuid() != 0 {
		s.inside = append(s.inside, "--user", "--preserve-credentials")
	}
	return fmt.Sprintf("/proc/%d/root%s", holder.PID(), s.dir), nil
}

// fill leaves no space on a disk.
func fill(ballast string) error {
	f, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for part := make([]byte, size); err == nil; {
			_, err = f.Write(part)
		}
		err = nil // there may be space for a smaller one
	}
	return errors.Join(err, f.Close())
}

func fullDisk(ctx context.Context, w *world) (string, error) {
	s, err := w.server(ctx)
	if err != nil {
		return "", err
	}
	disk, err := w.smallDisk(ctx, s, diskSize)
	if err != nil {
		return "", err
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	if err := w.innocent.stop(); err != nil {
		return "", err
	}
	w.watched = false // its writes are refused, as they must be
	ballast := filepath.Join(disk, "ballast")
	if err := fill(ballast); err != nil {
		return "", err
	}
	var writes statuses
	for i := range 400 { // what was set aside for logs is used up
		status, _ := s.call(ctx, http.MethodPut, fmt.Sprintf("/kept/more-%d", i), map[string]string{"text": strings.Repeat("x", 20_000)}, nil)
		writes.add(status)
		if err := fill(ballast); err != nil {
			return "", err
		}
	}
	seen := "writes " + writes.String()
	if writes.n[0] > 0 || writes.n[http.StatusInternalServerError] > 0 {
		return seen, errors.New("a write was answered badly")
	}
	if err := w.innocent.check(ctx); err != nil {
		return seen, fmt.Errorf("on a full disk: %w", err)
	}
	if status, err := s.call(ctx, http.MethodPut, "/no-space", nil, nil); err != nil || status != http.StatusInsufficientStorage && status != http.StatusCreated {
		return seen, fmt.Errorf("a new database: status %d, %w", status, err)
	}
	s.process.Kill()
	if err := s.start(ctx); err != nil {
		return seen, fmt.Errorf("a start on a full disk: %w", err)
	}
	if err := w.innocent.check(ctx); err != nil {
		return seen, fmt.Errorf("started on a full disk: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return seen, err
	}
	start := time.Now()
	for i := 0; ; i++ {
		status, _ := s.call(ctx, http.MethodPut, fmt.Sprintf("/kept/again-%d", i), struct{}{}, nil)
		if status == http.StatusCreated {
			break
		}
		if time.Since(start) > 5*time.Second || !rest(ctx, 20*time.Millisecond) {
			return seen, fmt.Errorf("with space again writes are answered %d", status)
		}
	}
	seen += fmt.Sprintf(", written %.2f s after there was space", time.Since(start).Seconds())
	return seen, nil
}
