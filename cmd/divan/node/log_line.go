package node

import (
	"time"

	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// lineEncoder writes the lines of zap's console encoder, byte for byte. A line like those
// of the access log, which most of a log consists of, is written without it: that takes
// half the time.
type lineEncoder struct {
	zapcore.Encoder // the console encoder; its times are lineTime, its durations are seconds
	buffers         buffer.Pool
	context         bool // it has fields of its own
}

// lineTime is the layout of the time in front of a line.
const lineTime = time.RFC3339Nano

func newLineEncoder(format zapcore.EncoderConfig) lineEncoder {
	format.EncodeTime = zapcore.TimeEncoderOfLayout(lineTime)
	return lineEncoder{Encoder: zapcore.NewConsoleEncoder(format), buffers: buffer.NewPool()}
}

// Clone implements zapcore.Encoder. Fields are added to what it returns.
func (e lineEncoder) Clone() zapcore.Encoder {
	return lineEncoder{Encoder: e.Encoder.Clone(), buffers: e.buffers, context: true}
}

// EncodeEntry implements zapcore.Encoder.
func (e lineEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	if e.context || entry.Time.IsZero() || entry.Caller.Defined || entry.Stack != "" || !plainFields(fields) {
		return e.Encoder.EncodeEntry(entry, fields)
	}
	line := e.buffers.Get()
	line.AppendTime(entry.Time, lineTime)
	line.AppendByte('\t')
	line.AppendString(entry.Level.String())
	if entry.LoggerName != "" {
		line.AppendByte('\t')
		line.AppendString(entry.LoggerName)
	}
	line.AppendByte('\t')
	line.AppendString(entry.Message)
	for i := range fields {
		if i == 0 {
			line.AppendString("\t{")
		} else {
			line.AppendString(", ")
		}
		appendField(line, &fields[i])
	}
	if len(fields) > 0 {
		line.AppendByte('}')
	}
	line.AppendString(zapcore.DefaultLineEnding)
	return line, nil
}

// appendField appends a field for which plainFields holds.
func appendField(line *buffer.Buffer, f *zapcore.Field) {
	line.AppendByte('"')
	line.AppendString(f.Key)
	line.AppendString(`": `)
	switch f.Type { //nolint:exhaustive // see plainFields
	case zapcore.StringType:
		line.AppendByte('"')
		line.AppendString(f.String)
		line.AppendByte('"')
	case zapcore.Int64Type:
		line.AppendInt(f.Integer)
	case zapcore.DurationType:
		line.AppendFloat(float64(f.Integer)/float64(time.Second), 64)
	}
}

// plainFields reports whether appendField knows all fields, and nothing in them has to be escaped.
func plainFields(fields []zapcore.Field) bool {
	for i := range fields {
		f := &fields[i]
		switch f.Type { // all others are for the console encoder
		case zapcore.StringType, zapcore.Int64Type, zapcore.DurationType:
		default:
			return false
		}
		if !plainText(f.Key) || !plainText(f.String) {
			return false
		}
	}
	return true
}

// plainText reports whether a text is printable ASCII that stands for itself in JSON.
func plainText(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}
