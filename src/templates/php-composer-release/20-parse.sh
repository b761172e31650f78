# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Compiles every file of the release, and starts PHP as few times as it allows.
set -euo pipefail

. ../common/enter-release.sh

enter_release "there is no release to prepare"
files() { find . -path ./vendor -prune -o -type l -prune -o -name '*.php' -type f -print0; }
compiles=(-d opcache.enable=1 -d opcache.enable_cli=1 -d opcache.restrict_api= -d opcache.preload=
	-d opcache.blacklist_filename= -d opcache.file_cache= -d display_errors=stderr -d log_errors=0 -d html_errors=0)
if php -r 'exit(PHP_VERSION_ID >= 80300 ? 0 : 1);'; then
	files | xargs -0 -r -n 500 php -l >/dev/null
elif php "${compiles[@]}" -r 'exit(function_exists("opcache_compile_file") && function_exists("pcntl_fork") ? 0 : 1);'; then
	# A process for each file, as with php -l: two files may declare one function.
	# shellcheck disable=SC2016 # of PHP
	files | php "${compiles[@]}" -r '
		$failed = 0;
		foreach (array_filter(explode("\0", stream_get_contents(STDIN)), "strlen") as $file) {
			$child = pcntl_fork();
			if ($child === 0)
				exit(opcache_compile_file($file) ? 0 : 1);
			$status = 1;
			if ($child === -1 || pcntl_waitpid($child, $status) === -1 || $status !== 0) {
				fprintf(STDERR, "%s: does not compile\n", $file);
				$failed = 1;
			}
		}
		exit($failed);'
else
	files | xargs -0 -r -n 1 -P "$(nproc)" php -l >/dev/null
fi
php -v | head -n 1
