package auth

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Result says who sent a request.
type Result struct {
	User    shard.User // Anonymous when no handler recognised a credential
	Handler string     // "cookie", "default", "jwt", "proxy"; empty: anonymous
	// RefreshCookie is the value of a Set-Cookie header that prolongs the
	// session, empty when none is due. It must not be sent when the answer
	// sets the cookie itself (POST and DELETE /_session).
	RefreshCookie string
}

// UserDoc is one document of the authentication database.
type UserDoc struct {
	Name       string  // the part of the id after "org.couchdb.user:"
	Rev        doc.Rev // the winner
	Body       []byte  // canonical JSON object without underscore members
	Conflicted bool    // there are live losing revisions
	Atts       []doc.Attachment
}

// UserStore reads and writes the authentication database. db is the
// configured name of that database. Implementations are safe for concurrent
// use.
type UserStore interface {
	// Get returns the winner of a user's document. fault.NotFound: no such
	// user, or no such database.
	Get(ctx context.Context, db, name string) (UserDoc, error)
	// Put replaces the revision u.Rev and keeps the attachments.
	// fault.Conflict: it is not current.
	Put(ctx context.Context, db string, u UserDoc) error
	// Watch calls ready once it sees every change from then on, then changed
	// for each changed user's name, until ctx ends (it returns nil) or the
	// feed cannot go on.
	Watch(ctx context.Context, db string, ready func(), changed func(name string)) error
}

// Options configures an Authenticator.
type Options struct {
	Config *config.Holder
	Users  UserStore
	Logger *zap.Logger
	// Processors is how many there are for the whole server; 0: as many as GOMAXPROCS
	// says. Half of them hash passwords at most.
	Processors int
}

// Authenticator finds out who sent a request. It is safe for concurrent use.
type Authenticator struct {
	config   *config.Holder
	log      *zap.Logger
	derived  atomic.Pointer[settings]
	users    *accounts
	verifier *verifier
	lockout  lockout
	basic    *basicLogins
	tokens   *lru[tokenUse, uint64] // one-time tokens that were used
	upgrades chan upgrade
}

// New returns an Authenticator. It works as it is; Run makes it follow changes
// of user documents made elsewhere and rewrite outdated hashes.
func New(o Options) *Authenticator {
	snap := o.Config.Load()
	locked := newLockout(max(1, snap.Lockout.MaxObjects))
	return &Authenticator{
		config:   o.Config,
		log:      o.Logger,
		users:    newAccounts(o.Users, max(accountLimit, snap.ChttpdAuth.AuthCacheSize)),
		verifier: newVerifier(cmp.Or(o.Processors, runtime.GOMAXPROCS(0))/2, locked),
		lockout:  locked,
		basic:    newBasicLogins(),
		tokens:   newLRU[tokenUse, uint64](accountLimit),
		upgrades: make(chan upgrade, upgradeQueue),
	}
}

// Figures are numbers about logins.
type Figures struct {
	Hits, Misses uint64 // accounts that were asked for: in the cache; not, or there is none
	Fast, Slow   uint64 // passwords that were checked: by the cache, and by hashing
	Waiting      int    // logins that wait for their turn to be checked
}

// Figures returns the numbers of the moment.
func (a *Authenticator) Figures() Figures {
	return Figures{Hits: a.users.hits.Load(), Misses: a.users.misses.Load(), Waiting: a.verifier.hashing.waiting(), Fast: a.verifier.fast.Load(), Slow: a.verifier.slow.Load()}
}

// settings returns what the present configuration says, parsed.
func (a *Authenticator) settings() *settings {
	snap := a.config.Load()
	s := a.derived.Load()
	if s == nil || s.from != snap {
		s = newSettings(snap)
		a.derived.Store(s)
		a.basic.seen.clear() // they held on to the settings from before
	}
	return s
}

// Handlers returns the names of the handlers in the order they are asked, as
// GET /_session lists them. The slice must not be changed.
func (a *Authenticator) Handlers() []string { return a.settings().handlers }

// Peer returns the address that failed logins of a request are counted under.
func (a *Authenticator) Peer(r *http.Request) string { return a.settings().peer.Peer(r) }

func nobody() Result { return Result{User: shard.User{Anonymous: true, Roles: []string{}}} }

// Authenticate finds out who sent r. A credential that is malformed or wrong
// is an error (fault.BadRequest, Unauthorized, Forbidden, Unavailable); an
// expired session and a wrong proxy token count as no credential. Without any,
// the user is anonymous: whether that is enough (require_valid_user, security
// objects) is the caller's to decide.
func (a *Authenticator) Authenticate(r *http.Request) (Result, error) {
	s := a.settings()
	for _, handler := range s.handlers {
		var res Result
		var ok bool
		var err error
		switch handler {
		case handlerCookie:
			res, ok, err = a.byCookie(r, s)
		case handlerBasic:
			res, ok, err = a.byBasic(r, s)
		case handlerJWT:
			res, ok, err = a.byToken(r, s)
		case handlerProxy:
			res.User, ok = s.proxy.identify(r.Header, s.cookie.algorithms, s.cookie.secret)
		}
		if err != nil {
			return nobody(), err
		}
		if ok {
			res.Handler = handler
			return res, nil
		}
	}
	return nobody(), nil
}

// usable refuses an account whose document is in conflict: which of its passwords counts
// is unknown.
func (s *settings) usable(acc *account) error {
	if acc.conflicted && !s.conflicted {
		return fault.New(fault.Unauthorized,
			"User document conflicts must be resolved before the document is used for authentication purposes.")
	}
	return nil
}

// maxName is the longest name that is looked up, in bytes: names are kept in the caches,
// and any client may send one as long as the header of a request (I6).
const maxName = 1024

// account returns the account of a name; it has none where there is no such user. A server
// administrator counts even when the authentication database cannot be read: an
// administrator must be able to mend it.
func (a *Authenticator) account(ctx context.Context, s *settings, name string, now time.Time) (reading, error) {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return reading{}, nil
	}
	h, isAdmin := s.admins[name]
	acc, err := a.users.get(ctx, accountKey{s.db, name}, isAdmin, now)
	if !isAdmin {
		return acc, err
	}
	if err != nil {
		a.log.Warn("roles of a server administrator are incomplete: the user document cannot be read",
			zap.String("user", name), zap.Error(err))
		acc = reading{}
	}
	return reading{s.admin(name, h, acc.account), acc.at, acc.stored}, nil
}

// Invalidate forgets what is known of users whose documents were written
// through this node. It must be called before the write is answered; writes
// through other nodes come in by UserStore.Watch.
func (a *Authenticator) Invalidate(names ...string) {
	db := a.settings().db
	for _, name := range names {
		a.users.invalidate(accountKey{db, name})
	}
}
