package core

import (
	"net/http"
	"strconv"
	"strings"
)

// wantsText is row 1 of api.md section 20: the client accepts text/plain and
// neither application/json nor everything.
func wantsText(r *http.Request) bool {
	if len(r.Header["Accept"]) == 0 {
		return false
	}
	return !Accepts(r, "application/json") && Accepts(r, "text/plain")
}

// Accepts reports whether the Accept header of a request takes a media type. No
// Accept header takes everything.
func Accepts(r *http.Request, mediaType string) bool {
	values := r.Header["Accept"]
	if len(values) == 0 || (len(values) == 1 && values[0] == mediaType) {
		return true
	}
	family, _, _ := strings.Cut(mediaType, "/")
	any := false
	for _, v := range values {
		for item := range strings.SplitSeq(v, ",") {
			item = strings.TrimSpace(item)
			if item == "" {
				continue
			}
			any = true
			name, options, _ := strings.Cut(item, ";")
			name = strings.TrimSpace(name)
			if name != mediaType && name != "*/*" && name != "*" && name != family+"/*" {
				continue
			}
			if !refusedByQuality(options) {
				return true
			}
		}
	}
	return !any
}

// AcceptsGzip reports whether the client takes a gzip-coded answer. Unlike
// with Accept, a missing header takes none.
func AcceptsGzip(r *http.Request) bool {
	for _, v := range r.Header["Accept-Encoding"] {
		for item := range strings.SplitSeq(v, ",") {
			name, options, _ := strings.Cut(strings.TrimSpace(item), ";")
			name = strings.TrimSpace(name)
			if (strings.EqualFold(name, "gzip") || name == "*") && !refusedByQuality(options) {
				return true
			}
		}
	}
	return false
}

// refusedByQuality reports whether the parameters of an Accept item hold q=0.
func refusedByQuality(options string) bool {
	for o := range strings.SplitSeq(options, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(o), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			return err == nil && q == 0
		}
	}
	return false
}
