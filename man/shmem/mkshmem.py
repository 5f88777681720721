#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages of OpenSHMEM from the table of its routines (shmem/gen, which PYTHONPATH names).

  mkshmem.py list                          names of the pages
  mkshmem.py functions VERSION OUTDIR      a section 3 page for each family of routines, and one
                                           that leads there for each other name of it
  mkshmem.py page VERSION TEMPLATE OUT VARIABLES
                                           a page in which a line @FAMILIES@ becomes the families,
                                           and @ENVIRONMENT@ what dump_shmem_env said
"""
import pathlib
import re
import sys

import spec_table
import spec_types

LICENCE = '.\\" SPDX-License-Identifier: BSD-2-Clause\n'


def roff(text):
    """Running text: escaped, with routines and constants in bold."""
    text = ' '.join(text.split()).replace('\\', '\\e').replace('-', '\\-')
    text = re.sub(r'\b(shmemx?_\w+|SHMEM_\w+\*?|[A-Z]+_\w+\*)', r'\\fB\1\\fP', text)
    return '\\&' + text if text[:1] in ".'" else text


def names_of(proto):
    """The names of a prototype without types: one, or one for each size or operation."""
    names = [re.sub(r'{c}', '', proto.name)]
    while any('{' in name for name in names):
        name = next(name for name in names if '{' in name)
        word = re.search(r'{(\w+)}', name).group(1)
        words = spec_types.FAMILIES[word] if word.endswith('sz') else ['']
        at = names.index(name)
        whole = '{' + word + '}' + ('' if word.endswith('sz') else '_')
        names[at:at + 1] = [name.replace(whole, item, 1) for item in words]
    return names


def all_names(family):
    """The names of a family in order, its page's first."""
    out = []
    for proto in family.protos:
        out += [name for name in names_of(proto) if name not in out]
    return out


def pages():
    """{name of a page: family}, {other name: page}"""
    main, others = {}, {}
    for family in spec_table.families():
        names = [name for name in all_names(family) if name not in main and name not in others]
        main[names[0]] = family
        others.update({name: names[0] for name in names[1:]})
    return main, others


def brief(family):
    return family.title[0].lower() + family.title[1:]


def synopsis(family):
    lines, seen = [], []
    for proto in family.protos:
        text = proto.text.replace('SHMEMX_NORETURN ', '')
        text = re.sub(r'{(old_)?sz}', r'\\fISIZE\\fP', text)
        text = re.sub(r'{(\w+)}_', lambda m: m.group(0) if m.group(1) == 'c' else '\\fITYPENAME\\fP_', text)
        text = re.sub(r'\bT\b', r'\\fITYPE\\fP', text)
        forms = [text.replace('{c}', '')]
        if '{c}' in text:
            ctx = text.replace('{c}', 'ctx_')
            forms.append(re.sub(r'\(', '(shmem_ctx_t ctx, ', ctx, count=1).replace('ctx, void)', 'ctx)'))
        if proto.generic and proto.on in ('first', 'source', 'second'):
            generic = re.sub(r'\bT\b', r'\\fITYPE\\fP', proto.text)
            form = re.sub(r'[\w{}]+\(', f'shmem_{proto.generic}(', generic, count=1)
            seen.append(form.replace(f'shmem_{proto.generic}(', f'shmem_{proto.generic}([ctx,] ')
                        if '{c}' in proto.name else form)
        lines += forms
    out = ['.nf', '.B #include <shmem.h>', '.PP'] + [f'{line};' for line in lines] + ['.fi']
    if seen:
        out += ['.PP', 'C11 and C++:', '.PP', '.nf'] + [f'{line};' for line in seen] + ['.fi']
    return '\n'.join(line.replace('-', '\\-') for line in out) + '\n'


def types(family):
    """Which type names each routine with a type has."""
    groups = {}
    for proto in family.protos:
        if proto.types():
            groups.setdefault(tuple(proto.types()), []).append(names_of(proto)[0])
    out = []
    for names, routines in groups.items():
        out.append('.TP\n' + ', '.join(f'\\fB{name}\\fP' for name in routines) + '\n' +
                   ', '.join(names) + '\n')
    sizes = {name for proto in family.protos for name in re.findall(r'{((?:old_)?sz)}', proto.name)}
    for word in sorted(sizes):
        out.append('.TP\n\\fISIZE\\fP\n' + ', '.join(spec_types.FAMILIES[word]) + ' (bits)\n')
    return '.SH TYPES\n' + ''.join(out) if out else ''


def function_page(version, name, family, siblings):
    names = [n for n in all_names(family) if n == name or pages()[1].get(n) == name]
    text = '\n.PP\n'.join(roff(part) for part in family.text.strip().split('\n\n'))
    since = f'Section {family.section} of the specification; since {family.since}.'
    if family.deprecated:
        since += f' Deprecated since {family.deprecated}.'
    also = ', '.join(f'.BR {n} (3)' for n in siblings)
    return (LICENCE + f'.TH {name} 3 "" "Viaduct {version}" "OpenSHMEM"\n.SH NAME\n' +
            ', '.join(names) + f' \\- {brief(family)}\n.SH SYNOPSIS\n' + synopsis(family) +
            f'.SH DESCRIPTION\n{text}\n' + types(family) +
            f'.SH STANDARDS\nOpenSHMEM 1.6. {since}\n.SH SEE ALSO\n' +
            also.replace(', .BR', ',\n.BR') + (',\n' if also else '') + '.BR viaduct\\-shmem (7)\n')


def functions(version, folder):
    main, others = pages()
    for name, family in main.items():
        siblings = [n for n, f in main.items() if f.section == family.section and n != name]
        (folder / f'{name}.3').write_text(function_page(version, name, family, siblings), encoding='utf-8')
    for name, page in others.items():
        (folder / f'{name}.3').write_text(f'.so man3/{page}.3\n', encoding='utf-8')


def families_text():
    out, main = [], pages()[0]
    for title, section in spec_table.SECTIONS:
        out.append(f'.SS {title}'.replace('-', '\\-'))
        for name, family in main.items():
            if family in section:
                out.append(f'.TP\n.BR {name} (3)\n{brief(family)}'.replace('-', '\\-'))
    return '\n'.join(out)


def environment(path):
    out = []
    for line in pathlib.Path(path).read_text(encoding='utf-8').splitlines():
        found = re.fullmatch(r'(SHMEM_\w+)\s+.*\(default (.*?)\) (.*)', line)
        if not found:
            raise SystemExit(f'mkshmem.py: {path}: sought a variable, found «{line}»')
        name, default, text = found.groups()
        out.append(f'.TP\n.B {name}\n{roff(text[0].upper() + text[1:])}; by default {roff(default)}.')
    if not out:
        raise SystemExit(f'mkshmem.py: {path}: no variable')
    return '\n'.join(out)


def page(version, template, output, variables):
    text = pathlib.Path(template).read_text(encoding='utf-8').replace('@VERSION@', version)
    text = text.replace('@FAMILIES@', families_text()).replace('@ENVIRONMENT@', environment(variables))
    pathlib.Path(output).write_text(text, encoding='utf-8')


def main(argv):
    if argv[1:] == ['list']:
        print('\n'.join(name for names in pages() for name in names))
    elif len(argv) == 4 and argv[1] == 'functions':
        functions(argv[2], pathlib.Path(argv[3]))
    elif len(argv) == 6 and argv[1] == 'page':
        page(*argv[2:])
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
