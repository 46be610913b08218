package node

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"
)

// TestLinesAreThoseOfTheConsoleEncoder compares lines of any fields with zap's.
func TestLinesAreThoseOfTheConsoleEncoder(t *testing.T) {
	format := zap.NewProductionEncoderConfig()
	format.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	theirs, ours := zapcore.NewConsoleEncoder(format), zapcore.Encoder(newLineEncoder(zap.NewProductionEncoderConfig()))
	line := func(e zapcore.Encoder, entry zapcore.Entry, fields []zapcore.Field) string {
		b, err := e.EncodeEntry(entry, fields)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Free()
		return b.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]*`), rapid.Just("\xff"))
		field := rapid.Custom(func(t *rapid.T) zapcore.Field {
			key := text.Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "type") {
			case 0:
				return zap.Int64(key, rapid.Int64().Draw(t, "int"))
			case 1:
				return zap.Duration(key, time.Duration(rapid.Int64().Draw(t, "duration")))
			case 2:
				return zap.Error(errors.New(text.Draw(t, "error")))
			case 3:
				return zap.Bool(key, true)
			default:
				return zap.String(key, text.Draw(t, "string"))
			}
		})
		entry := zapcore.Entry{
			Level: rapid.SampledFrom([]zapcore.Level{zap.DebugLevel, zap.InfoLevel, zap.WarnLevel, zap.ErrorLevel}).Draw(t, "level"),
			Time:  time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "time"), rapid.Int64Range(0, 1e9).Draw(t, "nanoseconds")), Message: text.Draw(t, "message"),
			LoggerName: rapid.StringMatching(`[a-z]*`).Draw(t, "logger"), Stack: rapid.StringMatching(`(stack)?`).Draw(t, "stack"),
		}
		fields := rapid.SliceOfN(field, 0, 4).Draw(t, "fields")
		if got, want := line(ours, entry, fields), line(theirs, entry, fields); got != want {
			t.Fatalf("%q\nwant %q", got, want)
		}
		one, other := theirs.Clone(), ours.Clone()
		one.AddString("with", "more")
		other.AddString("with", "more")
		if got, want := line(other, entry, fields), line(one, entry, fields); got != want {
			t.Fatalf("%q\nwant %q", got, want)
		}
	})
}

func BenchmarkAccessLine(b *testing.B) {
	format := zap.NewProductionEncoderConfig()
	format.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	entry := zapcore.Entry{Level: zap.InfoLevel, Time: time.Now(), LoggerName: "http", Message: "request"}
	fields := []zapcore.Field{
		zap.String("request", "f8c2f8a134"), zap.String("peer", "127.0.0.1"), zap.String("user", "admin"), zap.String("method", "PUT"),
		zap.String("path", "/db/00000000000012340000000000001234"), zap.Int("status", 201), zap.Int64("bytes", 95), zap.Duration("took", 7654321),
	}
	for name, e := range map[string]zapcore.Encoder{
		"own": newLineEncoder(zap.NewProductionEncoderConfig()), "zap": zapcore.NewConsoleEncoder(format),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				line, err := e.EncodeEntry(entry, fields)
				if err != nil {
					b.Fatal(err)
				}
				line.Free()
			}
		})
	}
}
