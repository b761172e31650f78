#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What a deployer may choose in a template that comes with slipway: the service
# rejects values that read as options, hold blanks or leave the checkout, and
# what names a host, a key or a program is no free text.

use strict;
use warnings;
use File::Basename qw(basename);
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $api = Slipway::API->start(db => Slipway::DB->start, conf => "[api]\nworkers = 1\n");
make_keys($api->conf_file, $api->dir . '/secret.key');
$api->stop_api;
$api->start_api;
my $deployer = $api->as('deployer');

# Values that a script could take for something else.
my @hostile = ('-x', '--eval=$(id)', "a\nb", 'a b', "\t", '$(id)', '`id`', 'a;id', '../../etc', "x'y");
# Free text by its nature: a secret is never an argument of anything.
my %free = map { $_ => 1 } qw(DB_PASSWORD);
# An address is quoted wherever it stands, and always begins with its scheme.
my %address = map { $_ => 1 } qw(CHECK_URL BASE_URL);
# Paths that begin with a slash, which scripts quote.
my %path = map { $_ => 1 } qw(RELOAD_TRIGGER);

for my $dir (grep { -d && !m{/common$} } glob srcdir() . '/src/templates/*') {
	my $slug = basename($dir);
	my $template = JSON::PP->new->utf8->decode(slurp("$dir/template.json"));
	my %preset = map { $_->{key} => $_ } @{ $template->{envPresets} };
	my $project = $api->post('/api/projects', { name => $slug, repository => 'https://git.example.org/o/p.git' })->{json}{id};
	my $made = $api->post('/api/pipelines/from-template', { templateId => $slug, projectId => $project });
	is($made->{status}, 201, "$slug: a pipeline") or diag($made->{body});
	my %good = map {
		my $p = $preset{$_};
		$p->{required} && !defined $p->{default} ? ($_ => $p->{options} ? $p->{options}[0]{value} : "/srv/app/$_") : ();
	} keys %preset;
	my $got = $deployer->post('/api/deployments', { projectId => $project, envVars => \%good });
	is($got->{status}, 201, '- that a deployer can deploy with its presets') or diag($got->{body});
	$got = $deployer->post('/api/deployments', { projectId => $project, envVars => { %good, MAKEFLAGS => '--eval=x' } });
	is($got->{status}, 422, '- and with nothing else');
	for my $key (sort grep { !$free{$_} } keys %preset) {
		my @accepted = grep {
			my $value = $_;
			$got = $deployer->post('/api/deployments', { projectId => $project, envVars => { %good, $key => $value } });
			!($got->{status} == 422 && $got->{json}{errors}[0]{pointer} eq "/envVars/$key");
		} @hostile, $address{$key} ? ('file:///etc/passwd', "https://h/ -o x", "https://h/\nx") : (),
		    $path{$key} ? ("/a b", "/a\nb") : ();
		is_deeply(\@accepted, [], "- $key: no hostile value is accepted");
	}
	my @named = grep { $preset{$_} && $preset{$_}{type} eq 'input' }
	    qw(HOSTS REMOTE_DIR SSH_KEY_FILE KNOWN_HOSTS REMOTE_SCRIPT DB DB_HOST DB_SOCKET DB_USER DB_DEFAULTS_FILE BACKUP_DIR
	    MIGRATIONS_DIR NGINX_CONF VHOST VHOST_DIR RELOAD_RESULT COMPOSE_PROJECT SERVICES SITES VERSION_OPTION);
	is_deeply(\@named, [], '- hosts, keys, accounts and programs are choices that a maintainer edits');
}

done_testing;
