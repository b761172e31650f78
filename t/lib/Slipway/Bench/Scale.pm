# SPDX-License-Identifier: ISC
package Slipway::Bench::Scale;

# Seeds deployments, and measures each list, read and claim beside them: the median
# time, and how many rows the database reads for it.
#
#   seed($site, 1000);
#   my %figures = measure($site);   # name => { ms, reads }
#   my @sizes = sizes($site);       # of the deployments' table and its indexes

use strict;
use warnings;
use Exporter 'import';
use Slipway::Bench::Figures qw(median);
use Slipway::Probe;
use Slipway::Test;
use Time::HiRes qw(time);

our @EXPORT_OK = qw(measure sizes seed unmeasured);

my $projects = 100;
my $pending = 200; # the last ones
my $batch = 500_000;
my $owner = '0123456789abcdef' x 2;
my $repeat = 21;

# --- rows

# 100 projects with a pipeline of one step and an environment each, which have the id of
# their project.
sub _projects {
	my ($site) = @_;
	my $range = 'seq_101_to_' . (100 + $projects);
	$site->db->sql(<<"SQL");
INSERT INTO project (id, name, repository, project_dir, default_branch)
    SELECT seq, CONCAT('seeded ', seq), 'https://git.example.org/a/b', CONCAT('seeded-', seq), 'main'
    FROM $range;
INSERT INTO pipeline (id, project_id, name) SELECT seq, seq, 'deploy' FROM $range;
INSERT INTO environment (id, project_id, name, position) SELECT seq, seq, 'production', 0 FROM $range;
INSERT INTO step (pipeline_id, name, script, position) SELECT seq, 'step', ':', 0 FROM $range
SQL
	return;
}

# The secondary indexes of deployments: "ADD" clauses by name.
sub _indexes {
	my ($site) = @_;
	my $table = (split /\t/, $site->db->sql('SHOW CREATE TABLE deployment'), 2)[1];
	$table =~ s/\\n/\n/g;
	return map { /^  (KEY (`\w+`) \(.*\)),?$/ ? ($2 => "ADD $1") : () } split /\n/, $table;
}

# Adds deployments until there are so many, each with a step and every tenth with a log.
# Without indexes, rows go in at the end; the indexes are then built by sorting.
sub seed {
	my ($site, $last) = @_;
	my $db = $site->db;
	my $first = 1 + $db->sql('SELECT COALESCE(MAX(id) - 100000, 0) FROM deployment WHERE id > 100000');
	_projects($site) if $db->sql("SELECT COUNT(*) FROM project WHERE id > 100") == 0;
	$site->clear_queue;
	my %indexes = _indexes($site);
	my $ask = $db->session;
	$ask->('SET SESSION unique_checks = 0, foreign_key_checks = 0');
	$ask->('ALTER TABLE deployment ' . join ', ', map { "DROP KEY $_" } sort keys %indexes);
	for (my $from = $first; $from <= $last; $from += $batch) {
		my $to = $from + $batch - 1 < $last ? $from + $batch - 1 : $last;
		_insert($ask, $from, $to, $last - $pending);
	}
	$ask->('ALTER TABLE deployment ' . join ', ', map { $indexes{$_} } sort keys %indexes);
	$ask->('ANALYZE TABLE deployment, deployment_step, log_chunk');
	return;
}

# Each project has 20 branches and all final states; a branch, and a state in it, are
# only among the first thousand.
sub _insert {
	my ($ask, $from, $to, $last_ended) = @_;
	my $range = "seq_${from}_to_$to";
	my $day = 'NOW(3) - INTERVAL 1 DAY';
	$ask->(<<"SQL");
INSERT INTO deployment (id, project_id, pipeline_id, environment_id, branch, commit_hash,
    commit_message, status, `trigger`, created_by, runner, created_at, started_at, finished_at, log_size)
    SELECT 100000 + seq, 101 + seq % $projects, 101 + seq % $projects, 101 + seq % $projects,
    IF(seq < 1000 AND seq % 200 = 1, 'rare', CONCAT('branch', seq DIV $projects % 20)),
    SHA1(seq), CONCAT('commit ', seq),
    IF(seq > $last_ended, 'pending', IF(seq < 1000 AND seq % 200 = 1, 'interrupted',
	ELT(1 + seq DIV $projects % 3, 'success', 'failed', 'canceled'))),
    'manual', 1, IF(seq > $last_ended, NULL, 'seeded'), $day,
    IF(seq > $last_ended, NULL, $day), IF(seq > $last_ended, NULL, $day), 100 FROM $range
SQL
	$ask->(<<"SQL");
INSERT INTO deployment_step (deployment_id, position, name, script, run_when, status)
    SELECT 100000 + seq, 0, 'step', ':', 'success', IF(seq > $last_ended, 'pending', 'success') FROM $range
SQL
	$ask->(<<"SQL");
INSERT INTO log_chunk (deployment_id, start, length, data)
    SELECT 100000 + seq, 0, 100, REPEAT('x', 100) FROM $range WHERE seq % 10 = 0
SQL
	return;
}

# --- what is measured

# Lists of deployments by each combination of filters: with values that are common, on
# the first page and halfway down; with values that are rare; and with a state that is
# rare on a branch that is not, which no deployment has.
sub _deployment_lists {
	my ($site, $middle) = @_;
	my @paths;
	for my $set (0 .. 31) {
		my %value = (projectId => [1, 102], pipelineId => [2, 102], status => [4, 'success'],
			branch => [8, 'branch3'], environmentId => [16, 102]);
		my @filters = grep { $set & $value{$_}[0] }
		    qw(projectId environmentId pipelineId status branch);
		my $common = join '', map { "&$_=$value{$_}[1]" } @filters;
		push @paths, map { "/api/deployments?limit=20$_$common" } '', "&cursor=$middle";
		my $rare = $common =~ s/=success/=interrupted/r;
		for my $other ($rare =~ s/=branch3/=rare/r, ($set & 12) == 12 ? $rare : ()) {
			push @paths, "/api/deployments?limit=20$other" if $other ne $common;
		}
	}
	return @paths;
}

# Paths of GET requests, by a name that is the same for each number of deployments.
sub _paths {
	my ($site) = @_;
	my ($last, $pending_id, $logged, $middle) = split /\t/, $site->db->sql(
	    "SELECT MAX(IF(status = 'success', id, 0)), MAX(IF(status = 'pending', id, 0)),"
	    . ' MAX(IF(status <> \'pending\' AND id % 10 = 0, id, 0)), 100000 + (MAX(id) - 100000) DIV 2'
	    . ' FROM deployment WHERE id > 100000');
	my %path = ("/api/deployments/{id}" => "/api/deployments/$last",
		"/api/deployments/{id} of a pending one" => "/api/deployments/$pending_id",
		"/api/deployments/{id}/log" => "/api/deployments/$logged/log",
		map({ ("/api/$_/{id}" => "/api/$_/102") } qw(projects pipelines environments)),
		'/api/steps/{id}' => '/api/steps/1', '/api/user/detail/{id}' => '/api/user/detail/1',
		'/api/templates/{id}' => '/api/templates/static-site-rsync',
		map { ($_ => $_) } '/health', '/api/health', '/api/metrics', '/projects', '/api/projects',
		'/api/projects?name=seeded', '/api/pipelines', '/api/pipelines?projectId=102',
		'/api/steps?pipelineId=102', '/api/environments', '/api/environments?projectId=102',
		'/api/user/list', '/api/user/search?keyword=a',
		'/api/auth/tokens', '/api/auth/tokens/1', '/api/templates', '/api/pipelines/templates',
		'/api/openapi.json', '/api/auth/info');
	for my $list (_deployment_lists($site, $middle)) {
		$path{ $list =~ s/cursor=\d+/cursor=middle/r } = $list;
	}
	return \%path;
}

# The GET paths of the OpenAPI document that nothing here reads.
my $elsewhere = qr{^/api/(?:git/|auth/url|auth/logout)}; # other servers, or no reads
sub unmeasured {
	my ($site) = @_;
	my @read = values %{ _paths($site) };
	my $paths = $site->api->get('/api/openapi.json')->{json}{paths};
	my @missing;
	for my $path (sort grep { $paths->{$_}{get} && !/$elsewhere/ } keys %$paths) {
		my $like = join '[^/?]+', map { quotemeta } split /\{\w+\}/, $path, -1;
		push @missing, $path if !grep { /^$like(?:\?|$)/ } @read;
	}
	return @missing;
}

# --- measuring

# How many rows the database has read from the storage engine.
sub _reads {
	my ($ask) = @_;
	my $n = 0;
	$n += (split /\t/)[1] for split /\n/, $ask->("SHOW GLOBAL STATUS LIKE 'Handler_read%'");
	return $n;
}

# Runs the code several times: the median in milliseconds, and the reads of the last run
# but those of counting.  most: how often the code can run.
sub _figures {
	my ($ask, $code, $most) = @_;
	my $times = defined $most && $most - 3 < $repeat ? $most - 3 : $repeat;
	$code->() for 1 .. 2;
	my $before = _reads($ask);
	my $counting = _reads($ask) - $before;
	$before = _reads($ask);
	$code->();
	my $reads = _reads($ask) - $before - $counting;
	my @ms;
	my $end = time + 5;
	while (@ms < $times && (!@ms || time < $end)) {
		my $began = time;
		$code->();
		push @ms, 1000 * (time - $began);
	}
	return { ms => median(@ms), reads => $reads };
}

sub _queue {
	my ($site, $ask) = @_;
	my $probe = Slipway::Probe->start($site->db->conf_file, 'queue_probe');
	my (@claimed, %figures);
	my $say = sub { my $got = $probe->ask($_[0]); die "$_[0]: $got" if $got =~ /^error/; return $got };
	$figures{'queue: claim'} = _figures($ask, sub {
		my ($id, $epoch) = split / /, $say->("claim $owner seeded 60");
		push @claimed, "$id $epoch";
	});
	my %command = ('running deployments of the dispatcher' => "held $owner",
		'running deployments of a runner' => 'runner seeded', 'expired leases' => 'expire',
		'old commit tokens' => 'tidy');
	for my $name (sort keys %command) {
		$figures{"queue: $name"} = _figures($ask, sub { $say->($command{$name}) });
	}
	$figures{'queue: renew a lease'} = _figures($ask, sub { $say->("renew $claimed[0] $owner 60") });
	$figures{'queue: end'} = _figures($ask, sub { $say->('end ' . (shift @claimed) . ' success -') },
	    scalar @claimed);
	$probe->stop;
	return %figures;
}

# Every list, read and claim.
sub measure {
	my ($site) = @_;
	my $ask = $site->db->session;
	my $path = _paths($site);
	my %figures;
	for my $name (sort keys %$path) {
		$figures{"GET $name"} = _figures($ask, sub {
			my $got = $site->client->request(GET => $path->{$name});
			die "GET $path->{$name}: $got->{status} $got->{body}" if $got->{status} != 200;
		});
	}
	$figures{'POST /api/deployments'} = _figures($ask, sub { $site->deploy(102, 102) });
	return (%figures, _queue($site, $ask));
}

# MiB of the rows of deployments and of each index: [name, MiB].
sub sizes {
	my ($site) = @_;
	return map { [ split /\t/ ] } split /\n/, $site->db->sql(
	    "SELECT index_name, stat_value * \@\@innodb_page_size / 1048576 FROM mysql.innodb_index_stats"
	    . " WHERE database_name = 'slipway' AND table_name = 'deployment' AND stat_name = 'size'"
	    . ' ORDER BY stat_value DESC');
}

1;
