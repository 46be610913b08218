package shard

import (
	"strings"
	"testing"

	"divan/storage/doc"
)

// TestDocSize: every part of a document that grows with the data of clients
// counts.
func TestDocSize(t *testing.T) {
	var none *Doc
	if none.Size() != 0 {
		t.Error("no document has a size")
	}
	const n = 100
	revs, ids := make([]doc.Rev, n), make([]string, n)
	for i := range revs {
		ids[i] = strings.Repeat("r", 32)
		revs[i] = doc.Rev{Pos: 1, ID: ids[i]}
	}
	least := (&Doc{}).Size()
	for name, d := range map[string]*Doc{
		"id":                {ID: strings.Repeat("i", 48*n)},
		"body":              {Body: make([]byte, 48*n)},
		"attachments":       {Atts: make([]doc.Attachment, n)},
		"names":             {Atts: []doc.Attachment{{Name: strings.Repeat("n", 24*n), ContentType: strings.Repeat("t", 24*n)}}},
		"path":              {Revisions: doc.Path{Start: n, IDs: ids}},
		"conflicts":         {Conflicts: revs},
		"deleted conflicts": {DeletedConflicts: revs},
		"revs_info":         {RevsInfo: make([]RevInfo, n)},
	} {
		if got := d.Size() - least; got < 48*n || got > 130*n {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
}
