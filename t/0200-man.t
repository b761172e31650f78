#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The man pages document exactly the settings, errors, routes and templates that
# exist, and mandoc finds nothing wrong with them.

use strict;
use warnings;
use Test::More;
use Slipway::Test;

my $top = srcdir();
my %page = map { m{([^/]+?)(?:\.in)?$} && ($1 => slurp($_)) }
    glob "$top/man/*.[1578] $top/man/*.[578].in";
cmp_ok(scalar keys %page, '>=', 8, 'the test finds the man pages');

my ($no_mandoc) = run_cmd('sh', '-c', 'command -v mandoc');
note('mandoc is not installed: the pages are not linted') if $no_mandoc;
for my $name (sort keys %page) {
	my ($title, $section) = $name =~ /^(.+)\.(\d)$/;
	ok($page{$name} =~ /^\.Dt \Q\U$title\E\E $section$/m, "$name: .Dt names the page and its section");
	while ($page{$name} =~ /^\.Xr (slipway\S*) (\d)/mg) {
		ok($page{"$1.$2"}, "$name refers to $1($2), which exists");
	}
	next if $no_mandoc;
	my ($status, $out, $err) = run_cmd({ stdin => $page{$name} }, 'mandoc', '-Tlint', '-Wwarning');
	is("$out$err", '', "$name: mandoc -Tlint reports nothing");
}

# --- settings
sub without_comments { return $_[0] =~ s{/\*.*?\*/}{}gsr }
sub literals { return join '', $_[0] =~ /"((?:[^"\\]|\\.)*)"/g }
my $source = without_comments(slurp("$top/src/core/settings.c"));
my %choices;
while ($source =~ /(\w+)\[\] = \{([^{}]*?)\bNULL\s*\}/g) {
	my ($name, $list) = ($1, $2);
	$choices{$name} = [$list =~ /"([^"]*)"/g];
}
my ($table) = $source =~ /settings_keys\[\] = \{(.*)/s;
my %key;
while ($table =~ /\bKEY\((\w+), (\w+), (C_\w+), ([^,]*?)(?:,\s*(\..*?))?\),\n/sg) {
	my ($section, $name, $type, $flags, $rest) = ($1, $2, $3, $4, defined $5 ? $5 : '');
	my %k = (type => $type, flags => $flags);
	while ($rest =~ /\.(\w+) =\s+(.*?)(?=,\s*\.\w+ =|\z)/sg) { $k{$1} = $2 }
	$key{"$section.$name"} = \%k;
}
cmp_ok(scalar keys %key, '>', 50, 'the test reads the table of settings');
my $count = () = $table =~ /\bKEY\(/g;
is(scalar keys %key, $count, 'the test reads every row of the table of settings');

# The page's text about each key, without macros, on one line.
my (%said, $section, $current);
for my $line (split /\n/, $page{'slipway.conf.5'}) {
	if ($line =~ /^\.S[sh] (.*)/) { ($section) = $1 =~ /^\[(\w+)\]$/; undef $current }
	elsif (defined $section && $line =~ /^\.It Cm (\w+)$/) { $current = "$section.$1" }
	elsif ($line =~ /^\.El/) { undef $current }
	elsif (defined $current) {
		$said{$current} .= ' ' . ($line =~ s/^\.\w+ //r =~ s/ ([,;.])$/$1/r);
	}
}
is_deeply([sort keys %said], [sort keys %key], 'slipway.conf.5 has every setting and no other');

# The value of a C expression in the table.
sub value {
	my ($text) = @_;
	$text =~ s/INT64_C\((\d+)\)/$1/g;
	$text =~ s/\bDAY\b/86400/g;
	$text =~ s/\bGIB\b/1073741824/g;
	die "not a number: $text" if $text !~ /^[\d\s*()]+$/;
	return eval $text;
}
# A size with the largest suffix that divides it.
sub size {
	my ($n) = @_;
	for (['g', 30], ['m', 20], ['k', 10]) {
		return ($n >> $_->[1]) . $_->[0] if $n && $n % (1 << $_->[1]) == 0;
	}
	return $n;
}
my %kind = (C_INT => 'A number', C_SIZE => 'A size', C_SECONDS => 'Seconds', C_LIST => 'A list',
	C_BOOL => 'yes or no', C_MODE => 'An octal mode', C_STR => 'A string');
my %macro = (SLIPWAY_TEMPLATES => '@pkgdatadir@/templates');
for my $name (sort keys %key) {
	my ($k, $text) = ($key{$name}, defined $said{$name} ? $said{$name} : '');
	my @want = ($kind{ $k->{type} });
	@want = ('An absolute path') if $k->{flags} =~ /CONF_PATH/;
	@want = ('One of ' . join ', ', @{ $choices{ $k->{values} } }) if $k->{values};
	$want[0] .= $k->{type} eq 'C_SIZE'
	    ? ' from ' . size(value($k->{min})) . ' to ' . size(value($k->{max}))
	    : ' from ' . value($k->{min}) . ' to ' . value($k->{max})
	    if defined $k->{min} && $k->{type} ne 'C_MODE';
	my $default = $k->{fallback};
	$default =~ s/\b([A-Z_]+)\b(?=[^"]*(?:"[^"]*"[^"]*)*$)/"\"$macro{$1}\""/ge
	    if defined $default && $default !~ /^"/;
	push @want, defined $default ? 'default ' . literals($default) . ';' : 'no default;';
	push @want, $k->{flags} =~ /CONF_RELOAD/ ? 'a reload suffices.' : 'needs a restart.';
	push @want, 'as ' . ($name =~ s/.*\.//r) . '_file.' if $k->{flags} =~ /CONF_SECRET/;
	push @want, 'Also from ' . literals($k->{alias}) . '.' if $k->{alias};
	push @want, literals($k->{doc});
	is_deeply([grep { index($text, $_) < 0 } @want], [],
	    "slipway.conf.5 gives type, range, default and meaning of $name") or diag($text);
	is($text =~ /also as \w+_file\./ ? 1 : 0, $k->{flags} =~ /CONF_SECRET/ ? 1 : 0,
	    "slipway.conf.5 mentions a _file of $name exactly if it is a secret");
	is($text =~ /Also from/ ? 1 : 0, $k->{alias} ? 1 : 0,
	    "slipway.conf.5 mentions an environment variable of $name exactly if it has one");
}
for my $map ($table =~ /\.section = "(\w+)",\s*\.type = C_MAP/g) {
	ok($page{'slipway.conf.5'} =~ /^\.Ss \[$map\]$/m, "slipway.conf.5 describes section [$map]");
}

# The keys that an example sets, also those that it comments out.
sub example_keys {
	my ($section, @keys) = ('?');
	for my $line (split /\n/, $_[0]) {
		if ($line =~ /^\[(\w+)\]$/) { $section = $1 }
		elsif ($line =~ /^#?([\w.]+) = /) { push @keys, "$section.$1" }
	}
	return grep { !/^run_as\./ } @keys;
}
my ($examples) = $page{'slipway.conf.5'} =~ /^\.Sh EXAMPLES\n(.*?)^\.Sh/ms;
for (['the example of the page', $examples], ['the shipped example', slurp("$top/src/core/slipway.conf")]) {
	my ($what, $text) = @$_;
	my @keys = example_keys($text);
	cmp_ok(scalar @keys, '>', 5, "the test finds the keys of $what");
	is_deeply([grep { !$key{$_} && !$key{s/_file$//r} } @keys], [], "$what sets only keys that exist");
}

# --- errors
my @codes = slurp("$top/src/core/err.h") =~ /X\(ERR_\w+, "(\w+)", (\d+)/g;
my (%code, %coded);
while (my ($name, $status) = splice @codes, 0, 2) { $code{"$name $status"} = 1 }
$coded{"$1 $2"} = 1 while $page{'slipway-api.7'} =~ /^\.It Li (\w+) Ta (\d{3})/mg;
is_deeply([sort keys %coded], [sort keys %code], 'slipway-api.7 has every code of an error and no other');

# --- routes
my %route;
for my $file (glob "$top/src/api/*.c") {
	my $text = without_comments(slurp($file)) =~ s/"\s*"//gr;
	my %query;
	while ($text =~ /struct route_param (\w+)\[\] = \{(.*?)\n?\};/sg) {
		my ($name, $list) = ($1, $2);
		$query{$name} = [$list =~ /\.name = "(\w+)"/g];
	}
	my ($list) = $text =~ /struct route \w+\[\] = \{(.*?)^\};/ms or next;
	my %method = (LIST => 'GET', SHOW => 'GET', CREATE => 'POST', CHANGE => 'PUT', SET => 'PUT',
	    REMOVE => 'DELETE');
	while ($list =~ /\b(LIST|SHOW|CREATE|CHANGE|SET|REMOVE)\("([^"]+)",\s*ROLE_(\w+),\s*(\w+)?/g) {
		$route{"$method{$1} $2"} = { role => lc $3, query => $query{ $4 || '' } || [] };
	}
	while ($list =~ /\.method = METHOD_(\w+),\s*\.path = "([^"]+)"(.*?)\}/sg) {
		my ($name, $rest) = ("$1 $2", $3);
		my ($role) = $rest =~ /\.role = ROLE_(\w+)/;
		my ($query) = $rest =~ /\.query = (\w+)/;
		$route{$name} = { role => defined $role ? lc $role : 'open to all',
			query => $query{ $query || '' } || [] };
	}
}
cmp_ok(scalar keys %route, '>', 30, 'the table of routes is read');
my %section;
while ($page{'slipway-api.7'} =~ /^\.Ss ((?:GET|POST|PUT|DELETE) \S+)\n(.*?)(?=^\.S[sh])/msg) {
	$section{$1} = $2;
}
is_deeply([sort keys %section], [sort keys %route], 'slipway-api.7 has every route and no other');
for my $name (sort keys %route) {
	my $text = defined $section{$name} ? $section{$name} : '';
	my $role = $route{$name}{role};
	ok($text =~ /\(\Q$role\E(?=[ )])/, "slipway-api.7 names the role that $name requires");
	my @own = grep { !/^(page|limit|cursor)$/ } @{ $route{$name}{query} };
	my @missing = grep { $text !~ /\.Va .*\b$_\b/ } @own;
	is_deeply(\@missing, [], "slipway-api.7 describes every query parameter of $name");
}

# --- templates
my %template = map { m{([^/]+)/?$} && ($1 => 1) } grep { -d && !m{/common$} } glob "$top/src/templates/*";
my ($list) = $page{'slipway-templates.7'} =~ /^\.Sh TEMPLATES\n(.*?)^\.El/ms;
is_deeply([sort $list =~ /^\.It Cm (\S+)$/mg], [sort keys %template],
	'slipway-templates.7 has every template and no other');

done_testing();
