# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Parses every file of the release, in as few processes as PHP allows.
set -euo pipefail

. ../common/enter-release.sh

enter_release "there is no release to prepare"
files() { find . -path ./vendor -prune -o -type l -prune -o -name '*.php' -type f -print0; }
if php -r 'exit(PHP_VERSION_ID >= 80300 ? 0 : 1);'; then
	files | xargs -0 -r -n 500 php -l >/dev/null
elif php -r 'exit(function_exists("token_get_all") ? 0 : 1);'; then
	# shellcheck disable=SC2016 # of PHP
	files | php -r '
		$failed = 0;
		foreach (array_filter(explode("\0", stream_get_contents(STDIN)), "strlen") as $file) {
			try {
				token_get_all(file_get_contents($file), TOKEN_PARSE);
			} catch (\Throwable $e) {
				fprintf(STDERR, "PHP Parse error: %s in %s on line %d\n", $e->getMessage(), $file, $e->getLine());
				$failed = 1;
			}
		}
		exit($failed);'
else
	files | xargs -0 -r -n 1 -P "$(nproc)" php -l >/dev/null
fi
php -v | head -n 1
