package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// header is one header line.
type header struct{ name, value string }

// step is one request of a transcript with the answer that is wanted.
type step struct {
	title       string
	opts        map[string]string
	method      string
	path        string
	headers     []header
	body        string
	status      int
	wantHeaders []header // names in lower case
	wantBody    string
	copies      bool // see transcript
}

// has reports whether the option stands at the step.
func (s *step) has(opt string) bool {
	_, ok := s.opts[opt]
	return ok
}

// seconds returns the option as a number, def when it is absent or no number.
func (s *step) seconds(opt string, def float64) float64 {
	f, err := strconv.ParseFloat(s.opts[opt], 64)
	if err != nil {
		return def
	}
	return f
}

// span returns the option, in seconds, as a time; 0 when it is absent or no number.
func (s *step) span(opt string) time.Duration {
	return time.Duration(s.seconds(opt, 0) * float64(time.Second))
}

// list returns the comma-separated option.
func (s *step) list(opt string) []string {
	var out []string
	for v := range strings.SplitSeq(s.opts[opt], ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// paths returns the comma-separated paths of the option, each split at its dots.
func (s *step) paths(opt string) [][]string {
	var out [][]string
	for _, v := range s.list(opt) {
		out = append(out, strings.Split(v, "."))
	}
	return out
}

// section is the part of a step that a line belongs to.
type section int

const (
	inPreamble section = iota
	inRequestLine
	inRequestHeaders
	inRequestBody
	inAnswerHeaders
	inAnswerBody
)

// parser holds the state between the lines of a transcript.
type parser struct {
	steps []*step
	part  section
}

// parse returns the steps of a transcript.
func parse(text string) []*step {
	p := &parser{}
	for line := range strings.SplitSeq(text, "\n") {
		p.line(line)
	}
	for _, s := range p.steps {
		s.body = strings.TrimRight(s.body, "\n")
		s.wantBody = strings.TrimRight(s.wantBody, "\n")
	}
	return p.steps
}

var statusLine = regexp.MustCompile(`^>>> (\d+)$`)

func (p *parser) line(line string) {
	if title, ok := strings.CutPrefix(line, "### "); ok {
		p.steps = append(p.steps, &step{title: strings.TrimSpace(title), opts: map[string]string{}})
		p.part = inRequestLine
		return
	}
	if p.part == inPreamble {
		return
	}
	s := p.steps[len(p.steps)-1]
	if p.part == inRequestHeaders || p.part == inRequestBody {
		if m := statusLine.FindStringSubmatch(line); m != nil {
			s.status, _ = strconv.Atoi(m[1]) // the pattern allows digits only
			p.part = inAnswerHeaders
			return
		}
	}
	switch p.part {
	case inRequestLine:
		p.requestLine(s, line)
	case inRequestHeaders:
		if strings.TrimSpace(line) == "" {
			p.part = inRequestBody
			return
		}
		name, value, _ := strings.Cut(line, ":")
		s.headers = append(s.headers, header{strings.TrimSpace(name), strings.TrimSpace(value)})
	case inRequestBody:
		s.body += line + "\n"
	case inAnswerHeaders:
		if strings.TrimSpace(line) == "" {
			p.part = inAnswerBody
			return
		}
		name, value, _ := strings.Cut(line, ":")
		s.wantHeaders = append(s.wantHeaders, header{strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)})
	case inAnswerBody:
		s.wantBody += line + "\n"
	case inPreamble:
	}
}

func (p *parser) requestLine(s *step, line string) {
	if opt, ok := strings.CutPrefix(line, "# @"); ok {
		name, value, _ := strings.Cut(opt, " ")
		s.opts[strings.TrimSpace(name)] = strings.TrimSpace(value)
		return
	}
	if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
		return
	}
	s.method, s.path, _ = strings.Cut(line, " ")
	s.path = strings.TrimSpace(s.path)
	p.part = inRequestHeaders
}
