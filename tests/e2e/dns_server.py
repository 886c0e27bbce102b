#!/usr/bin/env python3
"""A nameserver for tests, on loopback, UDP and TCP on one port: well-behaved or not, as its zone says.

    dns_server.py [--bind ADDRESS] [--port N] [--log FILE] [--stdin] ZONE

ZONE is JSON, or the name of a file with it; SIGHUP reads the file again. The first line on standard output is the port
(a free one unless --port names it). Each question is then a line of JSON, on standard output or in --log FILE:
    {"name": ..., "type": "A", "transport": "udp", "id": 4711, "source_port": 40123, "answer": "NOERROR"}
The server ends on SIGTERM or SIGINT, and with --stdin also when its standard input ends.

The zone maps names (lower case; "*.x.test" is any name below x.test, "*" any name) to what is done. A name that is not
in it does not exist. Keys, all optional:
    "A", "AAAA"       lists of addresses
    "many"            so many addresses of each family, made up (10.x.x.x, 2001:db8::x)
    "CNAME"           a target, followed within the zone; loops go round once
    "ttl"             seconds, 60
    "soa"             [ttl, minimum] of the SOA in negative answers, [60, 60]; null: none
    "rcode"           "NXDOMAIN", "SERVFAIL", "REFUSED", "FORMERR", "NOTIMP"
    "silent"          true, or a list of types that get no answer
    "truncate"        UDP answers are empty and truncated; TCP ones are whole
    "oversized"       UDP answers of any size, not truncated
    "wrong_ids"       so many forged answers with other ids come first (address 192.0.2.66)
    "wrong_question"  a forged answer to another question comes first
    "empty_packet"    an empty datagram comes first
    "only_wrong"      and nothing after them
    "garbage"         the answer announces a record and ends
    "close_tcp"       TCP connections are closed without an answer
    "delay_ms"        before the answer: a number, or an object with one by type
    "then"            a list of such objects: what later questions of the same type get, in order; the last one stays
                      (rebinding: {"A": ["192.0.2.1"], "ttl": 0, "then": [{"A": ["127.0.0.1"], "ttl": 0}]})
"""

import argparse
import asyncio
import collections
import ipaddress
import json
import os
import signal
import socket
import struct
import sys

TYPES = {"A": 1, "CNAME": 5, "SOA": 6, "AAAA": 28}
TYPE_NAMES = {number: name for name, number in TYPES.items()}
RCODES = {"NOERROR": 0, "FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4, "REFUSED": 5}
UDP_BYTES_MAX = 512
ALIASES_MAX = 32
FORGED = {"A": "192.0.2.66", "AAAA": "2001:db8::66"}


class Question:
    def __init__(self, packet):
        self.id, self.flags, count = struct.unpack_from(">HHH", packet)
        if count != 1:
            raise ValueError("not one question")
        labels, at = [], 12
        while packet[at]:
            labels.append(packet[at + 1 : at + 1 + packet[at]].decode("latin-1"))
            at += 1 + packet[at]
        number, _ = struct.unpack_from(">HH", packet, at + 1)
        self.name = ".".join(labels).lower()
        self.type = TYPE_NAMES.get(number, str(number))
        self.section = packet[12 : at + 5]


def pack_name(name):
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".") if label) + b"\0"


def pack_record(owner, kind, ttl, data):
    return pack_name(owner) + struct.pack(">HHIH", TYPES[kind], 1, ttl, len(data)) + data


def pack_message(question_id, section, rcode="NOERROR", answers=(), authorities=(), truncated=False):
    flags = 0x8180 | RCODES[rcode] | (0x0200 if truncated else 0)
    counts = struct.pack(">HHHHHH", question_id, flags, 1, len(answers), len(authorities), 0)
    return counts + section + b"".join(answers) + b"".join(authorities)


class Zone:
    def __init__(self, source):
        self.source = source
        self.asked = collections.Counter()
        self.load()

    def load(self):
        text = self.source
        if not text.lstrip().startswith("{"):
            with open(text, encoding="utf-8") as file:
                text = file.read()
        self.names = json.loads(text)

    def find(self, name):
        if name in self.names:
            return self.names[name]
        labels = name.split(".")
        for i in range(1, len(labels)):
            if (below := "*." + ".".join(labels[i:])) in self.names:
                return self.names[below]
        return self.names.get("*")

    def entry(self, question):
        """What is done about the question now: by how often it was asked."""
        entry = self.find(question.name)
        if entry is None:
            return {"rcode": "NXDOMAIN"}
        times = self.asked[question.name, question.type]
        self.asked[question.name, question.type] += 1
        return ([entry] + entry.get("then", []))[min(times, len(entry.get("then", [])))]

    def addresses(self, name, kind, entry):
        texts = list(entry.get(kind, []))
        first = {"A": int(ipaddress.ip_address("10.0.0.1")), "AAAA": int(ipaddress.ip_address("2001:db8::1"))}
        if kind in first:
            make = ipaddress.IPv4Address if kind == "A" else ipaddress.IPv6Address
            texts += [str(make(first[kind] + i)) for i in range(entry.get("many", 0))]
        return [pack_record(name, kind, entry.get("ttl", 60), ipaddress.ip_address(text).packed) for text in texts]

    def records(self, question, entry):
        name, records = question.name, []
        for _ in range(ALIASES_MAX):
            if entry is None or "CNAME" not in entry:
                break
            records.append(pack_record(name, "CNAME", entry.get("ttl", 60), pack_name(entry["CNAME"])))
            name = entry["CNAME"].lower()
            entry = self.find(name)
        return records + (self.addresses(name, question.type, entry) if entry else [])


def answer_packet(zone, question, entry, transport):
    """The honest answer, as bytes, and its rcode's name."""
    rcode = entry.get("rcode", "NOERROR")
    records = zone.records(question, entry) if rcode == "NOERROR" else []
    authorities = []
    if rcode in ("NOERROR", "NXDOMAIN") and not has_address(records) and entry.get("soa", [60, 60]):
        ttl, minimum = entry.get("soa", [60, 60])
        data = pack_name("ns.test") + pack_name("admin.test") + struct.pack(">IIIII", 1, 1, 1, 1, minimum)
        authorities.append(pack_record("test", "SOA", ttl, data))
    packet = pack_message(question.id, question.section, rcode, records, authorities)
    if entry.get("garbage"):
        packet = pack_message(question.id, question.section, rcode, [b""])
    if transport == "udp" and (entry.get("truncate") or (len(packet) > UDP_BYTES_MAX and not entry.get("oversized"))):
        packet = pack_message(question.id, question.section, truncated=True)
    return packet, rcode


def has_address(records):
    return any(record_type(record) in (TYPES["A"], TYPES["AAAA"]) for record in records)


def record_type(record):
    at = 0
    while record[at]:
        at += 1 + record[at]
    return struct.unpack_from(">H", record, at + 1)[0]


def forged_packets(question, entry):
    """What comes before the honest answer."""
    if entry.get("empty_packet"):
        yield b""
    kind = question.type if question.type in FORGED else "A"
    address = ipaddress.ip_address(FORGED[kind]).packed
    for i in range(1, entry.get("wrong_ids", 0) + 1):
        record = pack_record(question.name, kind, 60, address)
        yield pack_message((question.id + i) & 0xFFFF, question.section, answers=[record])
    if entry.get("wrong_question"):
        section = pack_name("other.test") + struct.pack(">HH", TYPES[kind], 1)
        yield pack_message(question.id, section, answers=[pack_record("other.test", kind, 60, address)])


class Server:
    def __init__(self, zone, log):
        self.zone = zone
        self.log = log
        self.tasks = set()

    def note(self, question, transport, source_port, answer):
        line = {
            "name": question.name,
            "type": question.type,
            "transport": transport,
            "id": question.id,
            "source_port": source_port,
            "answer": answer,
        }
        print(json.dumps(line), file=self.log, flush=True)

    async def answer(self, packet, transport, source_port, send):
        """Sends what there is to send; False when the connection is to be closed."""
        try:
            question = Question(packet)
        except (ValueError, IndexError, struct.error):
            return True
        entry = self.zone.entry(question)
        silent = entry.get("silent", False)
        if silent is True or (silent and question.type in silent) or (transport == "tcp" and entry.get("close_tcp")):
            self.note(question, transport, source_port, "silence")
            return not entry.get("close_tcp")
        honest, rcode = answer_packet(self.zone, question, entry, transport)
        # Before the answer: whoever has the answer finds the question in the log.
        self.note(question, transport, source_port, "forged" if entry.get("only_wrong") else rcode)
        delay_ms = entry.get("delay_ms", 0)
        if isinstance(delay_ms, dict):
            delay_ms = delay_ms.get(question.type, 0)
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        for forged in forged_packets(question, entry):
            send(forged)
        if not entry.get("only_wrong"):
            send(honest)
        return True

    def start(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def serve_udp(self, udp):
        """On the bare socket: asyncio's transport does not send empty datagrams."""
        try:
            packet, address = udp.recvfrom(65535)
        except OSError:
            return

        def send(reply):
            try:
                udp.sendto(reply, address)
            except OSError:
                pass  # who asked is gone, or the queue is full: a datagram may get lost

        self.start(self.answer(packet, "udp", address[1], send))

    async def serve_tcp(self, reader, writer):
        def send(packet):
            writer.write(struct.pack(">H", len(packet)) + packet)

        try:
            while True:
                (length,) = struct.unpack(">H", await reader.readexactly(2))
                packet = await reader.readexactly(length)
                if not await self.answer(packet, "tcp", writer.get_extra_info("peername")[1], send):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def bind_both(address, port):
    """A TCP and a UDP socket on one port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for _ in range(100):
        tcp = socket.socket(family, socket.SOCK_STREAM)
        udp = socket.socket(family, socket.SOCK_DGRAM)
        try:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((address, port))
            udp.bind((address, tcp.getsockname()[1]))
            return tcp, udp
        except OSError:
            tcp.close()
            udp.close()
            if port:
                raise
    raise OSError("no port is free for both UDP and TCP")


async def serve(arguments):
    zone = Zone(arguments.zone)
    tcp, udp = bind_both(arguments.bind, arguments.port)
    log = open(arguments.log, "a", encoding="utf-8") if arguments.log else sys.stdout
    server = Server(zone, log)
    loop = asyncio.get_running_loop()
    udp.setblocking(False)
    loop.add_reader(udp, server.serve_udp, udp)
    await asyncio.start_server(server.serve_tcp, sock=tcp)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGHUP, zone.load)
    if arguments.stdin:
        loop.add_reader(0, lambda: os.read(0, 4096) or ended.set())
    print(tcp.getsockname()[1], flush=True)
    await ended.wait()


def main():
    parser = argparse.ArgumentParser(description="A nameserver for tests.")
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log")
    parser.add_argument("--stdin", action="store_true", help="end when standard input ends")
    parser.add_argument("zone", help="JSON, or a file of it")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
