# Takes the server that answers "unimplemented" out of the generated service:
# a method that package wire lacks is to be an error of compilation.
/^\/\/ All implementations should embed/,/^\/\/ for forward compatibility/d
/^\/\/ UnimplementedNodeServer should be embedded/,/testEmbeddedByValue() {}/d
/^\/\/ UnsafeNodeServer may be embedded/,/^}/d
/If the following call panics/,/^	}$/d
/google.golang.org\/grpc\/codes"/d
/google.golang.org\/grpc\/status"/d
