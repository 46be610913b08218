package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

const (
	// reportTimeout bounds the last questions of a run that was interrupted.
	reportTimeout = 15 * time.Second
	// maxShown is how many refused revisions of a database are named.
	maxShown = 20
)

// report prints what is where now, and what is different. The error says that
// something is missing.
func (m *migration) report(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
		defer cancel()
		m.source.Retry, m.target.Retry = false, false // no second attempts: the user wants this to end
	}
	out := &report{w: m.cfg.Report, m: m}
	if m.cfg.Continuous {
		if err := m.lookAgain(ctx); err != nil {
			return err
		}
	}
	out.databases()
	out.behind()
	out.failures()
	out.refusals()
	out.differences()
	out.leftBehind(ctx)
	if m.cfg.DryRun {
		out.print("\nNothing was written.\n")
	}
	return errors.Join(out.err, out.missing())
}

// lookAgain finds out how far every database is behind.
func (m *migration) lookAgain(ctx context.Context) error {
	var names []string
	for _, db := range m.dbs.all() {
		names = append(names, db.name)
	}
	infos, err := m.infos(ctx, names)
	if err != nil {
		return err
	}
	changed := slices.DeleteFunc(names, func(name string) bool {
		i, there := infos[name]
		return !there || m.dbs.get(name).has(i)
	})
	return m.each(ctx, changed, func(ctx context.Context, name string) error {
		db := m.dbs.get(name)
		if err := m.compare(ctx, db); err != nil && db.err == nil {
			db.err = err
		}
		return nil // the others can be told
	})
}

// report is the report while it is written.
type report struct {
	w   io.Writer
	m   *migration
	err error // of w
}

func (r *report) print(format string, args ...any) {
	if _, err := fmt.Fprintf(r.w, format, args...); err != nil && r.err == nil {
		r.err = err
	}
}

// list prints lines under a heading; nothing without lines.
func (r *report) list(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	r.print("\n%s\n", heading)
	for _, line := range lines {
		r.print("  %s\n", line)
	}
}

// databases tells how many documents both sides have.
func (r *report) databases() {
	all := r.m.dbs.all()
	var documents, deleted uint64
	var differ []*database
	failed := false
	for _, db := range all {
		documents, deleted = documents+db.source.Documents, deleted+db.source.Deleted
		failed = failed || db.err != nil
		if db.err == nil && (db.target.Documents != db.expected() || db.target.Deleted != db.source.Deleted) {
			differ = append(differ, db)
		}
	}
	r.print("\n%s with %s, and %s deleted, at %s.\n", count(int64(len(all)), "database"), count(int64(documents), "document"),
		humanize.Comma(int64(deleted)), r.m.source.Host())
	if len(differ) == 0 {
		if !failed {
			r.print("As many are at %s.\n", r.m.target.Host())
		}
		return
	}
	r.print("\nNot as many are at %s in:\n", r.m.target.Host())
	table := tabwriter.NewWriter(r.w, 0, 0, 3, ' ', tabwriter.AlignRight)
	comma := func(n uint64) string { return humanize.Comma(int64(n)) }
	rows := []string{"  documents\tdeleted\there\tdeleted\t   database"}
	for _, db := range differ {
		rows = append(rows, fmt.Sprintf("  %s\t%s\t%s\t%s\t   %s", comma(db.expected()), comma(db.source.Deleted),
			comma(db.target.Documents), comma(db.target.Deleted), db.name))
	}
	_, err := io.WriteString(table, strings.Join(rows, "\n")+"\n")
	r.err = errors.Join(r.err, err, table.Flush())
}

// behind tells how much of the source has not come yet.
func (r *report) behind() {
	if !r.m.cfg.Continuous {
		return
	}
	var lines []string
	for _, db := range r.m.dbs.all() {
		switch {
		case db.left == 0:
		case db.left < 0:
			lines = append(lines, db.name+": this source does not tell")
		default:
			lines = append(lines, db.name+": "+count(db.left, "change"))
		}
	}
	if len(lines) == 0 {
		r.print("\nNo database is behind.\n")
	}
	r.list("Behind the source:", lines)
}

func (r *report) failures() {
	var lines []string
	for _, db := range r.m.dbs.all() {
		if db.err != nil {
			lines = append(lines, db.name+": "+reason(db.err))
		}
	}
	r.list("Not brought, or not to the end:", lines)
}

func (r *report) refusals() {
	var lines []string
	for _, db := range r.m.dbs.all() {
		refused := db.refusals.count()
		keys := slices.SortedFunc(maps.Keys(db.refusals.byDoc), func(a, b revision) int {
			return strings.Compare(a.id+"\x00"+a.rev, b.id+"\x00"+b.rev)
		})
		for _, key := range keys[:min(len(keys), maxShown)] {
			lines = append(lines, fmt.Sprintf("%s: %s %s: %s", db.name, key.id, key.rev, reason(db.refusals.byDoc[key])))
		}
		if refused > maxShown {
			lines = append(lines, fmt.Sprintf("%s: and %s more", db.name, humanize.Comma(int64(refused-maxShown))))
		}
	}
	r.list("Refused by "+r.m.target.Host()+":", lines)
}

func (r *report) differences() {
	var different, failing []string
	for _, db := range r.m.dbs.all() {
		for _, text := range db.different {
			different = append(different, db.name+": "+text)
		}
		for _, text := range db.failing {
			failing = append(failing, db.name+": "+text)
		}
	}
	r.list("Different here:", different)
	r.list("Fails at the source as well:", failing)
}

// leftBehind tells what stays where it is.
func (r *report) leftBehind(ctx context.Context) {
	lines := []string{
		"documents that do not replicate (_local/…), among them the checkpoints of clients",
		"server administrators and other settings (GET /_node/_local/_config shows them)",
	}
	for _, name := range r.m.choice.own {
		lines = append(lines, name+": the server makes its own")
	}
	for _, name := range r.m.choice.replications {
		n, err := r.m.replications(ctx, name)
		if err != nil {
			lines = append(lines, name+": "+reason(err))
		} else if n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s. They start to run as soon as they are here: end them at the source, "+
				"then run this command again with --replications", name, count(n, "document")))
		}
	}
	for _, db := range r.m.dbs.all() {
		for _, id := range db.judges {
			lines = append(lines, db.name+": "+id+" comes with a run without --continuous: it would judge what is still to come")
		}
	}
	r.list("Left behind:", lines)
}

// replications is how many documents of a replicator database are not CouchDB's
// own.
func (m *migration) replications(ctx context.Context, db string) (int64, error) {
	i, there, err := m.source.info(ctx, db)
	if err != nil || !there {
		return 0, err
	}
	n := int64(i.Documents)
	own, err := m.source.hasBuiltIn(ctx, db)
	if own {
		n--
	}
	return n, err
}

// missing is the error of a target that does not have everything.
func (r *report) missing() error {
	var failed, refused, short int64
	for _, db := range r.m.dbs.all() {
		n := int64(db.refusals.count())
		refused += n
		if db.err != nil {
			failed++
		} else if n == 0 && db.short() {
			short++
		}
	}
	var parts []string
	if failed > 0 {
		parts = append(parts, count(failed, "database")+" failed")
	}
	if refused > 0 {
		parts = append(parts, count(refused, "revision")+" refused")
	}
	if short > 0 && !r.m.cfg.DryRun {
		parts = append(parts, "documents are missing in "+count(short, "database")+" (--from-start looks at every document again)")
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrIncomplete, strings.Join(parts, ", "))
}
