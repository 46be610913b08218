package fault

// Class says what an error of a copy says about the request that it answers.
type Class uint8

const (
	// Answer is about the request: it holds whichever copy is asked.
	Answer Class = iota
	// Trouble says that this copy could not answer. Another copy may.
	Trouble
	// Absent is Trouble of a copy that was not there.
	Absent
)

// Repeat says what becomes of a request that is made again.
type Repeat uint8

const (
	// Unforeseen is any outcome.
	Unforeseen Repeat = iota
	// Passing may succeed later without a change of the request: the other side could not
	// be reached, was silent or overloaded.
	Passing
	// Lasting gets the same error again.
	Lasting
)

// row holds the meaning of a kind on all floors. A new kind is a new row.
type row struct {
	// status and name are those of the HTTP answer to a client (api.md section 2). Error.Code
	// replaces the name.
	status int
	name   string
	class  Class
	// doubtful says that an edit that got the error may have been done all the same. An error
	// of class Answer leaves no trace, but for NoDatabase, which says nothing of the database
	// before it was gone.
	doubtful bool
	repeat   Repeat
	// design says that a design document, or a document that its functions cannot take, is at
	// fault where an index is built.
	design bool
}

// kinds is the one table of kinds.
var kinds = [...]row{
	Internal:            {status: 500, name: "internal_server_error", class: Trouble, doubtful: true},
	BadRequest:          {status: 400, name: "bad_request", repeat: Lasting, design: true},
	NotFound:            {status: 404, name: "not_found"},
	Conflict:            {status: 409, name: "conflict"},
	Exists:              {status: 412, name: "file_exists"},
	Unauthorized:        {status: 401, name: "unauthorized", repeat: Lasting},
	Forbidden:           {status: 403, name: "forbidden", repeat: Lasting},
	MissingStub:         {status: 412, name: "missing_stub"},
	DocumentTooLarge:    {status: 413, name: "document_too_large", repeat: Lasting},
	AttachmentTooLarge:  {status: 413, name: "attachment_too_large", repeat: Lasting},
	RequestTooLarge:     {status: 413, name: "too_large", repeat: Lasting},
	BadContentType:      {status: 415, name: "bad_content_type", repeat: Lasting},
	IllegalDocID:        {status: 400, name: "illegal_docid", repeat: Lasting},
	IllegalDatabaseName: {status: 400, name: "illegal_database_name", repeat: Lasting},
	DatabaseNameTooLong: {status: 400, name: "database_name_too_long", repeat: Lasting},
	DocValidation:       {status: 400, name: "doc_validation", repeat: Lasting},
	QueryParse:          {status: 400, name: "query_parse_error", design: true},
	IllegalPartition:    {status: 400, name: "illegal_partition", repeat: Lasting},
	PartitionOverflow:   {status: 403, name: "partition_overflow", repeat: Lasting},
	InsufficientStorage: {status: 507, name: "insufficient_storage", class: Trouble, doubtful: true},
	Timeout:             {status: 500, name: "timeout", class: Trouble, doubtful: true, repeat: Passing},
	Unavailable:         {status: 503, name: "service unavailable", class: Absent, repeat: Passing},
	NodeDown:            {status: 412, name: "nodedown", class: Absent, doubtful: true, repeat: Passing},
	RangeNotSatisfiable: {status: 416, name: "requested_range_not_satisfiable"},
	NotAcceptable:       {status: 406, name: "not_acceptable"},
	Gone:                {status: 410, name: "gone"},
	InvalidDesignDoc:    {status: 400, name: "invalid_design_doc", repeat: Lasting, design: true},
	CompilationError:    {status: 400, name: "compilation_error", repeat: Lasting, design: true},
	MissingRev:          {status: 409, name: "not_found"},
	URITooLong:          {status: 414, name: "too_long"},
	InvalidSelector:     {status: 400, name: "invalid_selector"},
	Closed:              {status: 503, name: "service unavailable", class: Absent},
	Corruption:          {status: 500, name: "internal_server_error", class: Trouble, doubtful: true},
	BadAuthorization:    {status: 400, name: "bad_request"},
	Purged:              {status: 409, name: "conflict"},
	NoCopy:              {status: 404, name: "not_found", class: Trouble},
	NoDatabase:          {status: 404, name: "not_found"},
	Deleted:             {status: 404, name: "not_found"},
	BadFunction:         {status: 500, name: "unknown_error", repeat: Lasting, design: true},
	Busy:                {status: 503, name: "service unavailable", class: Trouble, repeat: Passing},
	StaleMap:            {status: 500, name: "internal_server_error", class: Trouble},
	Misconfigured:       {status: 500, name: "misconfigured_server"},
}

// row returns the row of a kind. A kind of a newer node is an answer that this node cannot
// name.
func (k Kind) row() row {
	if int(k) < len(kinds) && kinds[k].status != 0 {
		return kinds[k]
	}
	return row{status: kinds[Internal].status, name: kinds[Internal].name}
}

// Status returns the HTTP status of the answer to a client.
func (k Kind) Status() int { return k.row().status }

// Name returns the member "error" of the answer to a client.
func (k Kind) Name() string { return k.row().name }

// ClassOf returns the class of an error of a copy; that of nil is Answer.
func ClassOf(err error) Class { return KindOf(err).row().class }

// Doubtful reports whether an edit that got the error may have been done all the same.
func Doubtful(err error) bool { return KindOf(err).row().doubtful }

// RepeatOf returns what becomes of a request that got the error when it is made again.
func RepeatOf(err error) Repeat { return KindOf(err).row().repeat }

// OfDesign reports whether the error of a build of an index is the fault of a design
// document, or of a document that its functions cannot take.
func OfDesign(err error) bool { return KindOf(err).row().design }
