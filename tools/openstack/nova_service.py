"""Starts an unmodified service of Nova, and logs its calls of Placement with their times.

Usage: nova_service.py conductor|scheduler DIR ARGUMENTS...
       nova_service.py compute DIR ARGUMENTS...

Each call is a JSON object in a line of DIR/log/calls.jsonl. Computes are processes forked after the imports, which saves
memory. The parent starts a compute for each line "NUMBER" that it reads from its input, and ends with its input.
"""
import json
import os
import signal
import sys
import time

import nova.cmd.compute  # noqa: F401, the first import of Nova: it patches the standard library
import eventlet.hubs
from nova.scheduler import manager
from nova.scheduler.client import report


def log_calls(folder, service):
    """Logs calls of Placement, and the decisions of the scheduler."""
    file = open(os.path.join(folder, 'log', 'calls.jsonl'), 'a', buffering=1)

    def write(started, **line):
        line.update(at=round(started, 3), ms=round((time.time() - started) * 1000, 1), service=service)
        file.write(json.dumps(line) + '\n')

    def logged(method, call):
        def run(self, url, *arguments, **named):
            started = time.time()
            status = 'error'
            try:
                answer = call(self, url, *arguments, **named)
                status = answer.status_code
                return answer
            finally:
                write(started, method=method, path=url, version=named.get('version'), status=status)
        return run

    for method in ('get', 'post', 'put', 'delete'):
        setattr(report.SchedulerReportClient, method, logged(method.upper(), getattr(report.SchedulerReportClient, method)))
    select = manager.SchedulerManager.select_destinations

    def select_destinations(self, *arguments, **named):
        started = time.time()
        try:
            return select(self, *arguments, **named)
        finally:
            write(started, method='select_destinations', path='', version=None, status='')

    manager.SchedulerManager.select_destinations = select_destinations


def compute(folder, number, arguments):
    """Runs a compute in a new process."""
    pid = os.fork()
    if pid:
        with open(os.path.join(folder, 'run', 'compute-%s.child' % number), 'w') as file:
            file.write(str(pid))
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    eventlet.hubs.use_hub()  # the imports made one, whose epoll would wake every compute for the events of all
    state = os.path.join(folder, 'nova', 'compute%s' % number)
    os.makedirs(state, exist_ok=True)
    own = os.path.join(state, 'compute.conf')
    with open(own, 'w') as file:
        file.write('[DEFAULT]\nhost = fake%s\nstate_path = %s\n' % (number, state))
    log_calls(folder, 'compute%s' % number)
    log = os.path.join(folder, 'log', 'nova-compute-%s.log' % number)
    sys.argv = ['nova-compute'] + arguments + ['--config-file', own, '--log-file', log]
    nova.cmd.compute.main()
    os._exit(0)


def main():
    service, folder = sys.argv[1:3]
    if service != 'compute':
        log_calls(folder, service)
        sys.argv = ['nova-' + service] + sys.argv[3:]
        __import__('nova.cmd.' + service, fromlist=['main']).main()
        return
    arguments = sys.argv[3:]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # An unpatched read: a child must not inherit a running event loop.
    for line in open(0, 'rb', buffering=0):
        compute(folder, int(line), arguments)


main()
