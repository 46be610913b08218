package core

import (
	"divan/httpapi/auth"
)

// ForgetUser has the next request of a user whose document was written read it
// again; a document of another kind or database is no matter. It is called
// before the write is answered, so that whoever gets the answer can log in with
// what they wrote, and after an error too: it does not say that nothing was
// written. What rules the documents of users have is in package docs.
func (c *Call) ForgetUser(id string) {
	if !auth.IsUsersDatabase(c.Config, c.DB.Name()) {
		return
	}
	if name, ok := auth.UserName(id); ok {
		c.API.Deps.Auth.Invalidate(name)
	}
}
