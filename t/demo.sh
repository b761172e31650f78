# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# The demo, for ./bootstrap, which defines say, die, run, build and so on.
# shellcheck disable=SC2154 # top, uid

# The accounts of MariaDB, dispatcher and API if root starts the demo: slipway's
# own if they exist, and otherwise accounts that every Debian has.  The API must
# not be able to read the dispatcher's key.
db_account=daemon
account=daemon
api_account=bin
if id -nG slipway-api 2>/dev/null | grep -qw slipway && id slipway >/dev/null 2>&1; then
	account=slipway
	api_account=slipway-api
fi
# In the tree, so that it remains when the rest of the demo was removed.
logs=$top/demo/log

# --- the demo: its directory

# A directory that other accounts can reach, whose path is short enough for sockets.
place=
reachable() {
	[ ${#1} -le 70 ] && [[ $1 =~ ^[A-Za-z0-9/._+-]+$ ]] && open_to_others "$1"
}

# Removes an earlier demo, and nothing that a demo did not create.
make_place() {
	if [ -e demo ] && [ ! -e demo/lock ]; then
		die "$top/demo was not created by a demo: move it away, then run ./bootstrap demo again"
	fi
	if ! { mkdir -p demo && chmod 755 demo && : >>demo/lock; }; then
		die "cannot write $top/demo, which root may have created." \
		    "Remove it (sudo rm -rf '$top/demo'), then run ./bootstrap demo again"
	fi
	exec 8>demo/lock
	flock -w 120 8 || die "another ./bootstrap demo is starting or stopping here; try again"
	if running; then
		die "a demo is already running at $running_url." \
		    "Stop it with ./bootstrap demo --stop; starting another one deletes its data."
	fi
	stop_all
	find demo -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} + ||
		die "cannot empty $top/demo: remove it as root, then run ./bootstrap demo again"
	if reachable "$top/demo"; then
		place=$top/demo
	else
		place=$(mktemp -d /var/tmp/slipway-demo.XXXXXX)
		chmod 755 "$place"
		say "the demo is in $place, because other accounts cannot enter $top," \
		    "or its path is too long or has characters other than letters, digits and ._/+-"
	fi
	began $$
	instance="$place $$ $ticks"
	printf '%s\n' "$instance" >demo/place
	mkdir "$place"/{db,etc,run,run/{api,db,runner},tls,workspaces,spool,tmp}
	chmod 700 "$place/db"
	mkdir -p "$logs"
}

# --- the demo: processes

# Sets $ticks to the start time of a process in clock ticks, which identifies it together
# with its id.  If the process has ended, it fails and leaves $ticks as it is.
# It runs no command: bash ignores a SIGINT that arrives while it waits for one, unless the
# command dies of a SIGINT, too.
ticks=
began() {
	local stat=
	{ read -rd '' stat <"/proc/$1/stat" || true; } 2>/dev/null
	# shellcheck disable=SC2086 # fields after the name in parentheses
	set -- ${stat##*) }
	[ "${1:-Z}" != Z ] && ticks=${20}
}

# start NAME COMMAND...: in a session of its own, so that Ctrl-C does not reach it.
start() {
	local name=$1 pid
	shift
	setsid "$@" >"$logs/$name.log" 2>&1 </dev/null 8>&- &
	pid=$!
	began "$pid" || ticks=gone
	printf '%s %s\n' "$pid" "$ticks" >"$place/run/$name.pid"
}

# Whether the process in the file is still running.
alive() {
	local pid since
	read -r pid since 2>/dev/null <"$1" || return 1
	began "$pid" && [ "$ticks" = "$since" ]
}

# stop FILE SECONDS: TERM, then KILL.
stop() {
	local file=$1 left=$(($2 * 10)) pid
	read -r pid _ 2>/dev/null <"$file" || return 0
	if alive "$file"; then
		kill -TERM "$pid" 2>/dev/null || true
		while alive "$file" && [ $((left--)) -gt 0 ]; do sleep 0.1; done
		! alive "$file" || kill -KILL -- "-$pid" 2>/dev/null || true
	fi
	# A master that was killed leaves workers that hold the port.  While they
	# live, their process group cannot be reused.
	began "$pid" || kill -KILL -- "-$pid" 2>/dev/null || true
	rm -f "$file"
}

# Prints /proc/PID of the processes whose program matches the pattern.  One that
# ends meanwhile is no error.
processes_of() {
	find /proc/[0-9]*/exe -maxdepth 0 -lname "$1" -printf '%h\n' 2>/dev/null || true
}

# Jobs outlive their runner by design, but not the demo.
stop_jobs() {
	local process
	for process in $(processes_of "$1/usr/libexec/slipway/*"); do
		kill -TERM "${process#/proc/}" 2>/dev/null || true
		printf '%s ' "${process#/proc/}"
	done
}

stop_all() {
	local dir left=100 name
	read -r dir _ 2>/dev/null <demo/place || return 0
	for name in nginx:10 live:10 runner:20 api:20; do
		stop "$dir/run/${name%:*}.pid" "${name#*:}"
	done
	while [ -n "$(stop_jobs "$dir")" ] && [ $((left--)) -gt 0 ]; do sleep 0.1; done
	stop "$dir/run/mariadb.pid" 60
	case $dir in
	/var/tmp/slipway-demo.*) rm -rf "$dir" ;;
	esac
	rm -f demo/place demo/env
}

# Whether the nginx of a demo is running; sets running_url.
running() {
	local dir
	read -r dir _ 2>/dev/null <demo/place && alive "$dir/run/nginx.pid" || return 1
	running_url=$(sed -n "s/^SLIPWAY_URL='\(.*\)'$/\1/p" demo/env 2>/dev/null)
	running_url=${running_url:-an unknown address}
}

# poll SECONDS COMMAND...
poll() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -le $end ] || return 1
		sleep 0.1
	done
}

# ready NAME WHAT SECONDS COMMAND...: polls; shows the log if the command never succeeds.
ready() {
	local name=$1 what=$2 end=$((SECONDS + $3))
	shift 3
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -gt $end ] || ! alive "$place/run/$name.pid"; then
			tail -n 20 "$logs/$name.log" >&2
			die "$what did not start: see the end of its log above, and $logs/$name.log"
		fi
		sleep 0.1
	done
}

# --- the demo: parts

install_slipway() {
	say "installing slipway into $place/usr"
	if [ -n "${SLIPWAY_INSTALLED-}" ]; then
		cp -R "$SLIPWAY_INSTALLED" "$place/usr"
	else
		run "$logs/install.log" make -C build install prefix="$place/usr" \
		    sysconfdir="$place/etc"
	fi
	admin=$place/usr/sbin/slipway-admin
	version=$(basename "$(dirname "$place"/usr/share/slipway/console/*/main.js)")
}

secret() { openssl rand -hex 16; }

# give ACCOUNT FILE...
give() {
	[ "$uid" != 0 ] || chown "$1:" "${@:2}"
}

start_mariadb() {
	local own=() sql
	say "starting a separate MariaDB in $place/db"
	[ "$uid" != 0 ] || own=("--user=$db_account")
	give "$db_account" "$place/db" "$place/tmp" "$place/run/db"
	run "$logs/mariadb-install.log" mariadb-install-db --no-defaults --tmpdir="$place/tmp" \
	    --datadir="$place/db" --auth-root-authentication-method=socket \
	    --auth-root-socket-user="$(id -un)" --skip-test-db \
	    --skip-name-resolve --force "${own[@]}"
	start mariadb mariadbd --no-defaults --datadir="$place/db" --tmpdir="$place/tmp" \
	    --socket="$place/run/db/mariadb.sock" --pid-file="$place/db/mariadb.pid" \
	    --skip-networking --skip-log-bin --innodb-buffer-pool-size=64M \
	    --performance-schema=off "${own[@]}"
	sql=(mariadb --no-defaults --socket="$place/run/db/mariadb.sock" -u "$(id -un)")
	ready mariadb MariaDB 60 "${sql[@]}" -e 'SELECT 1'
	db_password=$(secret)
	migrate_password=$(secret)
	"${sql[@]}" <<-SQL
	CREATE DATABASE slipway CHARACTER SET utf8mb4;
	CREATE USER slipway@localhost IDENTIFIED BY '$db_password';
	CREATE USER slipway_migrate@localhost IDENTIFIED BY '$migrate_password';
	GRANT SELECT, INSERT, UPDATE, DELETE ON slipway.* TO slipway@localhost;
	GRANT ALL ON slipway.* TO slipway_migrate@localhost;
	SQL
}

# A range of user ids that has no other use on this host: no process, account,
# range of containers or of another slipway, and not the default range.
uids_wanted=1000
uids_taken() {
	local dir conf files=()
	for dir in $(processes_of '*/slipway-runner'); do
		conf=$(tr '\0' '\n' <"$dir/cmdline" 2>/dev/null | sed -n '/^-c$/{n;p;}' || :)
		[ ! -r "${conf:=/etc/slipway/slipway.conf}" ] || files+=("$conf")
	done
	# One range per line: its first id, and how many.
	{
		stat -c '%u 1' /proc/[0-9]* || true # some have ended
		awk -F: '{ print $3, 1 }' /etc/passwd
		[ ! -r /etc/subuid ] || awk -F: '{ print $2, $3 }' /etc/subuid
		for conf in "${files[@]}"; do
			awk -F= '{ gsub(/[ \t]/, "") }
				$1 == "uid_first" { first = $2 }
				$1 == "uid_count" { n = $2 }
				$1 == "watch_uid_first" { print $2, 256 }
				END { if (first != "") print first, (n == "" ? 65536 : n) + 256 }' "$conf" ||
				true # its runner has ended
		done
	} 2>/dev/null | awk -v first="$1" -v last="$(($1 + uids_wanted + 255))" '
		$1 <= last && $1 + $2 > first { found = 1 } END { exit !found }'
}
uids_pick() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		uid_first=$((700000000 + RANDOM % 20000 * 10000))
		uids_taken "$uid_first" || return 0
	done
	die "no range of $uids_wanted user ids is free for the steps of the demo"
}

write_conf() {
	local conf=$place/etc/slipway.conf
	(umask 077 && cat >"$conf") <<-CONF
	# Created by ./bootstrap demo; slipway.conf(5) describes every setting.
	[database]
	socket = $place/run/db/mariadb.sock
	user = slipway
	password = $db_password
	migrate_user = slipway_migrate
	migrate_password = $migrate_password

	[api]
	socket = $place/run/api/api.sock
	slow_socket = $place/run/api/slow.sock
	slow_workers = 1
	live_socket = $place/run/api/live.sock
	live_wake_socket = $place/run/api/live-wake.sock
	workers = 4
	templates = $place/usr/share/slipway/templates

	[gitserver]
	type = git
	allow_local = yes

	[secrets]
	key_file = $place/etc/secret.key

	[runner]
	name = demo
	wake_socket = $place/run/runner/wake.sock
	spool = $place/spool
	workspaces = $place/workspaces
	CONF
	if [ "$uid" = 0 ]; then
		uids_pick
		sed -i -e "/^\[runner\]/a uid_first = $uid_first\nuid_count = $uids_wanted" "$conf"
		sed -i -e "/^\[api\]/a user = $api_account\nsocket_group = www-data" \
		    -e "/^\[runner\]/a user = $account\nwake_group = $account" "$conf"
		chgrp "$account" "$conf"
		chmod 640 "$conf"
		give "$api_account" "$place/run/api"
		give "$account" "$place/run/runner" "$place/spool"
	else
		sed -i -e '/^\[runner\]/a privilege_drop = no' "$conf"
		say "not root: steps run as $(id -un) (privilege_drop = no); if root starts the demo," \
		    "they run under accounts of their own"
	fi
	run "$logs/admin.log" "$admin" -c "$conf" key
	[ "$uid" != 0 ] || chgrp "$account" "$place/etc/secret.key"
}

port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

pick_port() {
	local wanted=$port
	while port_taken "$port"; do port=$((port + 1)); done
	[ "$port" = "$wanted" ] || say "port $wanted is taken: using $port"
}

nginx_answers() { curl -sS -o "$place/tmp/answer" --cacert "$place/tls/cert.pem" "$url/"; }
nginx_settled() { nginx_answers 2>/dev/null || ! alive "$place/run/nginx.pid"; }

# Another process can take the port before nginx does.
start_nginx() {
	local tries=0
	nginx_prepare
	while [ $((tries++)) -lt 10 ]; do
		pick_port
		url=https://127.0.0.1:$port
		say "starting nginx with TLS on 127.0.0.1:$port"
		nginx_configure
		rm -f "$place/run/plain.sock" # a failed start leaves it
		start nginx nginx -e "$logs/nginx-error.log" -c "$place/etc/nginx.conf"
		poll 20 nginx_settled || true
		if alive "$place/run/nginx.pid" || ! grep -q 'Address already in use' "$logs/nginx.log"; then
			break
		fi
		say "port $port is taken: using $((++port))"
	done
	ready nginx nginx 1 nginx_answers
}

nginx_prepare() {
	run "$logs/openssl.log" openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
	    -nodes -days 30 -subj "/CN=slipway demo" \
	    -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" \
	    -keyout "$place/tls/key.pem" -out "$place/tls/cert.pem"
	chmod 600 "$place/tls/key.pem"
}

nginx_configure() {
	local user='' file
	[ "$uid" != 0 ] || user="user www-data;"
	# The site file that slipway installs, with the paths of the demo.
	# A rebuilt console has the same version, so browsers must not keep its modules.
	for file in site.conf.in locations.conf.in root.conf.in http.conf fastcgi.conf console.conf; do
		sed -e "s|@pkgdatadir@/nginx|$place/etc|" -e "s|@pkgdatadir@|$place/usr/share/slipway|" \
		    -e "s|@VERSION@|$version|" -e 's|"public, .* immutable"|no-cache|' \
		    -e "s|/run/slipway/|$place/run/api/|" \
		    -e "s|listen 80;|listen unix:$place/run/plain.sock;|" \
		    -e "s|listen 443 |listen 127.0.0.1:$port |" \
		    -e "s|server_name [^;]*;.*|server_name localhost 127.0.0.1;|" \
		    -e "s|/etc/ssl/certs/slipway.pem|$place/tls/cert.pem|" \
		    -e "s|/etc/ssl/private/slipway.key|$place/tls/key.pem|" \
		    "nginx/slipway-$file" >"$place/etc/slipway-${file%.in}"
	done
	cat >"$place/etc/nginx.conf" <<-CONF
	$user
	daemon off;
	worker_processes 2;
	pid $place/run/nginx.own;
	error_log "$logs/nginx-error.log";
	events { worker_connections 512; }
	http {
		access_log "$logs/access.log";
		client_body_temp_path $place/tmp/body;
		fastcgi_temp_path $place/tmp/fastcgi;
		proxy_temp_path $place/tmp/proxy;
		scgi_temp_path $place/tmp/scgi;
		uwsgi_temp_path $place/tmp/uwsgi;
		include $place/etc/slipway-http.conf;
		include $place/etc/slipway-site.conf;
	}
	CONF
	run "$logs/nginx-test.log" nginx -t -e "$logs/nginx-error.log" \
	    -c "$place/etc/nginx.conf"
}

start_service() {
	local conf=$place/etc/slipway.conf as_api=()
	# The groups that the systemd unit gives the API.
	[ "$uid" != 0 ] || as_api=(setpriv "--reuid=$api_account" "--regid=$api_account"
	    "--groups=$account,www-data")
	say "migrating the schema"
	run "$logs/migrate.log" "$admin" -c "$conf" migrate
	say "starting the API and the runner"
	start api "${as_api[@]}" "$place/usr/sbin/slipway-api" -c "$conf"
	start live "${as_api[@]}" "$place/usr/libexec/slipway/slipway-live" -c "$conf"
	start runner "$place/usr/sbin/slipway-runner" -c "$conf" \
	    -d "$place/usr/libexec/slipway/slipway-dispatch" \
	    -j "$place/usr/libexec/slipway/slipway-job"
	start_nginx
	ready api "the API" 20 curl -fsS --cacert "$place/tls/cert.pem" "$url/health"
	run "$logs/user.log" "$admin" -c "$conf" user add admin --role admin
	token=$("$admin" -c "$conf" token add admin --name demo) ||
		die "slipway-admin could not create a token: see its message above"
	(umask 077 && cat >demo/env) <<-ENV
	SLIPWAY_URL='$url'
	SLIPWAY_TOKEN='$token'
	SLIPWAY_CACERT='$place/tls/cert.pem'
	export SLIPWAY_URL SLIPWAY_TOKEN SLIPWAY_CACERT
	ENV
}

# --- the demo: a project, a pipeline, a deployment

# api METHOD PATH [BODY]: prints the body of the response; an error ends the demo.
api() {
	local method=$1 path=$2 answer code
	shift 2
	answer=$(curl -sS --cacert "$place/tls/cert.pem" -X "$method" \
	    -H "Authorization: Bearer $token" -H "Content-Type: application/json" \
	    -D "$place/tmp/headers" -w '\n%{http_code}' ${1:+--data-binary "$1"} "$url$path") ||
		die "$method $path got no response; see $logs/"
	code=${answer##*$'\n'}
	answer=${answer%$'\n'*}
	case $code in
	2??) printf '%s' "$answer" ;;
	*) die "$method $path returned status $code: $answer" "the logs are in $logs" ;;
	esac
}

# The value of the first member NAME of a body, a number.
number() {
	local body
	body=$(cat)
	[ -n "$body" ] || exit 70
	printf '%s\n' "$body" | sed -n "s/^{[^}]*\"$1\":\([0-9]*\).*/\1/p;q" | grep . ||
		die "a response of the API has no $1: $body"
}

sample_repository() {
	local repo=$place/sample
	mkdir "$repo"
	cat >"$repo/build.sh" <<-'BUILD'
	#!/bin/sh
	mkdir -p public
	sed "s/@COMMIT@/$SLIPWAY_COMMIT/" index.html >public/index.html
	cat public/index.html
	BUILD
	printf '<h1>Hello from commit @COMMIT@</h1>\n' >"$repo/index.html"
	printf '/public/\n' >"$repo/.gitignore"
	(
		cd "$repo"
		export HOME=$place/tmp GIT_CONFIG_NOSYSTEM=1
		git init -q -b main
		git add -A
		git -c user.name=Demo -c user.email=demo@localhost commit -q -m "Say hello"
	) || die "git could not create the sample repository in $repo: see its message above"
}

deploy_sample() {
	local project pipeline deployment script staging
	say "creating a sample repository, a project, and a pipeline from a template"
	sample_repository
	project=$(api POST /api/projects '{
		"name": "Sample site", "repository": "'"$place/sample"'",
		"defaultBranch": "main", "envPresets": [
		{"key": "GREETING", "label": "Greeting", "type": "input",
		 "required": true, "pattern": "[A-Za-z ,!]{1,40}"},
		{"key": "TARGET", "label": "Where to", "type": "select",
		 "required": true, "default": "staging", "options": [
		 {"label": "Staging", "value": "staging"},
		 {"label": "Production", "value": "production"}]},
		{"key": "REGIONS", "label": "Regions", "type": "multiselect",
		 "required": false, "default": "eu", "options": [
		 {"label": "Europe", "value": "eu"},
		 {"label": "America", "value": "us"}]}]}' | number id)
	pipeline=$(api POST /api/pipelines/from-template '{
		"templateId": "git-clone-pipeline", "projectId": '"$project"',
		"name": "Build and greet"}' | number id)
	# shellcheck disable=SC2016 # the step's variables
	script='echo \"I am user $(id -u)\"\n'
	# shellcheck disable=SC2016
	script+='echo \"GREETING=$GREETING TARGET=$TARGET REGIONS=$REGIONS\"\n'
	api POST /api/steps '{"pipelineId": '"$pipeline"', "name": "Greet",
		"script": "'"$script"'"}' >/dev/null
	say "deploying it"
	deployment=$(api POST /api/deployments '{"projectId": '"$project"',
		"pipelineId": '"$pipeline"', "envVars": {
		"GREETING": "Good morning", "REGIONS": "eu,us"}}' | number id)
	follow "$deployment"
	deploy_more "$project" "$pipeline"
	what_next "$project" "$pipeline" "$deployment"
}

# sample_commit MESSAGE: another commit of the sample repository.
sample_commit() {
	(
		cd "$place/sample"
		printf '<!-- %s -->\n' "$1" >>index.html
		HOME=$place/tmp GIT_CONFIG_NOSYSTEM=1 git -c safe.directory='*' \
		    -c user.name=Ann -c user.email=ann@localhost commit -q -a -m "$1"
	) || die "git could not commit to the sample repository: see its message above"
}

# deploy_to ENVIRONMENT PROJECT PIPELINE TARGET
deploy_to() {
	local commit
	commit=$(git -C "$place/sample" -c safe.directory='*' rev-parse HEAD) ||
		die "git could not read the sample repository: see its message above"
	api POST /api/deployments '{"environmentId": '"$1"', "projectId": '"$2"',
		"pipelineId": '"$3"', "commitHash": "'"$commit"'", "envVars": {
		"GREETING": "Good morning", "TARGET": "'"$4"'"}}' | number id
}

# What the console has to show: two environments, one of which requires approval,
# and a second project with a long log and a failure.
deploy_more() {
	local production log admin_token=$token script
	say "adding environments, a second project and more deployments"
	staging=$(api POST /api/environments '{"projectId": '"$1"', "name": "staging",
		"url": "https://staging.example.org/"}' | number id)
	production=$(api POST /api/environments '{"projectId": '"$1"', "name": "production",
		"url": "https://www.example.org/", "approval": "required", "variables": [
		{"key": "GREETING", "value": "Welcome"},
		{"key": "TARGET", "value": "production"}]}' | number id)
	sample_commit "Add a footer"
	deploy_to "$staging" "$1" "$2" staging >/dev/null
	sample_commit "Translate the greeting"
	deploy_to "$staging" "$1" "$2" staging >/dev/null
	# The user who starts a deployment cannot approve it.
	run "$logs/user.log" "$admin" -c "$place/etc/slipway.conf" user add ann --role deployer
	token=$("$admin" -c "$place/etc/slipway.conf" token add ann --name demo) ||
		die "slipway-admin could not create a token: see its message above"
	waiting=$(deploy_to "$production" "$1" "$2" production)
	token=$admin_token
	log=$(api POST /api/projects '{"name": "Nightly report", "projectDir": "report",
		"repository": "'"$place/sample"'", "defaultBranch": "main"}' | number id)
	script='seq -f \"row %06g of the report\" 200000\necho \"no space left for row 200001\" >&2\nexit 1\n'
	api POST /api/pipelines '{"projectId": '"$log"', "name": "Write the report", "steps": [
		{"name": "Collect", "script": "echo 3 sources"},
		{"name": "Write", "script": "'"$script"'"}]}' >/dev/null
	api POST /api/deployments '{"projectId": '"$log"'}' >/dev/null
}

# An address that opens the console and signs in once.
console_address() {
	local made expires secret
	expires=$(date -u -d '+8 hours' +%Y-%m-%dT%H:%M:%SZ)
	made=$(api POST /api/auth/tokens '{"name": "console", "expiresAt": "'"$expires"'"}')
	secret=${made##*\"token\":\"}
	printf '%s/slipway/#sign-in=%s.%s\n' "$url" "$(printf '%s' "$made" | number id)" "${secret%%\"*}"
}

# Shows the log while it grows, until it is complete.
follow() {
	local id=$1 offset=0 chunk=$place/tmp/chunk end=$((SECONDS + 90)) result
	say "log of deployment $id:"
	while :; do
		api GET "/api/deployments/$id/log?offset=$offset&wait=10" >"$chunk"
		sed 's/^/    /' "$chunk"
		offset=$((offset + $(wc -c <"$chunk")))
		! grep -qi '^x-log-complete: *true' "$place/tmp/headers" || break
		[ $SECONDS -lt $end ] ||
			die "the deployment did not end within 90 seconds; see $logs/runner.log"
	done
	# steps have a status, too
	result=$(api GET "/api/deployments/$id" |
		sed -n 's/"steps":.*//;s/.*"status":"\([a-z]*\)".*/\1/p;q')
	[ "$result" = success ] ||
		die "the deployment has the status '$result': see its log above, and $logs/runner.log"
	say "deployment $id: $result"
}

what_next() {
	local env=". '$top/demo/env'" curl body json="-H 'Content-Type: application/json'"
	# shellcheck disable=SC2016 # for the reader's shell
	curl='curl -sS --cacert "$SLIPWAY_CACERT" -H "Authorization: Bearer $SLIPWAY_TOKEN"'
	body='{"projectId": '"$1"', "pipelineId": '"$2"', "environmentId": '"$staging"','
	body+=' "envVars": {"GREETING": "Hello again", "TARGET": "production"}}'
	cat <<-NEXT

	slipway is running at $url. Open the console; this link signs in once:

	$(console_address)

	Or try these commands:

	$env; '$place/usr/bin/slipway' list
	$env; $curl "\$SLIPWAY_URL/api/projects"
	$env; $curl "\$SLIPWAY_URL/api/git/branches?projectId=$1"
	$env; $curl "\$SLIPWAY_URL/api/deployments/$3"
	$env; $curl "\$SLIPWAY_URL/api/deployments/$3/log"
	$env; $curl $json -d '$body' "\$SLIPWAY_URL/api/deployments"
	$env; $curl "\$SLIPWAY_URL/api/openapi.json"

	Deployment $waiting waits for approval; its page in the console has the button.

	Logs, configuration and sockets are in $place.
	NEXT
}

demo() {
	local detach=no
	port=8443
	while [ $# -gt 0 ]; do
		case $1 in
		--detach) detach=yes ;;
		--port) port=${2-}; shift ;;
		--port=*) port=${1#*=} ;;
		--stop)
			stop_demo
			return
			;;
		--reload)
			reload_demo
			return
			;;
		*)
			echo "bootstrap: demo: unknown option $1" >&2
			usage 64 >&2
			;;
		esac
		shift || usage 64
	done
	if ! [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || [ "$port" -gt 65535 ]; then
		die "--port needs a number from 1 to 65535"
	fi
	install_missing configure build demo
	began $$ || die "/proc is not mounted. As root: mount -t proc proc /proc"
	[ -n "${SLIPWAY_INSTALLED-}" ] || build build slipway
	make_place
	trap clean_up EXIT
	trap 'exit 130' INT TERM HUP
	install_slipway
	start_mariadb
	write_conf
	start_service
	deploy_sample
	flock -u 8
	if [ $detach = yes ]; then
		trap - EXIT INT TERM HUP
		echo "The demo keeps running; stop it with ./bootstrap demo --stop."
		return
	fi
	echo "Press Ctrl-C to stop the demo."
	watch_demo
}

# Stops the demo, unless another one has replaced it.
clean_up() {
	trap - EXIT INT TERM HUP
	flock -w 120 8 || true
	if [ "$(cat demo/place 2>/dev/null)" = "$instance" ]; then
		say "stopping the demo"
		stop_all
	fi
}

# Until Ctrl-C, or until one of the programs ends.
watch_demo() {
	local name
	trap 'exit 0' INT TERM HUP
	while :; do
		for name in mariadb api live runner nginx; do
			alive "$place/run/$name.pid" && continue
			flock -w 120 8 || true
			if [ "$(cat demo/place 2>/dev/null)" != "$instance" ]; then
				say "another ./bootstrap demo has stopped this one"
				exit 0
			fi
			tail -n 20 "$logs/$name.log" >&2
			die "$name ended: see the end of its log above, and $logs/$name.log"
		done
		sleep 1 &
		wait $! || true
	done
}

# How often the dispatcher, which reloads last, has read the configuration again.
reloads() {
	grep -c 'slipway-dispatch.* configuration read again' "$logs/runner.log" || true
}

children() {
	cat "/proc/$1/task/$1/children"
}

# Whether one of these workers takes requests. A worker of nginx that shuts down
# completes those that it has.
serve_still() {
	local pid args
	for pid in $1; do
		# files in /proc have no size; a zombie has no arguments
		args=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || args=
		[ -z "$args" ] || [[ $args = *"shutting down"* ]] || return 0
	done
	return 1
}

# Returns when new requests and deployments have the new settings. With an invalid
# configuration, nothing is reloaded.
reload_demo() {
	local name pid conf old lines i log=$logs/reload.log
	[ -f demo/place ] || die "no demo is running here: start one with ./bootstrap demo --detach"
	exec 8>>demo/lock
	flock -w 120 8 || die "a demo is starting here; try again"
	read -r place _ <demo/place
	conf=$place/etc/slipway.conf
	admin=$place/usr/sbin/slipway-admin
	for name in api live runner nginx; do
		alive "$place/run/$name.pid" || die "the demo's $name is not running; see $logs/$name.log"
	done
	if ! { "$admin" -c "$conf" check && nginx -t -c "$place/etc/nginx.conf"; } >"$log" 2>&1; then
		tail -n 5 "$log" >&2
		die "nothing was reloaded: correct $place/etc, then run ./bootstrap demo --reload again"
	fi
	old=
	for name in api nginx; do
		read -r pid _ <"$place/run/$name.pid"
		old+=" $(children "$pid")"
	done
	lines=$(reloads)
	for name in api runner nginx; do
		read -r pid _ <"$place/run/$name.pid"
		kill -HUP "$pid"
	done
	for ((i = 0; i < 600; i++)); do
		if [ "$(reloads)" -gt "$lines" ] && ! serve_still "$old"; then
			break
		fi
		sleep 0.1
	done
	[ $i -lt 600 ] || say "after a minute, some processes still use the old configuration"
	say "the demo has reloaded $place/etc; slipway-admin doctor reports:"
	"$admin" -c "$conf" doctor || true
}

stop_demo() {
	[ -f demo/place ] || { say "no demo is running here"; return; }
	exec 8>>demo/lock
	flock -w 120 8 || die "a demo is starting here; try again"
	stop_all
	say "the demo is stopped"
}

