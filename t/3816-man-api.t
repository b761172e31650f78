# SPDX-License-Identifier: ISC
# slipway-api(7) and the OpenAPI document that the service serves describe the
# same operations, and the page names every member of every schema.
use strict;
use warnings;
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Test;

my $page = slurp(srcdir() . '/man/slipway-api.7');
my $api = Slipway::API->start(db => Slipway::DB->start);
my $document = $api->get('/api/openapi.json')->{json};
ok($document->{paths}, 'the service serves the document');

my @operations;
for my $path (keys %{ $document->{paths} }) {
	push @operations, map { "\U$_\E $path" } grep { /^(?:get|post|put|delete)$/ }
	    keys %{ $document->{paths}{$path} };
}
my %said = map { $_ => 1 } $page =~ /^\.Ss ((?:GET|POST|PUT|DELETE) \S+)$/mg;
is_deeply([sort keys %said], [sort @operations], 'the page has every operation and no other');

# Returns the words of .Va lines as keys.
sub members { return map { $_ => 1 } map { /(\w+)/g } $_[0] =~ /^\.(?:It )?Va (.*)/mg }

my %schema = %{ $document->{components}{schemas} };
my %section = (PROJECTS => 'Project', PIPELINES => 'Pipeline', STEPS => 'Step',
	TEMPLATES => 'Template', DEPLOYMENTS => 'Deployment', ENVIRONMENTS => 'Environment',
	'SHARED VARIABLES' => 'Variable', LOCKS => 'Lock',
	MEMBERS => 'Member',
	NOTIFIERS => 'Notifier', RUNNERS => 'Runner', SCHEDULES => 'Schedule', 'AUDIT LOG' => 'AuditEntry',
	USERS => 'User');
for my $title (sort keys %section) {
	my ($head) = $page =~ /^\.Sh $title\n(.*?)^\.(?:Pp|Ss|Bl)/ms;
	my %told = members($head || '');
	my @have = sort keys %{ $schema{ $section{$title} }{properties} };
	is_deeply([sort keys %told], \@have,
	    "$title: the page lists the members of $section{$title} and no others");
}
my %anywhere = members($page);
for my $name (sort grep { !/(?:Input|Update|Summary)$/ } keys %schema) {
	my @missing = grep { !$anywhere{$_} } sort keys %{ $schema{$name}{properties} || {} };
	is_deeply(\@missing, [], "$name: the page names every member");
}

# Values of enumerations, which the page sets in .Li.
my %literal = map { $_ => 1 } map { /(\w+)/g } $page =~ /\bLi (.*)/g;
for my $name (sort grep { $schema{$_}{enum} } keys %schema) {
	my @missing = grep { !$literal{$_} } @{ $schema{$name}{enum} };
	is_deeply(\@missing, [], "$name: every value is on the page");
}

done_testing;
