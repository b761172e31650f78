# SPDX-License-Identifier: ISC
package Slipway::Forge::Git;

# The repositories behind the stand-in: branches and commits for its REST
# interface, and git's own protocol by the real git http-backend.

use strict;
use warnings;
use Exporter 'import';
use MIME::Base64 qw(decode_base64);
use Slipway::Forge::State qw(git_out ref_text);

our @EXPORT_OK = qw(branches base_of commits commit_named commit_of named tip_of default_branch serve_git);

my $zero = '0' x 40;

# Refs that have a file are read here: each command of git takes milliseconds.
sub default_branch {
	my ($dir) = @_;
	my ($name) = (ref_text($dir, 'HEAD') // '') =~ m{^ref: refs/heads/(.*)\n\z};
	return $name;
}
sub _tip_in_file {
	my ($dir, $ref) = @_;
	return undef if $ref =~ /\.\.|\.lock$/;
	my ($hash) = (ref_text($dir, $ref) // '') =~ /^([0-9a-f]{40,64})\n\z/;
	return $hash;
}

# (name => hash, …) of all branches, by name.
sub branches {
	my ($dir) = @_;
	my $text = git_out($dir, 'for-each-ref', '--format=%(objectname) %(refname:lstrip=2)', 'refs/heads');
	return map { my ($hash, $name) = split / /, $_, 2; { name => $name, hash => $hash } }
	    split /\n/, defined $text ? $text : '';
}

# The hash of a branch, tag or commit; undef if it does not exist.
sub tip_of {
	my ($dir, $name) = @_;
	my $tip = _tip_in_file($dir, "refs/heads/$name");
	return $tip if defined $tip;
	for my $ref ("refs/heads/$name", "refs/tags/$name", $name =~ /^[0-9a-f]{7,64}$/ ? $name : ()) {
		my $hash = git_out($dir, 'rev-parse', '-q', '--verify', '--end-of-options', "$ref^{commit}");
		next if !defined $hash;
		chomp $hash;
		return $hash;
	}
	return undef;
}

# The hash that git resolves a name to: it prefers a tag to a branch.
sub named {
	my ($dir, $name) = @_;
	my $hash = git_out($dir, 'rev-parse', '-q', '--verify', '--end-of-options', "$name^{commit}");
	chomp $hash if defined $hash;
	return $hash;
}

my $format = join '%x00', qw(%H %an %ae %aI %cn %ce %cI %P %B);

sub _read_commits {
	my ($dir, @range) = @_;
	my $text = git_out($dir, 'log', '-z', "--format=$format%x00", @range, '--');
	return if !defined $text;
	my @commits;
	my $field = qr/([^\0]*)\0/;
	while ($text =~ /\G\0?([0-9a-f]{40,64})\0$field$field$field$field$field$field$field$field/gc) {
		push @commits, { hash => $1, author => { name => $2, email => $3, date => $4 },
			committer => { name => $5, email => $6, date => $7 },
			parents => [split / /, $8], message => $9 };
	}
	return @commits;
}

# (total, commits on the page); those of the history of $not are left out
sub commits {
	my ($dir, $hash, $skip, $limit, $not) = @_;
	my @range = ($hash, defined $not ? "^$not" : ());
	my $total = git_out($dir, 'rev-list', '--count', @range);
	return (0) if !defined $total;
	return ($total + 0, _read_commits($dir, "--skip=$skip", "--max-count=$limit", @range));
}

# The commit at which two histories part; undef if one of them does not exist.
sub base_of {
	my ($dir, @two) = @_;
	my $hash = git_out($dir, 'merge-base', @two);
	chomp $hash if defined $hash;
	return defined $hash && length $hash ? commit_of($dir, $hash) : undef;
}

sub commit_of {
	my ($dir, $hash) = @_;
	my ($commit) = _read_commits($dir, '--max-count=1', $hash);
	return $commit;
}

# The commit of a branch, a tag, a hash or the beginning of one; undef if there is none,
# or several begin so.
sub commit_named {
	my ($dir, $name) = @_;
	my $hash = tip_of($dir, $name);
	return defined $hash ? commit_of($dir, $hash) : undef;
}

# How each type of server accepts a token as user and password.
my %token_in = (
	gitea => sub { $_[1] eq 'x-oauth-basic' ? $_[0] : $_[1] },
	gitlab => sub { $_[0] eq 'oauth2' ? $_[1] : undef },
	github => sub { $_[1] eq 'x-oauth-basic' ? $_[0] : $_[0] eq 'x-access-token' ? $_[1] : undef },
);
my %realm = (gitea => 'Gitea', gitlab => 'GitLab', github => 'GitHub');

# The user whose token a request carries; undef if there is none.
sub user_of {
	my ($state, $req) = @_;
	my ($basic) = ($req->{headers}{authorization} || '') =~ /^Basic (\S+)$/i or return;
	my ($name, $password) = split /:/, decode_base64($basic), 2;
	return if !defined $password;
	my $token = $token_in{ $state->{type} }->($name, $password);
	return if !defined $token;
	my ($user) = Slipway::Forge::State::user_of_token($state, $token);
	return $user;
}

sub _refuse {
	my ($state, $status, $text) = @_;
	my %headers = ('Content-Type' => 'text/plain');
	$headers{'WWW-Authenticate'} = 'Basic realm="' . $realm{ $state->{type} } . '"' if $status == 401;
	return [$status, \%headers, "$text\n"];
}

# Serves a request of git: returns a response like those of the REST interface, or
# undef after writing one to the peer. Calls `pushed` with each ref that moved.
sub serve_git {
	my ($store, $req, $peer, $pushed) = @_;
	my $services = qr{info/refs|git-upload-pack|git-receive-pack};
	my ($path, $rest) = $req->{path} =~ m{^/(.+?)(?:\.git)?/($services)$};
	my $state = $store->get;
	my ($repo, $former) = Slipway::Forge::State::repo_at($state, $path);
	my $user = user_of($state, $req);
	my $sent = defined $req->{headers}{authorization};
	my $access = $repo ? Slipway::Forge::State::access($repo, $user) : 'none';
	my $push = $rest eq 'git-receive-pack' || ($req->{query}{service} || '') eq 'git-receive-pack';
	return _refuse($state, 401, 'Unauthorized') if $sent && !$user;
	return _refuse($state, $user ? 404 : 401, $user ? 'Not found.' : 'Unauthorized') if $access eq 'none';
	return [301, { Location => "$state->{prefix}/$repo->{path}.git/$rest"
	    . (length $req->{query_string} ? "?$req->{query_string}" : '') }, ''] if $former;
	return _refuse($state, $user ? 403 : 401, 'You are not allowed to push.')
	    if $push && $access ne 'write';
	my $dir = $store->dir . "/repos/$repo->{id}.git";
	my %before = map { $_->[0] => $_->[1] } _refs($dir);
	_backend($store, $req, $peer, "/$repo->{id}.git/$rest", $user);
	if ($rest eq 'git-receive-pack') {
		my %after = map { $_->[0] => $_->[1] } _refs($dir);
		for my $ref (sort keys %{ { %before, %after } }) {
			my ($old, $new) = map { defined $_->{$ref} ? $_->{$ref} : $zero } \%before, \%after;
			$pushed->($repo, $ref, $old, $new, $user) if $old ne $new;
		}
	}
	return undef;
}

sub _refs {
	my ($dir) = @_;
	my $text = git_out($dir, 'for-each-ref', '--format=%(refname) %(objectname)', 'refs/heads',
	    'refs/tags');
	return map { [split / /] } split /\n/, defined $text ? $text : '';
}

sub _backend {
	my ($store, $req, $peer, $info, $user) = @_;
	my $in = $store->dir . "/in.$$";
	open my $body, '+>:raw', $in or die "$in: $!";
	unlink $in;
	print {$body} $req->{body};
	$body->flush;
	seek $body, 0, 0;
	local $SIG{CHLD} = 'DEFAULT';
	my $pid = open my $out, '-|';
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		my $h = $req->{headers};
		%ENV = (PATH => $ENV{PATH}, GIT_PROJECT_ROOT => $store->dir . '/repos',
		    GIT_HTTP_EXPORT_ALL => 1,
			PATH_INFO => $info, REQUEST_METHOD => $req->{method},
			QUERY_STRING => $req->{query_string},
			CONTENT_TYPE => $h->{'content-type'} || '', CONTENT_LENGTH => length $req->{body},
			REMOTE_ADDR => '127.0.0.1', GIT_CONFIG_NOSYSTEM => 1,
			GIT_CONFIG_GLOBAL => '/dev/null',
			GIT_CONFIG_COUNT => 1, GIT_CONFIG_KEY_0 => 'safe.directory',
			GIT_CONFIG_VALUE_0 => '*');
		$ENV{REMOTE_USER} = $user->{login} if $user;
		$ENV{GIT_PROTOCOL} = $h->{'git-protocol'} if $h->{'git-protocol'};
		$ENV{HTTP_CONTENT_ENCODING} = $h->{'content-encoding'} if $h->{'content-encoding'};
		open STDIN, '<&', $body;
		{ no warnings; exec 'git', 'http-backend'; }
		require POSIX;
		POSIX::_exit(127);
	}
	binmode $out;
	my ($status, $head) = ('200 OK', '');
	while (defined(my $line = <$out>)) {
		last if $line =~ /^\r?\n$/;
		if ($line =~ /^Status: (.*?)\r?\n/i) { $status = $1 }
		else { $head .= $line }
	}
	print {$peer} "HTTP/1.1 $status\r\n${head}Connection: close\r\n\r\n";
	while (read $out, my $piece, 65536) { print {$peer} $piece }
	close $out;
	shutdown $peer, 1; # the client does not wait for the events of its push
	return;
}

1;
