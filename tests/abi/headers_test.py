#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The public headers, alone, compile without a warning in every language they are for.

usage: headers_test.py INCLUDE_DIR --cc COMPILER... --cxx COMPILER...
"""
import shutil
import subprocess
import sys

WARN = ['-pedantic', '-Wall', '-Wextra', '-Werror', '-fsyntax-only']
C = ['c89', 'c99', 'c11', 'gnu89', 'gnu11']
CXX = ['c++98', 'c++11', 'c++17']

ALONE = '#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n'
SPELLINGS = '''
#define VIPL095
#include <vipl.h>
#include <vipl_ext.h>
#ifdef IN
#error "the header must not define IN"
#endif
#ifdef OUT
#error "the header must not define OUT"
#endif
#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED -33333
#endif
static VIP_DESCRIPTOR d;
static VIP_RETURN (*open_)(const VIP_CHAR *, VIP_NIC_HANDLE *) = VipOpenNic;
static VIP_RETURN (*post)(VIP_VI_HANDLE, VIP_DESCRIPTOR *, VIP_MEM_HANDLE) = VipPostSend;
static VIP_RETURN (*name)(VIP_NIC_HANDLE, VIP_CHAR *, VIP_NET_ADDRESS *, VIP_ULONG) =
	VipNSGetHostByName;
int main(void)
{
	d.CS.Control = VIP_CONTROL_OP_SENDRECV;
	d.Control.SegCount = 2;
	d.DS[0].Remote.Data.Address = 0;
	d.DS[1].Local.Length = 1;
	d.Data[0].Handle = 1;
	d.Data[1].Length = 2;
	d.CS.Next.Descriptor = &d;
	return open_ == 0 || post == 0 || name == 0 || d.CS.SegCount != 2
		|| VIP_ERROR_NOT_SUPPORTED == VIP_SUCCESS;
}
'''
# Programs that must not compile: they show that the warnings above have an effect.
WRONG = '#include <vipl.h>\nint main(void) { int unused; return 0; }\n'


def compile_(compiler, std, language, include, text):
    command = compiler + [f'-std={std}', '-x', language, f'-I{include}'] + WARN + ['-']
    done = subprocess.run(command, input=text, text=True, stderr=subprocess.PIPE, check=False)
    return done.returncode == 0, ' '.join(command) + '\n' + done.stderr


def compilers(first, others):
    found = [[path] for path in map(shutil.which, others) if path]
    return [first] + found


def main(argv):
    include = argv[1]
    cc = argv[argv.index('--cc') + 1:argv.index('--cxx')]
    cxx = argv[argv.index('--cxx') + 1:]
    failed = count = 0
    jobs = [(c, s, 'c') for c in compilers(cc, ['gcc', 'clang-14']) for s in C]
    jobs += [(c, s, 'c++') for c in compilers(cxx, ['g++', 'clang++-14']) for s in CXX]
    for compiler, std, language in jobs:
        texts = [ALONE.format(header='vipl.h'), ALONE.format(header='vipl_ext.h'), SPELLINGS]
        for text, expected in [(t, True) for t in texts] + [(WRONG, False)]:
            good, message = compile_(compiler, std, language, include, text)
            count += 1
            if good != expected:
                failed += 1
                print(f'expected {"success" if expected else "a diagnostic"}: {message}')
    print(f'{count} compilations, {failed} not as expected')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
