# SPDX-License-Identifier: ISC
package Slipway::Forge::Repo;

# A repository of the stand-in, and a clone of it to commit in.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Slipway::Forge::Git ();
use Slipway::Forge::LFS ();
use Slipway::Test;

my %env = (GIT_CONFIG_NOSYSTEM => 1, GIT_CONFIG_GLOBAL => '/dev/null', GIT_TERMINAL_PROMPT => 0,
	GIT_AUTHOR_NAME => 'Ann Author', GIT_AUTHOR_EMAIL => 'author@example.org',
	GIT_COMMITTER_NAME => 'Ann Author', GIT_COMMITTER_EMAIL => 'author@example.org');
# Repositories of tests stay small.
my $untended = "[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n";

sub make {
	my ($class, $forge, $id, $branch) = @_;
	my $self = bless { forge => $forge, id => $id, dir => $forge->dir . "/repos/$id.git",
		work => $forge->dir . "/clones/$id" }, $class;
	my @init = ('init', '-q', '--template=', '-b', $branch);
	$self->_git_in('/', @init, '--bare', $self->{dir});
	$self->_git_in('/', @init, $self->{work});
	my $remote = "[remote \"bare\"]\n\turl = $self->{dir}\n\tfetch = +refs/heads/*:refs/remotes/bare/*\n";
	for (["$self->{dir}/config", $untended], ["$self->{work}/.git/config", $untended . $remote]) {
		my ($file, $more) = @$_;
		spew($file, slurp($file) . $more, 0644);
	}
	return $self;
}

sub id { my ($self) = @_; return $self->{id} }
# The bare repository, and a clone of it with a work tree.
sub dir { my ($self) = @_; return $self->{dir} }
sub work { my ($self) = @_; return $self->{work} }
sub path { my ($self) = @_; return $self->{forge}->store->get->{repos}{ $self->{id} }{path} }
sub clone_url { my ($self) = @_; return $self->{forge}->url . '/' . $self->path . '.git' }

sub _git_in {
	my ($self, $dir, @cmd) = @_;
	my ($status, $out, $err) = run_cmd({ cwd => $dir, env => \%env }, 'git', @cmd);
	die "git @cmd: $err" if $status != 0;
	return $out;
}

# git in the clone; its output.
sub git { my ($self, @cmd) = @_; return $self->_git_in($self->{work}, @cmd) }

# Commits files (name => text; undef removes) to a branch of the clone, which is
# created from HEAD if it does not exist; the hash. The server does not get it.
sub commit_here {
	my ($self, $branch, $files, $message) = @_;
	my ($on) = (slurp("$self->{work}/.git/HEAD") // '') =~ m{^ref: refs/heads/(.*)$}m;
	if (!defined $on || $on ne $branch) {
		my $there = eval { $self->git('rev-parse', '-q', '--verify', "refs/heads/$branch") };
		my $born = eval { $self->git('rev-parse', '-q', '--verify', 'HEAD') };
		$self->git('checkout', '-q', $there ? () : $born ? '-b' : '--orphan', $branch,
			$there ? '--' : ());
	}
	my @changed;
	for my $name (sort { defined $files->{$a} <=> defined $files->{$b} || $a cmp $b } keys %{ $files
		|| {} }) {
		my $path = "$self->{work}/$name";
		if (!defined $files->{$name}) {
			$self->git('rm', '-q', '--', $name);
			next;
		}
		make_path(dirname($path));
		spew($path, $files->{$name});
		push @changed, $name;
	}
	$self->git('add', '--', @changed) if @changed;
	$self->git('commit', '-q', '--allow-empty', '--cleanup=verbatim', '-m',
	    defined $message ? $message : 'a change');
	return $self->_head;
}

# Gives the server an object of Git LFS; its pointer, for a commit.
sub lfs { my ($self, $content) = @_; return Slipway::Forge::LFS::store($self->{dir}, $content) }

# The hash of the commit that HEAD names.
sub _head {
	my ($self) = @_;
	my $git = "$self->{work}/.git";
	my ($ref) = slurp("$git/HEAD") =~ /^ref: (.*)$/m;
	my $hash = defined $ref && slurp("$git/$ref") || $self->git('rev-parse', 'HEAD');
	chomp $hash;
	return $hash;
}

# The same, and gives the commit to the server without an event.
sub commit {
	my ($self, $branch, $files, $message) = @_;
	my $hash = $self->commit_here($branch, $files, $message);
	$self->_give("refs/heads/$branch", $hash);
	return $hash;
}

# Creates or moves a branch on the server, to HEAD or to a hash.
sub branch { my ($self, $name, $hash) = @_; return $self->_give("refs/heads/$name", $hash // $self->_head) }
sub tag { my ($self, $name, $hash) = @_; return $self->_give("refs/tags/$name", $hash // $self->_head) }

# Creates or moves a ref on the server.  If the server has the commit or its parents, links
# to objects are enough; git push would start seven processes.
sub _give {
	my ($self, $ref, $hash) = @_;
	if ($self->_share($hash)) {
		make_path(dirname("$self->{dir}/$ref"));
		spew("$self->{dir}/new", "$hash\n");
		CORE::rename("$self->{dir}/new", "$self->{dir}/$ref") or die "$ref: $!";
	} else {
		$self->git('push', '-q', '-f', 'bare', "$hash:$ref");
	}
	return $self;
}

# Gives the server the objects of a commit; false if that takes a push.
sub _share {
	my ($self, $hash) = @_;
	my ($here, $there) = ("$self->{work}/.git/objects", "$self->{dir}/objects");
	my $path = sub { return $_[0] =~ s{^(..)(\w+).*}{$1/$2}r };
	return 1 if -e "$there/" . $path->($hash);
	my ($first, @objects) = split /\n/, $self->git('rev-list', '--objects', '--parents', $hash, '--not',
	    "$hash^@");
	my ($commit, @parents) = split / /, $first;
	return 0 if $commit ne $hash; # a name, or an annotated tag
	# the commit last: that it is there says that all is
	my @missing = grep { !-e "$there/$_" } map { $path->($_) } @objects, $commit;
	return 0 if grep { !-e "$there/" . $path->($_) } @parents;
	return 0 if grep { !-e "$here/$_" } @missing;
	for my $object (@missing) {
		make_path(dirname("$there/$object"));
		link "$here/$object", "$there/$object" or die "$there/$object: $!";
	}
	return 1;
}

sub drop_branch {
	my ($self, $name) = @_;
	$self->_git_in($self->{dir}, 'update-ref', '-d', "refs/heads/$name");
	return $self;
}

# The hash of a branch or full ref on the server; undef if it does not exist.
sub tip {
	my ($self, $name) = @_;
	return Slipway::Forge::Git::tip_of($self->{dir}, $name =~ s{^refs/(?:heads|tags)/}{}r);
}

# A real push over HTTPS with a token, which sends events; (status, output).
sub push {
	my ($self, $token, @refs) = @_;
	my %as = (gitea => "any:$token", gitlab => "oauth2:$token", github => "x-access-token:$token");
	my $url = $self->clone_url =~ s{^(https?)://}{$1://$as{ $self->{forge}->type }\@}r;
	# a folder without certificates, in place of the hundreds that the system has
	my ($status, $out, $err) = run_cmd({ cwd => $self->{work}, env => { %env,
		GIT_SSL_CAINFO => $self->{forge}->ca, GIT_SSL_CAPATH => "$self->{dir}/refs" } },
	    'git', 'push', $url, @refs);
	return ($status, $out . $err);
}

sub _change {
	my ($self, $code) = @_;
	$self->{forge}->store->change(sub { $code->($_[0]{repos}{ $self->{id} }) });
	return $self;
}

# Renames the repository; the former path redirects to the new one.
sub rename {
	my ($self, $new) = @_;
	return $self->_change(sub { CORE::push @{ $_[0]{former} }, $_[0]{path}; $_[0]{path} = $new });
}
sub remove { my ($self) = @_; return $self->_change(sub { $_[0]{removed} = 1 }) }
sub private { my ($self, $yes) = @_; return $self->_change(sub { $_[0]{private} = $yes ? 1 : 0 }) }

1;
