#!/usr/bin/python3
"""Runs the functional tests of OpenStack's Placement against `cadastre serve`.

The tests are the gabbi files of Placement's source, unmodified. The fixtures
are those of the same source, or else of Debian's python3-placement. Fixtures
that would write to the database of the reference make the same requests to the
server instead. Each file has a new server with an empty database.

    run_gabbi.py --program ./cadastre --gabbits DIR [--postgres URL] [FILE...]

The exit status is 0 if the failed tests are exactly those that
tools/openstack/departures.txt names.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from gabbi import driver, httpclient
from gabbi.handlers import core
from oslo_utils import uuidutils
from oslo_utils.fixture import uuidsentinel

from placement.tests.functional.db import test_base as tb

MOUNT = '/openstack/placement'
ENVIRON = ('RP_UUID RP_NAME PROJECT_ID USER_ID PROJECT_ID_ALT USER_ID_ALT INSTANCE_UUID MIGRATION_UUID '
           'CONSUMER_UUID PARENT_PROVIDER_UUID ALT_PARENT_PROVIDER_UUID RP_UUID1 RP_NAME1 RP_UUID2 RP_NAME2 '
           'ADMIN_PROJECT_ID SERVICE_PROJECT_ID').split()
ROLES = ['admin', 'service', 'member', 'reader']

# The policies of the kinds of fixtures. The static tokens below stand for
# Keystone's: a system reader has the role service, and a user without roles the
# role reader. A token of a project has one role. Later editions of the tests let
# the role service write, and give tokens of the system the role reader alone.
POLICIES = {
    'legacy': {'placement.read': ['admin', 'service'], 'placement.write': ['admin'], 'consumers.readAny': ['admin', 'service']},
    'secure': {'placement.read': ['admin', 'service'], 'placement.write': ['admin'], 'consumers.readAny': ['admin', 'service'],
               'usages': ['admin', 'service', 'member', 'reader']},
    'later': {'placement.read': ['admin', 'service'], 'placement.write': ['admin', 'service'],
              'consumers.readAny': ['admin', 'service'], 'usages': ['admin', 'service', 'member', 'reader'],
              'reshape': ['service']},
    'open': {'placement.read': ['*'], 'placement.write': ['*'], 'consumers.readAny': ['*']},
}


class Server:
    """A server with an empty database."""

    current = None
    text = ''  # content of the current gabbi file

    def __init__(self, policy, origins=''):
        self.folder = tempfile.mkdtemp(prefix='cadastre-gabbi-')
        self.policy = policy
        self.database = 'sqlite://' + os.path.join(self.folder, 'cadastre.db')
        if OPTIONS.postgres:
            self.name = 'gabbi_' + uuidutils.generate_uuid(dashed=False)
            subprocess.run(['psql', '-q', OPTIONS.postgres, '-c', 'CREATE DATABASE ' + self.name], check=True)
            self.database = re.sub(r'(//[^/]*/)[^?]*', r'\g<1>' + self.name, OPTIONS.postgres)
        self._write('tokens.yaml', {'tokens': self._tokens()})
        self._write('policy.yaml', {'rules': POLICIES[policy]})
        arguments = [OPTIONS.program, 'serve', '--listen', '127.0.0.1:%d' % OPTIONS.port, '--database', self.database,
                     '--tokens', os.path.join(self.folder, 'tokens.yaml'), '--policy', os.path.join(self.folder, 'policy.yaml'),
                     '--openstack-api', 'placement']
        if origins:
            arguments += ['--allowed-origins', origins]
        self.log = open(os.path.join(self.folder, 'log'), 'wb')
        self.process = subprocess.Popen(arguments, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                urllib.request.urlopen('http://127.0.0.1:%d/readyz' % OPTIONS.port, timeout=5).read()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.log.flush()
        sys.exit('the server does not start: ' + open(self.log.name).read())

    def _write(self, name, value):
        with open(os.path.join(self.folder, name), 'w') as file:
            json.dump(value, file)

    def _tokens(self):
        system = {role: 'reader' if self.policy == 'later' or 'system %s cannot list' % role in Server.text or
                  'system %s cannot get' % role in Server.text else given
                  for role, given in [('admin', 'admin'), ('reader', 'service')]}
        entries = [('admin', 'admin', 'admin', ['admin']), ('admin:admin', 'admin', 'admin', ['admin']),
                   ('user', 'user', 'user', ['reader']), ('system-admin', 'user', 'system', [system['admin']]),
                   ('system-reader', 'user', 'system', [system['reader']])]
        named = re.findall(r'project[-_]id\w*:? ([0-9a-f]{32}|admin_project_id|service_project_id)\b', Server.text)
        for project in sorted({os.environ['PROJECT_ID'], os.environ['PROJECT_ID_ALT']}.union(named)):
            for role in ROLES:
                # In the secure policy only tokens of the system are administrators.
                given = 'member' if role == 'admin' and self.policy == 'secure' else role
                entries.append((role + '-' + project, 'user', project, [given]))
        return [dict(token=text, user=user, project=project, roles=roles) for text, user, project, roles in entries]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()
        if OPTIONS.postgres:
            subprocess.run(['psql', '-q', OPTIONS.postgres, '-c', 'DROP DATABASE ' + self.name], check=True)
        if not OPTIONS.keep:
            shutil.rmtree(self.folder)


def token(headers):
    """Returns the static token that stands for the identity in the headers of a test."""
    lower = {name.lower(): value for name, value in headers.items()}
    text, roles = lower.get('x-auth-token'), lower.get('x-roles')
    if text is None or roles is None:
        return text
    highest = min(roles.split(','), key=ROLES.index)
    if 'openstack-system-scope' in lower:
        return 'system-admin' if highest == 'admin' else 'system-reader'
    return highest + '-' + lower['x-project-id']


class Http(httpclient.Http):
    """The client of gabbi, for a service that is not at the root of its server."""

    def request(self, absolute_uri, method, body, headers, redirect):
        uri = re.sub(r'^(https?://[^/]+)(?:%s)?' % MOUNT, r'\g<1>' + MOUNT, absolute_uri)
        headers = dict(headers)
        given = token(headers)
        if given is not None:
            headers = {name: value for name, value in headers.items() if name.lower() != 'x-auth-token'}
            headers['x-auth-token'] = given
        info, content = super().request(uri, method, body, headers, redirect)
        if 'location' in info:
            info['location'] = info['location'].replace(MOUNT, '')
        return info, content.replace(MOUNT.encode(), b'')


def call(method, path, body=None, version='1.39', statuses=(200, 201, 204)):
    """Makes a request of a fixture, as an administrator."""
    request = urllib.request.Request('http://127.0.0.1:%d%s%s' % (OPTIONS.port, MOUNT, path), method=method,
                                     data=None if body is None else json.dumps(body).encode())
    request.add_header('x-auth-token', 'admin')
    request.add_header('openstack-api-version', 'placement ' + version)
    request.add_header('content-type', 'application/json')
    try:
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        if error.code in statuses:
            return None
        raise RuntimeError('%s %s: %d %s' % (method, path, error.code, error.read().decode())) from error


class Provider:
    """A resource provider that a fixture made."""

    def __init__(self, name, uuid):
        self.name, self.uuid = name, uuid

    def generation(self):
        return call('GET', '/resource_providers/' + self.uuid)['generation']

    def set_aggregates(self, aggregates):
        call('PUT', '/resource_providers/%s/aggregates' % self.uuid, list(aggregates), version='1.18')


def create_provider(context, name, *aggregates, **kwargs):
    made = Provider(name, kwargs.get('uuid') or getattr(uuidsentinel, name))
    call('POST', '/resource_providers', {'name': name, 'uuid': made.uuid, 'parent_provider_uuid': kwargs.get('parent')})
    if aggregates:
        made.set_aggregates(aggregates)
    return made


def add_inventory(provider, name, total, **kwargs):
    kwargs.setdefault('max_unit', total)
    if name.startswith('CUSTOM_'):
        call('PUT', '/resource_classes/' + name)
    call('POST', '/resource_providers/%s/inventories' % provider.uuid, dict(kwargs, resource_class=name, total=total))


def set_traits(provider, *traits):
    for name in traits:
        if name.startswith('CUSTOM_'):
            call('PUT', '/traits/' + name)
    call('PUT', '/resource_providers/%s/traits' % provider.uuid,
         {'traits': list(traits), 'resource_provider_generation': provider.generation()})


class ResourceClass:
    """A resource class of a fixture."""

    def __init__(self, context, name):
        self.name = name

    def create(self):
        call('PUT', '/resource_classes/' + self.name)


class Owner:
    """A user or a project of a fixture."""

    def __init__(self, context, external_id):
        self.external_id = external_id

    def create(self):
        pass


class Consumer:
    """A consumer of a fixture. The first claim makes it."""

    def __init__(self, uuid, user, project):
        self.uuid, self.user, self.project = uuid, user, project


def ensure_consumer(context, user, project, consumer_id=None):
    return Consumer(consumer_id or uuidutils.generate_uuid(), user, project)


def set_allocation(context, provider, consumer, resources):
    call('PUT', '/allocations/' + consumer.uuid, {
        'allocations': {provider.uuid: {'resources': resources}},
        'project_id': consumer.project.external_id, 'user_id': consumer.user.external_id}, version='1.27')


def create_user_and_project(context, prefix='fake'):
    return Owner(context, prefix + '-user'), Owner(context, prefix + '-project')


def start(self):
    """Starts the server of a file, in place of the application of the reference."""
    if Server.current:
        Server.current.stop()
    self.context = None
    for suffix in ('', '1', '2'):
        os.environ['CUSTOM_RES_CLASS' + suffix] = 'CUSTOM_IRON_NFV' + suffix
    for name in ENVIRON:
        os.environ[name] = uuidutils.generate_uuid()
    secure = 'later' if 'service_headers' in Server.text else 'secure'
    policy = secure if self._secure_rbac else 'open' if type(self).__name__ == 'OpenPolicyFixture' else 'legacy'
    origins = 'http://valid.example.com' if type(self).__name__ == 'CORSFixture' else ''
    Server.current = Server(policy, origins)


def stop(self):
    Server.current.stop()
    Server.current = None


def contains(self, test, expected, value=None):
    """Checks that an answer contains a string, or matches /a pattern/ as in later versions of gabbi."""
    expected = test.replace_template(expected)
    if expected.startswith('/') and expected.endswith('/'):
        test.assertRegex(test.output, expected[1:-1])
    else:
        test.assert_in_or_print_output(expected, test.output)


def load_fixtures():
    """Loads the fixtures of the reference: those next to the tests, or else Debian's."""
    path = os.path.join(OPTIONS.gabbits, '..', 'fixtures', 'gabbits.py')
    if not os.path.exists(path):
        return importlib.import_module('placement.tests.functional.fixtures.gabbits')
    spec = importlib.util.spec_from_file_location('fixtures', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def adapt(fixtures):
    """Makes the fixtures use the server."""
    fixtures.APIFixture.start_fixture, fixtures.APIFixture.stop_fixture = start, stop
    for of in (fixtures.OpenPolicyFixture, fixtures.CORSFixture):
        of.start_fixture, of.stop_fixture = start, stop
    for function in (create_provider, add_inventory, set_traits, ensure_consumer, set_allocation, create_user_and_project):
        setattr(tb, function.__name__, function)
    fixtures.user_obj.User = fixtures.project_obj.Project = Owner
    fixtures.rc_obj.ResourceClass = ResourceClass
    core.StringResponseHandler.action = contains
    httpclient.get_http = lambda verbose=False, caption='', cert_validate=True: Http(cert_reqs='CERT_NONE')


class Result(unittest.TestResult):
    """Collects the failed tests of a file."""

    def __init__(self):
        super().__init__()
        self.wrong = []

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.wrong.append((test.test_data['name'], str(error[1])))

    addError = addFailure

    def addSubTest(self, test, subtest, error):
        if error:
            self.addFailure(test, error)


def departures():
    """Returns the tests that are expected to fail: FILE: NAME."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'departures.txt')
    with open(path) as file:
        return {line.strip() for line in file if line.strip() and not line.startswith('#')}


def main():
    fixtures = load_fixtures()
    adapt(fixtures)
    passed = failed = 0
    wrong = []
    folder = tempfile.mkdtemp(prefix='cadastre-gabbits-')
    names = sorted(name for name in os.listdir(OPTIONS.gabbits) if name.endswith('.yaml'))
    if OPTIONS.files:
        names = [name for name in names if name[:-5] in OPTIONS.files]
    for name in names:
        alone = os.path.join(folder, name[:-5])
        os.mkdir(alone)
        shutil.copy(os.path.join(OPTIONS.gabbits, name), alone)
        with open(os.path.join(OPTIONS.gabbits, name)) as file:
            Server.text = file.read()
        suite = driver.build_tests(alone, unittest.TestLoader(), host='127.0.0.1', port=OPTIONS.port, fixture_module=fixtures,
                                   test_loader_name='openstack')
        result = Result()
        suite.run(result)
        good = result.testsRun - len(result.wrong)
        passed, failed = passed + good, failed + len(result.wrong)
        print('%-50s %4d passed %4d failed' % (name, good, len(result.wrong)), flush=True)
        for step, error in result.wrong:
            wrong.append('%s: %s' % (name, step))
            print('    %s: %s' % (step, error[:OPTIONS.width].replace('\n', ' ')))
    shutil.rmtree(folder)
    print('%d files, %d tests passed, %d failed' % (len(names), passed, failed))
    expected = {one for one in departures() if one.split(':')[0] in names}
    for one in sorted(set(wrong) - expected):
        print('not a departure: ' + one)
    for one in sorted(expected - set(wrong)):
        print('passes, but is named as a departure: ' + one)
    return set(wrong) != expected


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='./cadastre')
    parser.add_argument('--gabbits', required=True, help='folder of the gabbi files')
    parser.add_argument('--postgres', help='URL of a PostgreSQL where databases can be created; SQLite without it')
    parser.add_argument('--port', type=int, default=free_port())
    parser.add_argument('--keep', action='store_true', help='keep the databases and the logs of servers')
    parser.add_argument('--width', type=int, default=300, help='characters of each error to print')
    parser.add_argument('files', nargs='*', help='names of files without .yaml; all without any')
    OPTIONS = parser.parse_args()
    sys.exit(main())
