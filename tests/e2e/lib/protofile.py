# SPDX-License-Identifier: Apache-2.0
"""Reads messages by a .proto file: as much of the language as proto/perfetto.proto uses. A message has its fields as attributes,
repeated ones as lists, and HasField, as Google's have them; unknown fields are errors."""
import re

MESSAGE = re.compile(r"message (\w+) \{(.*?)\n\}", re.S)
FIELD = re.compile(r"(optional|repeated) (\w+) (\w+) = (\d+);")
NUMBERS = {"uint32", "uint64", "int32", "int64"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a varint is too long")


class Message:
    def __init__(self, kind, fields):
        self._kind, self._present = kind, set()
        for repeated, type_, name in fields.values():
            setattr(self, name, [] if repeated else b"" if type_ == "bytes" else "" if type_ == "string" else 0 if type_ in NUMBERS else None)

    def HasField(self, name):
        return name in self._present


class Schema:
    def __init__(self, path):
        with open(path) as f:
            self.messages = {name: {int(n): (rule == "repeated", type_, field) for rule, type_, field, n in FIELD.findall(body)}
                             for name, body in MESSAGE.findall(f.read())}

    def value(self, type_, wire, data, at):
        if wire == 0:
            value, at = varint(data, at)
            if type_ not in NUMBERS:
                raise ValueError("a number for %s" % type_)
            return (value - (1 << 64) if type_.startswith("int") and value >> 63 else value), at
        if wire == 1 and type_ == "fixed64":
            return int.from_bytes(data[at:at + 8], "little"), at + 8
        if wire != 2:
            raise ValueError("wire type %d for %s" % (wire, type_))
        size, at = varint(data, at)
        body = data[at:at + size]
        if len(body) != size:
            raise ValueError("cut off")
        if type_ in self.messages:
            body = self.read(type_, body)
        elif type_ == "string":
            body = body.decode()
        elif type_ != "bytes":
            raise ValueError("bytes for %s" % type_)
        return body, at + size

    def read(self, kind, data):
        fields = self.messages[kind]
        message, at = Message(kind, fields), 0
        while at < len(data):
            key, at = varint(data, at)
            if key >> 3 not in fields:
                raise ValueError("field %d of %s is not in the .proto file" % (key >> 3, kind))
            repeated, type_, name = fields[key >> 3]
            value, at = self.value(type_, key & 7, data, at)
            message._present.add(name)
            if repeated:
                getattr(message, name).append(value)
            else:
                setattr(message, name, value)
        return message
