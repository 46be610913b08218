package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/peer"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// Handler answers a request of another node. from is its proven name; request
// and answer belong to the handler and to who has asked. A *fault.Error keeps
// its kind, code and reason on the way.
type Handler func(ctx context.Context, from string, request []byte) (answer []byte, err error)

// defaultInFlight is how many calls of one class a node does at the same time
// for one other node.
const defaultInFlight = 256

// maxStreams is how many listings, uploads and downloads one node may have open
// here; it waits before it opens more.
const maxStreams = 4096

// silentAfter is how long a connection from another node may be silent: one
// that is alive pings at least each second.
const silentAfter = 5 * time.Second

// ServerOptions configures a Server.
type ServerOptions struct {
	Operations  Operations         // on the copies of this node
	Handlers    map[string]Handler // services that other nodes can Ask
	Logger      *zap.Logger        // default: none
	MaxInFlight int                // calls done at the same time for one node, of each class; 0: 256
}

// Server answers what other nodes ask of this one's copies and services.
type Server struct {
	operations Operations
	handlers   map[string]Handler
	logger     *zap.Logger
	inFlight   int
}

var _ wirepb.NodeServer = (*Server)(nil)

// NewServer returns a server that answers no request before Run.
func NewServer(o ServerOptions) *Server {
	s := &Server{operations: o.Operations, handlers: o.Handlers, logger: o.Logger, inFlight: o.MaxInFlight}
	if s.logger == nil {
		s.logger = zap.NewNop()
	}
	if s.inFlight <= 0 {
		s.inFlight = defaultInFlight
	}
	return s
}

// Run answers until ctx ends; then calls under way are stopped, and it returns
// nil when none is left.
func (s *Server) Run(ctx context.Context, p *Port) error {
	in := p.listen(purposeRPC)
	g := grpc.NewServer(
		grpc.Creds(proven{}), grpc.ForceServerCodecV2(codec{}), grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(bodySize), grpc.MaxSendMsgSize(bodySize),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connWindow), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ReadBufferSize(64<<10), grpc.WriteBufferSize(64<<10), experimental.BufferPool(buffers{}))
	wirepb.RegisterNodeServer(g, s)
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-done:
		}
		_ = in.Close()
		g.Stop()
	})
	err := g.Serve(grpcListener{sub: in, addr: nodeAddr(p.o.Self)})
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve other nodes: %w", err)
}

// grpcListener is the port's listener as gRPC wants it.
type grpcListener struct {
	*sub
	addr net.Addr
}

// Addr implements net.Listener.
func (l grpcListener) Addr() net.Addr { return l.addr }

// proven hands gRPC connections that the port has proven already.
type proven struct{}

var errNoClient = errors.New("only for servers")

// ClientHandshake implements credentials.TransportCredentials.
func (proven) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errNoClient
}

// ServerHandshake implements credentials.TransportCredentials.
func (proven) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*Conn)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no proven connection", raw)
	}
	return c, client{c}, nil
}

// Info implements credentials.TransportCredentials.
func (proven) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "divan"}
}

// Clone implements credentials.TransportCredentials.
func (p proven) Clone() credentials.TransportCredentials { return p }

// OverrideServerName implements credentials.TransportCredentials.
func (proven) OverrideServerName(string) error { return nil }

// client is the connection a call has come over.
type client struct{ conn *Conn }

// AuthType implements credentials.AuthInfo.
func (client) AuthType() string { return "divan" }

// caller returns the connection of a stream.
func caller(ctx context.Context) (*Conn, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(client); ok {
			return c.conn, nil
		}
	}
	return nil, errors.New("a call over a connection that is not proven")
}

// Ping implements wirepb.NodeServer. It also closes the connection when the
// other node has fallen silent, so that nothing it has asked for stays open.
func (s *Server) Ping(stream grpc.BidiStreamingServer[wirepb.Beat, wirepb.Beat]) error {
	conn, err := caller(stream.Context())
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	wg.Go(func() {
		t := time.NewTicker(silentAfter)
		defer t.Stop()
		for heard := int64(-1); ; {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			n := conn.received.Load()
			if n == heard {
				s.logger.Info("node has fallen silent", zap.String("node", conn.Node()))
				_ = conn.Close()
				return
			}
			heard = n
		}
	})
	for {
		b, err := stream.Recv()
		if err == nil {
			err = stream.Send(b)
		}
		if err != nil {
			return err
		}
	}
}

// guarded does f, whose panic becomes an error.
func (s *Server) guarded(what fmt.Stringer, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.logger.Error("a call of another node panicked", zap.Stringer("call", what),
				zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
			err = fault.Wrap(fault.Internal, "internal error", fmt.Errorf("panic in %v: %v", what, r))
		}
	}()
	return f()
}

// method is a call that is a stream.
type method string

// String implements fmt.Stringer.
func (m method) String() string { return string(m) }
