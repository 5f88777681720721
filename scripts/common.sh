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

# Meson uses ccache where it is installed: a clone in another folder finds what was compiled here.
CCACHE_BASEDIR=$root
CCACHE_NOHASHDIR=yes
export CCACHE_BASEDIR CCACHE_NOHASHDIR

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

# compile DIR [TARGET]...: shows the output of steps that failed, without that of the others.
compile() {
	_log=$(mktemp) || return 1
	_rc=0
	ninja -C "$@" >"$_log" 2>&1 || _rc=1
	if [ $_rc != 0 ]; then
		grep -vE '^\[[0-9]+/[0-9]+\] ' "$_log" | tail -n 80
	fi
	rm -f "$_log"
	return $_rc
}

# product_targets DIR: what `all` builds, but for tests, manual pages and files of other targets.
product_targets() {
	meson introspect --targets "$1" | python3 -c '
import json, os, sys
build, root = (os.path.realpath(path) for path in sys.argv[1:3])
for target in json.load(sys.stdin):
    folder = os.path.relpath(os.path.realpath(target["defined_in"]), root).split(os.sep)[0]
    if target["build_by_default"] and folder not in ("tests", "man") and target["type"] != "static library":
        print(*(os.path.relpath(os.path.realpath(name), build) for name in target["filename"]))
' "$1" "$root"
}

# compile_product DIR: without the tests; on a terminal ninja shows how far it is, elsewhere a line says it for each tenth.
compile_product() {
	_targets=$(product_targets "$1") || return 1
	if [ -t 1 ]; then
		# shellcheck disable=SC2086 # a list of targets
		ninja -C "$1" $_targets
		return
	fi
	# shellcheck disable=SC2086
	{
		NINJA_STATUS='[%f/%t] ' ninja -C "$1" $_targets 2>&1 || echo "compile_product: failed"
	} | awk '
		/^\[[0-9]+\/[0-9]+\] / {
			split($1, part, /[][\/]/)
			tenth = int(10 * part[2] / part[3])
			if (tenth > shown) { shown = tenth; print part[2] " of " part[3] " steps"; fflush() }
			next
		}
		/^compile_product: failed$/ { failed = 1; next }
		!/^ninja: / { print }
		END { exit failed }'
}

# run_tests DIR SETUP [argument of meson test]...: runs them, those that failed once more, and counts; fails if some do.
run_tests() {
	_dir=$1
	_setup=$2
	shift 2
	_options=--rerun
	for _arg; do
		case $_arg in
		--benchmark) _options="$_options --benchmark" ;;
		--repeat*) _options=$(printf '%s' "$_options" | sed 's/--rerun//') ;; # a run that repeats tests looks for failures
		esac
	done
	mkdir -p "$_dir/meson-logs"
	rm -f "$_dir/meson-logs/testlog${_setup:+-$_setup}.json"
	"$root/scripts/machine.py" watch "$_dir" </dev/null &
	_watch=$!
	_rc=0
	meson test -C "$_dir" --no-rebuild --print-errorlogs ${_setup:+--setup "$_setup"} "$@" || _rc=$?
	kill "$_watch" 2>/dev/null || :
	wait "$_watch" 2>/dev/null || :
	# shellcheck disable=SC2086 # a list of options
	"$root/scripts/results.py" $_options --status "$_rc" "$_dir" ${_setup:+"$_setup"}
}
