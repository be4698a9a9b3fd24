#!/usr/bin/python3
"""grpc_echo.py serve DIR | call CA: a gRPC server on 50051 (HTTP/2 in the clear) and 50052 (TLS), and
its client: unary and a stream of five on each."""
import sys
from concurrent import futures

import grpc


def echo(request, context):
    return request


def five(request, context):
    for i in range(5):
        yield request + b"%d" % i


def read(name):
    with open(name, "rb") as f:
        return f.read()


if sys.argv[1] == "serve":
    d = sys.argv[2]
    s = grpc.server(futures.ThreadPoolExecutor(8))
    s.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.Echo", {
        "One": grpc.unary_unary_rpc_method_handler(echo),
        "Five": grpc.unary_stream_rpc_method_handler(five)}),))
    s.add_insecure_port("93.184.216.34:50051")
    s.add_secure_port("93.184.216.34:50052", grpc.ssl_server_credentials(((read(d + "/srv.key"), read(d + "/srv.pem")),)))
    s.start()
    s.wait_for_termination()
else:
    tls = grpc.ssl_channel_credentials(read(sys.argv[2]))
    for c in (grpc.insecure_channel("web.example.com:50051"), grpc.secure_channel("web.example.com:50052", tls)):
        one = c.unary_unary("/t.Echo/One")(b"hello", timeout=20)
        many = b" ".join(c.unary_stream("/t.Echo/Five")(b"x", timeout=20))
        print(one.decode(), many.decode())
