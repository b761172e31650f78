#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Messages of notifiers come in time: however many receivers are dead, others do not
# wait; the start is announced when it happens; a late message tells what was then.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use IO::Socket::INET;
use List::Util qw(max);
use Slipway::Certificate;
use Slipway::Runner;
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::HiRes qw(time);

my $dir = tempdir();
make_front($dir);
my ($smtp, $https) = (free_port(), free_port());
my $file = "$dir/received";
start_process({ name => 'receivers' }, '/usr/bin/python3', srcdir() . '/t/receivers.py', $smtp, $https,
	"$dir/cert.pem", "$dir/cert.key", $file);
# accepts connections and never answers
my $silent = IO::Socket::INET->new(LocalAddr => '0.0.0.0', Listen => 4096) or die "listen: $!";
my $conf = "[notify]\nprivate_networks = 127.0.0.0/8\ntls_ca = $dir/ca.pem\n";
my $all = Slipway::Whole->start(runner => $conf, api => $conf);
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $maintainer = $api->as('maintainer');
my %well; # notifiers
my ($busy, $calm) = map { $all->project($runner->repo, name => $_) } qw(busy calm);
sub received { return json_lines($file) }
sub posts { my ($path) = @_; return grep { $_->{kind} eq 'post' && $_->{path} eq $path } received() }
sub to { my ($path) = @_; return "https://localhost:$https$path" }
sub create {
	my (%more) = @_;
	return $all->make('/api/notifiers', { kind => 'webhook', projectId => $calm,
		events => ['failed'], %more });
}
sub test { my ($n) = @_; return $maintainer->post("/api/notifiers/$n->{id}/test")->{status} }

# --- many dead receivers
my ($refused, $hung) = (free_port(), $silent->sockport);
# Sends messages in the midst of those to all dead receivers, if `crowd`, and returns
# how long the slowest took.
sub took {
	my ($crowd, @names) = @_;
	my %before = map { $_ => scalar posts("/$_") } @names;
	my $due = 'INSERT INTO notice (notifier_id, event, project_id) SELECT id, \'test\', project_id'
	    . ' FROM notifier WHERE kind = \'text\' AND id % 4';
	$db->sql("$due < 2") if $crowd;
	my $start = time;
	test($well{$_}) for @names;
	$db->sql("$due >= 2") if $crowd;
	my %took;
	poll(60, sub {
		posts("/$_") > $before{$_} and $took{$_} //= time - $start for @names;
		return keys %took == @names;
	});
	note(join ', ', map { sprintf '%s: %.2f s', $_, $took{$_} // 60 } @names);
	return max(map { $_ // 60 } @took{@names});
}
# Expects that they take at most a second longer than one alone, just before or after;
# other programs may disturb a round.  `prepare` makes the receivers.
sub is_prompt {
	my ($what, $prepare) = @_;
	my ($took, $most);
	for my $round (1 .. 4) {
		$db->sql("UPDATE notice SET next_at = NULL, held_until = NULL WHERE notifier_id IN"
		    . ' (SELECT id FROM notifier WHERE kind = \'text\')');
		my @names = $prepare->($round);
		my $usual = max(map { took(0, 'alone') } 1 .. 2);
		$took = took(1, @names);
		$most = 1 + 3 * max($usual, took(0, 'alone'));
		last if $took < $most;
	}
	cmp_ok($took, '<', $most, $what);
	return;
}
$well{$_} = create(target => to("/$_")) for qw(alone live);
ok(poll(60, sub { test($well{live}); return posts('/live') > 0 }), 'a receiver that is well gets a message');
$db->sql('INSERT INTO notifier (project_id, kind, target, events, active) VALUES '
    . join ', ', map { my $port = $_ % 2 ? $refused : $hung;
	"($busy, 'text', 'https://127.0.0.1:$port/$_', '[\"failed\"]', 1)" } 1 .. 2000);
my $new = 'UPDATE notifier SET last_error = NULL, last_delivered_at = NULL WHERE kind = \'text\'';
is_prompt('beside 2,000 receivers that are as new and dead, a new one of another project and one of the same'
    . ' project get their messages at once', sub {
	my ($round) = @_;
	$db->sql($new);
	$well{"fresh$round"} = create(target => to("/fresh$round"));
	$well{"amid$round"} = create(target => to("/amid$round"), projectId => $busy);
	return ("fresh$round", "amid$round");
});
is_prompt('beside 2,000 dead receivers, one that got messages before and a new one do, too', sub {
	my ($round) = @_;
	$well{"newest$round"} = create(target => to("/newest$round"));
	return ('live', "newest$round");
});
ok(poll(60, sub { $db->sql('SELECT COUNT(*) FROM notifier WHERE last_error IS NOT NULL') >= 1000 }),
    'those that refuse connections have failed');
is($db->sql("SELECT COUNT(*) FROM notice WHERE attempts > 4 AND project_id = $busy") + 0, 0,
    'none is tried again and again');
is($db->sql("SELECT COUNT(*) FROM notice m JOIN notice h USING (notifier_id)"
    . ' WHERE m.id < h.id AND m.held_until > NOW(3) AND h.held_until > NOW(3)') + 0, 0,
    'each receiver gets one message at a time');
# nothing tells them apart: each has a project and a host of its own
$db->sql('INSERT INTO project (id, name, repository, project_dir) SELECT 10000 + seq, CONCAT(\'p\', seq),'
    . ' \'https://git.example/x\', CONCAT(\'p\', seq) FROM seq_1_to_8000;'
    . 'UPDATE notifier SET project_id = 10000 + id, target = REPLACE(target, \'127.0.0.1\','
    . ' CONCAT(\'127.1.\', id DIV 250, \'.\', 1 + id % 250)) WHERE kind = \'text\'');
is_prompt('beside 2,000 that are as new and dead, of as many projects and hosts, four new ones do, too', sub {
	my ($round) = @_;
	$db->sql($new);
	my @names = map { "own$round.$_" } 1 .. 4;
	$well{$_} = create(target => to("/$_"), projectId => $all->project($runner->repo, name => $_))
	    for @names;
	return @names;
});
$db->sql("UPDATE notice SET next_at = NULL, held_until = NULL WHERE notifier_id IN"
    . ' (SELECT id FROM notifier WHERE kind = \'text\')');
$db->sql('UPDATE notifier SET active = 0 WHERE kind = \'text\'');

# --- the start, without commit statuses
my $started = create(target => to('/started'), events => ['started']);
my $late = create(target => "https://127.0.0.1:$refused/late", events => ['started']);
my $gate = $all->marks('gate');
unlink $gate;
my $id = $all->post(projectId => $calm, pipelineId => $all->pipeline($calm,
	"until test -e $gate; do sleep 0.1; done; exit 3"));
ok(poll(30, sub { posts('/started') > 0 }), 'the message that a deployment has started comes');
is($all->show($id)->{status}, 'running', 'while it is running');
spew($gate, '', 0644);
is($all->wait($id)->{status}, 'failed', 'the deployment fails later');
$maintainer->put("/api/notifiers/$late->{id}", { target => to('/late') });
$db->sql("UPDATE notice SET next_at = NOW(3), held_until = NULL WHERE notifier_id = $late->{id}");
$runner->ring;
ok(poll(60, sub { posts('/late') > 0 }), 'a message that was late comes after the end');
my $data = decode_json((posts('/late'))[0]{body})->{data};
is_deeply([ @$data{qw(status reason detail)} ], [ 'running', undef, undef ],
    'it tells the status at the time of its event');
done_testing;
