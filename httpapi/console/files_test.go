package console

import (
	"strings"
	"testing"
)

// The page says that there is no administrator where there is none: a client cannot learn
// that in another way.
func TestPageWithoutAdmins(t *testing.T) {
	f, err := load()
	if err != nil {
		t.Fatal(err)
	}
	const mark = `<html data-admins="none" `
	with, without := string(f.index.body), string(f.indexWithoutAdmins.body)
	if strings.Contains(with, mark) || !strings.Contains(without, mark) || f.index.etag == f.indexWithoutAdmins.etag {
		t.Errorf("with administrators %s, without %s", with, without)
	}
}
