# SPDX-License-Identifier: ISC
package Slipway::Npm;

# The third-party checkers of t/npm: installed by `npm ci` into a directory of the
# build (or $SLIPWAY_NPM_DIR) that later runs reuse. Without npm or its registry
# tests do without them.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(:flock);
use File::Basename qw(basename);
use File::Copy qw(copy);
use File::Path qw(make_path);
use Slipway::Test;
use Test::More ();

our @EXPORT = qw(npm_dir);

# The directory with node_modules and the files of t/npm; undef, and a note with
# npm's output, if they cannot be installed.
sub npm_dir {
	my $from = srcdir() . '/t/npm';
	my $dir = $ENV{SLIPWAY_NPM_DIR} || builddir() . '/npm';
	make_path($dir);
	open my $lock, '>', "$dir/.lock" or die "$dir/.lock: $!";
	flock $lock, LOCK_EX or die "$dir/.lock: $!";
	my $want = sha256_hex(slurp("$from/package-lock.json"));
	my $have = slurp("$dir/.installed");
	for my $file (glob "$from/*") { # a test that runs may read the old one
		my $to = "$dir/" . basename($file);
		copy($file, "$to.new") && rename "$to.new", $to or die "$file: $!";
	}
	if (!defined $have || $have ne $want) {
		# a registry that is slow now is slow for the next test
		if (-e "$dir/.failed" && time - (stat _)[9] < 900) {
			Test::More::note("npm ci failed in $dir a short while ago");
			return undef;
		}
		my ($status, $out, $err) = run_cmd({ cwd => $dir }, 'timeout', 1800, 'npm', 'ci',
		    qw(--ignore-scripts --no-audit --no-fund --loglevel=error),
		    qw(--fetch-retries=1 --fetch-timeout=60000));
		if ($status != 0) {
			spew("$dir/.failed", '');
			Test::More::note("npm ci failed in $dir (is npm installed, is its registry"
			    . " reachable?):\n$out$err");
			return undef;
		}
		unlink "$dir/.failed";
		spew("$dir/.installed", $want);
	}
	return $dir;
}

1;
