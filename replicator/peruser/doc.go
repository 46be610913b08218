// Package peruser gives each account a database of its own, as [couch_peruser] asks for:
// its name is the prefix of the settings and the account's name in hexadecimal digits, and
// the account is among its administrators and members. What becomes of it when the account
// is deleted is a setting.
//
// One node of the cluster does this for all accounts: the one that owns a certain slot (package
// ownership). It reads all documents of the database of accounts when it becomes the owner, at its
// start and when the settings change, and follows their changes then. So nothing has to be
// remembered: a change that was missed is seen by the next reading, which costs little where
// nothing is to be done, as the metadata say what there is. A document says which account it is by
// its id, and whether there is one by its winner; how it was written does not matter.
//
// Before anything is changed the document is read from a majority of its copies, and the
// group is asked whether the slot is still this node's: a copy that is behind, or a node
// that was cut off, deletes no database. What is deleted is the database that was there before
// that, never another one that was made under its name meanwhile.
//
// Goroutines: Run owns the one that follows the accounts, and waits for it.
package peruser
