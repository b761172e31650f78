#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Validates recorded responses against an OpenAPI document with jsonschema.

usage: openapi-judge.py DOCUMENT [RECORDS]

RECORDS is an array of {operation, status, headers, body, sent}: headers have
lower-case names, body is text, sent is the JSON text of the request or null.
Prints an array with the faults of each record; without RECORDS, the faults of
the document's own schemas and references.
"""
import json
import re
import sys
import urllib.parse

from jsonschema import Draft202012Validator, FormatChecker, RefResolver
from jsonschema.exceptions import RefResolutionError, SchemaError

UNDOCUMENTED = ('etag', 'link', 'location', 'x-total-count', 'retry-after',
                'www-authenticate', 'content-range', 'x-log-size',
                'x-log-complete', 'set-cookie')

FORMATS = FormatChecker()


@FORMATS.checks('date-time')
def is_time(value):
    """Checks RFC 3339 times, which Debian's jsonschema does not check."""
    return not isinstance(value, str) or re.fullmatch(
        r'\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d(\.\d+)?'
        r'(Z|[+-]\d\d:\d\d)', value) is not None


class Document:
    def __init__(self, doc):
        self.doc = doc
        self.resolver = RefResolver('', doc)
        self.validators = {}
        self.operations = {
            operation['operationId']: ('paths', path, method)
            for path, item in doc['paths'].items()
            for method, operation in item.items()}

    def follow(self, place):
        """Returns the object at a place and its place, after references."""
        at = self.doc
        for word in place:
            at = at[word]
        if isinstance(at, dict) and '$ref' in at:
            words = at['$ref'].split('/')[1:]
            return self.follow(tuple(
                w.replace('~1', '/').replace('~0', '~') for w in words))
        return at, place

    def faults(self, place, value, what):
        if place not in self.validators:
            pointer = ''.join('/' + urllib.parse.quote(
                str(w).replace('~', '~0').replace('/', '~1')) for w in place)
            self.validators[place] = Draft202012Validator(
                {'$ref': '#' + pointer}, resolver=self.resolver,
                format_checker=FORMATS)
        return ['%s/%s %s' % (what, '/'.join(map(str, e.path)), e.message)
                for e in self.validators[place].iter_errors(value)]

    def schemas(self):
        """Returns the faults of the schemas and references themselves."""
        found = []

        def walk(at, where):
            if isinstance(at, dict):
                if isinstance(at.get('$ref'), str):
                    try:
                        self.resolver.resolve(at['$ref'])
                    except RefResolutionError as e:
                        found.append('%s: %s' % (where, e))
                if re.fullmatch('/components/schemas/[^/]+', where) \
                        or ('schema' in at and '/schemas/' not in where):
                    try:
                        Draft202012Validator.check_schema(
                            at.get('schema', at))
                    except SchemaError as e:
                        found.append('%s: %s' % (where, e.message))
                values = at.get('enum')
                if isinstance(values, list) \
                        and len(set(map(str, values))) < len(values):
                    found.append('%s: a duplicate value' % where)
                for key, value in at.items():
                    walk(value, where + '/' + key)
            elif isinstance(at, list):
                for i, value in enumerate(at):
                    walk(value, '%s/%d' % (where, i))

        walk(self.doc, '')
        for name, place in self.operations.items():
            wanted = set(re.findall(r'{(\w+)}', place[1]))
            given = set()
            for i in range(len(self.follow(place)[0].get('parameters', []))):
                parameter = self.follow(place + ('parameters', i))[0]
                if parameter['in'] == 'path':
                    given.add(parameter['name'])
            if wanted != given:
                found.append('%s: path and parameters differ' % name)
        return found


def header_faults(d, place, headers):
    found, documented = [], set()
    for name in d.follow(place)[0].get('headers', {}):
        header, at = d.follow(place + ('headers', name))
        value = headers.get(name.lower())
        documented.add(name.lower())
        if value is None:
            if header.get('required'):
                found.append('header %s is missing' % name)
            continue
        if header['schema'].get('type') == 'integer' and value.isdigit():
            value = int(value)
        found += d.faults(at + ('schema',), value, 'header ' + name)
    found += ['header %s is not documented' % name for name in UNDOCUMENTED
              if headers.get(name) is not None and name not in documented]
    return found


def body_faults(d, place, record):
    content = d.follow(place)[0].get('content', {})
    media = record['headers'].get('content-type')
    if not content:
        return [] if record['body'] == '' else ['a body is not documented']
    if media not in content:
        return ['content type %s is not one of %s' % (media, list(content))]
    value = record['body']
    if 'json' in media:
        try:
            value = json.loads(value)
        except ValueError as e:
            return ['the body is not JSON: %s' % e]
    found = d.faults(place + ('content', media, 'schema'), value, 'body')
    if media == 'application/problem+json' \
            and value.get('status') != record['status']:
        found.append('the problem has status %s' % value.get('status'))
    return found


def judge(d, record):
    if record['operation'] not in d.operations:
        return ['no such operation']
    operation, place = d.follow(d.operations[record['operation']])
    code = str(record['status'])
    if code not in operation['responses']:
        return ['status %s is not documented' % code]
    at = d.follow(place + ('responses', code))[1]
    found = header_faults(d, at, record['headers'])
    found += body_faults(d, at, record)
    if record['status'] < 300 and record['sent'] is not None:
        if 'requestBody' in operation:
            found += d.faults(
                place + ('requestBody', 'content', 'application/json',
                         'schema'), json.loads(record['sent']), 'request')
        else:
            found.append('a request body is not documented')
    return found


def main():
    read = [json.load(open(path, encoding='utf-8')) for path in sys.argv[1:]]
    d = Document(read[0])
    if len(read) == 1:
        print(json.dumps(d.schemas()))
    else:
        print(json.dumps([judge(d, record) for record in read[1]]))


main()
