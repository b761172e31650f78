#!/bin/bash
# SPDX-License-Identifier: ISC
# Puts the MariaDB server of another Debian into a directory, with two programs that
# run it here: see SLIPWAY_MARIADBD in t/lib/Slipway/DB.pm.  Needs root, debootstrap
# and a mirror.
#
# usage: mariadb-root.sh SUITE DIRECTORY
set -eu
suite=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
root=$dir/root

rm -rf "$root" "$dir/mariadbd"
debootstrap --variant=minbase \
	--include=mariadb-server-core,mariadb-client-core "$suite" "$root"

# The programs of that Debian need its libraries, too.
loader=$(echo "$root"/lib*/ld-linux*.so.*)
libraries=$(dirname "$(echo "$root"/usr/lib/*/libc.so.6)")
cat >"$dir/mariadb-install-db" <<END
#!/bin/sh
MYSQLD_BOOTSTRAP='$dir/mariadbd' exec '$root/usr/bin/mariadb-install-db' \\
	"\$@" --basedir='$root/usr'
END
cat >"$dir/mariadbd.new" <<END
#!/bin/sh
exec '$loader' --library-path '$libraries' '$root/usr/sbin/mariadbd' \\
	"\$@" --basedir='$root/usr'
END
chmod +x "$dir/mariadb-install-db" "$dir/mariadbd.new"
mv "$dir/mariadbd.new" "$dir/mariadbd"
"$dir/mariadbd" --no-defaults --version
