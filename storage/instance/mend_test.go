package instance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"divan/storage/bitflip"
)

const logOfTest = 9

// appendTrailer ends a log as closing it does.
func appendTrailer(log []byte) []byte {
	if left := logBlock - len(log)%logBlock; left < chunkHeader {
		log = append(log, make([]byte, left)...)
	}
	log = append(log, 0, 0, 0, 0, 0, 0, fullKind)
	return binary.LittleEndian.AppendUint32(log, logOfTest+1)
}

// drawnLog is a log of some records, of which some leave little space in a block, and where the last one begins.
func drawnLog(t *rapid.T) (log []byte, last int) {
	for range rapid.IntRange(1, 5).Draw(t, "records") {
		last = len(log)
		size := rapid.IntRange(1, 40<<10).Draw(t, "size")
		if rapid.Bool().Draw(t, "fills") { // but for a few bytes
			size = max(1, logBlock-len(log)%logBlock-syncHeader-rapid.IntRange(0, 20).Draw(t, "left"))
		}
		log = appendRecord(log, logOfTest, bytes.Repeat([]byte{byte(size), 7}, size/2+1)[:size])
	}
	return log, last
}

func mustMend(t *rapid.T, text []byte, c chunks) []flip {
	flips, err := mendChunks(bytes.NewReader(text), c)
	if err != nil {
		t.Fatal(err)
	}
	return flips
}

// TestMendLog: a bit of a log is set right that was durable, also behind the padding of a block; one of the last write
// is where the log was closed or a later one begun.
func TestMendLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log, last := drawnLog(t)
		how := rapid.SampledFrom([]string{"open", "closed", "later"}).Draw(t, "how")
		text := bytes.Clone(log)
		if how == "closed" {
			text = appendTrailer(text)
		}
		text = append(text, make([]byte, rapid.SampledFrom([]int{0, 100, 70 << 10}).Draw(t, "zeros"))...)
		c := logChunks{logOfTest, how == "later"}
		if flips := mustMend(t, text, c); len(flips) > 0 {
			t.Fatalf("%v of a sound log", flips)
		}
		want := flip{int64(rapid.IntRange(0, len(log)-1).Draw(t, "at")), 1 << rapid.IntRange(0, 7).Draw(t, "bit")}
		text[want.at] ^= want.mask
		flips := mustMend(t, text, c)
		switch padded := logBlock - want.at%logBlock; {
		case how != "open" || want.at < int64(last):
			if !slices.Equal(flips, []flip{want}) && (padded >= syncHeader || len(flips) > 0) { // the last of a block no chunk may have
				t.Fatalf("%v is set right, want %v of %d bytes", flips, want, len(log))
			}
		case len(flips) > 0 && want.at < int64(last)/logBlock*logBlock+logBlock:
			t.Fatalf("%v of a write that may have been cut off", flips)
		}
	})
}

// forge changes the sum of a chunk so that one bit of it seems to be another one.
func forge(chunk []byte, bit int) {
	chunk[bit/8] ^= 1 << (bit % 8)
	binary.LittleEndian.PutUint32(chunk, bitflip.Mask(bitflip.Sum(chunk[kindAt:])))
	chunk[bit/8] ^= 1 << (bit % 8)
}

// TestTornIsNotMended: a write that was cut off is left as it is, where by chance it fits a bit that is another one.
func TestTornIsNotMended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log, _ := drawnLog(t)
		log = log[:len(log)/logBlock*logBlock+min(len(log)%logBlock, 20<<10)]
		begin := len(log)
		size := rapid.IntRange(600, 10<<10).Draw(t, "size")
		log = appendRecord(log, logOfTest, bytes.Repeat([]byte{1, 2, 3}, size))[:min(begin+size, begin/logBlock*logBlock+logBlock)]
		binary.LittleEndian.PutUint16(log[begin+4:], uint16(len(log)-begin-syncHeader))
		cut := (rapid.IntRange(begin+syncHeader, len(log)-1).Draw(t, "cut")/sector + 1) * sector
		if cut >= len(log)-syncHeader {
			t.Skip("nothing is cut off")
		}
		older := rapid.Bool().Draw(t, "older")
		for at := cut; at < len(log); at++ {
			log[at] = 0
		}
		if older {
			copy(log[cut:], appendRecord(nil, logOfTest-1, []byte{}))
		}
		forge(log[begin:], 8*syncHeader+rapid.IntRange(0, 8*(len(log)-begin-syncHeader)-1).Draw(t, "bit"))
		if fl, _, ok := mendChunk(logChunks{number: logOfTest}, log, begin); begin < logBlock && !ok {
			t.Fatalf("it does not fit: %v", fl)
		}
		for name, text := range map[string][]byte{"open": log, "closed": appendTrailer(bytes.Clone(log))} {
			if flips := mustMend(t, text, logChunks{number: logOfTest}); len(flips) > 0 && flips[len(flips)-1].at >= int64(begin) {
				t.Fatalf("%v of %d bytes are set right, %s", flips, len(text), name)
			}
		}
	})
}

// TestTornManifestIsNotMended: as TestTornIsNotMended, of a manifest, whose last record is set
// right when it was written whole.
func TestTornManifestIsNotMended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w := record.NewWriter(&b)
		begin := 0
		for i := range rapid.IntRange(1, 4).Draw(t, "records") {
			begin = b.Len()
			_, err := w.WriteRecord(bytes.Repeat([]byte{byte(i + 1), 3}, rapid.IntRange(1, 2000).Draw(t, "size")))
			if err == nil {
				err = w.Flush()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		text := b.Bytes()
		whole := bytes.Clone(text)
		want := flip{int64(rapid.IntRange(0, len(text)-1).Draw(t, "at")), 4}
		whole[want.at] ^= want.mask
		if flips := mustMend(t, whole, manifestChunks{}); !slices.Equal(flips, []flip{want}) {
			t.Fatalf("%v, want %v", flips, want)
		}
		cut := (begin/sector + 1) * sector
		const forged = 20 // the byte of the chunk that seems to be another one
		if cut >= len(text) || begin+forged >= len(text) {
			return
		}
		for at := cut; at < len(text); at++ {
			text[at] = 0
		}
		forge(text[begin:], 8*forged)
		if flips := mustMend(t, text, manifestChunks{}); len(flips) > 0 {
			t.Fatalf("%v of a write that was cut off", flips)
		}
	})
}

// madeTable makes a table.
func madeTable(t *testing.T, fs vfs.FS, path string) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	o := &pebble.Options{}
	o.EnsureDefaults()
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), o.MakeWriterOptions(6, sstable.TableFormatMax))
	for i := range 1000 {
		if err == nil {
			err = w.Set(binary.BigEndian.AppendUint32(nil, uint32(i*7919)), binary.BigEndian.AppendUint32(nil, uint32(i*i)))
		}
	}
	if err == nil {
		err = w.DeleteRange([]byte{0}, []byte{0, 0, 9})
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func textOf(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	return text
}

func put(t *testing.T, fs vfs.FS, path string, text []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(bytes.Clone(text))
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
}

// TestMendTable: a table with a flipped bit makes way for a copy without it, and its other names keep what they have.
// One that only seems to have one stays as it is.
func TestMendTable(t *testing.T) {
	fs := vfs.NewMem()
	const path, other = "000005.sst", "other.sst"
	madeTable(t, fs, path)
	sound := textOf(t, fs, path)
	found := &files{shared: &Shared{FS: fs}, log: zap.NewNop()}
	for at := 0; at < len(sound); at += 97 {
		flipped := bytes.Clone(sound)
		flipped[at] ^= 16
		put(t, fs, path, flipped)
		_ = fs.Remove(other)
		if err := fs.Link(path, other); err != nil {
			t.Fatal(err)
		}
		if whole, err := found.mendTable(path, &pebble.Options{}); !whole || err != nil || !bytes.Equal(textOf(t, fs, path), sound) {
			t.Fatalf("a bit at %d of %d: %t, %v", at, len(sound), whole, err)
		}
		if !bytes.Equal(textOf(t, fs, other), flipped) {
			t.Fatalf("a bit at %d: the file has changed", at)
		}
	}
	wrong := 400
	if raceEnabled { // it checks pointers as well, and ends the process where Pebble panics on such a block
		wrong = 0
	}
	for at := 0; at < wrong; at += 7 { // of the first block
		bad := bytes.Clone(sound)
		first := firstBlock(t, bad)
		for n := range 8 {
			bad[at+n] ^= byte(37 * (n + 1))
		}
		sum := first - 4
		bad[at] ^= 2
		stored := bitflip.Mask(bitflip.Sum(bad[:sum]))
		bad[at] ^= 2
		binary.LittleEndian.PutUint32(bad[sum:], stored)
		put(t, fs, path, bad)
		if whole, err := found.mendTable(path, &pebble.Options{}); whole || err != nil || !bytes.Equal(textOf(t, fs, path), bad) {
			t.Fatalf("more than a bit at %d: %t, %v", at, whole, err)
		}
	}
	if files, err := fs.List(""); err != nil || len(files) != 2 {
		t.Errorf("%q are left: %v", files, err)
	}
}

// TestMendTableOnFailingDisk: an error of the disk, wherever it comes, says nothing of the table,
// and leaves it as it is.
func TestMendTableOnFailingDisk(t *testing.T) {
	fs := vfs.NewMem()
	const path = "000005.sst"
	madeTable(t, fs, path)
	sound := textOf(t, fs, path)
	flipped := bytes.Clone(sound)
	flipped[97] ^= 16
	for fails := 1; ; fails++ {
		put(t, fs, path, flipped)
		ops := 0
		found := &files{log: zap.NewNop(), shared: &Shared{FS: errorfs.Wrap(fs, errorfs.InjectorFunc(func(errorfs.Op) error {
			if ops++; ops == fails {
				return errorfs.ErrInjected
			}
			return nil
		}))}}
		whole, err := found.mendTable(path, &pebble.Options{})
		if ops < fails {
			if !whole || err != nil || fails < 8 {
				t.Errorf("%t, %v after %d operations", whole, err, ops)
			}
			return
		}
		text := textOf(t, fs, path)
		if whole || !errors.Is(err, errorfs.ErrInjected) || !bytes.Equal(text, flipped) && !bytes.Equal(text, sound) {
			t.Fatalf("operation %d failed: %t, %v", fails, whole, err)
		}
	}
}

// TestMetWithoutStat: a damaged table of which the disk tells neither size nor time is known all the same.
func TestMetWithoutStat(t *testing.T) {
	fs, fails := vfs.NewMem(), true
	bad := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails && op.Kind == errorfs.OpStat {
			return syscall.EIO
		}
		return nil
	}))
	put(t, fs, "000001.sst", []byte("one"))
	var m Mending
	if !m.met(bad, "000001.sst") || m.met(bad, "000001.sst") {
		t.Error("it is news once")
	}
	for range 2 {
		m.forgetGone(bad)
		if _, untried, _ := m.of(fs, fs.PathDir("000001.sst")); len(untried) != 1 {
			t.Errorf("%q may be set right", untried)
		}
		fails = false
	}
	put(t, fs, "000001.sst", []byte("another"))
	m.forgetGone(bad)
	if all, _, _ := m.of(fs, fs.PathDir("000001.sst")); len(all) != 0 {
		t.Errorf("%q is another table", all)
	}
}

// TestTriesToMend: a try that ended with an error of the disk is made again after a pause, a few times.
func TestTriesToMend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		var m Mending
		put(t, fs, "000001.sst", []byte("one"))
		m.met(fs, "000001.sst")
		for n := range maxTries {
			if _, untried, due := m.of(fs, fs.PathDir("000001.sst")); len(untried) != 1 || len(due) != 1 {
				t.Errorf("try %d: %q may be tried, %q now", n, untried, due)
			}
			m.tried("000001.sst", false, syscall.ENOSPC)
			m.tried("000001.sst", false, unreadError{syscall.EIO})
			if _, _, due := m.of(fs, fs.PathDir("000001.sst")); len(due) != 0 {
				t.Errorf("try %d: %q are due without a pause", n, due)
			}
			<-time.After(mendAgain)
		}
		if all, untried, _ := m.of(fs, fs.PathDir("000001.sst")); len(all) != 1 || len(untried) != 0 {
			t.Errorf("%q are damaged, %q may be tried for ever", all, untried)
		}
	})
}

// firstBlock returns where the first block of a table ends.
func firstBlock(t *testing.T, table []byte) int {
	t.Helper()
	for end := 5; end < len(table); end++ {
		if binary.LittleEndian.Uint32(table[end-4:]) == bitflip.Mask(bitflip.Sum(table[:end-4])) {
			return end
		}
	}
	t.Fatal("no block")
	return 0
}

// TestDamagedTablesAreForgotten: those that are gone, or made way for others of the same name.
func TestDamagedTablesAreForgotten(t *testing.T) {
	fs := vfs.NewMem()
	var m Mending
	put(t, fs, "000001.sst", []byte("one"))
	put(t, fs, "000002.sst", []byte("two"))
	for _, name := range []string{"000001.sst", "000002.sst"} {
		if !m.met(fs, name) || m.met(fs, name) {
			t.Error("it is news once")
		}
		m.tried(name, false, nil)
	}
	if err := fs.Remove("000001.sst"); err != nil {
		t.Fatal(err)
	}
	put(t, fs, "000002.sst", []byte("another"))
	if !m.met(fs, "000002.sst") {
		t.Error("another table is taken for the one of before")
	}
	if all, untried, due := m.of(fs, fs.PathDir("000001.sst")); len(all) != 1 || len(untried) != 1 || len(due) != 1 {
		t.Errorf("%q are damaged, %q were not tried, %q are due", all, untried, due)
	}
}
