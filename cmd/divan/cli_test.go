package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"divan/cmd/divan/porttest"
)

// TestRefusals looks for one clear line and exit status 1.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret.ini"), "[chttpd]\n")
	notes := filepath.Join(dir, "notes")
	write(t, filepath.Join(notes, "note"), "x")
	couch := filepath.Join(dir, "couch")
	write(t, filepath.Join(couch, "_dbs.couch"), "x")
	usage := func(line string) string {
		command, _, _ := strings.Cut(line, " [")
		command, _, _ = strings.Cut(command, " URL")
		command, _, _ = strings.Cut(command, " DIR")
		return "\nUsage: " + line + "\nMore: " + command + " --help"
	}
	const notServer = "the URL of a server is expected, without a path: http://admin:password@127.0.0.1:5984"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"frobnicate"}, `unknown command "frobnicate" for "divan"` + usage("divan [flags]")},
		{[]string{"--frobnicate"}, "unknown flag: --frobnicate" + usage("divan [flags]")},
		{[]string{"benhc", "x"}, `unknown command "benhc" for "divan"` + "\nDid you mean bench?" + usage("divan [flags]")},
		{[]string{"serve", "--dta", "x"}, "unknown flag: --dta\nDid you mean --data?" + usage("divan serve [flags]")},
		{[]string{"healthcheck", "--insecur"}, "unknown flag: --insecur\nDid you mean --insecure?" + usage("divan healthcheck [URL] [flags]")},
		{[]string{"bench", "--docs", "many", "x"}, `invalid argument "many" for "--docs" flag: strconv.ParseInt: parsing "many": invalid syntax` + usage("divan bench URL [flags]")},
		{[]string{"healthcheck", "http://adm:p/w@127.0.0.1:5984/pond"}, notServer},
		{[]string{"bench", "127.0.0.1:5984/pond"}, notServer},
		{[]string{"setup", "http://127.0.0.1:1/", "http://127.0.0.1:1/_utils"}, notServer},
		{[]string{"healthcheck", "--ca", dir + "/none.pem"}, "read the authority: open " + dir + "/none.pem: no such file or directory"},
		{[]string{"serve", "--frobnicate"}, "unknown flag: --frobnicate" + usage("divan serve [flags]")},
		{[]string{"serve", "data"}, `unknown command "data" for "divan serve"` + usage("divan serve [flags]")},
		{[]string{"serve", "--data", ""}, "a data directory is needed"},
		{[]string{"serve", "--data", dir, "--listen", "5984"}, `the address to listen on must be HOST:PORT, not "5984"`},
		{[]string{"serve", "--data", dir, "--listen", "127.0.0.1:999999"}, `the address to listen on must be HOST:PORT, not "127.0.0.1:999999"`},
		{[]string{"serve", "--data", dir, "--admin", "adm"}, "an administrator must be given as NAME:PASSWORD"},
		{[]string{"serve", "--data", dir, "--admin", ":x"}, "an administrator must be given as NAME:PASSWORD"},
		{[]string{"serve", "--data", dir, "--config", dir + "/none.ini"}, "read configuration: stat " + dir + "/none.ini: no such file or directory"},
		{[]string{"serve", "--data", dir + "/secret.ini/data"}, "make data directory: mkdir " + dir + "/secret.ini: not a directory"},
		{[]string{"serve", "--data", couch}, couch + " is a data directory of CouchDB (it holds _dbs.couch), whose files Divan does not read: give Divan " +
			"a directory of its own, start CouchDB on this one, and copy from one to the other with divan import (docs/moving.md)"},
		{[]string{"bench"}, "accepts 1 arg(s), received 0" + usage("divan bench URL [flags]")},
		{[]string{"check"}, "accepts 1 arg(s), received 0" + usage("divan check DIR [flags]")},
		{[]string{"check", dir + "/none"}, "stat " + dir + "/none: no such file or directory"},
		{[]string{"check", notes}, notes + " is no data directory of Divan"},
		{[]string{"check", dir + "/secret.ini"}, dir + "/secret.ini is no data directory of Divan"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			status, out := run(t, nil, tc.args...)
			if want := "divan: " + tc.want + "\n"; status != 1 || out != want {
				t.Errorf("exit status %d, %q; want 1, %q", status, out, want)
			}
		})
	}
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if got := strings.Join(files, " "); got != "/couch/_dbs.couch /notes/note /secret.ini" || err != nil {
		t.Errorf("refusals left behind %s, %v", got, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadable needs a user for whom there are unreadable files.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	file := filepath.Join(t.TempDir(), "local.ini")
	write(t, file, "[chttpd]\n")
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--config", file}, {"--data", filepath.Dir(file)}} {
		status, out := run(t, nil, args...)
		if status != 1 || !strings.Contains(out, "local.ini: permission denied") {
			t.Errorf("%s: exit status %d, %s", args, status, out)
		}
	}
	// A node's directory is its user's alone: to others it must not look like none.
	dir := t.TempDir()
	startServer(t, adminEnviron(), "--data", dir).stop()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700) //nolint:errcheck,gosec // the test would say that it cannot be removed
	if status, out := run(t, nil, "serve", "--data", dir); status != 1 || !strings.HasPrefix(out, "divan: the data directory is another user's: ") {
		t.Errorf("serve: exit status %d, %s", status, out)
	}
	for _, command := range []string{"check", "recover"} {
		status, out := run(t, nil, command, dir)
		if want := "divan: stat " + dir + "/shards: permission denied: run it as the user of the node or as root\n"; status != 1 || out != want {
			t.Errorf("%s: exit status %d, %s", command, status, out)
		}
	}
}

// TestNoAdmin: without an administrator the node keeps to itself.
func TestNoAdmin(t *testing.T) {
	dir := t.TempDir()
	status, out := run(t, nil, "serve", "--data", dir, "--listen", "0.0.0.0:0")
	const why = "no server administrator is set, so the node listens on this machine only, not on 0.0.0.0:0; set one with " +
		"--admin NAME:PASSWORD, with COUCHDB_USER and COUCHDB_PASSWORD, or in section [admins] of an ini file"
	if status != 1 || !strings.Contains(out, why) {
		t.Errorf("exit status %d, %s", status, out)
	}
	p := startServer(t, nil, "--data", dir)
	p.stop() // then all of its output is there
	if !strings.Contains(p.output(), "Set one: start again with --admin NAME:PASSWORD.") {
		t.Errorf("no hint in %s", p.output())
	}
	// With one it may be reached.
	p = launch(t, adminEnviron(), "--data", dir, "--listen", ":0")
	p.awaitReady()
	p.stop()
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		status, out := run(t, nil, arg)
		if status != 0 || out != "divan "+programVersion()+"\n" {
			t.Errorf("%s: exit status %d, %q", arg, status, out)
		}
	}
}

// TestPortInUse: a node that cannot listen leaves nothing behind.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	dir := filepath.Join(t.TempDir(), "data")
	status, out := run(t, adminEnviron(), "serve", "--data", dir, "--listen", l.Addr().String())
	if status != 1 || !strings.Contains(out, "divan: listen on "+l.Addr().String()) || !strings.Contains(out, "address already in use") {
		t.Errorf("exit status %d, %s", status, out)
	}
	status, out = run(t, nil, "serve", "--data", dir, "--listen", "0.0.0.0:0")
	if status != 1 || !strings.Contains(out, "no server administrator is set") {
		t.Errorf("exit status %d, %s", status, out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory: %v", err)
	}
}

// TestHangup: SIGHUP has the log written to a new file after the old one was
// renamed, and the node goes on.
func TestHangup(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "divan.log")
	p := startServer(t, append(adminEnviron(), "DIVAN_LOG__WRITER=file", "DIVAN_LOG__FILE="+file), "--data", filepath.Join(dir, "data"))
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is there again", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	newClient(t, p.address).want(t, "GET", "/_uuids?count=3", "", 200)
	p.stop()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "/_uuids") {
		t.Errorf("the request is not in the new file: %v", err)
	}
	if !strings.HasSuffix(p.output(), "Divan has stopped.\n") {
		t.Errorf("the end is not told: %s", p.output())
	}
}

func TestNearest(t *testing.T) {
	names := []string{"serve", "setup", "import", "healthcheck", "bench", "check", "recover", "version"}
	for word, want := range map[string]string{"sevre": "serve", "chek": "check", "helthcheck": "healthcheck", "verzion": "version", "frobnicate": "", "x": "", "": ""} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q is %q, want %q", word, got, want)
		}
	}
}

// TestGreetingAtTerminal: a person is told what the node is and has, and that it
// has stopped.
func TestGreetingAtTerminal(t *testing.T) {
	freshTerminal(t) // or there are none
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--listen", "127.0.0.1:0", "--data", dir)
	cmd.Env = append([]string{asProgram + "=1", "DIVAN_LOG__LEVEL=error", "PATH=" + os.Getenv("PATH")}, adminEnviron()...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tty.Close() }()
	out, in := "", bufio.NewReader(tty)
	for !strings.Contains(out, "Ctrl-C") {
		line, err := in.ReadString('\n')
		if out += line; err != nil {
			t.Fatalf("%s%v", out, err)
		}
	}
	if _, err := io.WriteString(tty, "\x03"); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(in) // the end of a terminal is an error
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	out += string(rest)
	for _, want := range []string{
		`Divan answers on http://(127.0.0.1:\d+)\r\n`, `  version    ` + regexp.QuoteMeta(programVersion()) + `\r\n`,
		`  data       ` + regexp.QuoteMeta(dir) + `, \d databases\r\n`, `  listens    HTTP 127.0.0.1:`,
		`  try        curl -u adm "http://127.0.0.1:\d+/_all_dbs"\r\n`, `Divan has stopped.\r\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestHelp(t *testing.T) {
	status, out := run(t, nil, "--help")
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, name := range []string{"serve", "setup", "import", "healthcheck", "bench", "check", "version"} {
		if !strings.Contains(out, "\n  "+name) {
			t.Errorf("help does not name %s", name)
		}
	}
}

// TestHealthcheck asks nodes that run and do not run.
func TestHealthcheck(t *testing.T) {
	p := startServer(t, adminEnviron(), "--data", t.TempDir())
	for _, url := range []string{"http://" + p.address, "http://" + p.address + "/", p.address} {
		if status, out := run(t, nil, "healthcheck", url); status != 0 || out != "" {
			t.Errorf("exit status %d, %q", status, out)
		}
	}
	newClient(t, p.address).want(t, "PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"nolb"`, 200)
	if status, out := run(t, nil, "healthcheck", "http://"+p.address); status != 1 || !strings.Contains(out, "takes no requests: status 404") {
		t.Errorf("in maintenance: exit status %d, %q", status, out)
	}
	p.stop()
	if status, out := run(t, nil, "healthcheck", "http://"+p.address); status != 1 || !strings.Contains(out, "refused") {
		t.Errorf("after the stop: exit status %d, %q", status, out)
	}
}

// TestInUse keeps two processes from one directory.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, adminEnviron(), "--data", dir)
	for _, args := range [][]string{{"serve", "--data", dir, "--listen", "127.0.0.1:0"}, {"check", dir}} {
		status, out := run(t, adminEnviron(), args...)
		if status != 1 || !strings.HasPrefix(out, "divan: data directory "+dir+" is in use") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit status %d, %s", args, status, out)
		}
	}
	newClient(t, p.address).want(t, "GET", "/_up", "", 200)
	p.stop()
}

// TestConfiguration takes settings from every layer, each stronger than the
// one before.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "local.ini"), "[admins]\nini = inipass\n[layers]\na = local.ini\nb = local.ini\nc = local.ini\nd = local.ini\ne = local.ini\n")
	write(t, filepath.Join(dir, "local.d", "10.ini"), "[layers]\nb = local.d\nc = local.d\n")
	write(t, filepath.Join(dir, "local.d", "20.ini"), "[layers]\nc = local.d 20\n")
	write(t, filepath.Join(dir, "local.d", "30.txt"), "[layers]\nc = no ini file\n")
	port := freePort(t)
	environ := append(adminEnviron(), "DIVAN_LAYERS__D=environment", "DIVAN_LAYERS__E=environment", fmt.Sprintf("DIVAN_CHTTPD__PORT=%d", port))
	p := launch(t, environ, "--data", dir)
	p.awaitReady()
	if want := fmt.Sprintf("127.0.0.1:%d", port); p.address != want {
		t.Errorf("the node answers on %s, want %s", p.address, want)
	}
	c := newClient(t, p.address)
	c.want(t, "PUT", "/_node/_local/_config/layers/e", `"HTTP"`, 200)
	for key, want := range map[string]string{"a": "local.ini", "b": "local.d", "c": "local.d 20", "d": "environment", "e": "HTTP"} {
		if got := c.want(t, "GET", "/_node/_local/_config/layers/"+key, "", 200); got != `"`+want+`"` {
			t.Errorf("[layers] %s is %s, want %s", key, got, want)
		}
	}
	for _, who := range []string{"adm:pass", "ini:inipass"} {
		c.base = "http://" + who + "@" + p.address
		c.want(t, "GET", "/_all_dbs", "", 200)
	}
	c.base = "http://adm:wrong@" + p.address
	c.want(t, "GET", "/_all_dbs", "", 401)
	p.stop()

	// Named files count instead of those beside the data, the flags more than
	// the environment.
	named := filepath.Join(t.TempDir(), "named.ini")
	write(t, named, "[layers]\na = named.ini\n")
	p = startServer(t, environ, "--data", dir, "--config", named, "--admin", "flag:flagpass")
	c = newClient(t, p.address)
	c.base = "http://flag:flagpass@" + p.address
	if p.address == fmt.Sprintf("127.0.0.1:%d", port) {
		t.Error("the port of the environment beats --listen")
	}
	for key, want := range map[string]string{"a": `"named.ini"`, "e": `"HTTP"`} {
		if got := c.want(t, "GET", "/_node/_local/_config/layers/"+key, "", 200); got != want {
			t.Errorf("[layers] %s is %s, want %s", key, got, want)
		}
	}
	c.want(t, "GET", "/_node/_local/_config/layers/b", "", 404)
	p.stop()
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := porttest.Free(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// filled makes a data directory with documents and attachments and returns it.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	c.want(t, "PUT", "/pond?q=1", "", 201)
	for i := range 50 {
		c.want(t, "PUT", fmt.Sprintf("/pond/doc%02d", i), fmt.Sprintf(`{"n":%d}`, i), 201)
	}
	status, answer, err := c.do("PUT", "/pond/picture/large", "image/png", incompressible(1, 400_000))
	if status != 201 || err != nil {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	p.stop()
	return dir
}

// TestCheck damages a copy in several ways.
func TestCheck(t *testing.T) {
	dir := filled(t)
	status, out := run(t, nil, "check", dir)
	if status != 0 || out != "6 shard copies, no problems\n" { // 2 for _users and _replicator each, 1 for _global_changes
		t.Fatalf("exit status %d, %s", status, out)
	}
	status, out = run(t, nil, "check", "--verbose", dir)
	if status != 0 || strings.Count(out, "\n") != 7 || !strings.Contains(out, "/pond.") {
		t.Errorf("exit status %d, %s", status, out)
	}
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T, store string)
	}{
		{"a bit in an attachment", func(t *testing.T, store string) {
			t.Helper()
			flip(t, largest(t, store, ".sst"), 0.01) // early in a block: Pebble looks for the bit
		}},
		{"a table is gone", func(t *testing.T, store string) {
			t.Helper()
			remove(t, largest(t, store, ".sst"))
		}},
		{"a table is swapped", func(t *testing.T, store string) {
			t.Helper()
			write(t, largest(t, store, ".sst"), strings.Repeat("x", 401_183))
		}},
		{"a table is cut off", func(t *testing.T, store string) {
			t.Helper()
			if err := os.Truncate(largest(t, store, ".sst"), 1000); err != nil {
				t.Fatal(err)
			}
		}},
		{"the manifest is gone", func(t *testing.T, store string) {
			t.Helper()
			files, err := filepath.Glob(filepath.Join(store, "MANIFEST-*"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				remove(t, f)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			broken := t.TempDir()
			if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			stores, err := filepath.Glob(filepath.Join(broken, "shards", "*", "pond.*"))
			if err != nil || len(stores) != 1 {
				t.Fatal(stores, err)
			}
			tc.damage(t, stores[0])
			status, out := run(t, nil, "check", broken)
			if status != 1 || !strings.Contains(out, "pond.") || !strings.HasSuffix(out, "divan: 1 problems in 6 shard copies\n") || strings.Count(out, "\n") != 2 {
				t.Errorf("exit status %d, %s", status, out)
			}
		})
	}
}

// compacted makes a data directory whose documents are in tables and returns it and the
// directory of their shard.
func compacted(t *testing.T) (dir, store string) {
	t.Helper()
	dir = t.TempDir()
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	c.want(t, "PUT", "/pond?q=1", "", 201)
	for i := range 40 {
		c.want(t, "PUT", fmt.Sprintf("/pond/doc%02d", i), fmt.Sprintf(`{"x":"%x"}`, incompressible(uint64(i), 3000)), 201)
	}
	c.want(t, "POST", "/pond/_compact", "", 202)
	for running := true; running; <-time.After(10 * time.Millisecond) {
		_, answer, err := c.do("GET", "/pond", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		running = !strings.Contains(string(answer), `"compact_running":false`)
	}
	p.stop()
	stores, err := filepath.Glob(filepath.Join(dir, "shards", "*", "pond.*"))
	if err != nil || len(stores) != 1 {
		t.Fatal(stores, err)
	}
	return dir, stores[0]
}

// TestCheckLines: one line for each problem, also where the error has more.
func TestCheckLines(t *testing.T) {
	dir, store := compacted(t)
	flip(t, largest(t, store, ".sst"), 0.3)
	status, out := run(t, nil, "check", dir)
	if problems := strings.Count(out, "shards/"); status != 1 || problems < 2 || strings.Count(out, "\n") != problems+1 ||
		!strings.HasSuffix(out, fmt.Sprintf("divan: %d problems in 6 shard copies\n", problems)) {
		t.Errorf("exit status %d, %s", status, out)
	}
}

// TestDamagedManifest: a shard whose manifest is damaged is not opened with what stands
// before the damage.
func TestDamagedManifest(t *testing.T) {
	dir, store := compacted(t)
	files, err := filepath.Glob(filepath.Join(store, "MANIFEST-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	flip(t, files[0], 0.2)
	if status, out := run(t, nil, "check", dir); status != 1 || !strings.Contains(out, "The shard's files are damaged.: the record at offset") {
		t.Errorf("exit status %d, %s", status, out)
	}
	p := startServer(t, adminEnviron(), "--data", dir)
	defer p.stop()
	newClient(t, p.address).want(t, "GET", "/pond/doc01", "", 503)
}

// largest returns the largest file of a store whose name ends so.
func largest(t *testing.T, store, ending string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(store, "*"+ending))
	if err != nil {
		t.Fatal(err)
	}
	best, size := "", int64(-1)
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > size {
			best, size = f, info.Size()
		}
	}
	if best == "" {
		t.Fatalf("no %s in %s", ending, store)
	}
	return best
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// flip changes one byte at a fraction of the file's length.
func flip(t *testing.T, file string, at float64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[int(float64(len(text))*at)] ^= 0x53 // one bit would be set right
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkDirectory is what the command check does, in this process.
func checkDirectory(t *testing.T, dir string) {
	t.Helper()
	var out bytes.Buffer
	x := examination{out: &out}
	before := filesOf(t, dir)
	if err := x.check(context.Background(), dir); err != nil || x.problems > 0 || x.stores == 0 {
		t.Errorf("check: %d problems in %d copies, %v\n%s", x.problems, x.stores, err, out.String())
	}
	for _, file := range filesOf(t, dir) {
		if !slices.Contains(before, file) {
			t.Errorf("check has written %s", file)
		}
	}
}

// filesOf is the names, sizes and times of all files of a directory, but for the one
// that keeps others out.
func filesOf(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "LOCK" {
			return err
		}
		info, err := e.Info()
		if err == nil {
			out = append(out, fmt.Sprint(name, " ", info.Size(), " ", info.ModTime().UnixNano()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestHealthcheckTLS: the authority that is given, or every certificate, is trusted.
func TestHealthcheckTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_up" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that is refused
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	for flags, want := range map[string]int{"--ca=" + file: 0, "--insecure": 0, "--insecure=false": 1} {
		if status, out := run(t, nil, "healthcheck", flags, srv.URL); status != want || (out == "") != (want == 0) {
			t.Errorf("%s: exit status %d, %s", flags, status, out)
		}
	}
}
