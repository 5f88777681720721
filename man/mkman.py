#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages from their only sources.

  mkman.py list HEADER...                          names of the documented functions
  mkman.py functions VERSION OUTDIR HEADER...      a section 3 page for each of them
  mkman.py page VERSION TEMPLATE OUT [--env TABLE] [HEADER...]
  mkman.py tool VERSION TEMPLATE OUT HELP          a page for a program

No program is run: HELP and TABLE are files with the output of programs, which may be programs of
another machine.

Functions are documented in comments of the headers (their form is explained in
vipl.h).  A template is a page in man macros in which a line of these words is
replaced:

  @FUNCTIONS@            the functions of the headers, by group
  @CONSTANTS prefix@     the macros whose name begins so, with their comments
  @ENUM name@            the constants of an enumeration, with their comments
  @DECLARATION name@     a structure, as the header declares it
  @ENVIRONMENT@          the variables, as dump_cfg listed them in TABLE
  @SYNOPSIS@ @OPTIONS@   the usage lines of HELP, the output of --help, and the rest of it

and @VERSION@ anywhere.  A word that cannot be resolved is an error.
"""
import pathlib
import re
import sys

SECTIONS = ('Ownership', 'Return', 'Context', 'Ordering', 'Since', 'Spec')
# Header: (library, what links it, overview)
LIBRARIES = {'st_stream.h': ('Viaduct stream library', 'vistream', 'vistream')}
VIPL = ('VI Provider Library', 'vipl', 'vipl')
TOOLS = 'viaductd vi_fabric vi_info vi_lat vi_bw vi_rate vi_scale vi_stages vi_stat vi_cp'.split()


class Bad(Exception):
    """A source that cannot be understood."""


# ---- headers ---------------------------------------------------------------------------------


class Function:
    """One documented function: its prototype and the parts of its comment."""

    def __init__(self, header, group, comment, prototype):
        self.header, self.group, self.prototype = header, group, prototype
        lines = [re.sub(r'^ \* ?', '', line) for line in comment.strip('\n').split('\n')]
        match = re.fullmatch(r'(\w+) - (.+)', lines[0])
        if not match:
            raise Bad(f'{header}: sought "Name - effect" in the first line of a comment, found '
                      f'"{lines[0]}"')
        self.name, self.brief = match.groups()
        self.params, self.text, self.sections = [], [], {}
        self._parse(lines[1:])
        self._check()

    def _parse(self, lines):
        target = self.text
        for line in lines:
            param = re.match(r'@(\w+): (.*)', line)
            section = re.match(r'(%s):(?: (.*))?$' % '|'.join(SECTIONS), line)
            if param:
                target = [param[2]]
                self.params.append((param[1], target))
            elif section:
                target = self.sections[section[1]] = [section[2] or '']
            elif not line and self.params and target is self.params[-1][1]:
                target = self.text
            else:
                target.append(line)

    def _check(self):
        where = f'{self.header}: {self.name}'
        flat = ' '.join(self.prototype.split())
        if f'{self.name}(' not in flat:
            raise Bad(f'{where}: the comment stands before another declaration: "{flat}"')
        inner = flat[flat.index('(') + 1:flat.rindex(')')]
        inner = re.sub(r'\(\*(\w+)\)\([^)]*\)', r'\1', inner)
        names = [re.search(r'(\w+)$', p)[1] for p in inner.split(',')] if inner != 'void' else []
        documented = [name for name, _ in self.params]
        if names != documented:
            raise Bad(f'{where}: parameters are {names}, documented are {documented}')
        for section in SECTIONS:
            if section not in self.sections and (section != 'Spec' or self.header == 'vipl.h'):
                raise Bad(f'{where}: no "{section}:" in the comment')

    def section(self, name):
        return paragraphs(self.sections.get(name, []))


def paragraphs(lines):
    """Lines joined to paragraphs; a line that begins with " - " begins one of its own."""
    out, open_ = [], False
    for line in lines:
        if not line.strip():
            open_ = False
        elif line.startswith(' - ') or not open_:
            out.append(line.rstrip() if line.startswith(' - ') else line.strip())
            open_ = True
        else:
            out[-1] += ' ' + line.strip()
    return out


def parse_headers(paths):
    functions = []
    for path in paths:
        text = pathlib.Path(path).read_text()
        name = pathlib.Path(path).name
        group = ''
        for match in re.finditer(r'^/\* -+ (.+?) -+ \*/$|^/\*\*\n(.*?)^ \*/\n(.*?;)$', text,
                                 re.S | re.M):
            if match[1]:
                group = match[1]
            else:
                functions.append(Function(name, group, match[2], match[3]))
        undocumented = set(re.findall(r'^[\w ]+?[ *](Vipx?[A-Z]\w*|st_\w+)\(', text, re.M))
        undocumented -= {f.name for f in functions}
        if undocumented:
            raise Bad(f'{path}: no comment for {", ".join(sorted(undocumented))}')
    return functions


def constants(paths, prefix):
    """(name, value, comment) of macros."""
    pattern = r'^#define (%s\w*) (\S+)(?:[ \t]*/\* (.*?) \*/)?$' % re.escape(prefix)
    out = []
    for path in paths:
        out += re.findall(pattern, pathlib.Path(path).read_text(), re.M)
    if not out:
        raise Bad(f'no macro begins with {prefix}')
    return out


def enumerators(paths, name):
    """(name, value, comment) of an enumeration."""
    for path in paths:
        body = re.search(r'^typedef enum _%s \{\n(.*?)^\} %s;$' % (name, name),
                         pathlib.Path(path).read_text(), re.S | re.M)
        if body:
            return re.findall(r'^\t(\w+) = (\w+),?(?:[ \t]*/\* (.*?) \*/)?$', body[1], re.M)
    raise Bad(f'no enumeration {name} in {paths}')


def declaration(paths, name):
    for path in paths:
        match = re.search(r'^(?:VIPL_EXTENSION )?(typedef (?:struct|union) _%s \{\n.*?^\} %s;)$'
                          % (name, name), pathlib.Path(path).read_text(), re.S | re.M)
        if match:
            return match[1]
    raise Bad(f'no structure {name} in {paths}')


# ---- man macros ------------------------------------------------------------------------------


def escape(text):
    return text.replace('\\', '\\e')


def literal(text):
    """Text of program or terminal, to be shown as it is."""
    lines = []
    for line in escape(text).replace('-', '\\-').expandtabs(8).split('\n'):
        lines.append('\\&' + line if line[:1] in ('.', "'") else line)
    return '\n'.join(lines)


def prose(text, params=(), known=()):
    """Running text: functions, constants, variables and programs in bold, parameters in italics."""
    def mark(match):
        word = match[0]
        if match[1]:
            return f'\\%\\fB{match[1]}\\fP(3)' if not known or match[1] in known else word
        if word in params:
            return f'\\fI{word}\\fP'
        if word in TOOLS:
            return f'\\fB{word}\\fP(1)'
        if re.fullmatch(r'VIPX?_[A-Z0-9_]+\*?|VIADUCT_[A-Z_]+\*?|EnableRdma\w+', word):
            return f'\\%\\fB{word}\\fP'
        return word

    text = re.sub(r'\b(Vipx?[A-Z]\w*|st_\w+)\(\)|(?<!\')\b\w+\b\*?', mark,
                  re.sub(r'`(\w+)`', r'\1', escape(text)))
    return '\\&' + text if text[:1] in ('.', "'") else text


def title(name, section, version, book):
    return (f".\\\" Generated by mkman.py: do not edit.\n.TH {name} {section} \"\" "
            f"\"Viaduct {version}\" \"{book}\"")


def synopsis(function):
    flat = literal(function.prototype)
    return re.sub(r'\b(%s)\(' % function.name, r'\\fB\1\\fP(', flat)


def block(title_, paras, params, known):
    out = [f'.SH {title_}']
    for number, para in enumerate(paras):
        item = re.match(r' - (VIP_\w+|-?[\w -]+(?:, -[A-Z]+)*): (.*)', para)
        if item:
            out += ['.TP', f'.B {literal(item[1])}', prose(item[2], params, known)]
        else:
            out += (['.PP'] if number else []) + [prose(para, params, known)]
    return out


def function_page(function, version, known):
    params = [name for name, _ in function.params]
    library, link, _ = LIBRARIES.get(function.header, VIPL)
    out = [title(function.name, 3, version, library),
           '.SH NAME', f'{function.name} \\- {escape(function.brief)}',
           '.SH LIBRARY', f'{library} (\\fIlib{link}\\fP,\\ \\fI\\-l{link}\\fP)',
           '.SH SYNOPSIS', '.nf', f'.B #include <{function.header}>', '.PP',
           synopsis(function), '.fi', '.SH PARAMETERS']
    for name, lines in function.params:
        out += ['.TP', f'.I {name}', prose(paragraphs(lines)[0], params, known)]
    out += block('DESCRIPTION', paragraphs(function.text)
                 or [function.brief[0].upper() + function.brief[1:] + '.'], params, known)
    for section, heading in (('Ownership', 'OWNERSHIP'), ('Return', 'RETURN VALUE'),
                             ('Context', 'CONTEXT'), ('Ordering', 'ORDERING'),
                             ('Spec', 'STANDARDS')):
        if function.section(section):
            paras = function.section(section)
            if section == 'Ordering' and paras == ['none.']:
                continue
            paras[0] = paras[0] if paras[0].startswith(' -') else paras[0][0].upper() + paras[0][1:]
            out += block(heading, paras, params, known)
    if function.header == 'vipl_ext.h':
        out += ['.SH STANDARDS', 'An extension of this library.']
    out += ['.SH HISTORY', f'Since Viaduct {function.section("Since")[0]}.']
    out += see_also(function, known)
    return '\n'.join(out) + '\n'


def see_also(function, known):
    text = ' '.join(function.text + sum(function.sections.values(), [])
                    + sum((lines for _, lines in function.params), []))
    names = sorted((set(re.findall(r'\b(Vipx?\w+|st_\w+)\(\)', text)) & known) - {function.name})
    refs = [f'.BR {name} (3),' for name in names]
    tools = [f'.BR {tool} (1),' for tool in TOOLS if re.search(r'\b%s\b' % tool, text)]
    overview = LIBRARIES.get(function.header, VIPL)[2]
    return ['.SH SEE ALSO'] + tools + refs + [f'.BR {overview} (7),', '.BR viaduct (7)']


# ---- templates -------------------------------------------------------------------------------


def functions_list(functions):
    out, group = [], None
    for function in functions:
        name = 'Extensions' if function.header == 'vipl_ext.h' else function.group
        name = name[0].upper() + name[1:]
        if name != group:
            group = name
            out += ['.SS ' + group]
        out += ['.TP', f'.BR {function.name} (3)', prose(function.brief)]
    return out


def values_list(values):
    out = []
    for name, value, comment in values:
        out += ['.TP', f'.BR {name} " {literal(value)}"', prose(comment) if comment else '\\&']
    return out


def environment(table):
    out = []
    for line in pathlib.Path(table).read_text().splitlines():
        name, kind, default, text = line.split('\t')
        out += ['.TP', f'.BR {name} " ({literal(kind)})"', prose(text)]
        out += ['.br', f'Default: \\fB{literal(default)}\\fP.' if default
                else 'Default: not set.']
    return out


def split_help(text):
    """--help of a program: (usage lines, the rest)."""
    usage, rest, inside = [], [], False
    for line in text.splitlines():
        start = re.match(r'[Uu]sage:\s*(.*)', line)
        if start:
            inside = True
            usage += [start[1].strip()] if start[1] else []
        elif inside and re.match(r'(\s+|or:\s*)\S', line):
            usage.append(re.sub(r'^\s*or:\s*', '', line).strip())
        else:
            inside = False
            rest.append(line)
    if not usage:
        raise Bad('--help has no line that begins with "Usage:"')
    return usage, rest


def usage_lines(usage):
    """The name of the program in bold; a line without it continues the one before."""
    out, name = ['.nf'], usage[0].split()[0]
    for line in usage:
        line = line.expandtabs(8)
        if line.split()[0] == name:
            out.append(f'\\fB{literal(name)}\\fP{literal(line[len(name):])}')
        else:
            out.append('\\h\'4n\'' + literal(line))
    return out + ['.fi']


def options_lines(lines):
    """Indented "-o, --option  text" become tagged paragraphs, headings subsections."""
    out, tagged = [], False
    for line in lines + ['']:
        heading = re.match(r'(\S.*):$', line)
        option = (re.match(r' {1,6}(\S.*?) {2,}(\S.*)$', line)
                  or re.match(r' {1,6}(-\S+ [A-Z]+=\S+) (\S.*)$', line)
                  or re.match(r' {1,6}(\S.*)()$', line))
        if not line.strip():
            out += ['.PP'] if out and out[-1] != '.PP' else []
            tagged = False
        elif heading:
            tagged = False
            first = heading[1].lower() == 'options' and not any(x.startswith('.SS') for x in out)
            out += ['.PP'] if first else ['.SS ' + prose(heading[1][0].upper() + heading[1][1:])]
        elif option and (option[2] or option[1].startswith('-')):
            out += ['.TP', f'\\fB{literal(option[1])}\\fP']
            out += [prose(option[2]) if option[2] else '\\&']
            tagged = True
        elif line.startswith(' ') and not tagged:
            out += ['.br', literal(line.strip())]
        else:
            out.append(prose(line.strip()))
    while out and out[-1] == '.PP':
        out.pop()
    return [line for n, line in enumerate(out)
            if line != '.PP' or not (n + 1 < len(out) and out[n + 1].startswith('.S')
                                     or n == 0 or out[n - 1].startswith('.S'))]


def expand(template, version, headers, env=None, printed=None):
    help_ = split_help(pathlib.Path(printed).read_text()) if printed else None
    out = []
    for line in pathlib.Path(template).read_text().replace('@VERSION@', version).splitlines():
        match = re.fullmatch(r'@([A-Z]+)(?: (\w+))?@', line)
        if line.startswith('.\\" SPDX'):
            continue
        if not match:
            out.append(line)
        elif match[1] == 'FUNCTIONS':
            out += functions_list(parse_headers(headers))
        elif match[1] == 'CONSTANTS':
            out += values_list(constants(headers, match[2]))
        elif match[1] == 'ENUM':
            out += values_list(enumerators(headers, match[2]))
        elif match[1] == 'DECLARATION':
            out += ['.PP', '.in +4n', '.EX', literal(declaration(headers, match[2])), '.EE', '.in']
        elif match[1] == 'ENVIRONMENT' and env:
            out += environment(env)
        elif match[1] == 'SYNOPSIS' and help_:
            out += usage_lines(help_[0])
        elif match[1] == 'OPTIONS' and help_:
            out += options_lines(help_[1])
        else:
            raise Bad(f'{template}: cannot replace {line}')
    return '\n'.join(out) + '\n'


# ---- commands --------------------------------------------------------------------------------


def command_functions(version, outdir, *headers):
    functions = parse_headers(headers)
    known = {f.name for f in functions}
    for function in functions:
        page = function_page(function, version, known)
        pathlib.Path(outdir, function.name + '.3').write_text(page)


def command_page(version, template, out, *rest):
    env, headers = None, list(rest)
    if '--env' in headers:
        at = headers.index('--env')
        env = headers[at + 1]
        del headers[at:at + 2]
    pathlib.Path(out).write_text(expand(template, version, headers, env=env))


def command_tool(version, template, out, printed):
    pathlib.Path(out).write_text(expand(template, version, [], printed=printed))


def main(argv):
    commands = {'functions': command_functions, 'page': command_page, 'tool': command_tool,
                'list': lambda *headers: print('\n'.join(f.name for f in parse_headers(headers)))}
    if len(argv) < 3 or argv[1] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        commands[argv[1]](*argv[2:])
    except (Bad, OSError) as error:
        print(f'mkman.py: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
