# SPDX-License-Identifier: ISC
# Turns sql/NNNN-*.sql into a C table.  It uses arrays of bytes, because compilers
# need not support string literals longer than 4095 bytes.
#
#   sha256sum FILES | LC_ALL=C awk -f migrations.awk - FILES

BEGIN {
	for (i = 1; i < 256; i++)
		code[sprintf("%c", i)] = i
	print "/* Generated from sql/ by migrations.awk. */"
	print "#include \"db/db.h\""
}

FILENAME == "-" {
	checksum[$2] = $1
	next
}

FNR == 1 {
	if (n > 0)
		print "\t0\n};"
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.sql$/, "", name)
	names[++n] = name
	checksums[n] = checksum[FILENAME]
	if (length(checksums[n]) != 64) {
		print "migrations.awk: no checksum of " FILENAME >"/dev/stderr"
		exit 1
	}
	print "\n/* clang-format off */"
	print "static const char sql_" n "[] = {"
}

{
	line = $0 "\n"
	printf "\t"
	for (i = 1; i <= length(line); i++)
		printf "'\\%o',", code[substr(line, i, 1)]
	print ""
}

END {
	if (n > 0)
		print "\t0\n};"
	print "\nconst struct migration db_migrations[] = {"
	for (i = 1; i <= n; i++)
		print "\t{ .name = \"" names[i] "\", .sql = sql_" i ",\n\t  .checksum = \"" checksums[i] "\" },"
	print "\t{ .name = NULL },"
	print "};"
}
