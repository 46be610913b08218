package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestUnit: the unit for systemd can be enabled and starts what there is, and the
// package has every file that it names.
func TestUnit(t *testing.T) {
	read := func(elem ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, elem...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	unit, pack := read("deploy", "divan.service"), read("deploy", "deb", "nfpm.yaml")
	for _, line := range []string{"[Unit]", "[Service]", "[Install]", "Type=notify", "TimeoutStartSec=infinity", "User=divan", "StateDirectory=divan", "LogsDirectory=divan", "WantedBy=multi-user.target"} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("the unit has no line %s", line)
		}
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+) (.*)$`).FindStringSubmatch(unit)
	environment := regexp.MustCompile(`(?m)^EnvironmentFile=-(\S+)$`).FindStringSubmatch(unit)
	if start == nil || environment == nil {
		t.Fatal(unit)
	}
	cmd, flags, err := rootCommand().Find(strings.Fields(start[2]))
	if err == nil {
		err = cmd.ParseFlags(flags)
	}
	if err != nil || cmd.Name() != "serve" {
		t.Errorf("%s: %v", start[0], err)
	}
	again := regexp.MustCompile(`(?m)^RestartSec=(\d+)$`).FindStringSubmatch(unit)
	if again == nil {
		t.Fatal(unit)
	}
	// systemd gives up after five starts in ten seconds.
	if seconds, err := strconv.Atoi(again[1]); err != nil || 4*seconds <= 10 {
		t.Errorf("%s: a failure that passes would stop the service for good", again[0])
	}
	for _, file := range []string{start[1], environment[1], cmd.Flag("config").Value.String()} {
		if file = strings.Trim(file, "[]"); !strings.Contains(pack, "dst: "+file+"\n") {
			t.Errorf("the package has no %s", file)
		}
	}
	// Who starts the service waits for what the program tells.
	socket := filepath.Join(t.TempDir(), "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close() //nolint:errcheck // only read from
	p := startServer(t, append(adminEnviron(), "NOTIFY_SOCKET="+socket), "--data", t.TempDir())
	message := make([]byte, 100)
	if err := told.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := told.Read(message); err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("the program tells systemd %q, %v", message[:n], err)
	}
	newClient(t, p.address).want(t, "GET", "/_up", "", 200)
	p.stop()
	for _, m := range regexp.MustCompile(`(?m)src: (\S+)`).FindAllStringSubmatch(pack, -1) {
		if m[1] != "bin/divan" { // which make builds
			read(m[1])
		}
	}
}
