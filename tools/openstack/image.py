#!/usr/bin/python3
"""Runs the functional tests of OpenStack's Image service for metadata definitions, unmodified, against Cadastre.

Usage: image.py PROGRAM [URL of a PostgreSQL where databases can be created]

Each test has a separate server on an empty database, of SQLite without a URL. The tests come from Debian's
python3-glance. They send a project and roles in headers; a server that checks tokens gets a token for each pair. The
tests that differ by design are in DEPARTURES; docs/openstack.md explains them. The exit status is 0 if exactly these
fail.
"""
import re
import subprocess
import sys
import tempfile
import unittest
import uuid

import requests
import testtools
from glance.tests import functional
from glance.tests.functional.v2 import (test_metadef_namespaces, test_metadef_objects, test_metadef_properties,
                                        test_metadef_resourcetypes, test_metadef_tags)
from oslo_utils.fixture import uuidsentinel

DEPARTURES = {
    'TestMetadefResourceTypes.test_role_base_metadef_resource_types_lifecycle',
}
MODULES = [test_metadef_namespaces, test_metadef_objects, test_metadef_properties, test_metadef_resourcetypes, test_metadef_tags]
OWNERS = [uuidsentinel.owner1, uuidsentinel.owner2]
send = requests.Session.request


def token_of(project, roles):
    return '%s-%s' % (project, roles.replace(',', '-'))


def request(self, method, url, headers=None, **others):
    """Sends a request with the token for its project and roles."""
    headers = dict(headers or {})
    project, roles = headers.pop('X-Tenant-Id', OWNERS[0]), headers.pop('X-Roles', 'admin')
    headers['X-Auth-Token'] = token_of(project, roles)
    return send(self, method, url, headers=headers, **others)


def start(test, **_):
    """Starts a server for a test."""
    tokens = tempfile.NamedTemporaryFile('w', suffix='.yaml')
    tokens.write('tokens:\n')
    for project in OWNERS + [owner.split('-')[0] for owner in OWNERS]:
        for roles in ['admin', 'reader,member']:
            tokens.write('  - {token: %s, user: u, project: "%s", roles: [%s]}\n' % (token_of(project, roles), project, roles))
    tokens.flush()
    folder = tempfile.TemporaryDirectory()
    database = 'sqlite://' + folder.name + '/image.db'
    for postgres in sys.argv[2:]:
        name = 'image_' + uuid.uuid4().hex
        subprocess.run(['psql', '-q', postgres, '-c', 'CREATE DATABASE ' + name], check=True)
        test.addCleanup(subprocess.run, ['psql', '-q', postgres, '-c', 'DROP DATABASE ' + name], check=True)
        database = re.sub(r'(//[^/]*/)[^?]*', r'\g<1>' + name, postgres)
    server = subprocess.Popen(
        [sys.argv[1], 'serve', '--listen=127.0.0.1:0', '--tokens=' + tokens.name, '--openstack-api=image',
         '--database=' + database], stderr=subprocess.PIPE, text=True)
    test.addCleanup(folder.cleanup)
    test.addCleanup(tokens.close)
    test.addCleanup(server.wait)
    test.addCleanup(server.terminate)
    for line in server.stderr:
        found = re.search(r'msg=serving address=(\S+)', line)
        if found:
            break
    test._url = lambda path: 'http://%s/openstack/image%s' % (found.group(1), path)


def set_up(self):
    testtools.TestCase.setUp(self)
    self.api_server = Server()


class Server:
    """Stands in for the settings of a server of the Image service, which the tests change."""


def main():
    requests.Session.request = request
    functional.FunctionalTest.setUp = set_up
    functional.FunctionalTest.tearDown = lambda self: testtools.TestCase.tearDown(self)
    functional.FunctionalTest.cleanup = lambda self: None
    functional.FunctionalTest.start_servers = lambda self, **options: start(self)
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(module) for module in MODULES)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    wrong = {'.'.join(case.id().split('.')[-2:]) for case, _ in result.failures + result.errors}
    print('%d tests, %d differ: %s' % (result.testsRun, len(wrong), ', '.join(sorted(wrong))))
    sys.exit(wrong != DEPARTURES)


main()
