# SPDX-License-Identifier: ISC
package Slipway::Python;

# The third-party packages of t/python, exactly as requirements.txt names and hashes
# them: installed by pip into a directory of the build (or $SLIPWAY_PYTHON_DIR) that
# later runs reuse.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(:flock);
use File::Path qw(make_path);
use Slipway::Test;
use Test::More ();

our @EXPORT = qw(python_dir);

# The directory of a bin/python with these packages; undef, and a note with the
# output, if they cannot be installed.
sub python_dir {
	my $list = srcdir() . '/t/python/requirements.txt';
	my $dir = $ENV{SLIPWAY_PYTHON_DIR} || builddir() . '/python';
	make_path($dir);
	open my $lock, '>', "$dir/.lock" or die "$dir/.lock: $!";
	flock $lock, LOCK_EX or die "$dir/.lock: $!";
	my $want = sha256_hex(slurp($list));
	my $have = slurp("$dir/.installed");
	return $dir if defined $have && $have eq $want;
	# a registry that is slow now is slow for the next test
	if (-e "$dir/.failed" && time - (stat _)[9] < 900) {
		Test::More::note("pip failed in $dir a short while ago");
		return undef;
	}
	# Debian's pip, where it is: unpacking a copy takes longer than all packages
	my ($pip) = glob '/usr/share/python-wheels/pip-*.whl';
	my %env = $pip ? (PYTHONPATH => $pip) : ();
	for my $command ([ '/usr/bin/python3', '-m', 'venv', ($pip ? '--without-pip' : ()), '--clear',
	    "$dir/venv" ],
	    [ "$dir/venv/bin/python",
	    qw(-m pip install --quiet --disable-pip-version-check --no-deps --require-hashes
		--no-compile --only-binary :all: --retries 1 --timeout 60 -r), $list ]) {
		my ($status, $out, $err) = run_cmd({ cwd => $dir, env => \%env }, 'timeout', 1800,
		    @$command);
		next if $status == 0;
		spew("$dir/.failed", '');
		Test::More::note("$command->[2] failed in $dir (is python3-venv installed, is the registry"
		    . " reachable?):\n$out$err");
		return undef;
	}
	unlink "$dir/.failed";
	spew("$dir/.installed", $want);
	return $dir;
}

1;
