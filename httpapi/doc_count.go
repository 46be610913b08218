package httpapi

import (
	"divan/shard"
	"divan/storage/doc"
)

// countEdits counts what became of edits that were sent together.
func countEdits(s *statistics, sent []shard.Edit, results []shard.EditResult) {
	written, local, inserted := 0, 0, 0
	for i := range results {
		switch {
		case results[i].Err != nil:
		case doc.IsLocal(sent[i].ID):
			local++
		default:
			written++
			if results[i].Rev.Pos == 1 {
				inserted++
			}
		}
	}
	s.documentWrites.Add(written)
	s.documentInserts.Add(inserted)
	s.localWrites.Add(local)
	if written+local > 0 {
		s.databaseWrites.Inc()
	}
}
