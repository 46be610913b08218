package node

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap/zapcore"
)

// TestLogFile writes the log into a file, as JSON, at a level that changes.
func TestLogFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "divan.log")
	cfg := inMemory(t, "DIVAN_LOG__WRITER=file", "DIVAN_LOG__FILE="+file, "DIVAN_LOG__FORMAT=json", "DIVAN_CHTTPD__PORT=many")
	h := buildAs(t, cfg)
	h.run()
	h.want("GET", "/_up", "", "200")
	if lines := h.node.base.logger.lines(); lines["info"] == 0 || lines["warning"] == 0 || lines["error"] != 0 || lines["debug"] != 0 {
		t.Errorf("the log has %v", lines)
	}
	h.set("log", "level", "error")
	h.want("GET", "/_uuids", "", "200")
	h.end()
	lines := readLog(t, file)
	for _, tc := range []struct {
		logger, msg, key, value string
		want                    bool
	}{
		{"http", "request", "path", "/_up", true},
		{"http", "request", "path", "/_uuids", false}, // below the level
		{"config", "configuration value ignored, the default counts", "key", "port", true},
	} {
		found := false
		for _, l := range lines {
			found = found || l["logger"] == tc.logger && l["msg"] == tc.msg && l[tc.key] == tc.value
		}
		if found != tc.want {
			t.Errorf("%s %s %s=%s in the log: %v", tc.logger, tc.msg, tc.key, tc.value, found)
		}
	}
}

// TestFiguresOfTheNode: what is written is counted, what is read is not.
func TestFiguresOfTheNode(t *testing.T) {
	h := buildAs(t, inMemory(t, "DIVAN_GLOBAL_CHANGES__UPDATE_DB=false")) // it is written to a moment after each change
	h.run()
	h.want("PUT", "/pond?q=1", "", "201")
	h.want("PUT", "/pond/frog", "{}", "201")
	before := h.node.report.figures().Commits
	h.want("GET", "/pond/frog", "", "200")
	if after := h.node.report.figures().Commits; before == 0 || after != before {
		t.Errorf("%d commits, %d after a read", before, after)
	}
	h.want("PUT", "/pond/toad", "{}", "201")
	if after := h.node.report.figures().Commits; after <= before {
		t.Errorf("%d commits, %d after a write", before, after)
	}
	h.end()
}

func readLog(t *testing.T, file string) []map[string]any {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []map[string]any
	for scan := bufio.NewScanner(f); scan.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", scan.Text(), err)
		}
		out = append(out, line)
	}
	return out
}

func TestLevels(t *testing.T) {
	for name, want := range map[string]zapcore.Level{
		"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "notice": zapcore.InfoLevel, "warning": zapcore.WarnLevel,
		"error": zapcore.ErrorLevel, "critical": zapcore.ErrorLevel, "emergency": zapcore.ErrorLevel, "none": zapcore.FatalLevel,
	} {
		if got := levelOf(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
