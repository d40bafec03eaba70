#!/usr/bin/python3
"""Syncs a real OpenStack into Cadastre, and compares every field with the answers of the services.

    sync.py --program ./cadastre --folder DIR [--changes 100] [--faults 3] [--kills 6] [--seed N] [--blazar SOURCE]

It starts Keystone, Placement, Glance, Nova with two computes, Cinder and Manila with cloud.sh, fills them, and runs
`cadastre serve` and `cadastre sync openstack`. Then it changes things in the services, syncs and compares again, also
through a proxy whose answers are wrong at random; it takes a cell of Nova away, and ends syncs at random moments by
signals. The exit status is 0 if all was equal. It runs as root
and needs the packages of docs/openstack.md. Blazar, which Debian lacks, runs if SOURCE is a checkout of
its tag 10.0.0 in which this command has made the entry points: PBR_VERSION=10.0.0 /usr/bin/python3 setup.py egg_info. It needs
python3-pecan, too.
"""
import argparse
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid

import faults
import real_nova
import requests

at, say, wait = real_nova.at, real_nova.say, real_nova.wait
NOVA, GLANCE, CINDER, MANILA, PLACEMENT = at(3, '/v2.1'), at(2, '/v2'), at(10, '/v3'), at(11, '/v2'), at(1)
BLAZAR = at(13, '/v1')
LONG = 'ä' * 1500
wrong = []
ALLOW_DELETES = ['--yes', *('--allow-deletes=' + kind for kind in (
    'projects', 'flavors', 'hypervisors', 'providers', 'aggregates', 'servers', 'allocations', 'images', 'definitions',
    'volume_types', 'volumes', 'volume_snapshots', 'shares', 'share_snapshots', 'share_networks',
    'share_network_subnets'))]


class Services:
    """The services, for an administrator in a project."""

    def __init__(self, made, name):
        self.made = made
        user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': 'secret'}
        answer = requests.post(at(0, '/v3/auth/tokens'), json={'auth': {
            'identity': {'methods': ['password'], 'password': {'user': user}},
            'scope': {'project': {'name': name, 'domain': {'id': 'default'}}}}})
        answer.raise_for_status()
        self.token, self.project = answer.headers['X-Subject-Token'], answer.json()['token']['project']['id']
        self.user = answer.json()['token']['user']['id']
        schema = self.glance('GET', '/schemas/image')['properties']
        self.base = {key for key, one in schema.items() if one.get('is_base', True)} - {
            'min_disk', 'min_ram', 'disk_format', 'container_format'}

    def ask(self, method, address, body=None, version='', type='application/json'):
        headers = {'X-Auth-Token': self.token, 'Content-Type': type, 'OpenStack-API-Version': version,
                   'X-OpenStack-Manila-API-Version': version.split(' ')[-1]}
        headers = {key: value for key, value in headers.items() if value}
        data = json.dumps(body) if body is not None else None
        answer = requests.request(method, address, data=data, headers=headers, timeout=600)
        if answer.status_code >= 400:
            raise RuntimeError('%s %s: %d %s' % (method, address, answer.status_code, answer.text))
        return answer.json() if answer.text.startswith('{') else None

    def other(self):
        """Returns the services in another project."""
        if not self.keystone('GET', '/projects?name=blue')['projects']:
            blue = self.keystone('POST', '/projects', {'project': {'name': 'blue'}})['project']['id']
            role = self.keystone('GET', '/roles?name=admin')['roles'][0]['id']
            self.keystone('PUT', '/projects/%s/users/%s/roles/%s' % (blue, self.user, role))
            time.sleep(31)  # Keystone remembers for 30 s that a user has no role
        return Services(self.made, 'blue')

    def unlimited(self):
        """Lifts the quotas."""
        self.cinder('PUT', '/os-quota-sets/' + self.project, {'quota_set': {'volumes': -1, 'gigabytes': -1, 'snapshots': -1}})
        self.manila('PUT', '/quota-sets/' + self.project, {'quota_set': {'shares': -1, 'gigabytes': -1, 'snapshots': -1,
                                                                              'snapshot_gigabytes': -1,
                                                                              'share_networks': -1}})

    def keystone(self, method, path, body=None):
        return self.ask(method, at(0, '/v3') + path, body)

    def nova(self, method, path, body=None):
        return self.ask(method, NOVA + path, body, 'compute 2.93')

    def glance(self, method, path, body=None):
        patch = 'application/openstack-images-v2.1-json-patch'
        return self.ask(method, GLANCE + path, body, type=patch if method == 'PATCH' else 'application/json')

    def cinder(self, method, path, body=None):
        return self.ask(method, CINDER + '/' + self.project + path, body, 'volume 3.60')

    def placement(self, method, path, body=None):
        return self.ask(method, PLACEMENT + path, body, 'placement 1.39')

    def blazar(self, method, path, body=None):
        return self.ask(method, BLAZAR + path, body)

    def manila(self, method, path, body=None):
        return self.ask(method, MANILA + path, body, 'shared-file-system 2.73')


def cli(*arguments):
    return [OPTIONS.program, *arguments]


def environment():
    """Returns the environment of a user of the command line: the OS_* variables, and the server."""
    lines = subprocess.run([os.path.join(real_nova.HERE, 'cloud.sh'), OPTIONS.folder, 'env'], check=True,
                           stdout=subprocess.PIPE, text=True, env=dict(os.environ, PORT=str(real_nova.PORT))).stdout
    words = lines.replace('export ', '').split()
    return dict(os.environ, CADASTRE_SERVER=at(12), **dict(word.split('=', 1) for word in words))


class Cadastre:
    """The server, with an empty database, and the command line."""

    def __init__(self, services):
        self.services = services
        database = os.path.join(OPTIONS.folder, 'sync.db')
        for name in (database, database + '-wal', database + '-shm'):
            if os.path.exists(name):
                os.remove(name)
        log = open(os.path.join(OPTIONS.folder, 'log', 'cadastre-sync.log'), 'wb')
        self.process = subprocess.Popen(
            cli('serve', '--listen', '127.0.0.1:%d' % (real_nova.PORT + 12), '--database', 'sqlite://' + database,
                '--keystone-url', at(0, '/v3'), '--keystone-user', 'service', '--keystone-project', 'service',
                '--openstack-api', 'image'),
            stdout=log, stderr=log, env=dict(os.environ, CADASTRE_KEYSTONE_PASSWORD='secret'))
        wait('Cadastre', lambda: real_nova.ready(at(12, '/readyz')))
        self.environment = environment()

    def query(self, text, **variables):
        answer = requests.post(at(12, '/graphql'), json={'query': text, 'variables': variables}, timeout=60,
                               headers={'X-Auth-Token': self.services.token}).json()
        if 'errors' in answer:
            raise RuntimeError(answer['errors'])
        return answer['data']

    def note(self, resource, value):
        """Writes a note and a tag, as users do."""
        self.query('''mutation($uuid: UUID!, $value: String!) {
            setMetadata(input: { resource: $uuid, items: [{ key: "note", value: $value }] }) { __typename }
            setResourceTags(input: { resource: $uuid, tags: ["seen"] }) { __typename } }''', uuid=resource, value=value)

    def begin(self, *arguments):
        return subprocess.Popen(cli('sync', 'openstack', '-o', 'json', *arguments),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)

    def sync(self, *arguments):
        """Makes a pass over every kind, and returns the numbers of each."""
        status, output, errors = self.end(*arguments)
        if status:
            raise RuntimeError('sync ended with %d\n%s%s' % (status, output, errors))
        return {row['kind']: row for row in json.loads(output)}

    def end(self, *arguments):
        started = time.time()
        running = self.begin(*arguments)
        output, errors = running.communicate()
        self.took = time.time() - started
        say('sync: %.1f s' % self.took)
        return running.returncode, output, errors

    def sync_again(self):
        """Makes a pass after one that was killed, which keeps others from its kind for up to a minute."""
        for _ in range(13):
            status, output, errors = self.end(*ALLOW_DELETES)
            if status and 'another pass writes' not in errors:
                raise RuntimeError(errors)
            if not status:
                return
            time.sleep(5)
        raise RuntimeError('a killed pass keeps others away: ' + errors)

    def allocations(self):
        """Returns all allocations, as allocations() does."""
        found, after = {}, None
        while True:
            page = self.query('''query($after: String) { consumers(first: 500, after: $after) {
                nodes { uuid userId projectId allocations { provider { uuid } resourceClass used } }
                pageInfo { hasNextPage endCursor } } }''', after=after)['consumers']
            for node in page['nodes']:
                uses = {}
                for one in node['allocations']:
                    uses.setdefault(one['provider']['uuid'], {})[one['resourceClass']] = one['used']
                found[node['uuid']] = (node['userId'], node['projectId'], uses)
            after = page['pageInfo']['endCursor']
            if not page['pageInfo']['hasNextPage']:
                return found

    def providers(self):
        """Returns the resource providers by uuid, as provider() does."""
        found, after = {}, None
        while True:
            page = self.query('''query($after: String) { resourceProviders(first: 500, after: $after) {
                nodes { uuid name parent { uuid } traits aggregates resource { origin { kind foreignId } }
                  inventories { resourceClass total reserved minUnit maxUnit stepSize allocationRatio } }
                pageInfo { hasNextPage endCursor } } }''', after=after)['resourceProviders']
            for node in page['nodes']:
                inventories = {one.pop('resourceClass'): one for one in node['inventories']}
                found[node['uuid']] = {
                    'name': node['name'], 'parent': node['parent'] and node['parent']['uuid'],
                            'traits': sorted(node['traits']),
                    'aggregates': sorted(node['aggregates']), 'inventories': inventories,
                    'host': node['resource'] and node['resource']['origin']['foreignId']}
            after = page['pageInfo']['endCursor']
            if not page['pageInfo']['hasNextPage']:
                return found

    def private(self):
        """Returns the names of capabilities of hosts, and whether each is private."""
        found = self.query('{ resourceType(name: "physical:host") { capabilities(includePrivate: true) { name private } } }')
        return {one['name']: one['private'] for one in found['resourceType']['capabilities']}

    def contents(self, name):
        """Returns a namespace of definitions in Glance's form."""
        answer = requests.get(at(12, '/openstack/image/v2/metadefs/namespaces/') + requests.utils.quote(name),
                              headers={'X-Auth-Token': self.services.token}, timeout=60)
        answer.raise_for_status()
        return contents(answer.json())

    def resources(self):
        """Returns the resources with an origin, by kind and foreign id."""
        found, after = {}, None
        while True:
            page = self.query('''query($after: String) { resources(first: 500, after: $after) {
                nodes { uuid name description projectId visibility tags type { name } origin { kind foreignId goneAt }
                  metadata { key value userModifiable } capabilities(includePrivate: true) { name value } }
                pageInfo { hasNextPage endCursor } } }''', after=after)['resources']
            for node in page['nodes']:
                if node['origin']:
                    found.setdefault(node['origin']['kind'], {})[node['origin']['foreignId']] = node
            after = page['pageInfo']['endCursor']
            if not page['pageInfo']['hasNextPage']:
                return found


def text(value):
    """Returns a value of JSON as the text of a metadata value."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return '' if value is None else str(value)


def thing(type, name, description, project, public, metadata):
    return {'type': type, 'name': name, 'description': description or None, 'projectId': project,
            'visibility': 'PUBLIC' if public else 'PRIVATE',
            'metadata': {key: text(value) for key, value in metadata.items() if value is not None}}


def project(services, one):
    one = services.keystone('GET', '/projects/' + one)['project']
    return thing('OS::Keystone::Project', one['name'], one['description'], one['id'], False,
                 {key: one[key] for key in ('domain_id', 'parent_id', 'enabled')})


def aggregate(services, one):
    all = services.nova('GET', '/os-aggregates')['aggregates']
    one = [has for has in all if has['uuid'] == one][0]
    return thing('OS::Nova::Aggregate', one['name'], None, services.project, False,
                 dict(one['metadata'], hosts=compact(sorted(one['hosts']))))


def volume_type(services, one):
    one = services.cinder('GET', '/types/' + one)['volume_type']
    return thing('OS::Cinder::VolumeType', one['name'], one['description'], services.project, one['is_public'],
                 one['extra_specs'])


def volume_snapshot(services, one):
    one = services.cinder('GET', '/snapshots/' + one)['snapshot']
    return thing('OS::Cinder::Snapshot', one['name'] or one['id'], one['description'],
                 one['os-extended-snapshot-attributes:project_id'], False, one['metadata'])


def share_snapshot(services, one):
    one = services.manila('GET', '/snapshots/' + one)['snapshot']
    return thing('OS::Manila::ShareSnapshot', one['name'] or one['id'], one['description'], one['project_id'], False,
                 one['metadata'])


def flavor(services, one):
    one = services.nova('GET', '/flavors/' + one)['flavor']
    metadata = dict(one['extra_specs'], vcpus=one['vcpus'], ram=one['ram'], disk=one['disk'],
                    ephemeral=one['OS-FLV-EXT-DATA:ephemeral'] or None, swap=one['swap'] or None)
    return thing('OS::Nova::Flavor', one['name'], one['description'], services.project,
            one['os-flavor-access:is_public'], metadata)


def hypervisor(services, one):
    one = services.ask('GET', NOVA + '/os-hypervisors/' + one, version='compute 2.53')['hypervisor']
    fields = ('hypervisor_type', 'hypervisor_version', 'host_ip', 'state', 'status')
    capabilities = leaves('cpu_info', one['cpu_info'])
    traits = services.placement('GET', '/resource_providers/%s/traits' % one['id'])['traits']
    if traits:
        capabilities['traits'] = compact(sorted(traits))
    values = {}
    for has in services.nova('GET', '/os-aggregates')['aggregates']:
        if one['service']['host'] in has['hosts']:
            for key, value in has['metadata'].items():
                values.setdefault(key, set()).add(value)
    for key, all in values.items():
        capabilities[key] = all.pop() if len(all) == 1 else compact(sorted(all))
    metadata = {key: one[key] for key in fields}
    if OPTIONS.blazar:
        name = one['hypervisor_hostname']
        metadata['reservable'] = bool(real_nova.sql(RESERVABLE % ('reservable', name))[0][0])
        capabilities.update(real_nova.sql(RESERVABLE % ('property_name, capability_value', name)))
    return dict(thing('physical:host', one['hypervisor_hostname'], None, services.project, True, metadata),
                capabilities=capabilities)


RESERVABLE = ('select %s from blazar.computehosts h join blazar.computehost_extra_capabilities c on c.computehost_id = h.id '
              "join blazar.resource_properties p on p.id = c.property_id where hypervisor_hostname = '%s'")


def leaves(path, value):
    if isinstance(value, dict):
        return {name: text for key, has in value.items() for name, text in leaves(path + ':' + key, has).items()}
    value = compact(sorted(value)) if isinstance(value, list) else text(value)
    return {path: value} if value else {}


def compact(value):
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False)


def server(services, one):
    one = services.nova('GET', '/servers/' + one)['server']
    return thing('OS::Nova::Server', one['name'], one['description'], one['tenant_id'], False,
                 dict(one['metadata'], **{'flavor:original_name': one['flavor']['original_name']}))


def migration(services, one):
    instance = real_nova.sql("select instance_uuid from nova.migrations where uuid = '%s'" % one)[0][0]
    all = services.nova('GET', '/os-migrations?instance_uuid=' + instance)['migrations']
    one = [has for has in all if has['uuid'] == one][0]
    fields = ('instance_uuid', 'migration_type', 'status', 'source_compute', 'source_node', 'dest_compute', 'dest_node')
    return thing('OS::Nova::Migration', one['migration_type'], None, one['project_id'], False,
                 {key: one[key] for key in fields})


def image(services, one):
    one = services.glance('GET', '/images/' + one)
    return thing('OS::Glance::Image', one['name'] or one['id'], None, one['owner'], one['visibility'] in ('public',
            'community'),
                 {key: value for key, value in one.items() if key not in services.base})


def definition(services, one):
    one = services.glance('GET', '/metadefs/namespaces/' + requests.utils.quote(one))
    return thing('OS::Glance::Metadef', one['namespace'], None, one['owner'], one['visibility'] == 'public', {})


def contents(one):
    """Returns a namespace without the fields that only the service writes, and without orders.

    A property that was made alone has its name inside, too."""
    if isinstance(one, dict):
        one = {key: contents(value) for key, value in one.items()
               if key not in ('created_at', 'updated_at', 'self', 'schema') and value not in ([], {})}
        for name, property in one.get('properties', {}).items():
            if property.get('name') == name:
                del property['name']
        return one
    if isinstance(one, list) and one and isinstance(one[0], dict):
        return sorted(map(contents, one), key=lambda has: has['name'])
    return one


def volume(services, one):
    one = services.cinder('GET', '/volumes/' + one)['volume']
    return thing('OS::Cinder::Volume', one['name'] or one['id'], one['description'],
            one['os-vol-tenant-attr:tenant_id'], False,
                 one['metadata'])


def share(services, one):
    one = services.manila('GET', '/shares/' + one)['share']
    return thing('OS::Manila::Share', one['name'] or one['id'], one['description'], one['project_id'], one['is_public'],
                 one['metadata'])


def share_network(services, one):
    one = services.manila('GET', '/share-networks/' + one)['share_network']
    return thing('OS::Manila::ShareNetwork', one['name'] or one['id'], one['description'], one['project_id'], False, {})


def share_network_subnet(services, one):
    network = real_nova.sql("select share_network_id from manila.share_network_subnets where id = '%s'" % one)[0][0]
    project = services.manila('GET', '/share-networks/' + network)['share_network']['project_id']
    one = services.manila('GET', '/share-networks/%s/subnets/%s' % (network, one))['share_network_subnet']
    fields = ('availability_zone', 'neutron_net_id', 'neutron_subnet_id', 'network_type', 'segmentation_id', 'cidr',
              'ip_version', 'gateway', 'mtu')
    return thing('OS::Manila::ShareNetworkSubnet', one['cidr'] or one['id'], None, project, False,
                 dict({key: one[key] for key in fields}, share_network=network))


def of_share(services, one, query, path, rows):
    """Returns a row of a list of a share, and the share."""
    share = services.manila('GET', '/shares/' + real_nova.sql(query % one)[0][0])['share']
    return [has for has in services.manila('GET', path % share['id'])[rows] if has['id'] == one][0], share


def share_access_rule(services, one):
    one, share = of_share(services, one, "select share_id from manila.share_access_map where id = '%s'",
                          '/share-access-rules?share_id=%s', 'access_list')
    return thing('OS::Manila::ShareAccessRule', one['access_to'], None, share['project_id'], False,
                 dict(one['metadata'], share=share['id'], access_type=one['access_type'],
                      access_level=one['access_level'], state=one['state']))


def share_export_location(services, one):
    one, share = of_share(services, one, "select i.share_id from manila.share_instances i join "
                          "manila.share_instance_export_locations l on l.share_instance_id = i.id where l.uuid = '%s'",
                          '/shares/%s/export_locations', 'export_locations')
    return thing('OS::Manila::ShareExportLocation', one['path'], None,
                 services.project if one['is_admin_only'] else share['project_id'], False,
                 {'share': share['id'], 'path': one['path'], 'preferred': one['preferred'],
                  'is_admin_only': one['is_admin_only']})


def provider(services, one, hosts):
    """Returns a resource provider as Placement has it, with its hypervisor."""
    path = '/resource_providers/' + one
    own = services.placement('GET', path)
    names = {'total': 'total', 'reserved': 'reserved', 'min_unit': 'minUnit', 'max_unit': 'maxUnit',
            'step_size': 'stepSize',
             'allocation_ratio': 'allocationRatio'}
    inventories = services.placement('GET', path + '/inventories')['inventories']
    return {'name': own['name'], 'parent': own['parent_provider_uuid'],
            'traits': sorted(services.placement('GET', path + '/traits')['traits']),
            'aggregates': sorted(services.placement('GET', path + '/aggregates')['aggregates']),
            'inventories': {name: {names[key]: value for key, value in has.items()} for name,
                    has in inventories.items()},
            'host': one if one in hosts else None}


def allocations(services):
    """Returns what servers and migrations have of resource providers, as Placement says: (user, project, {provider: {class: amount}})."""
    found = {}
    for one in ids('servers') | ids('migrations'):
        has = services.placement('GET', '/allocations/' + one)
        if has['allocations']:
            found[one] = (has['user_id'], has['project_id'],
                          {provider: of['resources'] for provider, of in has['allocations'].items()})
    return found


# How the database of each service lists a kind, and how its API shows one as a resource: neither has pages.
KINDS = {
    'projects': ('select id from keystone.project where is_domain = 0', project),
    'aggregates': ('select uuid from nova_api.aggregates', aggregate),
    'volume_types': ('select id from cinder.volume_types where deleted = 0', volume_type),
    'volume_snapshots': ('select id from cinder.snapshots where deleted = 0', volume_snapshot),
    'share_snapshots': ("select id from manila.share_snapshots where deleted = 'False'", share_snapshot),
    'flavors': ('select flavorid from nova_api.flavors', flavor),
    'hypervisors': ('select uuid from nova.compute_nodes where deleted = 0', hypervisor),
    'servers': ('select uuid from nova.instances where deleted = 0 union '
                'select uuid from nova_cell0.instances where deleted = 0', server),
    'migrations': ("select uuid from nova.migrations where deleted = 0 and status not in "
                   "('completed', 'confirmed', 'reverted', 'cancelled', 'failed', 'done')", migration),
    'images': ('select id from glance.images where deleted = 0', image),
    'definitions': ('select namespace from glance.metadef_namespaces', definition),
    'volumes': ('select id from cinder.volumes where deleted = 0', volume),
    'shares': ("select id from manila.shares where deleted = 'False'", share),
    'share_networks': ("select id from manila.share_networks where deleted = 'False'", share_network),
    'share_network_subnets': ("select id from manila.share_network_subnets where deleted = 'False'",
                              share_network_subnet),
    'share_access_rules': ("select id from manila.share_access_map where deleted = 'False'", share_access_rule),
    'share_export_locations': ('select uuid from manila.share_instance_export_locations where deleted = 0',
                               share_export_location),
}


def ids(kind):
    return {row[0] for row in real_nova.sql(KINDS[kind][0])}


def real(services, kinds):
    """Returns what the services have, as resources, by kind and id."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asked = {kind: {one: pool.submit(KINDS[kind][1], services, one) for one in ids(kind)} for kind in kinds}
        return {kind: {one: answer.result() for one, answer in things.items()} for kind, things in asked.items()}


def provider_ids():
    return {row[0] for row in real_nova.sql('select uuid from placement.resource_providers')}


class Change:
    """Changes things in the services at random."""

    def __init__(self, services, rng):
        self.services, self.random, self.count = services, rng, int(time.time()) % 1000000  # a folder can be used again
        self.projects = [services, services.other()]
        self.deleted = {}  # kind: ids
        self.own, self.left = [], set()  # resource providers
        self.default_type = services.cinder('GET', '/types/default')['volume_type']['id']
        self.image = None

    def label(self):
        self.count += 1
        return '%s %d' % (self.random.choice(['web', 'größer', 'db "x"', "O'Neill", '日本', 'a\\b']), self.count)

    def metadata(self, empty=True):
        values = ['gold', '1', 'true', 'x' * 255, 'ü & <b>', '0.10', ' ']
        return {key: self.random.choice(values + [''] * empty) for key in self.random.sample(
            ['role', 'tier', 'Owner', 'a:b', 'a.b', 'a-b', 'with space'], self.random.randrange(4))}

    # Flavors

    def new_flavor(self):
        made = self.services.nova('POST', '/flavors', {'flavor': {
            'name': 'f' + self.label(), 'id': self.random.choice([None, 'own.%d a' % self.count, str(self.count)]),
            'ram': self.random.choice([64, 2048]), 'vcpus': 1, 'disk': self.random.randrange(2),
            'OS-FLV-EXT-DATA:ephemeral': self.random.randrange(2), 'swap': self.random.choice([0, 512]),
            'os-flavor-access:is_public': self.random.random() < 0.6,
            'description': self.random.choice([None, 'for tests', 'd' * 1000])}})['flavor']
        self.specify(made['id'])

    def specify(self, flavor):
        specs = self.random.sample(['hw:cpu_policy=dedicated', 'hw:numa_nodes=2', 'quota:cpu_shares=100',
                'own=' + 'x' * 255,
                                    'resources:VCPU=1', 'trait:HW_CPU_X86_AVX2=required', 'hide_hypervisor_id=true'], 2)
        self.services.nova('POST', '/flavors/%s/os-extra_specs' % flavor,
                {'extra_specs': dict(one.split('=') for one in specs)})

    def change_flavor(self, flavor):
        specs = self.services.nova('GET', '/flavors/%s/os-extra_specs' % flavor)['extra_specs']
        if specs and self.random.random() < 0.5:
            self.services.nova('DELETE', '/flavors/%s/os-extra_specs/%s' % (flavor, self.random.choice(sorted(specs))))
        elif self.random.random() < 0.5:
            self.services.nova('PUT', '/flavors/' + flavor, {'flavor': {'description': self.random.choice([None,
                    self.label()])}})
        else:
            self.specify(flavor)

    def delete_flavor(self, flavor):
        self.services.nova('DELETE', '/flavors/' + flavor)

    # Servers

    def new_server(self):
        description = {'description': self.random.choice(['', self.label(), 'd' * 255])}
        self.random.choice(self.projects).nova('POST', '/servers', {'server': dict(description, **{
            'name': self.label(), 'imageRef': self.image, 'flavorRef': self.small, 'networks': 'none',
                    'metadata': self.metadata()})})

    def change_server(self, server):
        path = '/servers/' + server
        status = self.services.nova('GET', path)['server']['status']
        if status in ('ACTIVE', 'VERIFY_RESIZE') and self.random.random() < 0.5:
            self.move_server(path, status)
        elif status != 'ACTIVE' or self.random.random() < 0.4:
            self.services.nova('PUT', path, {'server': {'name': self.label(), 'description': self.random.choice([None,
                    'new'])}})
        else:
            self.services.nova('PUT', path + '/metadata', {'metadata': self.metadata()})

    def move_server(self, path, status):
        move = {'resize': {'flavorRef': self.large}} if self.random.random() < 0.5 else {'migrate': None}
        if status == 'VERIFY_RESIZE':
            move = {self.random.choice(['confirmResize', 'revertResize']): None}
        self.services.nova('POST', path + '/action', move)

    def delete_server(self, server):
        self.services.nova('DELETE', '/servers/' + server)

    # Images

    def new_image(self):
        more = self.random.sample([('os_distro', 'debian'), ('hw_disk_bus', 'virtio'), ('empty', ''), ('long', LONG),
                ('at_limit', 'ö' * 1023),
                                   ('hw:x', '1'), ('os_hidden', True), ('min_disk', 3), ('tags', ['a', 'b']),
                                           ('protected', False)], 4)
        body = dict(more, name='image ' + self.label(), disk_format='raw', container_format='bare',
                    visibility=self.random.choice(['public', 'private', 'community', 'shared']),
                            owner=self.random.choice(self.projects).project)
        if self.random.random() < 0.2:
            del body['name']
        self.services.glance('POST', '/images', body)

    def change_image(self, image):
        has = self.services.glance('GET', '/images/' + image)
        changes = [{'op': 'replace', 'path': '/name', 'value': self.label()},
                   {'op': 'add', 'path': '/os_version', 'value': text(self.count)},
                   {'op': 'replace', 'path': '/visibility', 'value': self.random.choice(['public', 'private',
                           'community', 'shared'])},
                   {'op': 'replace', 'path': '/os_hidden', 'value': not has['os_hidden']},
                   {'op': 'add', 'path': '/tags', 'value': [self.label()]},
                   {'op': 'replace', 'path': '/min_ram', 'value': self.random.randrange(100)}]
        changes += [{'op': 'remove', 'path': '/os_distro'}] * ('os_distro' in has)
        self.services.glance('PATCH', '/images/' + image, self.random.sample(changes, 2))

    def delete_image(self, image):
        self.services.glance('DELETE', '/images/' + image)

    # Definitions

    def new_definition(self):
        name = 'Own::%d' % self.count
        self.count += 1
        self.services.glance('POST', '/metadefs/namespaces', {
            'namespace': name, 'display_name': self.label(), 'visibility': self.random.choice(['public', 'private']),
            'protected': self.random.random() < 0.3, 'owner': self.random.choice(self.projects).project,
            'resource_type_associations': [{'name': 'OS::Nova::Flavor', 'prefix': 'own:'}],
            'properties': {'tier': {'title': 'Tier', 'type': 'string', 'enum': ['a', 'b'], 'default': 'a'}}})
        self.change_definition(name)

    def change_definition(self, name):
        path = '/metadefs/namespaces/' + requests.utils.quote(name)
        self.count += 1
        kind = self.random.choice(['property', 'object', 'tag', 'namespace', 'less'])
        if kind == 'property':
            self.services.glance('POST', path + '/properties', {
                'name': 'p%d' % self.count, 'title': self.label(), 'type': 'integer', 'minimum': 0, 'maximum': 9,
                'operators': ['<in>']})
        elif kind == 'object':
            self.services.glance('POST', path + '/objects', {
                'name': 'o%d' % self.count, 'description': self.label(), 'required': ['x'], 'properties': {
                    'x': {'title': 'X', 'type': 'array', 'items': {'type': 'string', 'enum': ['a', 'b']}}}})
        elif kind == 'tag':
            self.services.glance('POST', path + '/tags/t%d' % self.count)
        elif kind == 'namespace':
            has = self.services.glance('GET', path)
            self.services.glance('PUT', path, dict(
                {key: has[key] for key in ('namespace', 'display_name', 'visibility', 'protected', 'owner') if key in has},
                description=self.label()))
        elif not self.services.glance('GET', path)['protected']:
            self.services.glance('DELETE', path + '/' + self.random.choice(['properties', 'tags', 'objects']))

    def delete_definition(self, name):
        path = '/metadefs/namespaces/' + requests.utils.quote(name)
        has = self.services.glance('GET', path)
        if has['protected']:
            self.services.glance('PUT', path, {'namespace': name, 'protected': False, 'visibility': has['visibility'],
                                               'owner': has['owner']})
        self.services.glance('DELETE', path)

    # Volumes

    def new_volume(self):
        self.random.choice(self.projects).cinder('POST', '/volumes', {'volume': {
            'size': 1, 'name': self.random.choice([None, self.label()]), 'description': self.random.choice([None,
                    'v' * 255, self.label()]),
            'metadata': self.metadata()}})

    def change_volume(self, volume):
        if self.random.random() < 0.5:
            self.services.cinder('PUT', '/volumes/' + volume, {'volume': {'name': self.label(),
                    'description': self.random.choice([None, 'n'])}})
        else:
            self.services.cinder('PUT', '/volumes/%s/metadata' % volume, {'metadata': self.metadata()})

    def delete_volume(self, volume):
        self.services.cinder('POST', '/volumes/%s/action' % volume, {'os-reset_status': {'status': 'error'}})
        self.services.cinder('DELETE', '/volumes/' + volume)

    # Shares

    def new_share(self):
        self.random.choice(self.projects).manila('POST', '/shares', {'share': {
            'share_proto': 'NFS', 'size': 1, 'name': self.random.choice([None, self.label()]), 'share_type': 'default',
            'is_public': self.random.random() < 0.3, 'description': self.random.choice([None, self.label()]),
            'metadata': self.metadata(empty=False)}})

    def change_share(self, share):
        if self.random.random() < 0.5:
            self.services.manila('PUT', '/shares/' + share, {'share': {
                'display_name': self.label(), 'display_description': self.random.choice(['', 'changed'])}})
        else:
            self.services.manila('PUT', '/shares/%s/metadata' % share, {'metadata': self.metadata(empty=False)})

    def delete_share(self, share):
        self.services.manila('POST', '/shares/%s/action' % share, {'force_delete': None})

    # Projects

    def new_project(self):
        self.services.keystone('POST', '/projects', {'project': {
            'name': self.label(), 'description': self.random.choice(['', self.label()]),
            'enabled': self.random.random() < 0.5}})

    def change_project(self, project):
        name = self.services.keystone('GET', '/projects/' + project)['project']['name']
        if name not in ('admin', 'blue', 'service'):  # without the last, no service accepts a token
            self.services.keystone('PATCH', '/projects/' + project, {'project': {
                'description': self.label(), 'enabled': self.random.random() < 0.5}})

    # Aggregates

    def new_aggregate(self):
        made = self.services.nova('POST', '/os-aggregates', {'aggregate': {'name': self.label()}})['aggregate']
        self.change_aggregate(made['uuid'])

    def change_aggregate(self, aggregate):
        has = [one for one in self.services.nova('GET', '/os-aggregates')['aggregates'] if one['uuid'] == aggregate][0]
        path = '/os-aggregates/%d/action' % has['id']
        host = self.random.choice([row[0] for row in real_nova.sql('select host from nova.compute_nodes where deleted = 0')])
        if self.random.random() < 0.5:
            self.services.nova('POST', path, {'set_metadata': {'metadata': {
                'ssd': self.random.choice(['true', 'false']), 'rack': self.random.choice(['r1', None])}}})
        else:
            self.services.nova('POST', path, {
                'remove_host' if host in has['hosts'] else 'add_host': {'host': host}})

    def delete_aggregate(self, aggregate):
        has = [one for one in self.services.nova('GET', '/os-aggregates')['aggregates'] if one['uuid'] == aggregate][0]
        for host in has['hosts']:
            self.services.nova('POST', '/os-aggregates/%d/action' % has['id'], {'remove_host': {'host': host}})
        self.services.nova('DELETE', '/os-aggregates/%d' % has['id'])

    # Types of volumes

    def new_volume_type(self):
        self.services.cinder('POST', '/types', {'volume_type': {
            'name': self.label(), 'description': self.random.choice([None, 'fast']),
            'os-volume-type-access:is_public': self.random.random() < 0.5, 'extra_specs': {'volume_backend_name': 'lvm'}}})

    def change_volume_type(self, type):
        self.services.cinder('POST', '/types/%s/extra_specs' % type, {'extra_specs': {
            self.random.choice(['a', 'b:c']): self.label()}})

    def delete_volume_type(self, type):
        self.services.cinder('DELETE', '/types/' + type)

    # Snapshots

    def new_volume_snapshot(self):
        volume = self.random.choice(sorted(ids('volumes')))
        real_nova.sql("update cinder.volumes set host = 'none@none#none' where id = '%s'" % volume, commit=True)  # of no backend
        self.services.cinder('POST', '/volumes/%s/action' % volume, {'os-reset_status': {'status': 'available'}})
        self.services.cinder('POST', '/snapshots', {'snapshot': {
            'volume_id': volume, 'name': self.label(), 'description': self.random.choice([None, 'daily']),
            'metadata': self.metadata()}})

    def change_volume_snapshot(self, snapshot):
        self.services.cinder('PUT', '/snapshots/%s/metadata' % snapshot, {'metadata': self.metadata()})

    def available_share(self):
        """Returns a share of no backend that looks as if one had it."""
        share = self.random.choice(sorted(ids('shares')))
        real_nova.sql("update manila.share_instances set host = 'none@none#none' where share_id = '%s'" % share, commit=True)
        self.services.manila('POST', '/shares/%s/action' % share, {'reset_status': {'status': 'available'}})
        return share

    def new_share_network(self):
        self.random.choice(self.projects).manila('POST', '/share-networks', {'share_network': {
            'name': self.random.choice([None, self.label()]), 'description': self.random.choice([None, 'storage'])}})

    def change_share_network(self, network):
        self.services.manila('PUT', '/share-networks/' + network, {'share_network': {'name': self.label()}})

    def delete_share_network(self, network):
        for subnet in self.services.manila('GET', '/share-networks/%s/subnets' % network)['share_network_subnets']:
            self.delete_share_network_subnet(subnet['id'])  # a network with several cannot be deleted
            self.deleted.setdefault('share_network_subnet', []).append(subnet['id'])
        self.services.manila('DELETE', '/share-networks/' + network)

    def new_share_network_subnet(self):
        network = self.random.choice(sorted(ids('share_networks')))
        self.services.manila('POST', '/share-networks/%s/subnets' % network, {'share-network-subnet': {
            'neutron_net_id': str(uuid.UUID(int=self.random.getrandbits(128), version=4)),
            'neutron_subnet_id': str(uuid.UUID(int=self.random.getrandbits(128), version=4))}})

    def change_share_network_subnet(self, subnet):
        """Gives a subnet addresses, as a share server does."""
        self.count += 1
        real_nova.sql("update manila.share_network_subnets set cidr = '10.%d.0.0/24', gateway = '10.%d.0.1', mtu = 1500, "
                      "network_type = 'vlan', segmentation_id = %d, ip_version = 4 where id = '%s'" % (
                          self.count % 256, self.count % 256, self.count % 4096, subnet), commit=True)

    def delete_share_network_subnet(self, subnet):
        network = real_nova.sql("select share_network_id from manila.share_network_subnets where id = '%s'" % subnet)[0][0]
        self.services.manila('DELETE', '/share-networks/%s/subnets/%s' % (network, subnet))

    def new_share_access_rule(self):
        self.count += 1
        self.services.manila('POST', '/shares/%s/action' % self.available_share(), {'allow_access': {
            'access_type': 'ip', 'access_to': '10.%d.%d.%d' % (self.count // 65536 % 256, self.count // 256 % 256, self.count % 256),
            'access_level': self.random.choice(['rw', 'ro']), 'metadata': self.metadata(empty=False)}})

    def change_share_access_rule(self, rule):
        self.services.manila('PUT', '/share-access-rules/%s/metadata' % rule, {'metadata': self.metadata(empty=False)})

    def new_share_export_location(self):
        self.count += 1
        real_nova.sql("insert into manila.share_instance_export_locations (created_at, deleted, path, share_instance_id, uuid, "
                      "is_admin_only) select now(), 0, '10.0.0.1:/%d', id, '%s', %d from manila.share_instances where "
                      "share_id = '%s' and deleted = 'False'" % (
                          self.count, uuid.UUID(int=self.random.getrandbits(128), version=4), self.random.randrange(2),
                          self.available_share()), commit=True)

    def change_share_export_location(self, location):
        real_nova.sql("update manila.share_instance_export_locations set path = concat(path, 'x') where uuid = '%s'" % location,
                      commit=True)

    def new_share_snapshot(self):
        share = self.available_share()
        self.services.manila('POST', '/snapshots', {'snapshot': {
            'share_id': share, 'name': self.label(), 'description': self.random.choice([None, 'daily']),
            'metadata': self.metadata(empty=False)}})

    def change_share_snapshot(self, snapshot):
        self.services.manila('PUT', '/snapshots/%s/metadata' % snapshot, {'metadata': self.metadata(empty=False)})

    # Computes

    def new_reservation(self):
        """Makes every compute a host of Blazar, which it must be before it has servers."""
        self.services.nova('POST', '/os-aggregates', {'aggregate': {'name': 'freepool'}})
        for name, in real_nova.sql('select hypervisor_hostname from nova.compute_nodes where deleted = 0'):
            self.services.blazar('POST', '/os-hosts', {'name': name, 'gpu': self.label(), 'tier': 'gold'})

    def change_reservation(self, host):
        """Changes a capability of a host of Blazar, and makes one private."""
        one = real_nova.sql("select id from blazar.computehosts where hypervisor_hostname = '%s'" % host)[0][0]
        name = self.random.choice(['gpu', 'ssd', 'own %d' % self.count])
        self.services.blazar('PUT', '/os-hosts/' + one, {name: self.label()})
        self.services.blazar('PATCH', '/os-hosts/properties/' + self.random.choice([name, 'tier']), {'private': True})

    def change_hypervisor(self, hypervisor):
        has = self.services.nova('GET', '/os-hypervisors/' + hypervisor)['hypervisor']
        if OPTIONS.blazar and self.random.random() < 0.7:
            return self.change_reservation(has['hypervisor_hostname'])
        status = 'enabled' if has['status'] == 'disabled' else 'disabled'
        self.services.nova('PUT', '/os-services/' + has['service']['id'], {'status': status})
        traits = '/resource_providers/%s/traits' % hypervisor
        wait('%s has the trait of a service that is %s' % (hypervisor, status), lambda: (
            'COMPUTE_STATUS_DISABLED' in self.services.placement('GET', traits)['traits']) == (status == 'disabled'))

    # Placement

    def new_provider(self):
        parent = self.random.choice(sorted(ids('hypervisors')))
        made = {'name': 'p' + self.label(), 'uuid': str(uuid.UUID(int=self.random.getrandbits(128), version=4))}
        if self.random.random() < 0.8:
            made['parent_provider_uuid'] = parent
        self.services.placement('POST', '/resource_providers', made)
        self.own.append(made['uuid'])
        self.change_provider(made['uuid'])

    def change_provider(self, one):
        path = '/resource_providers/' + one
        generation = self.services.placement('GET', path)['generation']
        kind = self.random.choice(['traits', 'aggregates', 'inventories', 'name'])
        if kind == 'name' and one in self.own:
            self.services.placement('PUT', path, {'name': 'p' + self.label()})
        elif kind == 'aggregates' or one not in self.own:
            some = [str(uuid.UUID(int=number, version=4)) for number in self.random.sample(range(9), 2)]
            self.services.placement('PUT', path + '/aggregates', {'aggregates': some,
                    'resource_provider_generation': generation})
        elif kind == 'traits':
            name = 'CUSTOM_T%d' % self.random.randrange(5)
            self.services.placement('PUT', '/traits/' + name)
            self.services.placement('PUT', path + '/traits', {
                'traits': [name, 'STORAGE_DISK_SSD'], 'resource_provider_generation': generation})
        else:
            name = 'CUSTOM_C%d' % self.random.randrange(5)
            self.services.placement('PUT', '/resource_classes/' + name)
            has = {'total': self.random.randrange(1, 99), 'allocation_ratio': self.random.choice([1.0, 0.1, 16.3]),
                    'max_unit': 7}
            self.services.placement('PUT', path + '/inventories', {
                'inventories': {name: has, 'SRIOV_NET_VF': {'total': 4}}, 'resource_provider_generation': generation})

    def delete_provider(self):
        one = self.own.pop(0)
        parent = self.services.placement('GET', '/resource_providers/' + one)['parent_provider_uuid']
        self.services.placement('DELETE', '/resource_providers/' + one)
        if not parent:
            self.left.add(one)  # it belongs to no host, and stays

    def some_providers(self, count):
        for _ in range(count):
            if self.random.random() < 0.2:
                self.new_provider()
            elif len(self.own) > 8:
                self.delete_provider()
            else:
                self.change_provider(self.random.choice(sorted(provider_ids())))

    def prepare(self):
        """Makes what the others need."""
        for one in self.projects:
            one.unlimited()
        if OPTIONS.blazar and not real_nova.sql('select id from blazar.computehosts'):
            self.new_reservation()
        self.image = self.services.glance('POST', '/images', {'name': 'boot', 'disk_format': 'raw',
                'container_format': 'bare',
                                                              'protected': True, 'visibility': 'public'})['id']
        requests.put(GLANCE + '/images/%s/file' % self.image, data=b'0' * 1024,
                     headers={'X-Auth-Token': self.services.token,
                              'Content-Type': 'application/octet-stream'}).raise_for_status()
        self.small = self.services.nova('POST', '/flavors', {'flavor': {'name': 'boot' + self.label(), 'ram': 64,
                'vcpus': 1, 'disk': 1}})['flavor']['id']
        self.large = self.services.nova('POST', '/flavors', {'flavor': {'name': 'large' + self.label(), 'ram': 128,
                'vcpus': 1, 'disk': 1}})['flavor']['id']
        if not self.services.manila('GET', '/types')['share_types']:
            self.services.manila('POST', '/types', {'share_type': {
                'name': 'default', 'share_type_access:is_public': True,
                        'extra_specs': {'driver_handles_share_servers': 'False', 'snapshot_support': 'True'}}})

    def run(self, kind, action=None):
        """Changes one thing of a kind."""
        action = action or self.random.choice(['new', 'change', 'change', 'change', 'delete'])
        if kind == 'hypervisor' or action == 'delete' and kind in (
                'project', 'volume_snapshot', 'share_snapshot', 'share_access_rule', 'share_export_location'):
            action = 'change'
        if action == 'new':
            return getattr(self, 'new_' + kind)()
        there = sorted(ids(kind + 's') - {self.image, self.default_type, self.small, self.large})
        if not there or action == 'delete' and len(self.deleted.get(kind, [])) >= len(there) // 6:
            action = 'change'
        chosen = self.random.choice(there)
        if action == 'delete' and (chosen,) in real_nova.sql(
                "select volume_id from cinder.snapshots union "
                "select share_id from manila.share_instances where host = 'none@none#none'"):
            action = 'change'  # it has a snapshot, or a backend that does not exist
        getattr(self, action + '_' + kind)(chosen)
        if action == 'delete':
            self.deleted.setdefault(kind, []).append(chosen)

    def fill(self):
        for kind, count in [('flavor', 24), ('image', 24), ('volume', 24), ('share', 24), ('server', 14),
                            ('project', 8), ('aggregate', 8), ('volume_type', 8), ('volume_snapshot', 24),
                            ('share_snapshot', 24), ('share_network', 24), ('share_network_subnet', 8),
                            ('share_access_rule', 24), ('share_export_location', 24), ('definition', 8)]:
            for _ in range(count):
                self.run(kind, 'new')
        for _ in range(8):
            self.new_provider()
        self.settle()
        for one in sorted(ids('servers'))[:5]:
            if self.services.nova('GET', '/servers/' + one)['server']['status'] == 'ACTIVE':
                self.move_server('/servers/' + one, 'ACTIVE')

    def some(self, count):
        for _ in range(count):
            self.run(self.random.choice(['flavor', 'flavor', 'image', 'image', 'volume', 'volume', 'share', 'share',
                    'server', 'hypervisor', 'project', 'aggregate', 'volume_type', 'volume_snapshot',
                    'share_snapshot', 'share_network', 'share_network_subnet', 'share_access_rule',
                    'share_export_location', 'definition', 'definition']))
        self.some_providers(count // 4)
        self.settle()

    def settle(self):
        """Waits until the services have done what was asked."""
        self.services.made.settle("'active','resized'")
        wait('deletions', self.are_deleted)

    def are_deleted(self):
        """Repeats failed deletions of servers: a compute needs a minute to miss a provider that was deleted."""
        failed = real_nova.sql("select uuid from nova.instances where deleted = 0 and vm_state = 'error' and task_state is null")
        for server in {row[0] for row in failed} & set(self.deleted.get('server', [])):
            self.delete_server(server)
        return not any(ids(kind) & set(self.deleted.get(kind[:-1], [])) for kind in KINDS)


def compare_things(when, cadastre, notes, deleted, kinds=KINDS):
    """Compares things with their resources. Notes are by kind and id; deleted things are gone."""
    want, found = real(cadastre.services, kinds), cadastre.resources()
    before = len(wrong)

    def differ(*words):
        wrong.append(words)
        say('DIFFERS', when, *(str(word)[:500] for word in words))

    for kind, things in want.items():
        there = found.get(kind, {})
        for one in set(things) | set(there):
            node = there.get(one)
            if node is None:
                differ(kind, one, 'has no resource')
                continue
            if one not in things:
                if kind != 'migrations' and one not in deleted.get(kind[:-1], []) or not node['origin']['goneAt']:
                    differ(kind, one, 'does not exist, and is not gone', node)
            else:
                got = dict(node, type=node['type']['name'],
                           capabilities={one['name']: one['value'] for one in node['capabilities']},
                        metadata={i['key']: i['value'] for i in node['metadata'] if not i['userModifiable']})
                for field, value in things[one].items():
                    if got[field] != value:
                        differ(kind, one, field, 'is', got[field], 'but there', value)
                if node['origin']['goneAt']:
                    differ(kind, one, 'exists, and is gone')
            note = notes.get((kind, one))
            has = {i['key']: i['value'] for i in node['metadata']}.get('note')
            if note != has or (note is not None) != ('seen' in node['tags']):
                differ(kind, one, 'note', has, 'but', note)
    gone = sum(node['origin']['goneAt'] is not None for things in found.values() for node in things.values())
    say('%s: %s, %d gone, %d differ' % (when, ', '.join('%d %s' % (len(things), kind) for kind,
            things in want.items()), gone, len(wrong) - before))


def compare(when, cadastre, notes, deleted, left=()):
    """Compares everything with what the server has."""
    compare_things(when, cadastre, notes, deleted)
    for one in ids('definitions'):
        there = contents(cadastre.services.glance('GET', '/metadefs/namespaces/' + requests.utils.quote(one)))
        expect('%s: definitions %s' % (when, one), cadastre.contents(one), there)
    if OPTIONS.blazar:
        private = {name: bool(private) for name, private in real_nova.sql(
            "select property_name, private from blazar.resource_properties where private or property_name != 'ssd'")}
        there = {name: is_private for name, is_private in cadastre.private().items() if name in private}
        expect('%s: private capabilities' % when, there, private)
    there, hosts = cadastre.providers(), ids('hypervisors')
    for one in provider_ids() | set(there):
        if one in provider_ids():
            expect('%s: provider %s' % (when, one), there.get(one), provider(cadastre.services, one, hosts))
        elif one not in left:
            expect('%s: provider %s' % (when, one), there[one], None)
    expect('%s: allocations' % when, cadastre.allocations(), allocations(cadastre.services))


def annotate(cadastre, rng):
    """Writes a note on a third of the resources."""
    notes = {}
    for kind, things in cadastre.resources().items():
        for one, node in sorted(things.items()):
            if rng.random() < 0.33:
                notes[kind, one] = 'note %d' % len(notes)
                cadastre.note(node['uuid'], notes[kind, one])
    return notes


def expect(what, got, want):
    if got != want:
        wrong.append((what, got, want))
        say('DIFFERS', what, got, 'but', want)


def interrupt(cadastre, change, notes, rng, kills):
    """Ends syncs at random moments, and makes the next ones complete what is missing."""
    for number in range(kills):
        change.some(8)
        how = rng.choice([signal.SIGKILL, signal.SIGTERM])
        running = cadastre.begin()
        moment = rng.uniform(0, cadastre.took)
        time.sleep(moment)
        running.send_signal(how)
        running.communicate()
        say('ended by %s after %.2f s: status %d' % (how.name, moment, running.returncode))
        cadastre.sync_again()
        cadastre.sync(*ALLOW_DELETES)
        compare('interruption %d' % (number + 1), cadastre, notes, change.deleted, change.left)


def disconnect(cadastre, change, notes):
    """Syncs while Nova cannot reach the cell of the computes, whose servers its lists then lack."""
    move = ("update nova_api.cell_mappings set database_connection = replace(database_connection, ':%d/nova', ':%d/nova') "
            "where name = 'cell1'")
    here, nowhere = real_nova.PORT + 6, 1
    try:
        real_nova.sql(move % (here, nowhere), commit=True)
        real_nova.cloud('stop', 'nova-api')
        real_nova.cloud('start', 'nova-api')
        for _ in range(3):
            status, output, errors = cadastre.end('--kinds', 'servers,migrations,hypervisors')
            rows = {row['kind']: row for row in json.loads(output)}
            expect('absent without a cell', [status, *(rows[kind][field] for kind in rows for field in ('absent',
                    'gone'))], [1, 0, 0, 0, 0, 0, 0])
            # Nova answers 500 to a page after a server of such a cell.
            expect('unknown rows without a cell', rows['servers']['unknown'] > 0 or 'list servers' in errors, True)
    finally:
        real_nova.sql(move % (nowhere, here), commit=True)
        real_nova.cloud('stop', 'nova-api')
        real_nova.cloud('start', 'nova-api')
    cadastre.sync()
    compare('a cell that was down', cadastre, notes, change.deleted, change.left)


def follow(cadastre, change, notes):
    """Follows servers, of which Nova lists only those that changed since a time. One is gone without allocations."""
    for _ in range(12):
        change.run('server', 'new')  # they need a second page
    change.settle()
    cadastre.sync()

    def completed(kind):
        return [one['completedAt'] for one in cadastre.query('{ syncs { kind completedAt } }')['syncs'] if one['kind'] == kind]

    running = cadastre.begin('--follow', '--kinds', 'servers,migrations,allocations', '--interval', 'servers=1s',
                             '--interval', 'migrations=1s', '--interval', 'allocations=1s')
    for number in range(8):
        for _ in range(4):
            change.run('server')
        change.settle()
        for kind in ['servers', 'servers', 'migrations', 'allocations', 'allocations', 'servers', 'servers']:
            last = completed(kind)
            wait('a pass over ' + kind, lambda: completed(kind) != last)
        compare_things('changes of servers %d' % (number + 1), cadastre, notes, change.deleted, ['servers'])
    running.terminate()
    running.communicate()
    with open(os.path.join(OPTIONS.folder, 'log', 'nova-api.log')) as log:
        expect('passes over changes', any('changes-since' in line for line in log), True)


def disturb(cadastre, change, notes, rng, rounds):
    """Syncs through a proxy with faults while things and notes change, and then without faults."""
    proxy, straight = faults.Proxy(real_nova.PORT + 14, OPTIONS.seed), cadastre.environment
    for _ in range(rounds):
        proxy.share = rng.choice([0.02, 0.05, 0.1, 0.3])
        uuids = {(kind, one): node['uuid'] for kind, things in cadastre.resources().items() for one, node in things.items()}
        changing = threading.Thread(target=change.some, args=(8,))
        changing.start()
        cadastre.environment = dict(straight, OS_AUTH_URL=at(14, '/at%d/v3' % real_nova.PORT))
        for _ in range(3):
            running = cadastre.begin()
            for one in rng.sample(sorted(notes), len(notes) // 20):
                notes[one] += 'x'
                cadastre.note(uuids[one], notes[one])
            expect('panics', 'panic' in running.communicate()[1], False)
        changing.join()
        cadastre.environment = straight
        for _ in range(3):
            cadastre.sync(*ALLOW_DELETES)
        made_up = {kind[:-1]: change.deleted.get(kind[:-1], []) + list(proxy.phantoms) for kind in KINDS}
        compare('%d faults' % sum(proxy.faults.values()), cadastre, notes, made_up, change.left)
        after = cadastre.resources()
        expect('resources that remain', {one: after[one[0]].get(one[1], {}).get('uuid') for one in uuids}, uuids)
    say('faults: %s' % dict(proxy.faults))


def run(cadastre, change, rng):
    first = cadastre.sync()
    compare('first sync', cadastre, {}, change.deleted, change.left)
    for kind in KINDS:
        expect('created ' + kind, first[kind]['created'], len(ids(kind)))
    for kind, row in cadastre.sync().items():
        expect('second sync of ' + kind, [row['created'], row['updated'], row['absent']], [0, 0, 0])
    notes = annotate(cadastre, rng)
    change.some(OPTIONS.changes)
    cadastre.sync(*ALLOW_DELETES)  # a fifth of so few things is soon deleted
    cadastre.sync(*ALLOW_DELETES)
    compare('%d changes' % OPTIONS.changes, cadastre, notes, change.deleted, change.left)
    follow(cadastre, change, notes)
    disconnect(cadastre, change, notes)
    interrupt(cadastre, change, notes, rng, OPTIONS.kills)
    disturb(cadastre, change, notes, rng, OPTIONS.faults)


def main():
    say('seed %d' % OPTIONS.seed)
    rng = random.Random(OPTIONS.seed)
    made, cadastre = real_nova.Cloud(), None
    try:
        if OPTIONS.kept:
            made.api = real_nova.Api()
        else:
            made.start()
            real_nova.cloud('start', 'cinder', 'manila', *(['blazar-manager', 'blazar-api'] if OPTIONS.blazar else []))
        change = Change(Services(made, 'admin'), rng)
        change.prepare()
        change.fill()
        change.settle()
        cadastre = Cadastre(change.services)
        run(cadastre, change, rng)
    finally:
        if cadastre:
            cadastre.process.terminate()
            cadastre.process.wait()
        if not OPTIONS.keep:
            made.stop()
    say('%d differences' % len(wrong))
    return bool(wrong)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='./cadastre')
    parser.add_argument('--folder', required=True, help='a folder for all files, with at most 60 characters')
    parser.add_argument('--changes', type=int, default=100)
    parser.add_argument('--faults', type=int, default=3, help='rounds of three syncs through a proxy with faults')
    parser.add_argument('--kills', type=int, default=6)
    parser.add_argument('--seed', type=int, default=random.randrange(1 << 30))
    parser.add_argument('--blazar', help="a checkout of Blazar, which Debian lacks")
    parser.add_argument('--keep', action='store_true', help='leave the services running')
    parser.add_argument('--kept', action='store_true', help='use the services that --keep left')
    OPTIONS = parser.parse_args()
    OPTIONS.computes, OPTIONS.nice, OPTIONS.placement = 2, 0, real_nova.Reference()
    real_nova.OPTIONS = OPTIONS
    os.environ.update(PAGE='20', BLAZAR=OPTIONS.blazar or '')
    sys.exit(main())
