# SPDX-License-Identifier: ISC
# Every template folder has the form that the service expects, shellcheck accepts
# its steps, and no part of a script is written twice.
use strict;
use warnings;
use File::Basename qw(basename);
use Cpanel::JSON::XS ();
use JSON::PP ();
use Test::More;
use Slipway::Template;
use Slipway::Test;

my $root = srcdir() . '/src/templates';
my $json = Cpanel::JSON::XS->new->utf8;

# The errors of a template, as sentences; files: name => text.
sub faults {
	my ($t, %files) = @_;
	my @faults;
	my $say = sub { push @faults, join '', @_ };
	return ('template.json is not an object') if ref $t ne 'HASH';
	$say->("unknown member $_")
	    for grep { !/^(name|description|checkout|envPresets|steps)$/ } sort keys %$t;
	$say->('name') if !text($t->{name}, 1, 100);
	$say->('description') if !text($t->{description}, 1, 500);
	$say->('checkout') if exists $t->{checkout} && $t->{checkout} !~ /^(?:fresh|keep|none)$/;
	$say->($_) for preset_faults($t->{envPresets});
	my %left = %files;
	my %names;
	my @steps = ref $t->{steps} eq 'ARRAY' ? @{ $t->{steps} } : ();
	$say->('no steps') if !@steps;
	for my $step (@steps) {
		my $name = ref $step eq 'HASH' && defined $step->{name} ? $step->{name} : '?';
		$say->("step $name: unknown member $_")
		    for grep { !/^(name|file|directory|runWhen|mayFail|timeoutSeconds)$/ } sort keys %$step;
		$say->("step $name: name") if !text($name, 1, 100);
		$say->("step $name: twice") if $names{$name}++;
		my $file = defined $step->{file} ? $step->{file} : '';
		$say->("step $name: file name $file")
		    if $file !~ m{^(?:[0-9]{2}-|\.\./common/)[a-z0-9-]+\.sh$};
		my $script = delete $left{$file};
		$say->("step $name: no file $file") if !defined $script;
		$say->("step $name: size") if defined $script && (length $script > 65535 || $script !~ /\S/);
		$say->("step $name: runWhen")
		    if exists $step->{runWhen} && $step->{runWhen} !~ /^(success|failure|always)$/;
		$say->("step $name: timeoutSeconds")
		    if exists $step->{timeoutSeconds} && $step->{timeoutSeconds} !~ /^[1-9][0-9]*$/;
	}
	$say->("file $_ belongs to no step") for sort keys %left;
	return @faults;
}

sub text {
	my ($s, $min, $max) = @_;
	return defined $s && !ref $s && length $s >= $min && length $s <= $max;
}

my $reserved = qr/^(?:PATH|HOME|IFS|ENV|BASH|SHELLOPTS|PS4|CI$|LD_|GIT_|SLIPWAY_|PYTHON|PERL|RUBY|NODE_)/;

# The errors of presets.
sub preset_faults {
	my ($presets) = @_;
	return ('envPresets is not an array') if ref $presets ne 'ARRAY';
	my (@faults, %keys);
	for my $p (@$presets) {
		my $key = defined $p->{key} ? $p->{key} : '?';
		my $say = sub { push @faults, join '', "preset $key: ", @_ };
		$say->("unknown member $_") for grep {
			!/^(?:key|label|type|options|required|default|description|pattern|secret)$/
		} sort keys %$p;
		$say->('key') if $key !~ /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
		$say->('twice') if $keys{$key}++;
		$say->('reserved name') if $key =~ $reserved;
		$say->('label') if !text($p->{label}, 1, 100);
		$say->('description') if exists $p->{description} && !text($p->{description}, 1, 500);
		$say->('required') if exists $p->{required} && !JSON::PP::is_bool($p->{required});
		my $type = $p->{type} || '';
		if ($type eq 'input') {
			$say->('options of an input') if exists $p->{options};
			my $ere = exists $p->{pattern} ? $p->{pattern} : '.*';
			$say->('pattern') if !eval { qr/\A(?:$ere)\z/ };
			$say->("default $p->{default} does not match")
			    if defined $p->{default} && $p->{default} !~ /\A(?:$ere)\z/;
		} elsif ($type eq 'select' || $type eq 'multiselect') {
			$say->('pattern of a choice') if exists $p->{pattern} || $p->{secret};
			my %values;
			for my $o (ref $p->{options} eq 'ARRAY' ? @{ $p->{options} } : ()) {
				$say->('option') if join(',', sort keys %$o) ne 'label,value';
				$say->("option $o->{value} twice") if $values{ $o->{value} }++;
				$say->("option $o->{value} holds a comma")
				    if $type eq 'multiselect' && $o->{value} =~ /,/;
			}
			$say->('no options') if !%values;
			$say->("default $p->{default} is not an option") if defined $p->{default}
			    && grep { !$values{$_} } $type eq 'select' ? $p->{default} : split /,/,
			    $p->{default};
		} else {
			$say->("type $type");
		}
	}
	return @faults;
}

my @wanted = qw(binary-systemd database-migration docker-compose git-clone-pipeline
    laravel nginx-vhost node php-composer-release python-venv-systemd rollback
    simple-deploy-pipeline ssh-deploy ssh-rollback static-generator static-site-rsync symfony
    systemd-restart wordpress);
my @slugs = sort map { basename($_) } grep { -d && !m{/common$} } glob "$root/*";
is_deeply(\@slugs, \@wanted, 'the package has exactly the known templates');

my (%display, %shared, %complete);
for my $slug (@slugs) {
	my %files = map { basename($_) => Slipway::Template::script($_) } glob "$root/$slug/*.sh";
	my $t = eval { $json->decode(slurp("$root/$slug/template.json")) };
	is($@, '', "$slug: template.json is valid JSON") or next;
	for my $file (grep { m{^\.\./common/} } map { $_->{file} } @{ $t->{steps} }) {
		$files{$file} = Slipway::Template::script("$root/$slug/$file");
		push @{ $shared{ basename($file) } }, "$slug/$file";
	}
	is_deeply([faults($t, %files)], [], "$slug: template.json and its scripts have no errors");
	is_deeply([grep { !/^(template\.json|.*\.sh)$/ } map { basename($_) } glob "$root/$slug/*"],
		[], "$slug: the folder contains only template.json and scripts");
	ok(!$display{ $t->{name} }++, "$slug: no other template has its name");
	%complete = (%complete, map { ("$slug-" . basename($_) => $files{$_}) } keys %files);
	my $all = join '', values %files;
	my @unused = grep { $all !~ /\b\Q$_\E\b/ } map { $_->{key} } @{ $t->{envPresets} };
	is_deeply(\@unused, [], "$slug: a script uses every preset");
	unlike($all, qr/\bsudo\b/, "$slug: no script uses sudo, which cannot work in a step");
	unlike($all, qr/sparse/i, "$slug: no script uses sparse checkout");
	for my $file (sort keys %files) {
		like($files{$file}, qr/^(?:#[^\n]*\n)+set -euo pipefail$/m,
		    "$slug/$file begins with set -euo pipefail");
	}
}
# Files that include parts are in a template's folder, or are steps themselves.
for my $file (glob "$root/*/*.sh") {
	push @{ $shared{$_} }, $file for slurp($file) =~ m{^\. \.\./common/(.*)$}mg;
}
is_deeply([sort keys %shared], [sort map { basename($_) } glob "$root/common/*"],
    'each shared file is used');
cmp_ok(scalar @{ $shared{$_} }, '>', 1, "several scripts use $_") for sort keys %shared;
is_deeply([grep { $complete{$_} =~ m{^\s*(?:\.|source)\s}m } sort keys %complete], [],
    'no step needs another file');
my %text;
push @{ $text{ slurp($_) } }, $_ for glob "$root/*/*.sh";
is_deeply([grep { @$_ > 1 } values %text], [], 'no script exists twice');
# Five lines of code in a row, without the usual head of a script.
my %place;
for my $file (glob "$root/*/*.sh") {
	my @line = grep { !m{^\s*#|^\. \.\./|^set -|^umask } && /\w/ } split /\n/, slurp($file);
	for my $i (0 .. $#line - 4) { $place{ join "\n", @line[ $i .. $i + 4 ] }{$file} = 1 }
}
is_deeply([grep { keys %{ $place{$_} } > 1 } sort keys %place], [],
    'no five lines of code are in two scripts');

my @scripts = map { spew(tempdir() . "/$_", $complete{$_}) } sort keys %complete;
my ($status, $out) = run_cmd('sh', '-c', 'command -v shellcheck');
if ($status == 0) {
	($status, $out) = run_cmd('shellcheck', '-f', 'gcc', @scripts);
	is($status, 0, 'shellcheck accepts every step') or diag($out);
} else {
	note('shellcheck is not installed: only syntax is checked');
	for my $script (@scripts) {
		($status) = run_cmd('bash', '-n', $script);
		is($status, 0, "bash accepts the syntax of $script");
	}
}

# The checks above detect errors.
my $good = sub { return {
	name => 'N', description => 'D',
	envPresets => [{ key => 'A', label => 'a', type => 'select', default => 'x',
		options => [{ label => 'x', value => 'x' }] }],
	steps => [{ name => 'S', file => '10-s.sh' }],
} };
is_deeply([faults($good->(), '10-s.sh' => 'true')], [], 'the checks accept a valid template');
for my $case (
	['a missing file', sub { }, {}],
	['an unused file', sub { }, { '10-s.sh' => 'x', '20-t.sh' => 'x' }],
	['an empty file', sub { }, { '10-s.sh' => "\n" }],
	['an unknown member', sub { $_[0]{env} = 1 }],
	['no steps', sub { $_[0]{steps} = [] }, {}],
	['a duplicate name of a step', sub { push @{ $_[0]{steps} }, { name => 'S', file => '20-t.sh' } },
		{ '10-s.sh' => 'x', '20-t.sh' => 'x' }],
	['a file outside the folder', sub { $_[0]{steps}[0]{file} = '../10-s.sh' }],
	['an invalid runWhen', sub { $_[0]{steps}[0]{runWhen} = 'never' }],
	['an invalid timeout', sub { $_[0]{steps}[0]{timeoutSeconds} = 0 }],
	['an invalid key', sub { $_[0]{envPresets}[0]{key} = '1A' }],
	['a reserved key', sub { $_[0]{envPresets}[0]{key} = 'LD_PRELOAD' }],
	['an invalid type', sub { $_[0]{envPresets}[0]{type} = 'number' }],
	['a selection without options', sub { $_[0]{envPresets}[0]{options} = [] }],
	['a default that is not an option', sub { $_[0]{envPresets}[0]{default} = 'y' }],
) {
	my ($name, $change, $files) = @$case;
	my $t = $good->();
	$change->($t);
	isnt(scalar(faults($t, %{ $files || { '10-s.sh' => 'true' } })), 0, "the checks reject $name");
}

done_testing;
