#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The values that a deployer may set in the shipped templates: the service rejects
# values that look like options, contain blanks or leave the checkout, and hosts,
# keys and programs are not free text.

use strict;
use warnings;
use File::Basename qw(basename);
use Cpanel::JSON::XS ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $api = Slipway::API->start(db => Slipway::DB->start, keys => 1, conf => "[api]\nworkers = 1\n");
my $deployer = $api->as('deployer');

# Values that a script could misinterpret.
my @hostile = ('-x', '--eval=$(id)', "a\nb", 'a b', "\t", '$(id)', '`id`', 'a;id', '../../etc', "x'y");
# Free text by its nature: a secret is never an argument of a program.
my %free = map { $_ => 1 } qw(DB_PASSWORD);
# An address is always quoted, and begins with its scheme.
my %address = map { $_ => 1 } qw(CHECK_URL BASE_URL);
# Paths that begin with a slash, which scripts quote.
my %path = map { $_ => 1 } qw(RELOAD_TRIGGER);

for my $dir (grep { -d && !m{/common$} } glob srcdir() . '/src/templates/*') {
	my $slug = basename($dir);
	my $template = Cpanel::JSON::XS->new->utf8->decode(slurp("$dir/template.json"));
	my %preset = map { $_->{key} => $_ } @{ $template->{envPresets} };
	my $project = $api->make('/api/projects',
	    { name => $slug, repository => 'https://git.example.org/o/p.git' })->{id};
	my $made = $api->post('/api/pipelines/from-template', { templateId => $slug, projectId => $project });
	is($made->{status}, 201, "$slug: a pipeline is created from the template") or diag($made->{body});
	my %good = map {
		my $p = $preset{$_};
		my $value = $p->{options} ? $p->{options}[0]{value} : "/srv/app/$_";
		$p->{required} && !defined $p->{default} ? ($_ => $value) : ();
	} keys %preset;
	my $deploy = sub {
		my (%more) = @_;
		return $deployer->post('/api/deployments',
		    { projectId => $project, envVars => { %good, %more } });
	};
	my $got = $deploy->();
	is($got->{status}, 201, "$slug: a deployer can deploy with its presets") or diag($got->{body});
	$got = $deploy->(MAKEFLAGS => '--eval=x');
	is($got->{status}, 422, "$slug: a deployer cannot set a variable outside its presets");
	for my $key (sort grep { !$free{$_} } keys %preset) {
		my @accepted = grep {
			my $value = $_;
			$got = $deploy->($key => $value);
			!($got->{status} == 422 && $got->{json}{errors}[0]{pointer} eq "/envVars/$key");
		} @hostile, $address{$key} ? ('file:///etc/passwd', "https://h/ -o x", "https://h/\nx") : (),
		    $path{$key} ? ("/a b", "/a\nb") : ();
		is_deeply(\@accepted, [], "$slug: no hostile value of $key is accepted");
	}
	my @named = grep { $preset{$_} && $preset{$_}{type} eq 'input' }
	    qw(HOSTS REMOTE_DIR SSH_KEY_FILE KNOWN_HOSTS REMOTE_SCRIPT DB DB_HOST DB_SOCKET DB_USER
	    DB_DEFAULTS_FILE BACKUP_DIR MIGRATIONS_DIR
	    NGINX_CONF VHOST VHOST_DIR RELOAD_RESULT COMPOSE_PROJECT SERVICES SITES VERSION_OPTION);
	is_deeply(\@named, [],
	    "$slug: hosts, keys, accounts and programs are options that only a maintainer edits");
}

done_testing;
