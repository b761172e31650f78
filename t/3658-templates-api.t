# SPDX-License-Identifier: ISC
# Templates through the service: the API accepts each template's presets and steps.
use strict;
use warnings;
use File::Basename qw(basename);
use Cpanel::JSON::XS ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;

my $api = Slipway::API->start(db => Slipway::DB->start);
my $root = srcdir() . '/src/templates';
my @dirs = grep { -d && !m{/common$} } glob "$root/*";
my $list = $api->get('/api/templates?limit=100')->{json};
is_deeply([map { $_->{id} } @{ $list->{data} }], [sort map { basename($_) } @dirs],
    'the API lists every template');
for my $dir (@dirs) {
	my $slug = basename($dir);
	my $t = Cpanel::JSON::XS->new->utf8->decode(slurp("$dir/template.json"));
	my $got = $api->post('/api/projects', { name => $slug,
		repository => "https://git.example.org/a/$slug.git", envPresets => $t->{envPresets} });
	is($got->{status}, 201, "$slug: a project with its presets is created") or diag($got->{body});
	my @steps = map { {
		name => $_->{name}, script => slurp("$dir/$_->{file}"),
		runWhen => $_->{runWhen} || 'success', timeoutSeconds => $_->{timeoutSeconds},
	} } @{ $t->{steps} };
	my $shown = $api->get("/api/templates/$slug")->{json};
	is_deeply([map { [@$_{qw(name script runWhen)}] } @{ $shown->{steps} }],
	    [map { [@$_{qw(name script runWhen)}] } @steps], "$slug: the API returns its steps");
	my $made = $api->post('/api/pipelines', { projectId => $got->{json}{id},
		name => $t->{name}, description => $t->{description}, steps => \@steps });
	is($made->{status}, 201, "$slug: a pipeline with its steps is created") or diag($made->{body});
	is_deeply([map { $_->{script} } @{ $made->{json}{steps} }], [map { $_->{script} } @steps],
	    "$slug: the pipeline has the text of its scripts");
}

# The API does check presets.
for my $case (['an invalid type', { type => 'number' }],
    ['a default that is not an option', { default => 'z' }],
	['an invalid name', { key => '1A' }],
	['a name that controls the shell', { key => 'BASH_ENV' }]) {
	my ($name, $change) = @$case;
	my %preset = (key => 'A', label => 'a', type => 'select', options => [{ label => 'x', value => 'x' }],
	    %$change);
	my $got = $api->post('/api/projects',
	    { name => 'refused', repository => 'https://git.example.org/a/r.git',
		envPresets => [\%preset] });
	is($got->{status}, 422, "a preset with $name is rejected");
}

done_testing;
