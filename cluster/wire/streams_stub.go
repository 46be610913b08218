package wire

import (
	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
)

// List implements wirepb.NodeServer.
func (s *Server) List(grpc.BidiStreamingServer[wirepb.ListCommand, wirepb.ListPart]) error {
	return nil
}

// ReadAttachment implements wirepb.NodeServer.
func (s *Server) ReadAttachment(*wirepb.AttachmentRange, grpc.ServerStreamingServer[wirepb.Chunk]) error {
	return nil
}

// PutAttachment implements wirepb.NodeServer.
func (s *Server) PutAttachment(grpc.BidiStreamingServer[wirepb.AttachmentPart, wirepb.Chunk]) error {
	return nil
}
