#!/usr/bin/python3
"""Runs unmodified Nova with Cadastre in place of Placement, and checks that Nova and Cadastre agree.

    real_nova.py --program ./cadastre --folder DIR --postgres URL [--computes 5] [--servers 50]
    real_nova.py --reference --folder DIR [--computes 5] [--servers 50]

It starts a cloud with cloud.sh, boots, resizes and migrates servers, kills Cadastre while servers boot, kills a compute and
evacuates its servers, and deletes everything. Between these steps the allocations must equal what Nova's database says,
but for claims that Nova could not remove while Cadastre was dead. The second form does the same with OpenStack's Placement,
to compare times. It runs as root and needs the packages of
docs/openstack.md. The exit status is 0 if everything agreed.
"""
import argparse
import collections
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import pymysql
import requests

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = int(os.environ.get('PORT', '18500'))
problems = []


def say(*words):
    print(time.strftime('%H:%M:%S'), *words, flush=True)


def at(offset, path=''):
    return 'http://127.0.0.1:%d%s' % (PORT + offset, path)


class Cadastre:
    """The server in Placement's place."""

    address = at(10, '/openstack/placement')

    def start(self):
        self.log = open(os.path.join(OPTIONS.folder, 'log', 'cadastre.log'), 'ab')
        self.process = subprocess.Popen(
            [OPTIONS.program, 'serve', '--listen', '127.0.0.1:%d' % (PORT + 10), '--database', OPTIONS.postgres,
             '--keystone-url', at(0, '/v3'), '--keystone-user', 'service', '--keystone-project', 'service',
             '--openstack-api', 'placement'],
            stdout=self.log, stderr=self.log, env=dict(os.environ, CADASTRE_KEYSTONE_PASSWORD='secret'))
        wait('Cadastre', lambda: ready(at(10, '/readyz')))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Reference:
    """OpenStack's Placement. cloud.sh starts it."""

    address = at(1)

    def start(self):
        cloud('start', 'placement')

    def kill(self):
        with open(os.path.join(OPTIONS.folder, 'run', 'placement.pid')) as file:
            os.killpg(int(file.read()), signal.SIGKILL)

    def stop(self):
        pass


def ready(address):
    try:
        return requests.get(address, timeout=5).status_code == 200
    except requests.RequestException:
        return False


def wait(what, condition, seconds=1800):
    """Waits for a condition. Raises RuntimeError if it does not hold in time."""
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise RuntimeError('%s took longer than %d s' % (what, seconds))
        time.sleep(1)


def cloud(*arguments):
    subprocess.run([os.path.join(HERE, 'cloud.sh'), OPTIONS.folder, *arguments], check=True,
                   env=dict(os.environ, PORT=str(PORT), PLACEMENT_URL=OPTIONS.placement.address,
                            # Seconds after which a compute compares all of its servers with Placement again. For many
                            # computes a minute is not enough on two cores.
                            UPDATE_INTERVAL=str(max(60, 12 * OPTIONS.computes))))


def sql(statement, commit=False):
    link = pymysql.connect(host='127.0.0.1', port=PORT + 6, user='root', password='secret', autocommit=commit)
    try:
        with link.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()
    finally:
        link.close()


def manage(*arguments):
    """Runs nova-manage, and returns its status and output."""
    done = subprocess.run(['nova-manage', '--config-file', os.path.join(OPTIONS.folder, 'etc/nova/nova.conf'), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, PYTHONWARNINGS='ignore'))
    return done.returncode, done.stdout


class Api:
    """Nova's and Placement's APIs for an administrator."""

    def __init__(self):
        project = {'name': 'admin', 'domain': {'id': 'default'}}
        user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': 'secret'}
        answer = requests.post(at(0, '/v3/auth/tokens'), json={'auth': {
            'identity': {'methods': ['password'], 'password': {'user': user}}, 'scope': {'project': project}}})
        answer.raise_for_status()
        self.headers = {'X-Auth-Token': answer.headers['X-Subject-Token'], 'OpenStack-API-Version': 'compute 2.92'}

    def nova(self, method, path, body=None, service=(3, '/v2.1')):
        answer = requests.request(method, at(*service) + path, json=body, headers=self.headers, timeout=600)
        if answer.status_code >= 400:
            raise RuntimeError('%s %s: %d %s' % (method, path, answer.status_code, answer.text))
        return answer.json() if answer.text else None

    def placement(self, method, path, body=None):
        headers = dict(self.headers, **{'OpenStack-API-Version': 'placement 1.39'})
        answer = requests.request(method, OPTIONS.placement.address + path, json=body, headers=headers, timeout=600)
        if answer.status_code >= 400:
            raise RuntimeError('%s %s: %d %s' % (method, path, answer.status_code, answer.text))
        return answer.json() if answer.text else None

    def act(self, servers, body):
        for server in servers:
            self.nova('POST', '/servers/%s/action' % server, body)


class Cloud:
    """A cloud with computes, flavors and servers."""

    def __init__(self):
        self.calls = os.path.join(OPTIONS.folder, 'log', 'calls.jsonl')
        self.computes = None
        self.times = collections.OrderedDict()

    def start(self):
        os.makedirs(os.path.join(OPTIONS.folder, 'log'), exist_ok=True)
        if os.path.exists(self.calls):
            os.remove(self.calls)
        cloud('start', 'db', 'mq', 'keystone')
        OPTIONS.placement.start()
        cloud('start', 'glance', 'neutron', 'nova-api', 'nova-conductor', 'nova-scheduler')
        self.api = Api()
        config = os.path.join(OPTIONS.folder, 'etc/nova/nova-compute.conf')
        log = open(os.path.join(OPTIONS.folder, 'log', 'computes.log'), 'ab')
        self.computes = subprocess.Popen(
            ['nice', '-n', str(OPTIONS.nice), '/usr/bin/python3', os.path.join(HERE, 'nova_service.py'), 'compute', OPTIONS.folder,
             '--config-file', config], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
        started = time.time()
        for number in range(1, OPTIONS.computes + 1):
            self.start_compute(number)
            wait('compute %d' % number, lambda: self.count('compute_nodes') >= number - 3)
        wait('computes', lambda: self.count('compute_nodes') == OPTIONS.computes and
             len(self.hosts()) == OPTIONS.computes)
        status, output = manage('cell_v2', 'discover_hosts')
        if status:
            raise RuntimeError(output)
        self.times['computes start'] = time.time() - started

    def hosts(self):
        return [one for one in self.api.placement('GET', '/resource_providers')['resource_providers']
                if re.fullmatch(r'fake\d+', one['name'])]

    def start_compute(self, number):
        self.computes.stdin.write(b'%d\n' % number)
        self.computes.stdin.flush()

    def count(self, table, where='true'):
        return sql('select count(*) from nova.%s where deleted = 0 and %s' % (table, where))[0][0]

    def prepare(self):
        """Makes the image, the flavors, and the trait that half of the hosts have."""
        image = self.api.nova('POST', '/v2/images', {'name': 'i', 'disk_format': 'raw', 'container_format': 'bare'}, (2, ''))['id']
        requests.put(at(2, '/v2/images/%s/file' % image), data=b'0' * 1024,
                     headers=dict(self.api.headers, **{'Content-Type': 'application/octet-stream'})).raise_for_status()
        self.image = image
        # A folder that was used before has the flavors.
        self.flavors = {one['name']: one['id'] for one in self.api.nova('GET', '/flavors')['flavors']}
        for name, vcpus, specs in [('small', 1, {}), ('large', 2, {}),
                                   ('gold', 1, {'trait:CUSTOM_GOLD': 'required', 'trait:CUSTOM_BAD': 'forbidden'}),
                                   ('magic', 1, {'resources:CUSTOM_MAGIC': '1'})]:
            if name in self.flavors:
                continue
            made = self.api.nova('POST', '/flavors', {'flavor': {'name': name, 'ram': 64, 'vcpus': vcpus, 'disk': 1}})['flavor']
            self.flavors[name] = made['id']
            if specs:
                self.api.nova('POST', '/flavors/%s/os-extra_specs' % made['id'], {'extra_specs': specs})
        for trait in ('CUSTOM_GOLD', 'CUSTOM_BAD'):
            self.api.placement('PUT', '/traits/' + trait)
        self.gold = set()
        for provider in self.hosts():
            if int(provider['name'].removeprefix('fake')) % 2:
                self.gold.add(provider['name'])
                path = '/resource_providers/%s/traits' % provider['uuid']
                has = self.api.placement('GET', path)
                has['traits'] = sorted(set(has['traits']) | {'CUSTOM_GOLD'})
                self.api.placement('PUT', path, has)

    def boot(self, flavor, count):
        while count > 0:
            some = min(count, 10)
            self.api.nova('POST', '/servers', {'server': {
                'name': flavor, 'imageRef': self.image, 'flavorRef': self.flavors[flavor], 'networks': 'none',
                'min_count': some, 'max_count': some}})
            count -= some

    def settle(self, states="'active'", servers=None):
        """Waits until no server has a task. Returns the number of servers in error."""
        wait('servers', lambda: self.count('instances', 'task_state is not null') == 0 and
             sql('select count(*) from nova_api.build_requests')[0][0] == 0 and
             self.count('instances', "vm_state not in (%s, 'error')" % states) == 0 and
             self.count('migrations', "status in ('accepted', 'pre-migrating', 'preparing', 'queued', 'running', "
                        "'post-migrating', 'migrating', 'confirming')") == 0)
        return len(self.errors())

    def errors(self):
        return [row[0] for cell in ('nova', 'nova_cell0')
                for row in sql("select uuid from %s.instances where deleted = 0 and vm_state = 'error'" % cell)]

    def servers(self, where='true'):
        return [row[0] for row in sql(
            "select uuid from nova.instances where deleted = 0 and vm_state = 'active' and %s order by uuid" % where)]

    def phase(self, name, begin, states="'active'"):
        """Runs a phase, waits for its end, and prints its time. Returns the number of servers in error."""
        started = time.time()
        begin()
        failed = self.settle(states)
        self.times[name] = time.time() - started
        hosts = len(sql('select distinct host from nova.instances where deleted = 0'))
        say('%s: %.0f s, %d servers on %d hosts, %d in error' %
            (name, self.times[name], self.count('instances', 'host is not null'), hosts, failed))
        return failed

    def compare(self, when, interrupted=False):
        """Compares Nova's servers with the allocations. Returns the servers with more than Nova says."""
        want = {}
        for uuid, host, text in sql('select i.uuid, i.host, e.flavor from nova.instances i join nova.instance_extra e '
                                    'on e.instance_uuid = i.uuid where i.deleted = 0 and i.host is not null'):
            flavor = json.loads(text)['cur']['nova_object.data']
            uses = {'VCPU': flavor['vcpus'], 'MEMORY_MB': flavor['memory_mb'], 'DISK_GB': flavor['root_gb']}
            for key, value in flavor['extra_specs'].items():
                if key.startswith('resources:'):
                    uses[key.split(':')[1]] = int(value)
            want[uuid] = {(host, resource): amount for resource, amount in uses.items()}
        have = collections.defaultdict(dict)
        providers = self.api.placement('GET', '/resource_providers')['resource_providers']
        names = {one['uuid']: one['name'] for one in providers}
        for provider in providers:
            found = self.api.placement('GET', '/resource_providers/%s/allocations' % provider['uuid'])['allocations']
            for consumer, allocation in found.items():
                for resource, amount in allocation['resources'].items():
                    have[consumer][names[provider['root_provider_uuid']], resource] = amount
        lost = sorted(uuid for uuid in want if not want[uuid].items() <= have.get(uuid, {}).items())
        more = sorted(uuid for uuid in have if not have[uuid].items() <= want.get(uuid, {}).items())
        say('%s: Nova has %d servers, Placement %d consumers; %d of Nova are missing, %d have more' % (
            when, len(want), len(have), len(lost), len(more)))
        for uuid in (lost + more)[:5]:
            say('   ', uuid, 'Nova', want.get(uuid), 'Placement', have.get(uuid))
        if lost or more and not interrupted:
            problems.append('%s: %d are missing, %d have more' % (when, len(lost), len(more)))
        return [uuid for uuid in more if uuid in want]

    def audit(self, when):
        for arguments, good in ((['placement', 'audit', '--verbose'], [0]),
                                (['placement', 'heal_allocations', '--dry-run', '--verbose'], [0, 4])):
            status, output = manage(*arguments)
            lines = [line for line in output.splitlines() if line.strip() and not line.startswith('Looking')]
            say('%s: nova-manage %s: status %d: %s' % (when, ' '.join(arguments[:2]), status, lines[-1] if lines else ''))
            if status not in good or '[dry-run]' in output:
                problems.append('%s: %s: %s' % (when, arguments[1], output[-2000:]))

    def boot_again(self, servers):
        """Deletes servers, and boots others, as an operator would do after an outage."""
        names = [row[0] for cell in ('nova', 'nova_cell0') for server in servers for row in sql(
            "select display_name from %s.instances where deleted = 0 and uuid = '%s'" % (cell, server))]
        for server in servers:
            self.api.nova('DELETE', '/servers/' + server)
        for name, count in collections.Counter(re.sub(r'-\d+$', '', one) for one in names).items():
            self.boot(name, count)

    def run(self):
        share = max(1, OPTIONS.servers // 10)

        def boot():
            self.boot('gold', share)
            self.boot('magic', share)
            self.boot('small', OPTIONS.servers - 5 * share)

        def boot_and_kill():
            booted = self.count('instances', "vm_state = 'active'")
            self.boot('small', 3 * share)
            wait('a server', lambda: self.count('instances', "vm_state = 'active'") > booted)
            OPTIONS.placement.kill()
            say('Placement was killed with %d servers booting' % self.count('instances', "vm_state = 'building'"))
            time.sleep(5)
            OPTIONS.placement.start()

        if self.phase('boot', boot):
            problems.append('servers do not boot')
        wrong = [row for row in sql("select host from nova.instances where deleted = 0 and display_name like 'gold%'")
                 if row[0] not in self.gold]
        if wrong:
            problems.append('%d servers are on hosts without their trait' % len(wrong))
        self.compare('after boot')
        self.phase('boot, and kill Placement', boot_and_kill)
        # Nova's calls during the outage failed: servers are in error, and claims of failed attempts stay.
        more = self.compare('after the kill', interrupted=True)
        while more or self.errors():
            self.phase('delete %d servers, and boot others' % len(more + self.errors()),
                       lambda: self.boot_again(more + self.errors()))
            more = self.compare('after the repair')
        earlier = sql('select coalesce(max(id), 0) from nova.migrations')[0][0]
        small = self.servers("display_name like 'small%%'")
        resize, cold, live = small[:share], small[share:2 * share], small[2 * share:3 * share]
        self.phase('resize', lambda: self.api.act(resize, {'resize': {'flavorRef': self.flavors['large']}}), "'active','resized'")
        self.phase('confirm', lambda: self.api.act(resize, {'confirmResize': None}))
        self.phase('migrate', lambda: self.api.act(cold, {'migrate': None}), "'active','resized'")
        self.phase('confirm migrations', lambda: self.api.act(cold, {'confirmResize': None}))
        self.phase('migrate live', lambda: self.api.act(live, {'os-migrateLive': {'host': None, 'block_migration': 'auto'}}))
        for status, count in sql('select concat(migration_type, " ", status), count(*) from nova.migrations '
                                 'where deleted = 0 and id > %d group by 1' % earlier):
            say('    migrations: %s %d' % (status, count))
        self.compare('after moves')
        self.evacuate()
        self.compare('after the evacuation')
        self.audit('before deletion')
        self.phase('delete', lambda: [self.api.nova('DELETE', '/servers/' + server) for server in self.servers() + self.errors()])
        self.compare('after deletion')
        self.audit('after deletion')

    def evacuate(self):
        """Kills a compute, evacuates its servers, and starts it again."""
        number = 1
        service = sql("select uuid from nova.services where host = 'fake%d' and deleted = 0" % number)[0][0]
        with open(os.path.join(OPTIONS.folder, 'run', 'compute-%d.child' % number)) as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.api.nova('PUT', '/os-services/' + service, {'forced_down': True})
        servers = self.servers("host = 'fake%d'" % number)
        earlier = sql('select coalesce(max(id), 0) from nova.migrations')[0][0]

        def moved(*statuses):
            return sql("select count(*) from nova.migrations where migration_type = 'evacuation' and id > %d and status in ('%s')" %
                       (earlier, "', '".join(statuses)))[0][0]

        def begin():
            self.api.act(servers, {'evacuate': {}})
            wait('the evacuation', lambda: moved('done', 'failed', 'error') >= len(servers))
            say('    evacuations: %d done of %d' % (moved('done'), len(servers)))

        self.phase('evacuate %d servers' % len(servers), begin)
        started = sql('select now()')[0][0]
        self.start_compute(number)
        wait('the compute', lambda: moved('completed') >= len(servers))
        wait('the compute', lambda: self.count(
            'services', "host = 'fake%d' and last_seen_up > '%s'" % (number, started)) == 1)
        self.api.nova('PUT', '/os-services/' + service, {'forced_down': False})

    def report(self):
        """Prints the times of calls, and their unusual statuses."""
        calls = collections.defaultdict(list)
        statuses = collections.Counter()
        with open(self.calls) as file:
            for line in file:
                call = json.loads(line)
                path = re.sub(r'[0-9a-f]{8}-[0-9a-f-]{27}', '{uuid}', call['path'].split('?')[0])
                path = re.sub(r'^(/traits/|/resource_classes/).*', r'\1{name}', path)
                calls[call['method'] + ' ' + path].append(call['ms'])
                statuses[call['method'], path, call['status']] += 1
        print('%-50s %6s %8s %8s %8s' % ('call', 'count', 'median', '95 %', 'max'))
        for name, times in sorted(calls.items()):
            times.sort()
            print('%-50s %6d %8.1f %8.1f %8.1f' % (
                name, len(times), statistics.median(times), times[len(times) * 95 // 100], times[-1]))
        for (method, path, status), count in sorted(statuses.items(), key=str):
            if status not in (200, 201, 204, ''):
                print('status %s: %s %s: %d' % (status, method, path, count))

    def stop(self):
        if self.computes:
            os.killpg(self.computes.pid, signal.SIGTERM)
            self.computes.wait()
        try:
            OPTIONS.placement.stop()
        finally:
            cloud('stop')


def main():
    made = Cloud()
    try:
        made.start()
        say('%d computes after %.0f s' % (OPTIONS.computes, made.times['computes start']))
        made.prepare()
        made.run()
    finally:
        if not OPTIONS.keep:
            made.stop()
    made.report()
    for problem in problems:
        print('problem:', problem)
    return bool(problems)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='./cadastre')
    parser.add_argument('--folder', required=True, help='a new folder for all files, with at most 60 characters')
    parser.add_argument('--postgres', help="URL of an empty database for Cadastre")
    parser.add_argument('--reference', action='store_true', help="use OpenStack's Placement")
    parser.add_argument('--computes', type=int, default=5)
    parser.add_argument('--servers', type=int, default=50)
    parser.add_argument('--nice', type=int, default=0, help='niceness of computes')
    parser.add_argument('--keep', action='store_true', help='leave everything running')
    OPTIONS = parser.parse_args()
    OPTIONS.placement = Reference() if OPTIONS.reference else Cadastre()
    sys.exit(main())
