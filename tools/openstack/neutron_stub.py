"""Answers what Nova asks of Neutron for servers without a network: empty lists. Usage: neutron_stub.py PORT"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        name = self.path.split('?')[0].rstrip('/').removesuffix('.json').split('/')[-1].replace('-', '_')
        body = {name: []}
        if name in ('', 'v2.0'):
            link = {'rel': 'self', 'href': 'http://%s/v2.0' % self.headers['Host']}
            body = {'versions': [{'id': 'v2.0', 'status': 'CURRENT', 'links': [link]}], 'resources': []}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
