package httpapi

import "divan/httpapi/auth"

// forgetUser has the next request of a user whose document was written read it
// again; a document of another kind or database is no matter. It is called
// before the write is answered, so that whoever gets the answer can log in with
// what they wrote, and after an error too: it does not say that nothing was
// written. What rules the documents of users have is in guard.go.
func (c *call) forgetUser(id string) {
	if !auth.IsUsersDatabase(c.cfg, c.db.Name()) {
		return
	}
	if name, ok := auth.UserName(id); ok {
		c.api.deps.Auth.Invalidate(name)
	}
}
