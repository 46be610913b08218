package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestClusterMistakes ends with the usage of the command and status 2.
func TestClusterMistakes(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1"
	for _, tc := range []struct {
		args []string
		want string // the line of the usage last
	}{
		{[]string{"stauts", url}, "unknown command \"stauts\" for \"divan cluster\"\nDid you mean status?\nUsage: divan cluster [flags]"},
		{[]string{"status"}, "accepts 1 arg(s), received 0\nUsage: divan cluster status URL [flags]"},
		{[]string{"status", url + "/pond"}, "the URL of a server is expected, without a path: http://admin:password@127.0.0.1:5984\nUsage: divan cluster status URL [flags]"},
		{[]string{"status", url, "--jsn"}, "unknown flag: --jsn\nDid you mean --json?\nUsage: divan cluster status URL [flags]"},
		{[]string{"rebalance", url, "--stop", "--cancel"}, "--stop and --cancel do not go together\nUsage: divan cluster rebalance URL [flags]"},
		{[]string{"drain", url}, "accepts 2 arg(s), received 1\nUsage: divan cluster drain URL NODE [flags]"},
		{[]string{"move", url, "pond", "--from", "a@b"}, "--to is needed\nUsage: divan cluster move URL DB [flags]"},
		{[]string{"merge", url, "pond"}, "--range is needed\nUsage: divan cluster merge URL DB [flags]"},
	} {
		status, out := run(t, nil, append([]string{"cluster"}, tc.args...)...)
		command, _, _ := strings.Cut(tc.want[strings.LastIndex(tc.want, "Usage: ")+len("Usage: "):], " [")
		command, _, _ = strings.Cut(command, " URL")
		if want := "divan: " + tc.want + "\nMore: " + command + " --help\n"; status != 2 || out != want {
			t.Errorf("%s: exit status %d, %q; want 2, %q", tc.args, status, out, want)
		}
	}
	if status, out := run(t, nil, "cluster"); status != 0 || !strings.Contains(out, "\n  rebalance ") {
		t.Errorf("exit status %d, %s", status, out)
	}
	if status, out := run(t, nil, "cluster", "status", url); status != 1 || !strings.Contains(out, "refused") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit status %d, %s", status, out)
	}
}

// TestClusterOfOne looks at a node that has no others.
func TestClusterOfOne(t *testing.T) {
	t.Parallel()
	p := startServer(t, adminEnviron(), "--data", t.TempDir())
	status, out := run(t, adminEnviron(), "cluster", "status", "http://"+p.address)
	plain := regexp.MustCompile(`(?m) +| +$`).ReplaceAllString(out, " ")
	want := regexp.MustCompile(`^NODE STATE ZONE VERSION COPIES DATA\n(\S+@\S+) here - \S+ - -\n\nMetadata (\S+) leads, 1 node votes\nJobs none\nShards none lost, none joining\n$`)
	if status != 0 || !want.MatchString(plain) {
		t.Errorf("exit status %d\n%s", status, out)
	}
	status, out = run(t, adminEnviron(), "cluster", "rebalance", "http://"+p.address, "--yes")
	if status != 1 || !strings.Contains(out, "status 400, bad_request: This node is not part of a cluster") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit status %d, %s", status, out)
	}
	status, out = run(t, nil, "cluster", "status", "http://adm:wrong@"+p.address)
	if status != 1 || !strings.Contains(out, "status 401, unauthorized: ") || strings.Contains(out, "wrong") || strings.Count(out, "\n") != 1 {
		t.Errorf("exit status %d, %s", status, out)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // who does not trust it hangs up
	server.StartTLS()
	defer server.Close()
	if status, out = run(t, nil, "cluster", "status", server.URL); status != 1 || !strings.Contains(out, "certificate") {
		t.Errorf("exit status %d, %s", status, out)
	}
	if status, out = run(t, nil, "cluster", "status", server.URL, "--insecure"); status != 1 || !strings.Contains(out, "status 404") {
		t.Errorf("exit status %d, %s", status, out)
	}
	p.stop()
}

func TestAsk(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"y\n": true, " Yes \r\n": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		var out bytes.Buffer
		if got, err := ask(t.Context(), &out, strings.NewReader(text), "Move?"); got != want || err != nil || out.String() != "Move? [y/N] " {
			t.Errorf("%q: %v %v %q", text, got, err, out.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	read, write := io.Pipe()
	if _, err := ask(ctx, io.Discard, read, "Move?"); err == nil || err.Error() != "interrupted; nothing was begun" {
		t.Error(err)
	}
	_ = write.Close() // or who reads would stay
}
