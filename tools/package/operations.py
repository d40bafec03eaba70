#!/usr/bin/python3
"""Runs every command of docs/operations.md on a new root of Debian.

    operations.py cadastre_1.0.0_amd64.deb

It needs mmdebstrap, Go, the sources of Debian, root, and the ports 5432, 6432, 8080 and 8443. MMDEBSTRAP has further
options of mmdebstrap. Without systemd in the root, the script starts the server with the command, the user and the
folder of the unit. The hosts of the page are this machine, with a PostgreSQL and a PgBouncer of the root. A command of
the page that the script does not know is an error.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
HOSTS = ['db.example.org', 'db1', 'db2', 'db3', 'pgbouncer']
HOME = '/var/lib/cadastre'
ROOT = tempfile.mkdtemp()
CHROOT = '/usr/sbin/chroot'
PACKAGES = 'systemd,ca-certificates,make,openssl,sqlite3,sysvinit-utils,procps,git,postgresql,pgbouncer'
RAN = []

TOKENS = 'tokens:\n  - {token: a-secret-of-16-chars, user: ada, project: operations, roles: [admin]}\n'
BOUNCER = '''[databases]
cadastre = host=db.example.org
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6432
unix_socket_dir =
auth_type = trust
auth_file = /etc/pgbouncer/users
pidfile = /tmp/pgbouncer.pid
pool_mode = transaction
server_tls_sslmode = verify-full
server_tls_ca_file = /etc/ssl/certs/ca-certificates.crt
client_tls_sslmode = require
client_tls_cert_file = /etc/pgbouncer/cert.pem
client_tls_key_file = /etc/pgbouncer/key.pem
%s
'''


def say(*words):
    print(time.strftime('%H:%M:%S'), *words, flush=True)


def run(command, user='root', check=True, **environment):
    """Runs a line of a shell in the root, in the folder of the server, and returns its output."""
    done = subprocess.run([CHROOT, '--userspec=' + user, ROOT, '/bin/sh', '-c', 'cd %s && %s' % (HOME, command)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(PATH='/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin', HOME=HOME, LANG='C.UTF-8',
                                   DEBIAN_FRONTEND='noninteractive', **environment))
    if check and done.returncode:
        raise SystemExit('operations: %s ended with %d\n%s' % (command, done.returncode, done.stdout))
    return done.stdout


def write(path, content, user='root'):
    with open(ROOT + path, 'w', encoding='utf-8') as file:
        file.write(content)
    run('chown %s: %s && chmod 640 %s' % (user, path, path))


class Server:
    """A `cadastre serve` in the root that is ready, until the block ends."""

    def __init__(self, command, address='http://127.0.0.1:8080'):
        self.command, self.address = command, address

    def __enter__(self):
        self.log = open(ROOT + '/log', 'w+', encoding='utf-8')
        # The program is a child of this process, so that its id is known.
        self.process = subprocess.Popen(
            [CHROOT, '--userspec=cadastre', ROOT, '/bin/sh', '-c', 'cd %s && exec %s' % (HOME, self.command)],
            stdout=self.log, stderr=self.log, env=dict(PATH='/usr/bin:/bin', HOME=HOME))
        for _ in range(600):
            if not subprocess.call(['curl', '-skf', '-o', '/dev/null', self.address + '/readyz']):
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        self.process.kill()
        raise SystemExit('operations: %s is not ready\n%s' % (self.command, self.said()))

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def __exit__(self, *error):
        self.process.terminate()
        if self.process.wait(60) and not error[0]:
            raise SystemExit('operations: %s ended with %d\n%s' % (self.command, self.process.returncode, self.said()))


def page():
    """Returns the commands of the page: of its blocks, by language, and in its sentences."""
    with open(os.path.join(SOURCE, 'docs', 'operations.md'), encoding='utf-8') as file:
        content = file.read()
    blocks = {language: [] for language in ('sh', 'text', 'sql', 'ini', 'yaml')}
    for language, block in re.findall(r'^```(\w+)\n(.*?)^```$', content, re.M | re.S):
        blocks[language].append(block)
    lines = []
    for block in blocks['sh'] + blocks['text']:
        shown = [line[2:] for line in block.splitlines() if line.startswith('$ ')]
        lines += shown or block.splitlines()
    prose = re.sub(r'^```.*?^```$', '', content, flags=re.M | re.S)
    prose = re.findall(r'`((?:cadastre|apt) [a-z][^`]+)`', prose)
    return lines, blocks, prose


def make(package):
    """Makes the root, with certificates, and what the page expects to be there."""
    with open('/etc/os-release', encoding='utf-8') as file:
        codename = re.search(r'VERSION_CODENAME=(\w+)', file.read())[1]
    subprocess.run(['mmdebstrap', '--quiet', '--variant=apt', *shlex.split(os.environ.get('MMDEBSTRAP', '')),
                    '--include=' + PACKAGES, codename, ROOT, '/etc/apt/sources.list.d/debian.sources'], check=True)
    mount('-t', 'proc', 'proc', '/proc')
    os.makedirs(ROOT + HOME)
    write('/etc/apt/apt.conf.d/yes', 'APT::Get::Assume-Yes "true";\n')
    write('/usr/sbin/policy-rc.d', '#!/bin/sh\nexit 101\n')
    write('/etc/hosts', '127.0.0.1 localhost %s\n' % ' '.join(HOSTS))
    run('chmod 755 /usr/sbin/policy-rc.d && chmod 644 /etc/hosts /etc/apt/apt.conf.d/yes')
    names = ','.join('DNS:' + name for name in HOSTS + ['localhost'])
    run('openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cadastre -addext subjectAltName=%s '
        '-keyout key.pem -out cert.pem 2>/dev/null && cp cert.pem /usr/local/share/ca-certificates/test.crt && '
        'update-ca-certificates' % names)
    name = os.path.basename(re.search(r'apt install (\S+)', ''.join(page()[1]['text']))[1])
    subprocess.run(['cp', package, ROOT + HOME + '/' + name], check=True)
    run('sha256sum %s > SHA256SUMS' % name)


def mount(*arguments):
    os.makedirs(ROOT + arguments[-1], exist_ok=True)
    subprocess.run(['mount', *arguments[:-1], ROOT + arguments[-1]], check=True)


def postgres(blocks):
    """Starts PostgreSQL and PgBouncer, with the statements and settings of the page."""
    major = os.listdir(ROOT + '/etc/postgresql')[0]
    data, programs = '/var/lib/postgresql/test', '/usr/lib/postgresql/%s/bin/' % major
    run('cp cert.pem key.pem /etc/pgbouncer/ && cp cert.pem key.pem /var/lib/postgresql/ && cd /var/lib/postgresql && '
        'chown postgres: *.pem /etc/pgbouncer/* && chmod 600 key.pem /etc/pgbouncer/key.pem')
    run('%sinitdb -D %s -A trust' % (programs, data), 'postgres')
    run('%spg_ctl -D %s -w -l /var/lib/postgresql/log -o "-c ssl=on -c ssl_cert_file=/var/lib/postgresql/cert.pem '
        '-c ssl_key_file=/var/lib/postgresql/key.pem -c unix_socket_directories=/tmp" start' % (programs, data),
        'postgres')
    psql = 'psql -h 127.0.0.1 -U postgres -v ON_ERROR_STOP=1 -c '
    run(psql + '"CREATE ROLE cadastre LOGIN PASSWORD \'secret\' CREATEDB"')
    run('createdb -h 127.0.0.1 -U postgres -O cadastre cadastre')
    for statement in ''.join(blocks['sql']).splitlines():
        run(psql + '"%s" cadastre' % statement)
        RAN.append(statement)
    write('/etc/pgbouncer/users', '"cadastre" "secret"\n', 'postgres')
    write('/etc/pgbouncer/test.ini', BOUNCER % ''.join(blocks['ini']), 'postgres')
    run('pgbouncer -d /etc/pgbouncer/test.ini', 'postgres')
    return lambda: (run('kill $(pidof pgbouncer)', check=False),
                    run('%spg_ctl -D %s -m fast stop' % (programs, data), 'postgres', False))


def known(lines, *starts):
    """Returns the lines of the page that begin so, in order, and notes them."""
    found = [line for line in lines if line.startswith(starts)]
    RAN.extend(found)
    if not found:
        raise SystemExit('operations: no command begins with %s' % ' or '.join(starts))
    return found


def main(package):
    lines, blocks, prose = page()
    make(package)
    for line in known(lines, 'sha256sum', 'apt install', 'systemctl enable'):
        run(line)
    write('/etc/cadastre/tokens.yaml', TOKENS, 'cadastre')
    run('cp /etc/cadastre/tokens.yaml . && chown -R cadastre: .')
    unit = run('sed -n "s/^ExecStart=//p" /usr/lib/systemd/system/cadastre.service').strip()
    say('the package is installed')
    known(lines, 'systemctl start')
    with Server(unit):
        for line in known(lines, 'sqlite3'):
            run(line, 'cadastre')
        for line in known(lines, 'kill -HUP'):
            run(line, 'cadastre')
    for line in known(lines, 'mv backup.db'):
        run(line, 'cadastre')
    for line in dict.fromkeys(known(lines, 'rm -f')):
        run(line, 'cadastre')
    with Server(unit):
        say('SQLite: backed up and restored')

    stop = postgres(blocks)
    try:
        servers(lines, blocks)
        databases(lines, prose)
    finally:
        stop()
    for name, folder in (('GOROOT', '/usr/local/go'), ('GOMODCACHE', '/modules'), ('GOCACHE', '/cache')):
        mount('--bind', run_outside('go', 'env', name), folder)
    run_outside('git', 'clone', '--quiet', SOURCE, ROOT + '/build')
    for line in known(lines, 'make build'):
        run('cd /build && %s && ./cadastre version' % line, GOMODCACHE='/modules', GOCACHE='/cache', GOPROXY='off')
    say('the program is built')
    for line in ['systemctl disable cadastre'] + [line + ' cadastre' for line in known(prose, 'apt')]:
        run(line)
    if not os.path.exists(ROOT + HOME + '/cadastre.db'):
        raise SystemExit('operations: a purge deleted the database')
    missed = [line for line in lines + prose if line not in RAN]
    if missed:
        raise SystemExit('operations: not run: %s' % missed)
    say('%d commands ran' % len(RAN))


def run_outside(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=SOURCE).stdout.strip()


def servers(lines, blocks):
    """Starts a server with each command of the page, and with each file of settings."""
    for line in known(lines, 'cadastre serve'):
        address = 'https://localhost:8443' if '--tls-cert' in line else 'http://127.0.0.1:8080'
        if '--print-config' in line:
            run(line.replace('...', '--tokens tokens.yaml'), 'cadastre')
            with Server('cadastre serve --config settings.yaml'):
                continue
        if '--config' in line:
            write(HOME + '/cadastre.yaml', blocks['yaml'][-1], 'cadastre')
            address = 'http://localhost:8443'
        with Server(line.replace('...', '--tokens tokens.yaml'), address):
            say('ready:', line)
    write(HOME + '/pooler.yaml', blocks['yaml'][0] + 'tokens: tokens.yaml\n', 'cadastre')
    with Server('cadastre serve --config pooler.yaml') as server:
        if 'notifications' in server.said():
            raise SystemExit('operations: behind PgBouncer: ' + server.said())
        say('ready: behind PgBouncer')


def databases(lines, prose):
    """Dumps, restores and checks the databases, and asks a demo as the sentences of the page do."""
    here = dict(PGHOST='127.0.0.1', PGUSER='postgres', PGSSLROOTCERT='/etc/ssl/certs/ca-certificates.crt',
                DATABASE='postgres://cadastre:secret@db.example.org:5432/cadastre?sslmode=verify-full')
    for line in known(lines, 'pg_dump', 'createdb', 'pg_restore'):
        run(line, **here)
    run('createdb -O cadastre moved && psql -c "CREATE EXTENSION pg_trgm" moved', **here)
    here['DATABASE'] = here['DATABASE'].replace('/cadastre?', '/moved?')
    for line in known(lines, 'cadastre dump', 'cat cloud', 'cadastre doctor'):
        run(line, **here)
    say('PostgreSQL: dumped, restored, moved and checked')
    run('rm -f cadastre.db*')
    with Server('cadastre serve --demo'):
        for line in known(prose, 'cadastre'):
            line = line.replace('NAME', 'm1.small').replace('PROJECT', 'operations')
            if line in ('cadastre migrate up', 'cadastre doctor'):
                line += ' --database "$DATABASE"'
            elif line in ('cadastre serve', 'cadastre dump', 'cadastre restore'):
                continue  # the blocks have them
            run(line, CADASTRE_SERVER='http://127.0.0.1:8080', CADASTRE_TOKEN='demo-admin', **here)
            say('ran:', line)


if __name__ == '__main__':
    try:
        main(sys.argv[1])
    finally:
        for point in ('/cache', '/modules', '/usr/local/go', '/proc'):
            subprocess.run(['umount', '-l', ROOT + point], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(['rm', '-rf', '--one-file-system', ROOT], check=False)
