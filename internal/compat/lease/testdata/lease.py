"""A model of the foreign tool, written from its documentation, for tests.

It has the races that follow from the documentation: it creates the file and then writes
into it, treats a malformed file as stale immediately, and checks before it breaks, renews
or releases, not atomically.
"""
import json
import os
import random
import sys
import time
import uuid
from datetime import datetime, timedelta, timezone


def now():
    """The wall clock plus the simulated time."""
    passed = 0.0
    if path := os.environ.get("LEASE_PASSED"):
        with open(path) as f:
            passed = float(f.read())
    return datetime.now(timezone.utc) + timedelta(seconds=passed)


def spell(t):
    return t.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


class Lease:
    def __init__(self, lock_path, owner, ttl_seconds=1800, grace_seconds=120):
        self.lock_path, self.owner = lock_path, owner
        self.ttl, self.grace = timedelta(seconds=ttl_seconds), timedelta(seconds=grace_seconds)
        self.token = str(uuid.uuid4())

    def acquire(self, timeout_seconds=30):
        deadline = time.monotonic() + timeout_seconds
        while True:
            if self._create():
                return True
            if self._is_stale():
                self._break()
                continue
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)

    def renew(self):
        payload = self._read()
        if payload is None or payload["token"] != self.token:
            return False
        payload["expires_at"], payload["last_renewed_at"] = spell(now() + self.ttl), spell(now())
        temp = f"{self.lock_path}.{self.token}.tmp"
        with open(temp, "w") as f:
            json.dump(payload, f)
        os.replace(temp, self.lock_path)
        return True

    def release(self):
        payload = self._read()
        if payload is None or payload["token"] != self.token:
            return False
        os.unlink(self.lock_path)
        return True

    def _create(self):
        try:
            fd = os.open(self.lock_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        begin = now()
        with os.fdopen(fd, "w") as f:
            json.dump({
                "owner": self.owner, "token": self.token, "pid": os.getpid(), "created_at": spell(begin),
                "expires_at": spell(begin + self.ttl), "last_renewed_at": spell(begin)}, f)
        return True

    def _read(self):
        try:
            with open(self.lock_path) as f:
                payload = json.load(f)
            parse(payload["expires_at"])
            return payload
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _is_stale(self):
        payload = self._read()
        if payload is None:
            return os.path.lexists(self.lock_path)
        return now() > parse(payload["expires_at"]) + self.grace

    def _break(self):
        try:
            os.unlink(self.lock_path)
        except FileNotFoundError:
            pass


def obey(path, owner, ttl, grace):
    """Runs the commands on standard input and answers each with a line."""
    lease = Lease(path, owner, ttl, grace)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "acquire":
            lease = Lease(path, owner, ttl, grace)
            answer = lease.acquire(float(rest[0]))
        elif word == "steal":  # like a breaker that judged an earlier file
            lease._break()
            lease = Lease(path, owner, ttl, grace)
            answer = lease._create()
        elif word == "create":  # without writing
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            answer = True
        else:
            answer = getattr(lease, word)()
        print("yes" if answer else "no", flush=True)


def contend(path, owner, ttl, grace):
    """Acquires the file repeatedly and logs what happens, until it is killed."""
    log = os.open(os.environ["LEASE_LOG"], os.O_WRONLY | os.O_APPEND)

    def note(event):
        os.write(log, f"{time.monotonic_ns()} foreign {owner} {event}\n".encode())

    draw = random.Random(owner)
    while True:
        lease = Lease(path, owner, ttl, grace)
        if not lease.acquire(60):
            continue
        note("enter")
        time.sleep(draw.random() * 0.003)
        note("renew")
        note("held" if lease.renew() else "lost")
        lease.release()
        time.sleep(draw.random() * 0.02)


if __name__ == "__main__":
    act = {"obey": obey, "contend": contend}[sys.argv[1]]
    act(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
