package replica

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// through sends a message over the wire and decodes what comes out into to.
func through(t *rapid.T, m, to wire.Message) {
	b := make([]byte, m.SizeVT())
	if _, err := m.MarshalToSizedBufferVT(b); err != nil {
		t.Fatal(err)
	}
	if err := to.UnmarshalVTUnsafe(b); err != nil {
		t.Fatal(err)
	}
}

// survives fails unless got, which has been sent, is what was sent.
func survives[T any](t *rapid.T, want, got T) {
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %#v\nsent %#v", got, want)
	}
}

// some is nil or has elements: empty lists are nil in package shard.
func some[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] {
	return rapid.Custom(func(t *rapid.T) []T {
		if out := rapid.SliceOfN(g, 0, 4).Draw(t, "list"); len(out) > 0 {
			return out
		}
		return nil
	})
}

func sixteen() *rapid.Generator[[16]byte] {
	return rapid.Custom(func(t *rapid.T) (out [16]byte) {
		if rapid.Bool().Draw(t, "zero") {
			return out
		}
		copy(out[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		return out
	})
}

// anyBytes is what revision ids may be: any bytes.
func anyBytes() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) })
}

func revs() *rapid.Generator[doc.Rev] {
	return rapid.Custom(func(t *rapid.T) doc.Rev {
		return doc.Rev{Pos: rapid.Uint64().Draw(t, "pos"), ID: anyBytes().Draw(t, "id")}
	})
}

func revPaths() *rapid.Generator[doc.Path] {
	return rapid.Custom(func(t *rapid.T) doc.Path {
		return doc.Path{Start: rapid.Uint64Range(0, 9).Draw(t, "start"), IDs: some(anyBytes()).Draw(t, "ids")}
	})
}

// bodies are never empty but nil.
func bodies() *rapid.Generator[[]byte] { return some(rapid.Byte()) }

func attachments() *rapid.Generator[doc.Attachment] {
	return rapid.Custom(func(t *rapid.T) doc.Attachment {
		return doc.Attachment{
			Name: rapid.String().Draw(t, "name"), ContentType: rapid.String().Draw(t, "type"), RevPos: rapid.Uint64().Draw(t, "revpos"),
			Digest: sixteen().Draw(t, "digest"), Length: rapid.Int64().Draw(t, "length"), StoredLength: rapid.Int64().Draw(t, "stored"),
			Gzip: rapid.Bool().Draw(t, "gzip"), Key: sixteen().Draw(t, "key"),
		}
	})
}

func docs() *rapid.Generator[*shard.Doc] {
	return rapid.Custom(func(t *rapid.T) *shard.Doc {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return &shard.Doc{
			ID: rapid.String().Draw(t, "id"), Rev: revs().Draw(t, "rev"), Deleted: rapid.Bool().Draw(t, "deleted"),
			Body: bodies().Draw(t, "body"), Atts: some(attachments()).Draw(t, "atts"), Revisions: revPaths().Draw(t, "path"),
			RevsInfo: some(rapid.Custom(func(t *rapid.T) shard.RevInfo {
				return shard.RevInfo{Rev: revs().Draw(t, "rev"), Status: rapid.String().Draw(t, "status")}
			})).Draw(t, "info"),
			Conflicts: some(revs()).Draw(t, "conflicts"), DeletedConflicts: some(revs()).Draw(t, "deleted"),
			LocalSeq: rapid.Uint64().Draw(t, "seq"),
		}
	})
}

// filters of integers: the fields that are int travel as int64.
func ints() *rapid.Generator[int] { return rapid.Int() }

func limits() *rapid.Generator[shard.Limits] {
	return rapid.Custom(func(t *rapid.T) shard.Limits {
		return shard.Limits{
			Revs: ints().Draw(t, "revs"), PurgedInfos: ints().Draw(t, "infos"),
			Partitioned: rapid.Bool().Draw(t, "partitioned"), MaxPartitionSize: rapid.Int64().Draw(t, "size"),
		}
	})
}

func edits() *rapid.Generator[shard.Edit] {
	return rapid.Custom(func(t *rapid.T) shard.Edit {
		return shard.Edit{
			ID: rapid.String().Draw(t, "id"), Parent: revs().Draw(t, "parent"), Path: revPaths().Draw(t, "path"),
			Deleted: rapid.Bool().Draw(t, "deleted"), Body: bodies().Draw(t, "body"),
			Atts: some(rapid.Custom(func(t *rapid.T) shard.EditAttachment {
				a := shard.EditAttachment{
					Attachment: attachments().Draw(t, "attachment"), Stub: rapid.Bool().Draw(t, "stub"),
					HasRevPos: rapid.Bool().Draw(t, "has"),
				}
				if rapid.Bool().Draw(t, "data") { // empty content is content
					a.Data = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "bytes")...)
				}
				return a
			})).Draw(t, "atts"),
		}
	})
}

func faults() *rapid.Generator[error] {
	return rapid.Custom(func(t *rapid.T) error {
		switch rapid.IntRange(0, 2).Draw(t, "error") {
		case 0:
			return nil
		case 1:
			return &fault.Error{
				Kind: fault.Kind(rapid.IntRange(1, 255).Draw(t, "kind")), Code: rapid.String().Draw(t, "code"),
				Reason: rapid.String().Draw(t, "reason"),
			}
		default:
			return &fault.Error{Kind: fault.Conflict, Reason: "x", Err: errors.New("cause")}
		}
	})
}

func TestUpdateSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := shard.UpdateRequest{
			Copy: rapid.String().Draw(t, "copy"), Edits: some(edits()).Draw(t, "edits"), NewEdits: rapid.Bool().Draw(t, "new"),
			Limits: limits().Draw(t, "limits"), DB: rapid.String().Draw(t, "db"), Security: bodies().Draw(t, "security"),
			Delayed: rapid.Bool().Draw(t, "delayed"), Trusted: rapid.Bool().Draw(t, "trusted"), NoPath: rapid.Bool().Draw(t, "nopath"),
			User: shard.User{
				Name: rapid.String().Draw(t, "user"), Anonymous: rapid.Bool().Draw(t, "anonymous"),
				Roles: some(rapid.String()).Draw(t, "roles"),
			},
		}
		var m wirepb.UpdateRequest
		through(t, encodeUpdate(&req), &m)
		survives(t, req, decodeUpdate(&m))
	})
}

func TestResultsSurvive(t *testing.T) {
	result := rapid.Custom(func(t *rapid.T) shard.EditResult {
		return shard.EditResult{
			Rev: revs().Draw(t, "rev"), Path: revPaths().Draw(t, "path"), Err: faults().Draw(t, "err"),
			Accepted: rapid.Bool().Draw(t, "accepted"), Kept: some(attachments()).Draw(t, "kept"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		results := some(result).Draw(t, "results")
		var m wirepb.EditResults
		through(t, encodeResults(&results), &m)
		survives(t, results, decodeResults(&m))
	})
}

func TestReadsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		open := shard.OpenRequest{
			Copy: rapid.String().Draw(t, "copy"), ID: rapid.String().Draw(t, "id"), Rev: revs().Draw(t, "rev"), Latest: flag("latest"),
			Revs: flag("revs"), RevsInfo: flag("info"), Conflicts: flag("conflicts"), DeletedConflicts: flag("deleted"),
			LocalSeq: flag("seq"), AllowDeleted: flag("allow"), HeadOnly: flag("head"), RevsLimit: ints().Draw(t, "limit"),
		}
		var openM wirepb.OpenRequest
		through(t, encodeOpen(&open), &openM)
		survives(t, open, decodeOpen(&openM))

		or := shard.OpenRevsRequest{
			Copy: open.Copy, ID: open.ID, Revs: some(revs()).Draw(t, "revs"), All: flag("all"), Latest: flag("latest"),
			WithPath: flag("path"), HeadOnly: flag("headonly"), RevsLimit: open.RevsLimit,
		}
		var orM wirepb.OpenRevsRequest
		through(t, encodeOpenRevs(&or), &orM)
		survives(t, or, decodeOpenRevs(&orM))

		if d := docs().Draw(t, "doc"); d != nil {
			var docM wirepb.Doc
			through(t, encodeDoc(d, nil), &docM)
			survives(t, d, decodeNewDoc(&docM))
		}

		results := some(rapid.Custom(func(t *rapid.T) shard.RevResult {
			return shard.RevResult{Rev: revs().Draw(t, "rev"), Doc: docs().Draw(t, "doc")}
		})).Draw(t, "results")
		var resultsM wirepb.RevResults
		through(t, encodeRevResults(&results), &resultsM)
		survives(t, results, decodeRevResults(&resultsM))

		ids := some(rapid.Custom(func(t *rapid.T) shard.IDRevs {
			return shard.IDRevs{ID: rapid.String().Draw(t, "id"), Revs: some(revs()).Draw(t, "revs")}
		})).Draw(t, "ids")
		var idsM wirepb.MissingRequest
		through(t, &wirepb.MissingRequest{Ids: encodeIDRevs(ids)}, &idsM)
		survives(t, ids, decodeIDRevs(idsM.Ids))

		missing := some(rapid.Custom(func(t *rapid.T) shard.IDMissing {
			return shard.IDMissing{
				ID: rapid.String().Draw(t, "id"), Missing: some(revs()).Draw(t, "missing"),
				PossibleAncestors: some(revs()).Draw(t, "ancestors"),
			}
		})).Draw(t, "missing")
		var missingM wirepb.Missings
		through(t, encodeMissings(&missing), &missingM)
		survives(t, missing, decodeMissings(&missingM))
	})
}

func rows() *rapid.Generator[shard.Row] {
	return rapid.Custom(func(t *rapid.T) shard.Row {
		return shard.Row{
			ID: rapid.String().Draw(t, "id"), Rev: revs().Draw(t, "rev"), Deleted: rapid.Bool().Draw(t, "deleted"),
			Missing: rapid.Bool().Draw(t, "missing"), Doc: docs().Draw(t, "doc"),
		}
	})
}

func localDocs() *rapid.Generator[shard.LocalDoc] {
	return rapid.Custom(func(t *rapid.T) shard.LocalDoc {
		return shard.LocalDoc{ID: rapid.String().Draw(t, "id"), Rev: rapid.Uint64().Draw(t, "rev"), Body: bodies().Draw(t, "body")}
	})
}

func changes() *rapid.Generator[shard.Change] {
	return rapid.Custom(func(t *rapid.T) shard.Change {
		return shard.Change{
			Seq: rapid.Uint64().Draw(t, "seq"), ID: rapid.String().Draw(t, "id"),
			Leaves:  append([]doc.Rev{}, rapid.SliceOfN(revs(), 1, 4).Draw(t, "leaves")...),
			Deleted: rapid.Bool().Draw(t, "deleted"), Doc: docs().Draw(t, "doc"),
		}
	})
}

// Rows survive also when the messages on both sides have been used before.
func TestRowsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rowsOut, rowsIn wirepb.Rows
		var localsOut, localsIn wirepb.LocalDocs
		var changesOut, changesIn wirepb.Changes
		for range 3 {
			want := some(rows()).Draw(t, "rows")
			encodeRows(want, &rowsOut)
			rowsIn.ResetVT()
			through(t, &rowsOut, &rowsIn)
			survives(t, want, appendRows(nil, rowsIn.Rows))

			locals := some(localDocs()).Draw(t, "locals")
			encodeLocals(&shard.LocalBatch{Rows: locals}, &localsOut)
			localsIn.ResetVT()
			through(t, &localsOut, &localsIn)
			var got shard.LocalBatch
			appendLocals(&localsIn, &got)
			survives(t, locals, got.Rows)

			feed := some(changes()).Draw(t, "changes")
			upto := rapid.Uint64().Draw(t, "upto")
			encodeChanges(&shard.ChangeBatch{Rows: feed, Upto: upto}, &changesOut)
			changesIn.ResetVT()
			through(t, &changesOut, &changesIn)
			survives(t, feed, appendChanges(nil, changesIn.Rows))
			survives(t, upto, changesIn.Upto)
		}
	})
}

func TestListRequestsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		d := shard.DocsRequest{
			Copy: rapid.String().Draw(t, "copy"), Lo: rapid.String().Draw(t, "lo"), LoExclusive: flag("lox"), Hi: rapid.String().Draw(t, "hi"),
			HasHi: flag("hashi"), HiExclusive: flag("hix"), Desc: flag("desc"), IncludeDocs: flag("docs"), Conflicts: flag("conflicts"),
			Limit: ints().Draw(t, "limit"),
		}
		var docsM wirepb.DocsRequest
		through(t, encodeDocsRequest(&d), &docsM)
		survives(t, d, decodeDocsRequest(&docsM))
		l := shard.LocalDocsRequest{
			Copy: d.Copy, Lo: d.Lo, LoExclusive: d.LoExclusive, Hi: d.Hi, HasHi: d.HasHi, HiExclusive: d.HiExclusive,
			Desc: d.Desc, System: flag("system"),
		}
		var localM wirepb.DocsRequest
		through(t, encodeLocalDocsRequest(&l), &localM)
		survives(t, l, decodeLocalDocsRequest(&localM))
		c := shard.ChangesRequest{
			Copy: d.Copy, Since: rapid.Uint64().Draw(t, "since"), Desc: d.Desc, AllLeaves: flag("all"), IncludeDocs: d.IncludeDocs,
			Conflicts: d.Conflicts, Limit: d.Limit,
			Filter: shard.Filter{
				Kind: shard.FilterKind(rapid.Uint8().Draw(t, "kind")), IDs: some(rapid.String()).Draw(t, "ids"),
				Selector: bodies().Draw(t, "selector"),
			},
		}
		if flag("function") {
			c.Filter.Function = shard.FilterFunc{
				DB: rapid.String().Draw(t, "db"), Design: rapid.String().Draw(t, "design"), Rev: revs().Draw(t, "rev"),
				Name: rapid.StringN(1, 9, -1).Draw(t, "name"), Request: bodies().Draw(t, "request"),
			}
		}
		var changesM wirepb.ChangesRequest
		through(t, encodeChangesRequest(&c), &changesM)
		survives(t, c, decodeChangesRequest(&changesM))
	})
}

func TestPurgesAndInfoSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := some(rapid.Custom(func(t *rapid.T) shard.PurgeItem {
			return shard.PurgeItem{UUID: sixteen().Draw(t, "uuid"), ID: rapid.String().Draw(t, "id"), Revs: some(revs()).Draw(t, "revs"), Paths: some(revPaths()).Draw(t, "paths")}
		})).Draw(t, "items")
		var itemsM wirepb.PurgeRequest
		through(t, &wirepb.PurgeRequest{Items: encodePurgeItems(items)}, &itemsM)
		survives(t, items, decodePurgeItems(itemsM.Items))
		results := some(rapid.Custom(func(t *rapid.T) shard.PurgeResult {
			return shard.PurgeResult{ID: rapid.String().Draw(t, "id"), Purged: some(revs()).Draw(t, "revs")}
		})).Draw(t, "results")
		var resultsM wirepb.PurgeResults
		through(t, encodePurgeResults(&results), &resultsM)
		survives(t, results, decodePurgeResults(&resultsM))
		infos := some(rapid.Custom(func(t *rapid.T) shard.PurgeInfo {
			return shard.PurgeInfo{
				Seq: rapid.Uint64().Draw(t, "seq"), UUID: sixteen().Draw(t, "uuid"), ID: rapid.String().Draw(t, "id"),
				Revs: some(revs()).Draw(t, "revs"), Paths: some(revPaths()).Draw(t, "paths"),
			}
		})).Draw(t, "infos")
		var infosM wirepb.PurgeInfos
		through(t, encodePurgeInfos(&infos), &infosM)
		survives(t, infos, decodePurgeInfos(&infosM))
		u := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
		n := func(name string) int64 { return rapid.Int64().Draw(t, name) }
		info := shard.Info{
			UUID: sixteen().Draw(t, "uuid"), Live: u("live"), Deleted: u("deleted"), Seq: u("seq"), PurgeSeq: u("purge"),
			External: n("external"), Active: n("active"), File: n("file"), Compacting: rapid.Bool().Draw(t, "compacting"), PurgeOldest: u("oldest"),
		}
		var infoM wirepb.Info
		through(t, encodeInfo(&info), &infoM)
		survives(t, info, decodeInfo(&infoM))
	})
}
