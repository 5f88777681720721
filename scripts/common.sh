# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced by the other scripts: where the tree and the build are, and how to configure a build.

root=$(cd "$(dirname "$0")/.." && pwd)

# The library warns of VIADUCT_* names it does not know, so this one is not passed on.
build=${VIADUCT_BUILD:-$root/build}
unset VIADUCT_BUILD
case $build in
/*) ;;
*) build=$(pwd)/$build ;;
esac

# Many tests mostly wait, so there is work for one more than there are processors.
MESON_TESTTHREADS=${MESON_TESTTHREADS:-$(($(nproc) + 1))}
export MESON_TESTTHREADS

say() {
	printf '%s\n' "$*"
}

heading() {
	printf '\n== %s\n' "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# quietly COMMAND...: shows its output only when it fails.
quietly() {
	_log=$(mktemp) || return 1
	_rc=0
	"$@" >"$_log" 2>&1 || _rc=$?
	if [ $_rc != 0 ]; then
		tail -n 60 "$_log"
	fi
	rm -f "$_log"
	return $_rc
}

# configure DIR [meson options]: sets up a build directory, or changes the options of one.
configure() {
	_dir=$1
	shift
	if [ -f "$_dir/build.ninja" ]; then
		if [ $# -gt 0 ]; then
			quietly meson configure "$_dir" "$@"
		fi
	else
		quietly meson setup "$_dir" "$root" "$@"
	fi
}

# compile DIR: shows what failed, without the lines of what did not.
compile() {
	_log=$(mktemp) || return 1
	_rc=0
	ninja -C "$1" >"$_log" 2>&1 || _rc=1
	if [ $_rc != 0 ]; then
		grep -vE '^\[[0-9]+/[0-9]+\] ' "$_log" | tail -n 80
	fi
	rm -f "$_log"
	return $_rc
}
