#!/bin/bash
# SPDX-License-Identifier: ISC
# `make lint`: runs every checker over its files, then fails if any of them
# reported a problem.  Called in the build directory with SRCDIR, CPPFLAGS and
# WARNINGS set, none with quoted blanks.
set -uo pipefail
export LC_ALL=C
top=$(cd "${SRCDIR:?}" && pwd -P)
stamps=$PWD/lint
mkdir -p "$stamps"
failed=()

check() {
	local name=$1
	shift
	printf '==> %s\n' "$name"
	"$@" || failed+=("$name")
}

mapfile -t code < <(find "$top/src" -name '*.c' | sort)
mapfile -t units < <(find "$top/t/unit" "$top/t/fuzz" -name '*.c' | sort)
mapfile -t headers < <(find "$top/src" "$top/t/unit" "$top/t/fuzz" -name '*.h' \
    ! -name '*.sql.h' | sort)
mapfile -t statements < <(find "$top/src/store" "$top/src/queue" -name '*.sql' | sort)
mapfile -t shell < <(find "$top/src/templates" "$top/t" -name '*.sh' | sort)
shell+=("$top"/src/debian/*.{postinst,postrm,prerm} "$top/src/debian/tests/deployment")
shell+=("$top/bootstrap" "$top/.ci/run")

format() { clang-format --dry-run -Werror "${code[@]}" "${units[@]}" "${headers[@]}"; }

# clang's warnings about the sources are a part of clang-tidy's check.
clang_units() {
	# shellcheck disable=SC2086 # flags are words
	clang -fsyntax-only -Werror $CLANG_FLAGS "-I$top/t/unit" "${units[@]}"
}

# One file per run: version 14 is confused by several.  A file that passed is not
# checked again until it, a header or the settings change.
export TIDY_STAMPS=$stamps TIDY_TOP=$top
# gcc has warnings that clang does not know.
export CLANG_FLAGS="$CPPFLAGS $WARNINGS -Wno-unknown-warning-option"
# How many states of a function the analyzer explores. Its default, 225000, takes
# ten times as long and has found nothing more: LINT_NODES=225000 make lint.
export TIDY_NODES=${LINT_NODES:-10000}
TIDY_COMMON=$({
	echo "$CLANG_FLAGS $TIDY_NODES"
	cat "$top/.clang-tidy" "$top/t/lint.h" "${headers[@]}" "${statements[@]}"
} | sha256sum)
export TIDY_COMMON
tidy_one() {
	local file=$1 flags='' extra='' sum out stamp
	# mysql.h itself uses banned names.
	case $file in */src/db/*) flags="-include mariadb/mysql.h" ;; esac
	case $file in
	*/core/err.c | */core/arena.c) ;;
	*) extra="-include $TIDY_TOP/t/lint.h" ;;
	esac
	sum=$({ echo "$TIDY_COMMON"; cat "$file"; } | sha256sum)
	stamp=$TIDY_STAMPS/${file//\//_}
	[ "$(cat "$stamp" 2>/dev/null)" != "$sum" ] || return 0
	# shellcheck disable=SC2086 # flags are words
	if out=$(cd "$TIDY_TOP" && clang-tidy --quiet "$file" -- $flags $CLANG_FLAGS $extra \
	    -Xclang -analyzer-config -Xclang "max-nodes=$TIDY_NODES" 2>&1); then
		printf '%s' "$sum" >"$stamp"
	else
		printf '%s\n' "$out"
		return 1
	fi
}
export -f tidy_one
tidy() {
	# shellcheck disable=SC2016 # for the inner shell
	printf '%s\0' "${code[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy_one "$1"' -
}

cpp() {
	# shellcheck disable=SC2086
	cppcheck -q -j "$(nproc)" --std=c11 --error-exitcode=1 --inline-suppr \
	    --enable=warning,performance,portability --library=posix --library=bsd \
	    --suppress=missingIncludeSystem --suppress=unknownMacro \
	    --suppress=getgrgidCalled --suppress=getgrnamCalled --suppress=getpwnamCalled \
	    --suppress=getpwuidCalled --suppress=getpwentCalled \
	    --suppress=readdirCalled --suppress=funcArgOrderDifferent \
	    "-I$top/src" -Isrc -D_GNU_SOURCE -DSLIPWAY_VERSION='""' -DSLIPWAY_TEMPLATES='""' \
	    -DSLIPWAY_CONF='""' -DSLIPWAY_EXAMPLE='""' -DSLIPWAY_LIBEXEC='""' "${code[@]}"
}

pages() {
	local found
	found=$(find "$top/man" . -maxdepth 2 -path '*man/*.[1-8]' 2>/dev/null)
	# shellcheck disable=SC2086
	[ -n "$found" ] && mandoc -Tlint -Wwarning $found
}

check "clang-format" format
check "shellcheck" shellcheck -x -P "$top" "${shell[@]}"
check "mandoc" pages
check "layers, banned names, lengths" prove -Q "-I$top/t/lib" "$top/t/0100-tree.t"
check "cppcheck" cpp
check "clang" clang_units
check "clang-tidy" tidy

if [ ${#failed[@]} -gt 0 ]; then
	printf 'lint: failed: %s\n' "${failed[*]}" >&2
	exit 1
fi
echo "lint: passed"
