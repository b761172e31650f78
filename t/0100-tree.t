#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Rules of the tree that a program can hold: who may include whom, what may be
# called where, how long things may get, and which words have no place here.

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
	# What a build in place has made is no part of the tree.
	return if !-f || -e "$_.in" || m{\.(?:o|a)$|/src/db/migrations\.c$|/\.deps/|/\.dirstamp$} || (-x && -B);
	$text{$name} = slurp($_) if $name =~ m{^(?:src|t|sql|man|nginx)/|^(?:bootstrap|configure\.ac|Makefile\.am|README|\.ci/run)$};
} }, $top);
my @code = sort grep { m{^src/.*\.[ch]$} } keys %text;
my @own = sort grep { m{^(?:src|t/unit|t/fuzz)/.*\.[ch]$} } keys %text;
cmp_ok(scalar @code, '>', 20, 'the sources are found');

# Without comments and strings; newlines stay, so that lines keep their number.
sub bare {
	my ($c) = @_;
	$c =~ s{(/\*.*?\*/)|("(?:[^"\\\n]|\\.)*")|('(?:[^'\\\n]|\\.)*')}
	    {my ($x, $q) = ($1, defined $2 ? '""' : defined $3 ? "'0'" : ' ');
	     defined $x ? "\n" x ($x =~ tr/\n//) . ' ' : $q}gse;
	return $c;
}
my %bare = map { $_ => bare($text{$_}) } @own;

# --- who may include whom: folder => own folders, outside headers
my %layers = (
	core => [[qw(core)], qr{^bsd/}],
	json => [[qw(core json)], qr{^cjson/cJSON\.h$}],
	db => [[qw(core db)], qr{^(?:mariadb/|mysql\.h$|errmsg\.h$|mysqld_error\.h$)}],
	crypto => [[qw(core crypto)], qr{^sodium\.h$}],
	http => [[qw(core http)], qr{^curl/}],
	store => [[qw(core db store)], undef],
	forge => [[qw(core json http forge)], undef],
	access => [[qw(core store forge crypto access)], undef],
	deploy => [[qw(core json db store crypto deploy)], undef],
	api => [[qw(core json store deploy forge crypto access api)], undef],
	spool => [[qw(core spool)], undef],
	monitor => [[qw(core spool monitor)], undef],
	job => [[qw(core spool job)], undef],
	dispatch => [[qw(core json store deploy forge crypto access spool dispatch)], undef],
	cli => [[qw(core json db http store deploy forge crypto access cli)], undef],
);
# Files that may do more, or must do with less, than their folder.
my %files = (
	'src/api/fcgi.c' => [undef, qr{^(?:fcgiapp|fastcgi)\.h$}],
	'src/api/main.c' => [[qw(core json store deploy forge crypto access api db)], undef],
	'src/deploy/repository.c' => [[qw(core deploy forge)], undef],
	'src/dispatch/dispatch.c' =>
	    [[qw(core json store deploy forge crypto access spool dispatch db)], undef],
	'src/store/joblog.c' => [undef, qr{^zlib\.h$}],
	'src/cli/slipway.c' => [[qw(core json http cli)], undef],
);
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
	my $special = $files{$file};
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
    'every folder includes what it may');

is_deeply([grep { $text{$_} =~ m{^[ \t]*#[ \t]*include[ \t]+"crypto/private_keyring\.h"}m
	&& !m{^src/(?:dispatch/job\.c|cli/admin_\w+\.c|crypto/private_keyring\.c)$} } @code], [],
    'secret variables are opened by the dispatcher alone');
is_deeply([grep { $text{$_} =~ m{^[ \t]*#[ \t]*include[ \t]+"crypto/(?:keyfile|public_inner)\.h"}m && !m{^src/crypto/} } @code], [],
    'keys are read by their own folder alone');

# --- what may be called where
my %banned = (
	'malloc calloc realloc reallocarray recallocarray free strdup strndup asprintf vasprintf getline open_memstream'
	    => [qw(src/core/arena.c)],
	'strtol strtoll strtoul strtoull atoi atol atof sscanf strtonum'
	    => [qw(src/core/num.c)],
	'alloca' => [],
	'exit' => [qr{^src/(?:monitor/monitor|job/job|dispatch/dispatch)\.c$|/(?:main|admin|slipway|worker)[^/]*\.c$},
	    qw(src/core/arena.c src/core/log.c)],
	'sleep usleep' => [],
	'strcpy strcat strncpy strncat sprintf vsprintf strtok strtok_r gets mktemp tmpnam gmtime localtime ctime asctime system popen signal'
	    => [],
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
is_deeply(\@calls, [], 'nothing calls what is banned there');

is_deeply([grep { $_ ne 'src/core/err.c' && ($bare{$_} =~ m{=\s*\*(?:e|first|why|cause)\s*[;,]}
	|| $text{$_} =~ m{err_(?:new|tell)\(\w+,\s*"%s",\s*\w+->(?:detail|msg)\)}) } @code],
    [], 'errors are copied by core/err.c alone');

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
is_deeply(\@longfile, [], 'no file of C has more than 600 lines');

# --- a resource of the API is one value, in the list of all
my %listed = map { $_ => 1 } map { /\bX\((\w+)\)/g } $text{'src/api/resources.h'} =~ /^#define RESOURCES\(X\)(.*?[^\\])\n/ms;
my (@unlisted, @apart);
for my $file (grep { m{^src/api/} } @code) {
	my ($name) = $text{$file} =~ /^const struct resource (\w+)_resource = \{/m;
	push @unlisted, $file if defined $name && !$listed{$name};
	push @apart, $file if !defined $name && $text{$file} =~ /^(?:static )?const struct route \w+\[\] = /m;
}
is_deeply(\@unlisted, [], 'every resource is in the list of resources');
is_deeply(\@apart, [], 'every table of routes belongs to a resource');

# --- a store is one value, in the list that every program checks at its start
%listed = map { $_ => 1 } map { /\bX\((\w+)\)/g } $text{'src/store/store.h'} =~ /^#define STORES\(X\)(.*?[^\\])\n/ms;
my (@loose, @unchecked, @named);
for my $file (grep { m{^src/store/.*\.c$} } @code) {
	my ($name) = $text{$file} =~ /^const struct store (\w+)_store = \{/m;
	push @unchecked, $file if defined $name && !$listed{$name};
	push @loose, $file if !defined $name && $text{$file} =~ /^(?:static )?const struct stmt \w+ = \{/m;
	# and the store has all statements of its file
	my ($has) = $text{$file} =~ /^static const struct stmt \*const \w+_stmts\[\] = \{(.*?)\};/ms;
	my %has = map { $_ => 1 } map { /&\s*(\w+)/g } $has || '';
	push @named, map { "$file: $_" } grep { !$has{$_} }
	    $text{$file} =~ /^(?:static )?const struct stmt (\w+) = \{/mg if defined $name;
}
is_deeply(\@unchecked, [], 'every store is in the list of stores');
is_deeply(\@loose, [], 'every file with statements is a store');
is_deeply(\@named, [], 'every statement is one of its store');
is_deeply([grep { $bare{$_} =~ /\bdb_check\s*\(/ } grep { !m{^src/(?:db|store)/} } @code], [],
    'every program checks all stores');

# --- a store lists the columns of its table once
my @repeated;
for my $file (grep { m{^src/store/.*\.c$} && $text{$_} =~ m{"store/columns\.h"} } @code) {
	my $column = join '|', $text{$file} =~ m{^\tX\(T, (?!NONE)[A-Z]+, (\w+),}mg;
	my ($table) = $text{$file} =~ m{\bCOLUMNS_INSERT\("(\w+)"};
	my $sql = $text{$file} =~ s/"\s*\n?\s*"//gr;
	push @repeated, "$file: $1" while $sql =~ m{((?:SELECT|INTO \Q$table\E \() ?(?:(?:\w+\.)?`?(?:$column)`?(?:, )?){3,})}g;
	push @repeated, "$file: $1" while $sql =~ m{(UPDATE \Q$table\E SET (?:`?(?:$column)`? = \?(?:, )?){2,})}g;
}
is_deeply(\@repeated, [], 'no statement repeats a list of columns');

# --- a kind of Git server: its file, and four lists that have its name
my ($known) = $text{'src/forge/forge.c'} =~ /forge_kinds\[\] = \{(.*?)\}/s;
my ($values) = $text{'src/core/settings.c'} =~ /type_values\[\] = \{(.*?)\}/s;
my ($described) = $text{'man/slipway.conf.5.in'} =~ /^\.It Cm type\n.*?^One of\n(.*?)^default$/sm;
my %kind = map { $text{$_} =~ /^const struct forge_ops forge_(\w+) = \{\n\t\.name = "\1",$/m ? ($1 => $_) : () }
    grep { m{^src/forge/} } @code;
cmp_ok(scalar keys %kind, '>=', 4, 'the kinds of Git servers are found');
is_deeply([sort $known =~ /&forge_(\w+)/g], [sort keys %kind], 'each is one that can be opened');
is_deeply([sort $values =~ /"(\w+)"/g], [sort keys %kind], 'each is a value of the setting');
is_deeply([sort $described =~ /^\.Li (\w+)/gm], [sort keys %kind], 'each is described');
is_deeply([grep { $text{$_} =~ /\bforge_(?:@{[join '|', keys %kind]})\b/ }
	grep { !m{^src/forge/(?:forge\.c|inner\.h)$} && !$kind{ ($_ =~ m{^src/forge/(\w+)\.c$})[0] || '' } } @code],
    [], 'no other file knows one of them');

# --- first lines and words
is_deeply([grep { $text{$_} !~ m{\A/\* SPDX-License-Identifier: ISC \*/\n} } @own],
    [], 'every C file starts with its licence');
is_deeply([grep { m{\.(?:t|pm|pl|sh)$|^bootstrap$|^\.ci/run$|^configure\.ac$|^Makefile\.am$}
	&& $text{$_} !~ m{\A(?:[^\n]*\n){0,3}[^\n]*SPDX-License-Identifier: ISC} } sort keys %text],
    [], 'every script says its licence');
my $mark = 'TO' . 'DO|FIX' . 'ME|XX' . 'X';
is_deeply([grep { $text{$_} =~ m{\b(?:$mark)\b(?!\(#\d+\))} }
	grep { !m{^t/data/} } sort keys %text], [],
    'nothing is put off without a number');
my $away = '/' . 'work/|/' . 'home/\w|/tm' . 'p/cl';
is_deeply([grep { $text{$_} =~ m{$away} } grep { !m{^t/data/} } sort keys %text], [],
    'no path of somebody\'s machine');
is_deeply([grep { $text{$_} =~ /\r|[ \t]+$/m }
	grep { m{^(?:src|t/unit|sql|man)/|^(?:bootstrap|README)$} } sort keys %text],
    [], 'no blanks at the end of a line');

# --- one number, one test
my %numbered;
for (sort keys %text) { push @{ $numbered{$1} }, $_ if m{^t/(\d+)-[^/]*\.t$} }
is_deeply([map { @$_ > 1 ? "@$_" : () } values %numbered], [], 'no two tests have the same number');

# --- the makefile: a section has its own folder's files, a list of files is sorted
my (@misplaced, @unsorted);
for my $part (split /^(?=# --- )/m, $text{'Makefile.am'}) {
	my ($name) = $part =~ /\A# --- (\w+)/ or next;
	push @misplaced, map { "$_ in $name" } grep { !m{^src/$name/} } $part =~ m{\b(src/\w+/\S+)}g if $layers{$name};
	while ($part =~ /^(\w+) \+?= \\\n((?:\t\S+ \\\n)*\t\S+\n)/mg) {
		my ($list, @files) = ($1, $2 =~ /\t(\S+)/g);
		push @unsorted, map { "$list: $files[$_]" } grep { $files[$_ - 1] ge $files[$_] } 1 .. $#files;
	}
}
is_deeply(\@misplaced, [], 'a section of the makefile names files of its own folder');
is_deeply(\@unsorted, [], 'a list of the makefile is sorted, without repetition');

# --- lists of packages name no host
my @locks;
find({ no_chdir => 1, wanted => sub {
	if (-d && m{/(?:\.git|node_modules|build[^/]*|demo|san)$}) { $File::Find::prune = 1; return }
	push @locks, $_ if m{/(?:package-lock\.json|npm-shrinkwrap\.json|requirements[^/]*\.txt|\.npmrc)$};
} }, $top);
is_deeply([grep { slurp($_) =~ m{"resolved"|https?://[^"\s]*(?:registry|pypi|mirror|proxy)} } @locks],
    [], 'no list of packages names a registry');

done_testing();
