# SPDX-License-Identifier: ISC
package Slipway::Forge::LFS;

# The objects of Git LFS behind the stand-in: the batch API, and downloads with the rights
# of git.  Objects are where a local repository has them.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Digest::SHA qw(sha256_hex);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Slipway::Forge::Git ();
use Slipway::Forge::State ();
use Slipway::Test;

my $json = Cpanel::JSON::XS->new->canonical;
my $type = 'application/vnd.git-lfs+json';

sub file_of {
	my ($dir, $oid) = @_;
	return "$dir/lfs/objects/" . substr($oid, 0, 2) . '/' . substr($oid, 2, 2) . "/$oid";
}

# Stores an object; its pointer.
sub store {
	my ($dir, $content) = @_;
	my $oid = sha256_hex($content);
	my $file = file_of($dir, $oid);
	make_path(dirname($file));
	spew($file, $content, 0644);
	return pointer($oid, length $content);
}

sub pointer {
	my ($oid, $size) = @_;
	return "version https://git-lfs.github.com/spec/v1\noid sha256:$oid\nsize $size\n";
}

sub _json { my ($status, $body) = @_; return [$status, { 'Content-Type' => $type }, $json->encode($body)] }

# A response to a request below info/lfs, or undef.
sub answer {
	my ($store, $req) = @_;
	my ($path, $rest) = $req->{path} =~ m{^/(.+?)\.git/info/lfs/(.+)$} or return undef;
	my $state = $store->get;
	my ($repo) = Slipway::Forge::State::repo_at($state, $path);
	my $user = Slipway::Forge::Git::user_of($state, $req);
	my $access = $repo ? Slipway::Forge::State::access($repo, $user) : 'none';
	if ($access eq 'none') {
		my $refused = _json($user ? 404 : 401, { message => $user ? 'Not found' : 'Unauthorized' });
		$refused->[1]{'WWW-Authenticate'} = 'Basic realm="stand-in"' if !$user;
		return $refused;
	}
	my $dir = $store->dir . "/repos/$repo->{id}.git";
	return _batch($state, $repo, $dir, $req) if $rest eq 'objects/batch' && $req->{method} eq 'POST';
	my ($oid) = $rest =~ m{^objects/([0-9a-f]{64})$} or return _json(404, { message => 'No such path' });
	return _json(404, { message => 'No such object' }) if !-e file_of($dir, $oid);
	return [200, { 'Content-Type' => 'application/octet-stream' }, slurp(file_of($dir, $oid))];
}

# The state's lfs_at is where the objects are, in place of this server.
sub _batch {
	my ($state, $repo, $dir, $req) = @_;
	my $at = $state->{lfs_at} || "$state->{url}/$repo->{path}.git/info/lfs/objects";
	my @objects;
	for my $asked (@{ $json->decode($req->{body})->{objects} }) {
		my %object = (oid => $asked->{oid}, size => $asked->{size});
		if (-e file_of($dir, $asked->{oid})) {
			my $with = $state->{lfs_at} ? undef : $req->{headers}{authorization};
			$object{actions}{download} = { href => "$at/$asked->{oid}",
				defined $with ? (header => { Authorization => $with }) : () };
		} else {
			$object{error} = { code => 404, message => 'Object does not exist' };
		}
		push @objects, \%object;
	}
	return _json(200, { transfer => 'basic', objects => \@objects });
}

1;
