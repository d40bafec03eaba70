#!/usr/bin/python3
"""Runs the commands of OpenStack's clients against Cadastre and against the real services, and compares their output.

    clients.py --folder DIR --program ./cadastre --definitions DIR [-v]

It starts Keystone, Placement, Glance and Manila with cloud.sh, and Cadastre with an empty database. Then it runs each
command of clients.txt twice. The exit status and the output must be equal, apart from request ids, times, addresses and
order. An error may have other words, with the same status. The exit status is 0 if only the marked commands differ, and all
of them.

A line of clients.txt is a command. A line "! WHY" marks the next command as one that differs. Words such as $U1 are uuids.
"""
import argparse
import difflib
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile

# Glance's client does not start if it finds the schema of images that it cached before.
os.environ['HOME'] = tempfile.mkdtemp()

import glanceclient.shell
import glanceclient.v2.shell  # noqa: F401
import manilaclient.shell
import openstackclient.shell
import requests
from osc_lib import clientmanager

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = int(os.environ.get('PORT', '18500'))


def at(offset, path=''):
    return 'http://127.0.0.1:%d%s' % (PORT + offset, path)


SIDES = {
    'real': {'placement': at(1), 'image': at(2), 'share': at(11, '/v2')},
    'Cadastre': {kind: at(12, '/openstack/' + path) for kind, path in
                 [('placement', 'placement'), ('image', 'image'), ('share', 'share/v2')]},
}


def cloud(*arguments):
    subprocess.run([os.path.join(HERE, 'cloud.sh'), OPTIONS.folder, *arguments], check=True,
                   env=dict(os.environ, PORT=str(PORT)))


def uuid(match):
    """Returns a fixed uuid for a name such as $U1."""
    return '%08x-0000-4000-8000-%012x' % (ord(match.group(1)), int(match.group(2)))


def read_commands(path):
    """Returns commands with the reason to differ, or None."""
    commands, why = [], None
    with open(path) as file:
        for line in file:
            line = line.strip()
            if line.startswith('!'):
                why = line[1:].strip()
            elif line and not line.startswith('#'):
                commands.append((re.sub(r'\$([A-Z])(\d)', uuid, line), why))
                why = None
    return commands


def token():
    project = {'name': 'admin', 'domain': {'id': 'default'}}
    user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': 'secret'}
    answer = requests.post(at(0, '/v3/auth/tokens'), json={'auth': {
        'identity': {'methods': ['password'], 'password': {'user': user}}, 'scope': {'project': project}}})
    answer.raise_for_status()
    return answer.headers['X-Subject-Token'], answer.json()['token']['project']['id']


class Clients:
    """The clients, all in this process, so that imports, plug-ins and tokens are paid once."""

    def __init__(self, given):
        self.token = given
        for name in [name for name in os.environ if name.startswith('OS_')]:
            del os.environ[name]
        self.shells = {}

    def openstack(self, words, address):
        """Runs a command of openstack, in one shell for each address and version."""
        version = '1.39'
        if words[0] == '--os-placement-api-version':
            version, words = words[1], words[2:]
        # Handlers of the log and the client of Placement are shared by all shells of a process.
        root, client = logging.getLogger(''), vars(clientmanager.ClientManager).get('placement')
        if (address, version) in self.shells:
            shell, root.handlers, client._handle = self.shells[address, version]
            return shell.run_subcommand(words)
        root.handlers = []
        if client:
            client._handle = None
        shell = openstackclient.shell.OpenStackShell()
        status = shell.run(['--os-auth-type', 'admin_token', '--os-endpoint', address, '--os-token', self.token,
                            '--os-placement-api-version', version] + words)
        self.shells[address, version] = shell, root.handlers, vars(clientmanager.ClientManager)['placement']._handle
        return status

    def call(self, program, words, addresses):
        if program == 'openstack':
            return self.openstack(words, addresses['placement'])
        # The shells of the other clients work only once in a process.
        pid = os.fork()
        if pid:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        status = 1
        try:
            if program == 'glance':
                status = glanceclient.shell.OpenStackImagesShell().main(
                    ['--os-image-url', addresses['image'], '--os-auth-token', self.token] + words) or 0
            else:
                status = manilaclient.shell.OpenStackManilaShell().main(
                    ['--os-token', self.token, '--bypass-url', addresses['share'],
                     '--os-share-api-version', '2.70'] + words) or 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except Exception as error:  # as the main functions of the clients print it
            print(error)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

    def run(self, command, addresses):
        """Runs a command, and returns its status and output."""
        program, *words = shlex.split(command)
        sys.stdout.flush()
        kept = os.dup(1), os.dup(2)
        with tempfile.TemporaryFile('w+') as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            try:
                status = self.call(program, words, addresses) or 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1 if end.code else 0
                if isinstance(end.code, str):
                    print(end.code)
            except Exception as error:  # as the main functions of the clients print it
                print(error)
                status = 1
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os.dup2(kept[0], 1)
                os.dup2(kept[1], 2)
                os.close(kept[0])
                os.close(kept[1])
            out.seek(0)
            return status, out.read()


def normal(text):
    """Returns output without the parts that always differ: ids of requests, times, addresses, order and widths.

    The same number can be written 1 or 1.0. Members of JSON objects have no order, and the reference's lists have the
    order of its database.
    """
    text = re.sub(r'req-[0-9a-f-]{36}', 'REQUEST', text)
    text = re.sub(r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?', 'TIME', text)
    text = re.sub(r'http://127\.0\.0\.1:\d+(/openstack/\w+)?', 'ADDRESS', text)
    text = re.sub(r'(?<![\d.])(\d+)\.0(?![\d.])', r'\1', text)
    text = re.sub(r'\[(?=[^]])|(?<=[^[])\]', ' ', text)
    lines = [re.sub(r'^\| +\d+ +\| (?=\w+=)', '| N | ', line) for line in text.splitlines()]
    lines = [' '.join(sorted(re.findall(r'[^\s,{}|]+', re.sub(r'[ +-]{2,}', ' ', line)))) for line in lines]
    return sorted(line for line in lines if line)


def without_words(status, output):
    """Returns the rest of an error without its message: the status of the client and of HTTP."""
    return [status] + re.findall(r'\(HTTP \d+\)', output)[:1]


def start(folder):
    """Starts Cadastre with an empty database."""
    database = os.path.join(folder, 'clients.db')
    for name in (database, database + '-wal', database + '-shm'):
        if os.path.exists(name):
            os.remove(name)
    log = open(os.path.join(folder, 'log', 'cadastre-clients.log'), 'wb')
    server = subprocess.Popen(
        [OPTIONS.program, 'serve', '--listen', '127.0.0.1:%d' % (PORT + 12), '--database', 'sqlite://' + database,
         '--keystone-url', at(0, '/v3'), '--keystone-user', 'service', '--keystone-project', 'service',
         '--openstack-api', 'placement,image,share,reservation'],
        stdout=log, stderr=log, env=dict(os.environ, CADASTRE_KEYSTONE_PASSWORD='secret'))
    for _ in range(600):
        try:
            if requests.get(at(12, '/readyz'), timeout=5).status_code == 200:
                return server
        except requests.RequestException:
            if server.poll() is not None:
                break
            subprocess.run(['sleep', '0.2'])
    sys.exit('Cadastre does not start; see ' + log.name)


def prepare(given, project):
    """Makes both sides start alike: no definitions, and shares with the same ids."""
    glance = ['glance-manage', '--config-file', os.path.join(OPTIONS.folder, 'etc/glance/glance-api.conf')]
    subprocess.run(glance + ['db_unload_metadefs'], check=True, stderr=subprocess.DEVNULL)
    headers = {'X-Auth-Token': given, 'Content-Type': 'application/json', 'X-OpenStack-Manila-API-Version': '2.70'}
    types = requests.get(at(11, '/v2/types'), headers=headers).json()['share_types']
    if not types:
        requests.post(at(11, '/v2/types'), headers=headers, json={'share_type': {
            'name': 'default', 'share_type_access:is_public': True,
            'extra_specs': {'driver_handles_share_servers': 'False'}}}).raise_for_status()
    for share in requests.get(at(11, '/v2/shares'), headers=headers).json()['shares']:
        requests.post(at(11, '/v2/shares/%s/action' % share['id']), headers=headers, json={'force_delete': None})
    shares = []
    for name in ('one', 'two'):
        made = requests.post(at(11, '/v2/shares'), headers=headers, json={'share': {
            'share_proto': 'NFS', 'size': 1, 'name': name, 'share_type': 'default'}})
        made.raise_for_status()
        shares.append(made.json()['share']['id'])
    # The first check of a token by a new server can take longer than it waits.
    for _ in range(30):
        if requests.get(at(12, '/openstack/placement/traits'), headers=dict(
                headers, **{'OpenStack-API-Version': 'placement 1.39'})).status_code == 200:
            break
        subprocess.run(['sleep', '2'])
    for name, share in zip(('one', 'two'), shares):
        answer = requests.post(at(12, '/graphql'), headers={'X-Auth-Token': given}, json={
            'query': 'mutation($input: CreateResourceInput!) { createResource(input: $input) { __typename } }',
            'variables': {'input': {'uuid': share, 'name': name, 'type': 'OS::Manila::Share', 'projectId': project}}})
        if 'errors' in answer.json():
            sys.exit('no share in Cadastre: %s' % answer.text)
    return shares


def main():
    cloud('start', 'db', 'mq', 'keystone', 'glance', 'manila')
    cloud('stop', 'placement')  # for an empty database
    subprocess.run(['mariadb', '--no-defaults', '-h127.0.0.1', '-P%d' % (PORT + 6), '-uroot', '-psecret', '-e',
                    'drop database placement; create database placement'], check=True)
    cloud('start', 'placement')
    server = start(OPTIONS.folder)
    differ = wrong = words = 0
    try:
        given, project = token()
        shares = prepare(given, project)
        clients = Clients(given)
        commands = read_commands(os.path.join(HERE, 'clients.txt'))
        for name in sorted(os.listdir(OPTIONS.definitions)):
            if name.endswith('.json'):
                commands.append(('glance md-namespace-import --file ' + os.path.join(OPTIONS.definitions, name), None))
        commands = [one for one in commands if re.match(OPTIONS.only, one[0])]
        for number, (command, why) in enumerate(commands, 1):
            command = command.replace('$SHARE1', shares[0]).replace('$SHARE2', shares[1])
            command = command.replace('$PROJECT', project)
            seen, statuses = {}, {}
            for side, addresses in SIDES.items():
                status, output = clients.run(command, addresses)
                seen[side] = ['status %d' % status] + normal(output)
                statuses[side] = without_words(status, output)
                if OPTIONS.verbose:
                    print('--- %s (%s): %d\n%s' % (command, side, status, output))
            same = seen['real'] == seen['Cadastre']
            failed = seen['real'][0] != 'status 0' and statuses['real'] == statuses['Cadastre']
            words += failed and not same
            same_but_words = same or failed
            differ += not same_but_words
            wrong += same_but_words != (why is None)
            print('%3d %s, %s: %s' % (number, 'equal' if same else 'other words' if failed else 'differs',
                                      seen['Cadastre'][0], command), flush=True)
            if not same:
                if not failed:
                    print('        marked: %s' % why)
                for line in difflib.unified_diff(seen['real'], seen['Cadastre'], lineterm='', n=0):
                    if not line.startswith(('---', '+++', '@@')):
                        print('        ' + line[:OPTIONS.width])
        print('%d commands: %d errors with other words, %d differ, %d not as marked' % (len(commands), words, differ, wrong))
    finally:
        server.terminate()
        server.wait()
        if not OPTIONS.keep:
            cloud('stop')
    return wrong > 0


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='./cadastre')
    parser.add_argument('--folder', required=True, help='a folder for all files, with at most 60 characters')
    parser.add_argument('--definitions', default='/usr/share/glance-common/metadefs', help='folder of files of definitions')
    parser.add_argument('--only', default='', help='a pattern of the commands to run')
    parser.add_argument('--keep', action='store_true', help='leave the real services running')
    parser.add_argument('--width', type=int, default=200, help='characters of each difference to print')
    parser.add_argument('-v', '--verbose', action='store_true', help='print all output')
    OPTIONS = parser.parse_args()
    sys.exit(main())
