# SPDX-License-Identifier: ISC
"""What notifiers send to: an SMTP server that requires STARTTLS and a password, and
an HTTPS server.

usage: receivers.py SMTPPORT HTTPSPORT CERT KEY FILE

Each accepted mail and each request is a line of JSON in FILE. A recipient named
"unknown" is rejected. The path /status/N returns that status, also N = 0: no response
until the client leaves.
"""
import asyncio
import http.server
import json
import ssl
import sys
import threading

from aiosmtpd.smtp import SMTP, AuthResult

smtp_port, https_port, cert, key, path = sys.argv[1:]
lock = threading.Lock()


def record(**what):
    with lock, open(path, 'a') as out:
        out.write(json.dumps(what) + '\n')


class Mailbox:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith('unknown@'):
            return '550 no such mailbox'
        envelope.rcpt_tos.append(address)
        return '250 OK'

    async def handle_DATA(self, server, session, envelope):
        record(kind='mail', sender=envelope.mail_from, to=envelope.rcpt_tos,
               text=envelope.content.decode('ascii'), tls=session.ssl is not None)
        return '250 OK'


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length'])).decode()
        record(kind='post', path=self.path, body=body,
               headers={k.lower(): v for k, v in self.headers.items()})
        status = int(self.path.rsplit('/', 1)[1]) if '/status/' in self.path else 204
        if status == 0:
            self.rfile.read(1)
        else:
            self.send_response(status)
            self.send_header('Content-Length', '0')
            self.end_headers()

    def log_message(self, *args):
        pass


def context():
    out = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    out.load_cert_chain(cert, key)
    return out


def authenticate(server, session, envelope, mechanism, data):
    good = (data.login, data.password) == (b'slipway', b'pass word')
    return AuthResult(success=good)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # else the kernel delays some connections by a second


web = Server(('127.0.0.1', int(https_port)), Handler)
web.socket = context().wrap_socket(web.socket, server_side=True,
                                   do_handshake_on_connect=False)
threading.Thread(target=web.serve_forever, daemon=True).start()

loop = asyncio.new_event_loop()
loop.run_until_complete(loop.create_server(
    lambda: SMTP(Mailbox(), hostname='localhost', tls_context=context(),
                 require_starttls=True, authenticator=authenticate,
                 auth_required=True, loop=loop),
    '127.0.0.1', int(smtp_port)))
loop.run_forever()
