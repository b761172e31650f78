# SPDX-License-Identifier: ISC
package Slipway::Forge::State;

# The state of the stand-in for a Git server, in files of a directory, so that the
# test and all processes of the server share it. Text is bytes.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Exporter 'import';
use Fcntl qw(:flock);
use Cpanel::JSON::XS ();
use Storable qw(retrieve store);

our @EXPORT_OK = qw(git_out random_hex ref_text);

my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;

sub open {
	my ($class, $dir) = @_;
	return bless { dir => $dir }, $class;
}

sub dir { my ($self) = @_; return $self->{dir} }

sub _lock {
	my ($self) = @_;
	CORE::open(my $lock, '>>', "$self->{dir}/lock") or die "$self->{dir}/lock: $!";
	flock $lock, LOCK_EX or die "flock: $!";
	return $lock;
}

sub _load {
	my ($self) = @_;
	my $path = "$self->{dir}/state";
	return -e $path ? retrieve($path) : {};
}

sub get {
	my ($self) = @_;
	my $lock = $self->_lock;
	return $self->_load;
}

# Runs the code on the state under a lock, and stores the result; returns what the
# code returns.
sub change {
	my ($self, $code) = @_;
	my $lock = $self->_lock;
	my $state = $self->_load;
	my $got = $code->($state);
	my $new = "$self->{dir}/state.new";
	store($state, $new) or die "$new: $!";
	rename $new, "$self->{dir}/state" or die "$new: $!";
	return $got;
}

# A list that only grows: requests, complaints, deliveries.
sub note {
	my ($self, $list, $record) = @_;
	my $lock = $self->_lock;
	CORE::open(my $fh, '>>:raw', "$self->{dir}/$list") or die "$list: $!";
	print {$fh} $json->encode($record), "\n";
	close $fh or die "$list: $!";
	return;
}

sub notes {
	my ($self, $list) = @_;
	my $lock = $self->_lock;
	CORE::open(my $fh, '<:raw', "$self->{dir}/$list") or return;
	# tests read a list again and again: a record is decoded once
	my $read = $self->{read}{$list} ||= { size => 0, records => [] };
	@$read{qw(size records)} = (0, []) if $read->{size} > -s $fh;
	seek $fh, $read->{size}, 0 or die "$list: $!";
	push @{ $read->{records} }, map { $json->decode($_) } <$fh>;
	$read->{size} = tell $fh;
	return @{ $read->{records} };
}

sub forget {
	my ($self, $list) = @_;
	my $lock = $self->_lock;
	unlink "$self->{dir}/$list";
	delete $self->{read}{$list};
	return;
}

sub next_id {
	my ($state, $what) = @_;
	return ++$state->{ids}{$what};
}

# The repository at a path: (it, whether the path is a former one).
sub repo_at {
	my ($state, $path) = @_;
	my @there = grep { !$_->{removed} } values %{ $state->{repos} };
	for my $repo (@there) { return ($repo, 0) if lc $repo->{path} eq lc $path }
	for my $repo (@there) {
		return ($repo, 1) if grep { lc $_ eq lc $path } @{ $repo->{former} };
	}
	return;
}

# The user of an access token: (user, error).
sub user_of_token {
	my ($state, $token) = @_;
	my $known = $state->{tokens}{$token};
	return (undef, 'unknown') if !$known;
	return (undef, 'revoked') if $known->{revoked};
	return (undef, 'expired') if $known->{expires} && $known->{expires} <= time;
	return ($state->{users}{ $known->{user} }, undef);
}

# 'none', 'read' or 'write'
sub access {
	my ($repo, $user) = @_;
	if ($user) {
		return 'write' if $repo->{users}{ $user->{id} } || $user->{admin};
		return 'read' if $repo->{readers}{ $user->{id} };
	}
	return $repo->{private} ? 'none' : 'read';
}

my $drawn = 0;
sub random_hex {
	my ($length) = @_;
	CORE::open(my $fh, '<:raw', '/dev/urandom') or die "/dev/urandom: $!";
	sysread $fh, my $bytes, 32;
	return substr sha256_hex($bytes . $$ . ++$drawn), 0, $length;
}

# A new access token, with a refresh token if requested.
sub token_new {
	my ($state, $user, %opt) = @_;
	my $start = { github => 'gho_', gitlab => '' }->{ $state->{type} };
	my $access = $opt{access} || (defined $start ? $start : 'eyJhbGciOi') . random_hex(40);
	my $refresh = $opt{refresh} && $opt{refresh} ne '1' ? $opt{refresh}
	    : $opt{refresh} ? 'r' . random_hex(40) : undef;
	$state->{tokens}{$access} = { user => $user->{id}, client => $opt{client},
		expires => $opt{expires} ? time + $opt{expires} : undef, refresh => $refresh };
	$state->{refresh}{$refresh} = { user => $user->{id}, access => $access,
		client => $opt{client} } if $refresh;
	return ($access, $refresh);
}

# What the refs of a repository are.
sub _refs_of {
	my ($repo) = @_;
	my @found = ("$repo/HEAD", "$repo/packed-refs");
	my @left = "$repo/refs";
	while (defined(my $path = shift @left)) {
		if (opendir my $dir, $path) {
			push @left, map { "$path/$_" } grep { !/^\./ } sort readdir $dir;
		} else {
			push @found, $path;
		}
	}
	return map { ($_, _content($_) // '') } @found;
}

sub _content {
	my ($path) = @_;
	CORE::open(my $in, '<:raw', $path) or return undef;
	local $/;
	return <$in> // '';
}

# The text of a ref that has a file of its own; undef if it has none.
sub ref_text { my ($repo, $ref) = @_; return _content("$repo/$ref") }

# The file that remembers what a git command printed about these refs.
sub _memory { my ($repo, @cmd) = @_; return "$repo/out." . sha256_hex(join "\0", @cmd, _refs_of($repo)) }

# The output of a git command that only reads a repository; undef if git fails.  It is
# remembered until a ref changes.
sub git_out {
	my ($repo, @cmd) = @_;
	my $file = _memory($repo, @cmd);
	my $known = _content($file);
	return $known if defined $known;
	my $out = _git($repo, @cmd);
	return $out if !defined $out || _memory($repo, @cmd) ne $file;
	CORE::open(my $to, '>:raw', "$file.$$") or die "$file.$$: $!";
	print {$to} $out;
	close $to or die "$file.$$: $!";
	rename "$file.$$", $file or die "$file: $!";
	return $out;
}

sub _git {
	my ($repo, @cmd) = @_;
	local $SIG{CHLD} = 'DEFAULT';
	local @ENV{qw(GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL)} = (1, '/dev/null');
	my $pid = CORE::open(my $out, '-|');
	die "fork: $!" if !defined $pid;
	if ($pid == 0) {
		CORE::open(STDERR, '>', '/dev/null');
		{ no warnings; exec 'git', '-c', 'safe.directory=*', '--git-dir', $repo, @cmd; }
		require POSIX;
		POSIX::_exit(127);
	}
	local $/;
	my $text = <$out>;
	close $out;
	return $? == 0 ? (defined $text ? $text : '') : undef;
}

1;
