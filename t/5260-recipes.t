#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The recipes of slipway-api(7) for curl, run as they are printed, in their order;
# only the address, the token and the repository are those of the test.

use strict;
use warnings;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my ($text) = slurp(srcdir() . '/man/slipway-api.7') =~ /^\.Sh EXAMPLES\n(.*?)^\.Sh /ms;
my ($prelude, @recipes) = map { s/\\e/\\/gr } $text =~ /^\.Bd -literal[^\n]*\n(.*?)^\.Ed$/msg;
is(scalar @recipes, 10, 'the page has ten recipes');

my $all = Slipway::Whole->start;
my ($api, $repo) = ($all->api, $all->runner->repo({ Makefile => "all install:\n\techo made\n" }));
my $token = $api->token('admin');
my $dir = tempdir() . '/recipes';
mkdir $dir or die "$dir: $!";
for (['https://slipway.example.org', $api->url], ['slw_...', $token]) {
	my ($example, $real) = @$_;
	ok($prelude =~ s/\Q$example\E/$real/, "the recipes begin with $example");
}

# The output of a recipe, which must succeed.
sub recipe {
	my ($name, $like) = @_;
	my $shell = shift(@recipes) =~ s{https://git\.example\.org/ada/shop}{$repo}r;
	my ($status, $out, $err) = run_cmd({ cwd => $dir, env => { CURL_CA_BUNDLE => $api->cacert } },
	    'timeout', '1200', 'bash', '-ec', "$prelude\n$shell");
	is($status, 0, "$name: the recipe succeeds") or diag($shell, $out, $err);
	like($out, $like, "$name: the recipe does what its text says") or diag($out);
	return $out;
}
recipe('a project', qr/"name":"shop".*"script":"make\\n"/s);
recipe('a deployment', qr/"id":1,.*"status":"pending"/);
recipe('the end of a deployment', qr/\A\z/);
like(slurp("$dir/result"), qr/"id":1,.*"status":"success"/,
    'the end of a deployment: the file has the result');
is(recipe('a log', qr/^made$/m), $all->log(1), 'a log: every byte is printed once');
$all->wait($all->post(projectId => 1, commitHash => '0' x 40));
recipe('failures', qr/\A"id":2\n.*^"reason":"checkout_failed"\n"detail":"/ms);
recipe('a lock', qr/"reason":"The disk is replaced\."/);
is($api->get('/api/projects/1')->{json}{lock}, undef, 'a lock: it is removed');
recipe('a trigger', qr/"triggers":\[\{"branch":"main".*"secret":"/s);
@recipes = map { s{/deployments/2/}{/deployments/3/}r } @recipes; # one failed above
recipe('environments', qr/"name":"staging".*"name":"production".*"id":3,.*"environmentId":1/s);
is($all->wait(3)->{status}, 'success', 'environments: the deployment succeeds');
recipe('a promotion', qr/"environmentId":2,.*"trigger":"promotion"/);
is($all->wait(4)->{status}, 'success', 'a promotion: the deployment succeeds');
recipe('a step', qr/"script":"make install\\n"/);
done_testing();
