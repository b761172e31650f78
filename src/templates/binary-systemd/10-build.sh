# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds and tests the program.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

binary=${BINARY:?set BINARY to the file that the build creates}
[[ $binary != [/-]* && $binary != *..* && /$binary != */.git/* ]] ||
	die "BINARY must be a file of the checkout"
case ${BUILD:-make} in
make)
	need make make
	make
	if make -n check >/dev/null 2>&1; then make check; fi ;;
go)
	need go golang
	go vet ./...
	go test ./...
	go build -o "$binary" . ;;
cargo)
	need cargo cargo
	cargo test --locked --release
	cargo build --locked --release ;;
none) echo "nothing to build" ;;
*) die "BUILD must be make, go, cargo or none" ;;
esac
if [ ! -f "$binary" ] || [ ! -x "$binary" ]; then
	die "$binary was not built or is not executable"
fi
[ -z "${VERSION_OPTION:-}" ] || "./$binary" "$VERSION_OPTION"
