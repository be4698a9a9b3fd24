#!/usr/bin/env python3
"""api.py PORTFILE LOG WORK: a model for tests, on loopback, in four dialects (Anthropic Messages,
OpenAI Responses, OpenAI Chat Completions, Google generateContent; with and without streaming).

It drives whatever agent asks: the first answer calls the agent's tool for writing a file
(WORK/made-by-agent.txt), the second one its shell (which writes WORK/ran-by-agent.txt), the third one
is a text. The tools and their arguments are taken from the request, so no agent is known by name.
Each request is a JSON line of LOG."""
import http.server
import json
import os
import sys
import threading

port_file, log_file, work = sys.argv[1:4]
MADE = work + "/made-by-agent.txt"
COMMAND = f"cd {work} && cat made-by-agent.txt > ran-by-agent.txt && id -u >> ran-by-agent.txt"
DONE = "The work is finished: pineapple."
lock = threading.Lock()

PATHS = {"file_path", "filepath", "path", "absolute_path", "filename"}
TEXTS = {"content", "file_text", "contents", "text"}
COMMANDS = {"command", "cmd", "script", "commands"}


def keys(schema):
    return {k.lower().replace("-", "_"): (k, v) for k, v in (schema.get("properties") or {}).items()}


def writer(schema):
    k = keys(schema)
    return bool(PATHS & set(k)) and bool(TEXTS & set(k))


def shell(schema):
    return bool(COMMANDS & set(keys(schema)))


def arguments(schema, path, text, command):
    out = {}
    required = set(schema.get("required") or [])
    for low, (key, s) in keys(schema).items():
        kind = s.get("type", "string")
        kind = (kind[0] if isinstance(kind, list) else kind).lower()
        if low in PATHS:
            out[key] = path
        elif low in TEXTS:
            out[key] = text
        elif low in COMMANDS:
            out[key] = ["bash", "-c", command] if kind == "array" else command
        elif key in required:
            out[key] = s["enum"][0] if s.get("enum") else {"boolean": False, "integer": 1, "number": 1,
                                                           "array": [], "object": {}}.get(kind, "x")
    return out


def plan(tools, results):
    """tools: [(name, schema)]. -> (name, arguments) or None for a text."""
    preferred = ("write", "create", "write_file", "bash", "shell", "run_shell_command", "exec_command")
    ranked = sorted(tools, key=lambda t: preferred.index(t[0].lower()) if t[0].lower() in preferred else 99)
    writers = [t for t in ranked if writer(t[1])]
    shells = [t for t in ranked if shell(t[1]) and not writer(t[1])]
    if results == 0 and writers:
        return writers[0][0], arguments(writers[0][1], MADE, "made by the agent\n", "")
    if results == 0 and shells:  # no tool of its own for writing
        return shells[0][0], arguments(shells[0][1], "", "", f"printf 'made by the agent\\n' > {MADE}")
    if results == 1 and shells:
        return shells[0][0], arguments(shells[0][1], "", "", COMMAND)
    return None


def sse(events, named=True):
    return "".join((f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e)}\n\n" for e in events)


def messages(q):
    tools = [(t["name"], t.get("input_schema") or {}) for t in q.get("tools") or [] if "name" in t]
    results = sum(1 for m in q.get("messages", []) if isinstance(m.get("content"), list)
                  for c in m["content"] if c.get("type") == "tool_result")
    call = plan(tools, results)
    block = {"type": "text", "text": DONE}
    if call:
        block = {"type": "tool_use", "id": f"toolu_{results}", "name": call[0], "input": call[1]}
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": q.get("model", "m"),
             "content": [block], "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None,
             "usage": {"input_tokens": 10, "output_tokens": 10}}
    if not q.get("stream"):
        return call, "application/json", json.dumps(whole)
    start = dict(block, input={}) if call else dict(block, text="")
    delta = ({"type": "input_json_delta", "partial_json": json.dumps(call[1])} if call
             else {"type": "text_delta", "text": DONE})
    return call, "text/event-stream", sse([
        {"type": "message_start", "message": dict(whole, content=[], stop_reason=None)},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
         "usage": {"output_tokens": 10}},
        {"type": "message_stop"}])


def responses(q):
    tools = [(t["name"], t.get("parameters") or {}) for t in q.get("tools") or [] if t.get("type") == "function"]
    items = q.get("input") if isinstance(q.get("input"), list) else []
    results = sum(1 for i in items if i.get("type") == "function_call_output")
    call = plan(tools, results)
    if call:
        item = {"type": "function_call", "id": f"fc_{results}", "call_id": f"call_{results}", "name": call[0],
                "arguments": json.dumps(call[1]), "status": "completed"}
    else:
        item = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": DONE, "annotations": []}]}
    whole = {"id": "resp_1", "object": "response", "status": "completed", "model": q.get("model"),
             "output": [item], "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                                         "input_tokens_details": {"cached_tokens": 0},
                                         "output_tokens_details": {"reasoning_tokens": 0}}}
    if not q.get("stream"):
        return call, "application/json", json.dumps(whole)
    return call, "text/event-stream", sse([
        {"type": "response.created", "response": dict(whole, status="in_progress", output=[])},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole}])


def completions(q):
    tools = [(t["function"]["name"], t["function"].get("parameters") or {})
             for t in q.get("tools") or [] if t.get("type") == "function"]
    results = sum(1 for m in q.get("messages", []) if m.get("role") == "tool")
    call = plan(tools, results)
    say = {"role": "assistant", "content": None if call else DONE}
    if call:
        say["tool_calls"] = [{"index": 0, "id": f"call_{results}", "type": "function",
                              "function": {"name": call[0], "arguments": json.dumps(call[1])}}]
    why = "tool_calls" if call else "stop"
    base = {"id": "c_1", "created": 1, "model": q.get("model"),
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    if not q.get("stream"):
        return call, "application/json", json.dumps(dict(
            base, object="chat.completion", choices=[{"index": 0, "message": say, "finish_reason": why}]))
    chunks = [dict(base, object="chat.completion.chunk", choices=[{"index": 0, "delta": d, "finish_reason": f}])
              for d, f in ((say, None), ({}, why))]
    return call, "text/event-stream", sse(chunks, named=False) + "data: [DONE]\n\n"


def generate(q, stream):
    tools = [(f["name"], f.get("parametersJsonSchema") or f.get("parameters") or {})
             for t in q.get("tools") or [] for f in t.get("functionDeclarations") or []]
    results = sum(1 for c in q.get("contents") or [] for p in c.get("parts") or [] if "functionResponse" in p)
    call = plan(tools, results)
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": DONE}
    whole = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
             "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    if stream:
        return call, "text/event-stream", f"data: {json.dumps(whole)}\n\n"
    return call, "application/json", json.dumps(whole)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            out = b""
            while n := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                out += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
            return out
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status, kind, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def answer(self):
        raw = self.body()
        path = self.path.split("?")[0]
        try:
            q = json.loads(raw or b"{}")
        except ValueError:
            q = {}
        q = q if isinstance(q, dict) else {}
        call, kind, text, status = None, "application/json", "{}", 200
        if self.command == "POST" and path.endswith("/messages"):
            call, kind, text = messages(q)
        elif self.command == "POST" and path.endswith("/responses"):
            call, kind, text = responses(q)
        elif self.command == "POST" and path.endswith("/chat/completions"):
            call, kind, text = completions(q)
        elif self.command == "POST" and "generatecontent" in path.lower():
            call, kind, text = generate(q, "stream" in path.lower())
        elif path.endswith("/models"):
            text = json.dumps({"object": "list", "data": [{"id": "test-model", "object": "model"}], "models": []})
        elif path.endswith("/count_tokens"):
            text = json.dumps({"input_tokens": 10})
        elif self.command != "HEAD":
            status, text = 404, json.dumps({"error": {"message": "no such path"}})
        auth = self.headers.get("x-api-key") or self.headers.get("x-goog-api-key") or (
            self.headers.get("Authorization") or "").removeprefix("Bearer ")
        with lock, open(log_file, "a", encoding="utf-8") as f:
            f.write(json.dumps({"method": self.command, "path": path, "key": auth, "status": status,
                                "tool": call[0] if call else None, "tools": len(q.get("tools") or [])}) + "\n")
        self.reply(status, kind, text)

    do_GET = do_POST = do_HEAD = do_PUT = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


server = Server(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w", encoding="ascii") as f:
    f.write(str(server.server_address[1]))
os.rename(port_file + ".new", port_file)
server.serve_forever()
