"""A proxy in front of the services of a cloud. Some of its answers are wrong, at random."""
import collections
import copy
import email.utils
import http.client
import http.server
import json
import random
import re
import threading
import time
import uuid

REFUSALS = [(429, {'Retry-After': '0'}), (429, {'Retry-After': '1'}), (503, {'Retry-After': '1'}), (500, {}), (502, {}),
            (404, {}), (503, {'Retry-After': email.utils.formatdate(usegmt=True)})]
BODIES = [b'', b'null', b'{}', b'[]', b'<html>busy</html>', b'{"error": {"code": 200}}']


class Proxy(http.server.ThreadingHTTPServer):
    """Each service has the path /atPORT, with its port, also in the catalogue. A share of the answers is wrong."""

    daemon_threads = True

    def __init__(self, port, seed):
        super().__init__(('127.0.0.1', port), Handler)
        self.port, self.random, self.share, self.lock = port, random.Random(seed), 0, threading.Lock()
        self.faults, self.revoked, self.phantoms = collections.Counter(), set(), set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def fault(self, *names):
        """Returns the name of a fault, or None."""
        with self.lock:
            if self.random.random() >= self.share:
                return None
            return self.random.choice(names)

    def count(self, name):
        with self.lock:
            self.faults[name] += 1

    def handle_error(self, request, client_address):
        pass  # such as a client that has gone


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *arguments):
        pass

    def answer(self):
        service, rest = re.fullmatch(r'/at(\d+)(.*)', self.path).groups()
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        token = self.headers.get('X-Auth-Token')
        proxy = self.server
        before = proxy.fault('cut', 'refusal', 'token', None, None)
        if before == 'cut':
            proxy.count(before)
            self.close_connection = True
            return
        if before == 'refusal':
            status, headers = proxy.random.choice(REFUSALS)
            proxy.count(str(status))
            return self.send(status, headers, b'{}')
        if before == 'token' and token and token not in proxy.revoked:
            proxy.count(before)
            proxy.revoked.add(token)
        if token in proxy.revoked:
            return self.send(401, {}, b'{}')
        link = http.client.HTTPConnection('127.0.0.1', int(service), timeout=600)
        try:
            link.request(self.command, rest or '/', body or None, {
                key: value for key, value in self.headers.items()
                if key.lower() not in ('host', 'connection', 'accept-encoding')})
            found = link.getresponse()
            status, headers, body = found.status, dict(found.getheaders()), found.read()
        except OSError:
            return self.send(502, {}, b'')
        finally:
            link.close()
        if rest.endswith('/auth/tokens') and self.command == 'POST' and status == 201:
            body = re.sub(rb'(127\.0\.0\.1):(\d+)', rb'\1:%d/at\2' % proxy.port, body)
            if proxy.fault('catalogue', None):
                proxy.count('catalogue')
                body = self.catalogue(body)
        self.finish_answer(status, headers, body)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_PATCH = answer

    def catalogue(self, body):
        """Returns a token with the catalogue of another region, or with services at each other's addresses."""
        if self.server.random.random() < 0.5:
            return body.replace(b'"RegionOne"', b'"RegionTwo"')
        token = json.loads(body)
        endpoints = [one for service in token['token']['catalog'] for one in service['endpoints']]
        urls = [one['url'] for one in endpoints]
        for one, url in zip(endpoints, urls[3:] + urls[:3]):
            one['url'] = url
        return json.dumps(token).encode()

    def finish_answer(self, status, headers, body):
        proxy = self.server
        fault = status == 200 and proxy.fault('half', 'short', 'slow', 'body', 'rows', 'rows', 'rows', 'rows')
        if fault == 'rows':
            fault, body = self.rows(body)
        if fault:
            proxy.count(fault)
        headers = {key: value for key, value in headers.items() if key.lower() not in (
            'content-length', 'connection', 'transfer-encoding')}
        if fault == 'short':
            body = body[:len(body) // 2]
        if fault == 'body':
            body = proxy.random.choice(BODIES)
            headers['Content-Type'] = 'text/html'
        self.send(status, headers, body, fault)

    def rows(self, body):
        """Makes the rows of a list, or the address of its next page, wrong."""
        try:
            found = json.loads(body)
        except ValueError:
            return None, body
        pick = self.server.random
        names = [name for name, value in found.items() if isinstance(value, list) and not name.endswith('_links')
                 and all(isinstance(one, dict) for one in value)] if isinstance(found, dict) else []
        if not names or 'X-Subject-Token' in body.decode('utf-8', 'replace'):
            return None, body
        rows = found[names[0]]
        fault = pick.choice(['empty', 'vanished', 'twice', 'phantom', 'lost page', 'moved marker', 'shuffled'])
        if fault == 'empty':
            found[names[0]] = []
        elif fault == 'vanished':
            found[names[0]] = [one for one in rows if pick.random() < 0.8]
        elif fault == 'twice':
            found[names[0]] = rows + pick.sample(rows, min(3, len(rows)))
        elif fault == 'shuffled':
            pick.shuffle(rows)
        elif fault == 'phantom' and rows and 'id' in rows[0]:
            one = copy.deepcopy(pick.choice(rows))
            one['id'] = str(uuid.UUID(int=pick.getrandbits(128), version=4))
            self.server.phantoms.add(one['id'])
            rows.insert(pick.randrange(len(rows)), one)
        elif fault == 'lost page':
            for name in ('next', 'links', *(name for name in found if name.endswith('_links'))):
                found.pop(name, None)
        elif fault == 'moved marker' and rows:
            other = pick.choice(rows).get('id', 'none')
            return fault, re.sub(rb'(marker=)[^&"]*', rb'\g<1>' + other.encode(), body)
        return fault, json.dumps(found).encode()

    def send(self, status, headers, body, fault=None):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if fault == 'half':
            self.wfile.write(body[:len(body) // 2])
            self.close_connection = True
            return
        if fault == 'slow':
            for at in range(0, len(body), max(1, len(body) // 8)):
                self.wfile.write(body[at:at + max(1, len(body) // 8)])
                self.wfile.flush()
                time.sleep(0.2)
            return
        self.wfile.write(body)
