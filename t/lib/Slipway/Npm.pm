# SPDX-License-Identifier: ISC
package Slipway::Npm;

# The third-party judges of t/npm: installed by `npm ci` into a directory of
# the build (or $SLIPWAY_NPM_DIR) that later runs use again.  Where there is no
# npm, or its registry is not reached, other judges must do.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(:flock);
use File::Copy qw(copy);
use File::Path qw(make_path);
use Slipway::Test;
use Test::More ();

our @EXPORT = qw(npm_dir);

my %quiet = (REDOCLY_TELEMETRY => 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE => 'true');

# The directory that has node_modules and the files of t/npm; undef, and a note
# of what npm said, where they cannot be had.
sub npm_dir {
	my $from = srcdir() . '/t/npm';
	my $dir = $ENV{SLIPWAY_NPM_DIR} || builddir() . '/npm';
	make_path($dir);
	open my $lock, '>', "$dir/.lock" or die "$dir/.lock: $!";
	flock $lock, LOCK_EX or die "$dir/.lock: $!";
	my $want = sha256_hex(slurp("$from/package-lock.json"));
	my $have = slurp("$dir/.installed");
	for my $file (glob "$from/*") {
		copy($file, $dir) or die "$file: $!";
	}
	if (!defined $have || $have ne $want) {
		# a registry that is slow now is so for the next test as well
		if (-e "$dir/.failed" && time - (stat _)[9] < 900) {
			Test::More::note("npm ci failed in $dir a short while ago");
			return undef;
		}
		my ($status, $out, $err) = run_cmd({ cwd => $dir }, 'timeout', deadline(300), 'npm', 'ci',
			qw(--ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=60000));
		if ($status != 0) {
			spew("$dir/.failed", '');
			Test::More::note("npm ci failed in $dir (is npm installed, is its registry reached?):\n$out$err");
			return undef;
		}
		unlink "$dir/.failed";
		spew("$dir/.installed", $want);
	}
	$ENV{$_} = $quiet{$_} for keys %quiet;
	return $dir;
}

1;
