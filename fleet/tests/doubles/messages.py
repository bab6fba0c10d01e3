"""The messages that the shipper sends, as strangers to it read them.

Those of OpenTelemetry are the package `opentelemetry-proto`. Those of pprof and of Pyroscope are written down
here by their published files (`proto/profile.proto` of github.com/google/pprof, `api/push/v1/push.proto` of
github.com/grafana/pyroscope), and are read by Google's `protobuf`. Nothing here is shared with the shipper.
"""

import gzip

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

FIELD = descriptor_pb2.FieldDescriptorProto
KINDS = {
    "int64": FIELD.TYPE_INT64,
    "uint64": FIELD.TYPE_UINT64,
    "bool": FIELD.TYPE_BOOL,
    "string": FIELD.TYPE_STRING,
    "bytes": FIELD.TYPE_BYTES,
}

PPROF = {
    "Profile": [
        (1, "sample_type", "*ValueType"), (2, "sample", "*Sample"), (3, "mapping", "*Mapping"),
        (4, "location", "*Location"), (5, "function", "*Function"), (6, "string_table", "*string"),
        (7, "drop_frames", "int64"), (8, "keep_frames", "int64"), (9, "time_nanos", "int64"),
        (10, "duration_nanos", "int64"), (11, "period_type", "ValueType"), (12, "period", "int64"),
        (13, "comment", "*int64"), (14, "default_sample_type", "int64"),
    ],
    "ValueType": [(1, "type", "int64"), (2, "unit", "int64")],
    "Sample": [(1, "location_id", "*uint64"), (2, "value", "*int64"), (3, "label", "*Label")],
    "Label": [(1, "key", "int64"), (2, "str", "int64"), (3, "num", "int64"), (4, "num_unit", "int64")],
    "Mapping": [
        (1, "id", "uint64"), (2, "memory_start", "uint64"), (3, "memory_limit", "uint64"),
        (4, "file_offset", "uint64"), (5, "filename", "int64"), (6, "build_id", "int64"),
        (7, "has_functions", "bool"), (8, "has_filenames", "bool"), (9, "has_line_numbers", "bool"),
        (10, "has_inline_frames", "bool"),
    ],
    "Location": [
        (1, "id", "uint64"), (2, "mapping_id", "uint64"), (3, "address", "uint64"), (4, "line", "*Line"),
        (5, "is_folded", "bool"),
    ],
    "Line": [(1, "function_id", "uint64"), (2, "line", "int64"), (3, "column", "int64")],
    "Function": [
        (1, "id", "uint64"), (2, "name", "int64"), (3, "system_name", "int64"), (4, "filename", "int64"),
        (5, "start_line", "int64"),
    ],
}

PUSH = {
    "PushRequest": [(1, "series", "*RawProfileSeries")],
    "RawProfileSeries": [
        (1, "labels", "*LabelPair"), (2, "samples", "*RawSample"), (3, "annotations", "*LabelPair"),
    ],
    "LabelPair": [(1, "name", "string"), (2, "value", "string")],
    "RawSample": [(1, "raw_profile", "bytes"), (2, "ID", "string")],
}


def classes(package, messages):
    file = descriptor_pb2.FileDescriptorProto(name=package + ".proto", package=package, syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            label = FIELD.LABEL_REPEATED if kind.startswith("*") else FIELD.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            added = message.field.add(name=field, number=number, label=label)
            if kind in KINDS:
                added.type = KINDS[kind]
            else:
                added.type = FIELD.TYPE_MESSAGE
                added.type_name = f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{n}")) for n in messages}


Profile = classes("pprof", PPROF)["Profile"]
PushRequest = classes("push", PUSH)["PushRequest"]
ExportRequest = profiles_service_pb2.ExportProfilesServiceRequest
ExportResponse = profiles_service_pb2.ExportProfilesServiceResponse


class Wrong(Exception):
    """A message that breaks a rule."""


def need(holds, rule):
    if not holds:
        raise Wrong(rule)


def strict(cls, data):
    """Decodes a message, and refuses one with fields that nobody knows."""
    message = cls.FromString(data)
    length = message.ByteSize()
    message.DiscardUnknownFields()
    need(message.ByteSize() == length, f"unknown fields in {cls.DESCRIPTOR.full_name}")
    return message


class Names(dict):
    """By the number of a location, the names of its functions, outermost first. A number that no location has is
    `Wrong`."""

    def __missing__(self, number):
        raise Wrong("a location that is not there")


# How many samples each stands for, by the schedule of the shipper.
weight = 1


def check_pprof(packed):
    """Checks a pprof. Returns it, and its values by stacks of names, outermost first."""
    raw = gzip.decompress(packed)
    need(len(raw) <= 4 << 20, "more than 4 MiB")
    profile = strict(Profile, raw)
    texts = profile.string_table
    need(texts and texts[0] == "", "the first text is not empty")

    def text(number):
        need(0 <= number < len(texts), "a text that is not there")
        return texts[number]

    types = [(text(it.type), text(it.unit)) for it in profile.sample_type]
    need(types, "no sample type")
    need(profile.period > 0 and text(profile.period_type.type), "no period")
    need(profile.time_nanos > 0 and profile.duration_nanos >= 0, "no time")
    need(len(profile.sample) <= 16000, "too many samples")

    def table(rows):
        found = {row.id: row for row in rows}
        need(0 not in found and len(found) == len(rows), "ids that are 0 or not unique")
        return found

    mappings, functions = table(profile.mapping), table(profile.function)
    table(profile.location)
    for mapping in profile.mapping:
        need(text(mapping.filename), "a mapping without a file")
        text(mapping.build_id)
        need(mapping.memory_limit > mapping.memory_start, "an empty mapping")
    for function in profile.function:
        need(text(function.name), "a function without a name")
        text(function.filename)
    # Names are put together once for each location, as a location is in many samples.
    names = Names()
    for location in profile.location:
        need(location.mapping_id == 0 or location.mapping_id in mappings, "a mapping that is not there")
        if location.mapping_id:
            need(location.address < mappings[location.mapping_id].memory_limit, "outside of its mapping")
        need(location.mapping_id or location.line, "a location without anything")
        need(all(it.function_id in functions for it in location.line), "a function that is not there")
        lines = [text(functions[it.function_id].name) for it in location.line]
        unnamed = [] if lines else [f"{text(mappings[location.mapping_id].filename)}+{location.address:#x}"]
        names[location.id] = ";".join(reversed(lines or unnamed))
    stacks = {}
    for sample in profile.sample:
        need(len(sample.value) == len(types), "values that are not as many as types")
        need(sample.value[0] > 0, "a sample of nothing")
        key = ";".join([names[it] for it in reversed(sample.location_id)])
        stacks[key] = stacks.get(key, 0) + sample.value[0]
        if types == [("samples", "count"), ("cpu", "nanoseconds")]:
            time = sample.value[0] * profile.period * weight
            need(sample.value[1] == time, "times that are not samples times period and weight")
    return profile, stacks


def sum_pprof(packed):
    """Decodes a pprof without checking it. Returns it, and the sum of the first value of all samples under the
    empty name."""
    profile = Profile.FromString(gzip.decompress(packed))
    return profile, {"": sum([sample.value[0] for sample in profile.sample])}


def check_push(data, check_pprof):
    """Checks a request of Pyroscope, and each pprof in it by `check_pprof`. Returns (uuid, labels, pprof, stacks)
    of each profile."""
    request = strict(PushRequest, data)
    need(request.series, "no series")
    found = []
    for series in request.series:
        labels = {it.name: it.value for it in series.labels}
        need(len(labels) == len(series.labels) <= 30, "a label twice, or too many")
        need(labels.get("__name__") == "process_cpu", "no __name__")
        need(labels.get("service_name"), "no service_name")
        need(len(series.samples) == 1 and not series.annotations, "not one profile")
        for sample in series.samples:
            profile, stacks = check_pprof(sample.raw_profile)
            found.append((sample.ID, labels, profile, stacks))
    return found


def check_export(data):
    """Checks a request of OpenTelemetry. Returns (uuid, resource, profile, stacks) of each profile."""
    request = strict(ExportRequest, data)
    need(request.HasField("dictionary"), "no dictionary")
    book = request.dictionary
    for name in ("mapping", "location", "function", "link", "attribute", "stack"):
        rows = [row.SerializeToString(deterministic=True) for row in getattr(book, name + "_table")]
        need(rows and rows[0] == b"", f"the first of {name} is not empty")
        need(len(set(rows)) == len(rows), f"something twice in {name}")
    texts = list(book.string_table)
    need(texts and texts[0] == "" and len(set(texts)) == len(texts), "texts that are not unique")

    def at(table, number):
        need(0 <= number < len(table), "an index that is not there")
        return table[number]

    for function in book.function_table:
        at(texts, function.name_strindex), at(texts, function.system_name_strindex)
        at(texts, function.filename_strindex)
    for attribute in book.attribute_table[1:]:
        need(at(texts, attribute.key_strindex), "an attribute without a key")
        at(texts, attribute.unit_strindex)
    for mapping in book.mapping_table:
        at(texts, mapping.filename_strindex)
        [at(book.attribute_table, it) for it in mapping.attribute_indices]
    for location in book.location_table:
        at(book.mapping_table, location.mapping_index)
        [at(book.attribute_table, it) for it in location.attribute_indices]
        [at(book.function_table, it.function_index) for it in location.lines]
    for stack in book.stack_table:
        for number in stack.location_indices:
            need(number != 0, "the empty location in a stack")
            at(book.location_table, number)
    found = []
    for resource in request.resource_profiles:
        about = {it.key: it.value.string_value for it in resource.resource.attributes}
        need(len(about) == len(resource.resource.attributes), "an attribute twice")
        need(about.get("service.name") and about.get("host.name"), "no service.name or host.name")
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                kind = profile.sample_type
                kind = (at(texts, kind.type_strindex), at(texts, kind.unit_strindex))
                need(all(kind), "no sample type")
                period = profile.period_type
                at(texts, period.type_strindex), at(texts, period.unit_strindex)
                need(len(profile.profile_id) == 16 and any(profile.profile_id), "no id")
                need(profile.time_unix_nano > 0, "no time")
                stacks = {}
                for sample in profile.samples:
                    need(len(sample.values) == 1 and sample.values[0] > 0, "not one value")
                    at(book.link_table, sample.link_index)
                    names = []
                    for number in at(book.stack_table, sample.stack_index).location_indices:
                        location = book.location_table[number]
                        lines = [texts[book.function_table[it.function_index].name_strindex] for it in location.lines]
                        file = texts[book.mapping_table[location.mapping_index].filename_strindex]
                        names += lines or [f"{file}+{location.address:#x}"]
                    key = ";".join(reversed(names))
                    stacks[key] = stacks.get(key, 0) + sample.values[0]
                found.append((profile.profile_id.hex(), about, profile, stacks))
    return found
