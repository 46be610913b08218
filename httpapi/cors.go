package httpapi

import (
	"net/http"

	"divan/cluster/config"
)

// corsSettings are the rules of cross-origin requests, made ready.
type corsSettings struct{ rules config.CORS }

func newCORSSettings(c config.CORS) *corsSettings { return &corsSettings{rules: c} }

// preflight answers a CORS preflight request; it reports whether it did.
func (c *call) preflight() bool { return false }

// exposeHeaders adds the CORS headers of a plain answer.
func (c *call) exposeHeaders(http.Header) {}
