#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The rules of the tree that a program can check: which folder may include
# which, which functions may be called where, how long files, functions and
# lines may be, and which words must not occur.

use strict;
use warnings;
use File::Find;
use Test::More;
use Slipway::Test;

my $top = srcdir();
my %text;
find({ no_chdir => 1, wanted => sub {
	my $name = substr $_, length("$top/") < length ? length("$top/") : 0;
	if (-d && $name =~ m{^(?:\.git|build[^/]*|demo|san|autom4te\.cache|m4|node_modules)$}) {
		$File::Find::prune = 1;
		return;
	}
	# The products of a build in place are not part of the tree.
	return if !-f || -e "$_.in" || m{\.(?:o|a|sql\.h)$|/src/db/migrations\.c$|/\.deps/|/\.dirstamp$}
	    || (-x && -B);
	my $single = qr{^(?:bootstrap|configure\.ac|Makefile\.am|README|\.ci/run)$};
	$text{$name} = slurp($_) if $name =~ m{^(?:src|t|sql|man|nginx)/} || $name =~ $single;
} }, $top);
my @code = sort grep { m{^src/.*\.[ch]$} } keys %text;
my @own = sort grep { m{^(?:src|t/unit|t/fuzz)/.*\.[ch]$} } keys %text;
cmp_ok(scalar @code, '>', 20, 'the test finds the sources');

# C without comments and strings; newlines stay, so that lines keep their number.
sub bare {
	my ($c) = @_;
	$c =~ s{(/\*.*?\*/)|("(?:[^"\\\n]|\\.)*")|('(?:[^'\\\n]|\\.)*')}
	    {my ($x, $q) = ($1, defined $2 ? '""' : defined $3 ? "'0'" : ' ');
	     defined $x ? "\n" x ($x =~ tr/\n//) . ' ' : $q}gse;
	return $c;
}
my %bare = map { $_ => bare($text{$_}) } @own;

# --- includes: folder => folders that it may include, headers from outside
my %layers = (
	core => [[qw(core)], qr{^bsd/}],
	json => [[qw(core json)], qr{^cjson/cJSON\.h$}],
	db => [[qw(core db)], qr{^(?:mariadb/|mysql\.h$|errmsg\.h$|mysqld_error\.h$)}],
	crypto => [[qw(core crypto)], qr{^sodium\.h$}],
	http => [[qw(core http)], qr{^curl/}],
	store => [[qw(core db store)], undef],
	queue => [[qw(core db store queue)], undef],
	forge => [[qw(core json http forge)], undef],
	access => [[qw(core store forge crypto access)], undef],
	deploy => [[qw(core json db store queue crypto deploy)], undef],
	web => [[qw(core json store crypto access web)], undef],
	api => [[qw(core json store queue deploy forge crypto access web api)], undef],
	live => [[qw(core store queue live)], undef],
	spool => [[qw(core spool)], undef],
	monitor => [[qw(core spool monitor)], undef],
	job => [[qw(core spool job)], undef],
	dispatch => [[qw(core json http store queue deploy forge crypto access spool dispatch)], undef],
	cli => [[qw(core json http cli)], undef],
);
# Files that may include more, or less, than their folder.
my %files = (
	'src/web/fcgi.c' => [undef, qr{^(?:fcgiapp|fastcgi)\.h$}],
	'src/web/main.c' => [[qw(core store queue crypto db web)], undef],
	'src/deploy/repository.c' => [[qw(core deploy forge)], undef],
	'src/dispatch/dispatch.c' => [[qw(core crypto db spool dispatch)], undef],
	'src/live/main.c' => [[qw(core store live db)], undef],
	'src/queue/joblog.c' => [undef, qr{^zlib\.h$}],
	'src/cli/deploy.c' => [undef, qr{^bsd/stdlib\.h$}],
	'src/cli/prompt.c' => [undef, qr{^bsd/readpassphrase\.h$}],
	'src/cli/table.c' => [undef, qr{^libsmartcols\.h$}],
);
# slipway-admin works on the database, slipway through the API alone.
my $admin = [[qw(core json db http store queue deploy forge crypto access cli)], undef];
# Headers of the system: libc, Linux.
my $system = qr{^(?:sys|linux|netinet|arpa|net)/|^(?:
	assert|ctype|dirent|endian|err|errno|fcntl|fnmatch|ftw|getopt|glob|grp|
	ifaddrs|inttypes|limits|locale|math|netdb|poll|pthread|pwd|regex|sched|malloc|setjmp|
	signal|spawn|stdalign|stdatomic|stdarg|stdbool|stddef|stdint|stdio|stdlib|string|
	strings|sysexits|syslog|termios|time|unistd|utime|wchar)\.h$}x;
sub includes_wrong {
	my ($file) = @_;
	my ($folder) = $file =~ m{^src/([^/]+)/};
	my $layer = $layers{$folder} or return "no layer is named $folder";
	my ($own, $outside) = @$layer;
	my $special = $files{$file} || ($file =~ m{^src/cli/admin} && $admin);
	$own = $special->[0] if $special && $special->[0];
	$outside = $special->[1] if $special && $special->[1];
	my %may = map { $_ => 1 } @$own;
	my @wrong;
	while ($text{$file} =~ m{^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]}mg) {
		my ($kind, $what) = ($1, $2);
		next if $kind eq '<' ? $what =~ $system
		    || (defined $outside && $what =~ $outside)
		    : $what =~ m{^([^/]+)/} && $may{$1};
		push @wrong, "$file includes $what";
	}
	return @wrong;
}
is_deeply([map { includes_wrong($_) } @code], [],
    'every folder includes only what the include table allows');

is_deeply([grep { $text{$_} =~ m{^[ \t]*#[ \t]*include[ \t]+"crypto/private_keyring\.h"}m
	&& !m{^src/(?:dispatch/(?:deploy_key|description)|cli/admin_\w+|crypto/private_keyring)\.c$}
	} @code], [],
    'only the dispatcher and slipway-admin decrypt secret variables');
is_deeply([grep { $text{$_} =~ m{^[ \t]*#[ \t]*include[ \t]+"crypto/(?:keyfile|public_inner)\.h"}m
	&& !m{^src/crypto/} } @code], [],
    'only src/crypto reads key files');

# --- modules of a folder, a source with its headers each, form no cycle
sub cycles {
	my ($folder) = @_;
	my %to;
	for my $file (grep { m{^src/$folder/} } @code) {
		my ($module) = $file =~ m{([^/]+)\.[ch]$};
		$to{$module}{$_} = 1
		    for grep { $_ ne $module && !/inner$/ } $text{$file} =~ m{^#include "$folder/(\w+)\.h"}mg;
	}
	my (%state, @found);
	my $visit;
	$visit = sub {
		my @path = @_;
		my $module = $path[-1];
		return if ($state{$module} || '') eq 'done';
		if (my ($at) = grep { $path[$_] eq $module } 0 .. $#path - 1) {
			push @found, join ' -> ', @path[$at .. $#path];
			return;
		}
		$visit->(@path, $_) for sort keys %{ $to{$module} || {} };
		$state{$module} = 'done';
		return;
	};
	$visit->($_) for sort keys %to;
	return @found;
}
is_deeply([cycles($_)], [], "the modules of src/$_ include each other without a cycle")
    for sort keys %{ { map { m{^src/(\w+)/} ? ($1 => 1) : () } @code } };

# --- a part of the dispatcher is one value, in the list that drives the loop
my %part = map { $_ => 1 } map { /\bX\((\w+)\)/g }
    $text{'src/dispatch/part.h'} =~ /^#define PARTS\(X\)(.*?[^\\])\n/ms;
my %made = map { $text{$_} =~ /^const struct part (\w+)_part = \{/m ? ($1 => $_) : () }
    grep { m{^src/dispatch/} } @code;
cmp_ok(scalar keys %made, '>=', 8, 'the parts of the dispatcher are found');
is_deeply([sort keys %made], [sort keys %part], 'every part of the dispatcher is in the list of parts');
is_deeply([grep { $text{$_} =~ m{^#include "dispatch/(?:@{[join '|', keys %made]})\.h"}m } @code],
    [], 'no other file includes a part of the dispatcher');

# --- functions that only some files may call
my %banned = (
	'malloc calloc realloc reallocarray recallocarray free strdup strndup asprintf vasprintf getline'
	    . ' open_memstream' => [qw(src/core/arena.c)],
	'strtol strtoll strtoul strtoull atoi atol atof sscanf strtonum'
	    => [qw(src/core/num.c)],
	'alloca' => [],
	'exit' => [qr{^src/(?:monitor/monitor|job/job|dispatch/dispatch)\.c$},
	    qr{/(?:main|admin|slipway|worker)[^/]*\.c$}, qw(src/core/arena.c src/core/log.c)],
	'sleep usleep' => [],
	'strcpy strcat strncpy strncat sprintf vsprintf strtok strtok_r gets mktemp tmpnam'
	    . ' gmtime localtime ctime asctime system popen signal' => [],
);
my @calls;
for my $words (sort keys %banned) {
	my $re = join '|', split / /, $words;
	for my $file (@code) {
		next if grep { ref $_ ? $file =~ $_ : $file eq $_ } @{ $banned{$words} };
		while ($bare{$file} =~ m{(?<![\w.>])($re)[ \t]*\(}g) {
			my $line = 1 + (substr($bare{$file}, 0, $-[0]) =~ tr/\n//);
			push @calls, "$file:$line: $1";
		}
	}
}
is_deeply(\@calls, [], 'no file calls a function that is banned in it');

is_deeply([grep { $_ ne 'src/core/err.c' && ($bare{$_} =~ m{=\s*\*(?:e|first|why|cause)\s*[;,]}
	|| $text{$_} =~ m{err_(?:new|tell)\(\w+,\s*"%s",\s*\w+->(?:detail|msg)\)}) } @code],
    [], 'only core/err.c copies errors');

# --- lengths
my (@long, @longfile);
for my $file (@own) {
	my @line = split /\n/, $text{$file}, -1;
	pop @line if @line && $line[-1] eq '';
	push @longfile, "$file: " . @line if @line > 600;
	my ($start, $n) = (0, 0);
	for (@line) {
		$n++;
		$start = $n if /^\{$/;
		if (/^\}$/ && $start) {
			push @long, "$file:$start: " . ($n - $start - 1) if $n - $start - 1 > 60;
			$start = 0;
		}
	}
}
is_deeply(\@long, [], 'no function has more than 60 lines');
is_deeply(\@longfile, [], 'no C file has more than 600 lines');

# --- a resource of the API is one value, in the list of all
# The names in an X-table of a header.
sub names_in {
	my ($file, $macro) = @_;
	my ($list) = $text{$file} =~ /^#define \Q$macro\E\(X\)(.*?[^\\])\n/ms;
	return map { $_ => 1 } $list =~ /\bX\((\w+)\)/g;
}
my %listed = names_in('src/api/resources.h', 'RESOURCES');
my (@unlisted, @apart);
for my $file (grep { m{^src/api/} } @code) {
	my ($name) = $text{$file} =~ /^const struct resource (\w+)_resource = \{/m;
	push @unlisted, $file if defined $name && !$listed{$name};
	push @apart, $file if !defined $name && $text{$file} =~ /^(?:static )?const struct route \w+\[\] = /m;
}
is_deeply(\@unlisted, [], 'every resource is in the list of resources');
is_deeply(\@apart, [], 'every table of routes belongs to a resource');

# --- a store is one value, in the list that every program checks at its start
%listed = (names_in('src/store/store.h', 'STORES'), names_in('src/queue/stores.h', 'QUEUE_STORES'));
my @unchecked;
for my $file (grep { m{^src/(?:store|queue)/.*\.c$} } @code) {
	my ($name) = $text{$file} =~ /^const struct store (\w+)_store = \{/m;
	push @unchecked, $file if defined $name && !$listed{$name};
}
is_deeply(\@unchecked, [], 'every store is in the list of stores');
is_deeply([grep { m{^src/(?:store|queue)/} && $bare{$_} =~ /\.sql\s*=/ } @code], [],
    'no statement of a store is written in C');
# The statements of NAME.sql are the list NAME_stmts of the store NAME.
my (@unlisted_sql, @unused);
my $store_code = join "\n", map { $bare{$_} } grep { m{^src/(?:store|queue)/} } @code;
# A macro makes the name of a statement from pieces: sql_##table##_page.
my $pasted = join '|', map { /^(\w*?)##\w+?(?:##(\w+))?$/ ? "$1\\w+" . ($2 // '') : () }
    $store_code =~ /\bsql_([\w#]+##\w+)/g;
for my $file (grep { m{^src/(?:store|queue)/(?!fragments)\w+\.sql$} } sort keys %text) {
	my ($folder, $name) = $file =~ m{(\w+)/(\w+)\.sql$};
	my $c = $text{"src/$folder/$name.c"} // '';
	push @unlisted_sql, $file if $c !~ m{^#include "$folder/$name\.sql\.h"$}m
	    || $c !~ m{\.stmts = ${name}_stmts,};
	push @unused, map { "$file: $_" } grep { $store_code !~ /\bsql_$_\b/ && !/^(?:$pasted)$/ }
	    $text{$file} =~ /^-- (\w+)\(.*\).*\n(?!--)./mg;
}
is_deeply(\@unlisted_sql, [], 'every file of statements belongs to the store of that name');
is_deeply(\@unused, [], 'every statement is used');
is_deeply([grep { $bare{$_} =~ /\bdb_check\s*\(/ } grep { !m{^src/(?:db|queue)/} } @code], [],
    'no program checks statements apart from the list of stores');

# --- a type of Git server: its file, and the lists that name it
my ($known) = $text{'src/forge/forge.c'} =~ /forge_kinds\[\] = \{(.*?)\}/s;
my ($values) = $text{'src/core/settings.c'} =~ /type_values\[\] = \{(.*?)\}/s;
my ($described) = $text{'man/slipway.conf.5.in'} =~ /^\.It Cm type\n.*?^One of\n(.*?)^default$/sm;
my %kind = map { $text{$_} =~ /^const struct forge_ops forge_(\w+) = \{\n\t\.name = "\1",$/m
	? ($1 => $_) : () }
    grep { m{^src/forge/} } @code;
cmp_ok(scalar keys %kind, '>=', 4, 'the test finds the types of Git servers');
is_deeply([sort $known =~ /&forge_(\w+)/g], [sort keys %kind],
    'forge.c lists every type of Git server that has a file');
is_deeply([sort $values =~ /"(\w+)"/g], [sort keys %kind],
    'every type of Git server is a value of the setting "type"');
is_deeply([sort $described =~ /^\.Li (\w+)/gm], [sort keys %kind],
    'slipway.conf(5) describes every type of Git server');
is_deeply([grep { $text{$_} =~ /\bforge_(?:@{[join '|', keys %kind]})\b/ }
	grep { !m{^src/forge/(?:forge\.c|inner\.h)$}
		&& !$kind{ ($_ =~ m{^src/forge/(\w+)\.c$})[0] || '' } } @code],
    [], 'no other file names a type of Git server');

# --- licences and forbidden words
is_deeply([grep { $text{$_} !~ m{\A/\* SPDX-License-Identifier: ISC \*/\n} } @own],
    [], 'every C file starts with its licence');
is_deeply([grep { m{\.(?:t|pm|pl|sh|awk)$|^src/.*\.sql$|^bootstrap$|^\.ci/run$|^configure\.ac$|^Makefile\.am$}
	&& $text{$_} !~ m{\A(?:[^\n]*\n){0,3}[^\n]*SPDX-License-Identifier: ISC} } sort keys %text],
    [], 'every script names its licence');
my $mark = 'TO' . 'DO|FIX' . 'ME|XX' . 'X';
is_deeply([grep { $text{$_} =~ m{\b(?:$mark)\b(?!\(#\d+\))} }
	grep { !m{^t/data/} } sort keys %text], [],
    'every note of work to do names an issue');
my $away = '/' . 'work/|/' . 'home/\w|/tm' . 'p/cl';
is_deeply([grep { $text{$_} =~ m{$away} } grep { !m{^t/data/} } sort keys %text], [],
    'no file names a path of one machine');
is_deeply([grep { $text{$_} =~ /\r|[ \t]+$/m }
	grep { m{^(?:src|t/unit|sql|man)/|^(?:bootstrap|README)$} } sort keys %text],
    [], 'no line ends with blanks');

# --- a file that a comment or a message names: by its path below the top or src,
# or by its name in the folder of the file that names it
my @absent;
for my $file (grep { m{^(?:src|t/unit|t/fuzz)/.*\.[ch]$} } sort keys %text) {
	my ($folder) = $file =~ m{^(.*)/};
	my $rest = $text{$file} =~ s/^[ \t]*#[ \t]*include\b.*$//mgr;
	while ($rest =~ m{(/\*.*?\*/|"(?:[^"\\\n]|\\.)*")}gs) {
		my ($words, $line) = ($1, 1 + (substr($rest, 0, $-[0]) =~ tr/\n//));
		for my $name ($words =~ m{(?<![\w./*-])((?:[\w-]+/)*[\w-]{2,}\.(?:c|h|t|pm))\b}g) {
			push @absent, "$file:$line: $name"
			    if $name !~ $system
			    && !grep { exists $text{$_} } $name, "src/$name", "$folder/$name";
		}
	}
}
is_deeply(\@absent, [], 'every file that a comment names exists');

# --- a function without "static" has a caller in another file of src, or in its
# own and in a unit test
my (%word, %tested, @loner);
for my $file (@own) {
	my $of = $file =~ m{^src/} ? \%word : \%tested;
	$of->{$_}{$file}++ for $bare{$file} =~ /\b([a-z_]\w+)\b/g;
}
for my $file (grep { m{\.c$} } @code) {
	while ($bare{$file} =~ m{^((?:const |enum |struct |unsigned )*\w[\w ]*\**)\n(\w+)\(}mg) {
		my ($type, $name) = ($1, $2);
		next if $type =~ /^static\b/ || $name eq 'main'
		    || grep { m{\.c$} && $_ ne $file } keys %{ $word{$name} };
		next if grep { $bare{$_} =~ /^#define(?:[^\n]*\\\n)*[^\n]*\b$name\b/m }
		    grep { m{\.h$} } keys %{ $word{$name} };
		push @loner, "$file: $name" unless $word{$name}{$file} > 1 && $tested{$name};
	}
}
is_deeply(\@loner, [], 'a function that only its own file or a test calls is static or gone');

# --- columns of tests and statements, with a tab at every eighth
my @wide;
for my $file (grep { m{^t/(?:[^/]+\.t|lib/.*\.pm|demo\.sh)$|^src/.*\.sql$} } sort keys %text) {
	my $n = 0;
	my $most = $file =~ m{\.sql$} ? 90 : 110;
	for (split /\n/, $text{$file}) {
		$n++;
		utf8::decode(my $line = $_);
		1 while $line =~ s/\t/' ' x (8 - $-[0] % 8)/e;
		push @wide, "$file:$n: " . length $line if length $line > $most;
	}
}
is_deeply(\@wide, [], 'no line of a test has more than 110 columns, and none of a statement more than 90');

# --- numbers of tests
my %numbered;
for (sort keys %text) { push @{ $numbered{$1} }, $_ if m{^t/(\d+)-[^/]*\.t$} }
is_deeply([map { @$_ > 1 ? "@$_" : () } values %numbered], [], 'no two tests have the same number');

# --- the makefile
my (@misplaced, @unsorted);
for my $part (split /^(?=# --- )/m, $text{'Makefile.am'}) {
	my ($name) = $part =~ /\A# --- (\w+)/ or next;
	push @misplaced, map { "$_ in $name" } grep { !m{^src/$name/} } $part =~ m{\b(src/\w+/\S+)}g
	    if $layers{$name};
	while ($part =~ /^(\w+) \+?= \\\n((?:\t\S+ \\\n)*\t\S+\n)/mg) {
		my ($list, @files) = ($1, $2 =~ /\t(\S+)/g);
		push @unsorted,
		    map { "$list: $files[$_]" } grep { $files[$_ - 1] ge $files[$_] } 1 .. $#files;
	}
}
is_deeply(\@misplaced, [], 'each section of Makefile.am names only files of its own folder');
is_deeply(\@unsorted, [], 'each list of files in Makefile.am is sorted and names no file twice');

# --- lists of packages
my @locks;
find({ no_chdir => 1, wanted => sub {
	if (-d && m{/(?:\.git|node_modules|build[^/]*|demo|san)$}) { $File::Find::prune = 1; return }
	push @locks, $_ if m{/(?:package-lock\.json|npm-shrinkwrap\.json|requirements[^/]*\.txt|\.npmrc)$};
} }, $top);
is_deeply([grep { slurp($_) =~ m{"resolved"|https?://[^"\s]*(?:registry|pypi|mirror|proxy)} } @locks],
    [], 'no list of packages names the host of a registry');

done_testing();
