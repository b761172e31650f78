# SPDX-License-Identifier: ISC
package Slipway::HostileValues;

# Tests the scripts of templates with hostile values in every variable that a deployer
# may set, even if a project removed the pattern of a preset: no value is executed or
# taken for an option, and no other file is overwritten.
#   Slipway::HostileValues::test(sub { $_ lt 'p' });   # the templates with such names

use strict;
use warnings;
use File::Basename qw(basename);
use Slipway::Template;
use Slipway::Test;
use Test::More;

# Programs that only log their arguments.
my $stubs = tempdir() . '/stubs';
my $calls = Slipway::Template::room('calls');
mkdir $stubs or die "$stubs: $!";
my %does = (sleep => 'exec /usr/bin/sleep 0.1',
	rsync => 'case "$*" in *@h:*) ;; *) exec /usr/bin/rsync "$@" ;; esac',
	'mariadb-dump' => 'echo "-- Dump completed"',
	systemctl => 'if [ "$1" = show ]; then echo loaded; fi',
	mariadb => 'case "$*" in *COUNT*) echo 1 ;; esac',
	ssh => 'case "$*" in *readlink*/previous*) echo releases/1 ;;'
	    . ' *readlink*) echo "releases/$SLIPWAY_DEPLOYMENT_ID" ;; esac',
	hugo => 'mkdir -p build-site; echo x >build-site/index.html',
	python3 => 'if [ "$2" = venv ]; then mkdir -p venv/bin; ln -s /bin/true venv/bin/python; fi');
for my $name (keys %does,
    qw(bundle cargo composer curl docker go jekyll make mariadb-check nginx node npm php wp
    zola)) {
	spew("$stubs/$name", "#!/bin/sh\n{ printf '%s\\0' $name \"\$@\"; printf '\\0'; } >>$calls/log\n"
	    . ($does{$name} || 'exit 0') . "\n", 0755);
}
$Slipway::Template::path = "$stubs:$Slipway::Template::path";
# Options that take the next argument, whatever it is.
my %takes = map { $_ => 1 } qw(-c -e -i -o -p --base-url --baseURL --baseurl --project-name);

my %files = (Makefile => "all:\n", app => "#!/bin/sh\n", 'package.json' => '{}', 'package-lock.json' => '{}',
	'composer.json' => '{}', artisan => '', 'bin/console' => '', 'public/index.html' => "x\n",
	'build-site/index.html' => "x\n", 'index.html' => "x\n", 'nginx/site.conf' => "x\n",
	'migrations/1.sql' => "SELECT 1;\n", 'compose.yaml' => "services: {}\n",
	'wp-content/themes/t/style.css' => "x\n", 'requirements.txt' => '', '.pending' => "1.sql\n",
	'build.sh' => '',
	'--hostile/index.html' => "x\n", '.git/config' => "x\n", 'a:b/index.html' => "x\n");
my $mark = Slipway::Template::room('mark') . '/ran';
my @hostile = ("--hostile=\$(touch $mark)\n`touch $mark`;touch $mark;'touch $mark;'\"; touch $mark; \"",
	"a[\$(touch $mark)]", '--hostile');

# The calls in which a value stands in the place of an option.
sub mistaken {
	my @wrong;
	for my $call (split /\0\0/, slurp("$calls/log") // '') {
		my @arg = split /\0/, $call;
		for my $i (1 .. $#arg) {
			last if $arg[$i] eq '--';
			push @wrong, "@arg" if $arg[$i] =~ /^--hostile/ && !$takes{ $arg[$i - 1] };
		}
	}
	unlink "$calls/log";
	return @wrong;
}

sub test {
	my ($wanted) = @_;
	my @all = grep { $_ ne 'common' } map { basename($_) } grep { -d } glob srcdir() . '/src/templates/*';
	_template($_) for grep { $wanted->() } @all;
	return;
}

sub _template {
	my ($slug) = @_;
	# ssh needs an account with a name.
	local $Slipway::Template::as_self = $slug =~ /^ssh-/;
	my $template = Slipway::Template->new($slug, %files);
	my $room = Slipway::Template::room("room.$slug");
	for my $dir ('', '/site', '/site/wp-includes', '/keep') {
		mkdir "$room$dir";
		Slipway::Template::own("$room$dir");
	}
	spew("$room/site/wp-includes/version.php", '');
	if ($slug eq 'rollback') {
		mkdir $_, 0777 for "$room/root", "$room/root/releases", map { "$room/root/releases/$_" } 1, 2;
		symlink 'releases/1', "$room/root/previous";
		symlink 'releases/2', "$room/root/current";
		Slipway::Template::own("$room/root");
	}
	spew("$room/key", "key\n");
	my $keep = spew("$room/keep/secret.env", "TOKEN=swordfish\nOTHER=1\n", 0666);
	Slipway::Template::own("$room/key", $keep);
	my %good = (DEPLOY_ROOT => "$room/root", DEPLOY_DIR => "$room/dir", TARGET => "$room/app",
		SITES => "$room/site", VHOST => 'site.conf', VHOST_DIR => $room, DB => 'app',
		BACKUP_DIR => $room,
		CONFIRM => 'app', COMPOSE_PROJECT => 'app', HOSTS => 'a@h', REMOTE_DIR => '/srv/x',
		SSH_KEY_FILE => "$room/key", KNOWN_HOSTS => "$room/key", NGINX_CONF => "$room/key",
		GENERATOR => 'hugo', SERVICES => 'a.service', RELOAD_TRIGGER => undef, SHARED => 'storage',
		SERVICE => 'a.service', CHECK_URL => 'http://h/');
	my @keys = map { $_->{key} } @{ $template->{template}{envPresets} };
	my %mine = map { exists $good{$_} ? ($_ => $good{$_}) : () } @keys;
	my $run = $template->deploy(%mine);
	ok($run->{ok} || $slug eq 'git-clone-pipeline', "$slug: a deployment with valid values succeeds")
	    or diag($run->{log});
	is_deeply([mistaken()], [], "$slug: no program takes a valid value for an option");
	for my $key (@keys) {
		$template->deploy(%mine, $key => $_) for @hostile;
		ok(!-e $mark, "$slug: nothing in a hostile value of $key is executed");
		is_deeply([mistaken()], [], "$slug: no program takes a hostile value of $key for an option");
		unlink $mark;
	}
	if (grep { $_ eq 'RELOAD_TRIGGER' } @keys) {
		$run = $template->deploy(%mine, RELOAD_TRIGGER => $keep, RELOAD_RESULT => "$room/result");
		is(slurp($keep), "TOKEN=swordfish\nOTHER=1\n",
		    "$slug: RELOAD_TRIGGER does not overwrite a file that is not a trigger")
		    or diag($run->{log});
		like($run->{log}, qr/is not a trigger file/,
		    "$slug: the step rejects a RELOAD_TRIGGER that is not a trigger");
	}
	for my $source (grep { my $k = $_; grep { $_ eq $k } @keys } 'SOURCE_DIR') {
		for my $bad ('.git', './.git', 'public/../.git', '--hostile', '/etc', '..') {
			$run = $template->deploy(%mine, SOURCE_DIR => $bad);
			like($run->{log}, qr/SOURCE_DIR must be a directory of the checkout/,
			    "$slug: the SOURCE_DIR $bad is rejected");
		}
	}
	mistaken();
	return;
}

1;
