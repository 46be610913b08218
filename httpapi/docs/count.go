package docs

import (
	"divan/httpapi/stats"
	"divan/shard"
	"divan/storage/doc"
)

// countEdits counts what became of edits that were sent together.
func countEdits(s *stats.Counters, sent []shard.Edit, results []shard.EditResult) {
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
	s.DocumentWrites.Add(written)
	s.DocumentInserts.Add(inserted)
	s.LocalWrites.Add(local)
	if written+local > 0 {
		s.DatabaseWrites.Inc()
	}
}
