#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The console's modules have correct types: TypeScript checks their JSDoc against
# types generated from the served OpenAPI document.  All texts are in one folder, and
# nothing makes markup out of text.  SLIPWAY_JUDGES=all requires npm's packages.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Npm;
use Slipway::Test;
use Test::More;

my $top = srcdir() . '/src/console';
my $tree = tempdir() . '/console';
my ($status) = run_cmd('cp', '-R', $top, $tree);
is($status, 0, 'the console is copied');
my @modules = map { chomp; $_ } split /^/, (run_cmd('find', $tree, '-name', '*.js'))[1];
ok(@modules > 20, 'the test finds the modules');
is_deeply([ grep { slurp($_) =~ /\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b/ }
	    @modules ], [], 'no module makes markup or code out of text');
is_deeply([ grep { slurp($_) =~ /\bfrom '(?!\.{1,2}\/)/ } @modules ], [], 'modules import only each other');

is_deeply([ grep { (() = slurp($_) =~ /\n/g) > 600 } @modules ], [], 'no module has more than 600 lines');

my $npm = npm_dir();
if (!$npm) {
	ok(($ENV{SLIPWAY_JUDGES} // '') ne 'all', 'without npm, the types are not checked');
	done_testing;
	exit;
}
my $api = Slipway::API->start(db => Slipway::DB->start);
my $document = spew(tempdir() . '/openapi.json', $api->as('none')->get('/api/openapi.json')->{body});
($status, undef, my $err) = run_cmd({ cwd => $npm }, 'node_modules/.bin/openapi-typescript', $document,
    '-o', "$tree/lib/api-types.d.ts");
is($status, 0, 'types are generated from the OpenAPI document') or diag($err);
my @options = qw(--noEmit --skipLibCheck --allowJs --checkJs --strict --noUnusedLocals --noUnusedParameters
    --target es2022 --module es2022 --moduleResolution bundler);
my ($code, $out) = run_cmd({ cwd => $npm }, 'node_modules/.bin/tsc', @options,
    '--lib', 'es2023,dom,dom.iterable', "$tree/main.js");
is("$code$out", '0', 'the modules have correct types');
done_testing;
