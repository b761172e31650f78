# SPDX-License-Identifier: ISC
# Turns NAME.sql of src/store and src/queue into NAME.sql.h, which NAME.c includes
# after its structs.  A mistake ends it with a message that begins with FILE:LINE.
#
#	LC_ALL=C awk -f statements.awk fragments.sql NAME.sql
#
# A .sql file has statements and fragments, separated by blank lines.  The comment
# line right above a text is its head; comment lines above the head, and comments
# without a text, are for readers.
#
# A statement ends with a semicolon:
#
#	-- A project that is not deleted.
#	-- project_by_id(struct project_key) -> struct project
#	SELECT @columns(p), w.status AS `workspace_row.status`
#	FROM project p
#		LEFT JOIN workspace w ON w.project_id = p.id
#	WHERE p.id = :id AND p.valid = 1;
#
# Its head has its name, the struct of its arguments, and the struct of its rows.
# Each may be missing: "project_queue_up()".  A compound statement, BEGIN NOT ATOMIC
# … END, may return rows of two structs, and says if it only reads:
#
#	-- claim_load(struct claim_args) -> struct claim, struct step; reads
#
# :member	is a parameter: a member of the struct of arguments.  :list[0] and
#		:part.member are possible, too.
#
# Columns	of a SELECT or a RETURNING are the members of the struct of rows with
#		their names, so that an expression needs AS.  `part.member` is a
#		member of a member: of a row that a LEFT JOIN may not find, so
#		that NULL is allowed, and becomes 0.  The branches of an IF return
#		the same columns.
#
# @name		is replaced with the text of that fragment: an expression, a list, a
#		join, or whatever else statements share.
#
# A fragment may use others, and may have parameters, which it uses like fragments:
#
#	-- @lock_active
#	(k.until IS NULL OR k.until > NOW(3))
#
#	-- @lock_join(project, environment)
#	LEFT JOIN deploy_lock k
#		ON k.place = CONCAT(@project, ':', @environment) AND @lock_active
#
# An argument may be empty; it has commas only in parentheses.  The fragments of
# fragments.sql belong to all files, those of another file to itself.  A fragment
# that is a number is a constant in C, too: SQL_MOST for @most.
#
# The header has a "struct stmt sql_NAME" for each statement and FILE_stmts, a list
# of all.  Their tables are made with FIELD(), so that the compiler checks each
# member; it names the line of the .sql file.  The text of the constant is that of
# the file, with a ? for each parameter and a blank for each line break.

BEGIN {
	output = ARGV[ARGC - 1]
	base = output
	sub(/.*\//, "", base)
	sub(/\.sql$/, "", base)
	word = "[a-z][a-z0-9_]*"
	head = "^-- " word "\\((struct " word ")?\\)" \
	    "( -> struct " word "(, struct " word ")?)?(; reads)?$"
	fragment_head = "^-- @" word "(\\(" word "(, " word ")*\\))?$"
	member = "^" word "(\\[[0-9]+\\])?(\\." word "(\\[[0-9]+\\])?)*"
}

function fail_at(file, line, message)
{
	print file ":" line ": " message >"/dev/stderr"
	failed = 1
	exit 1
}

function fail(message)
{
	fail_at(FILENAME, FNR, message)
}

function fail_head(message)
{
	fail_at(FILENAME, comment_line, message)
}

# A token stands for a string, a parameter or a fragment, so that all other
# characters of a text are SQL.
function token(kind, text)
{
	kinds[++tokens] = kind
	texts[tokens] = text
	files[tokens] = FILENAME
	lines[tokens] = FNR
	return "\001" tokens "\001"
}

function fail_token(n, message)
{
	fail_at(files[n], lines[n], message)
}

function fail_statement(s, message)
{
	fail_at(output, heads[s], names[s] message)
}

# Replaces what is not SQL in a line with tokens.
function encode(line,    out, c, rest)
{
	sub(/^[ \t]+/, "", line)
	sub(/[ \t]+$/, "", line)
	for (out = ""; match(line, /['":@?#]|--/); ) {
		c = substr(line, RSTART, 1)
		out = out substr(line, 1, RSTART - 1)
		rest = substr(line, RSTART + 1)
		if (c == "'") {
			if (!match(rest, /^([^'\\]|''|\\.)*'/))
				fail("the string does not end on its line")
			out = out token("'", c substr(rest, 1, RLENGTH))
		} else if (c == ":") {
			if (!match(rest, member))
				fail("expected :member")
			out = out token(":", substr(rest, 1, RLENGTH))
		} else if (c == "@" && rest ~ /^@/) {
			match(rest, /^@/) # a variable of the server
			out = out "@@"
		} else if (c == "@") {
			if (!match(rest, "^" word))
				fail("expected @fragment")
			out = out token("@", substr(rest, 1, RLENGTH))
		} else if (c == "?")
			fail("a parameter is written :member, not ?")
		else if (c == "\"")
			fail("a string is written 'string'")
		else
			fail("a comment belongs above the head")
		line = substr(rest, RLENGTH + 1)
	}
	return out line
}

# The head of a statement.
function statement_open(line,    name, structs)
{
	if (FILENAME != output)
		fail_head("a statement among the shared fragments")
	name = line
	sub(/^-- /, "", name)
	sub(/\(.*/, "", name)
	if (name in named)
		fail_head("duplicate statement " name)
	named[name] = 1
	names[++statements] = name
	heads[statements] = comment_line
	reads[statements] = sub(/; reads$/, "", line)
	structs = line
	if (sub(/.* -> /, "", structs)) {
		if (sub(/.*, /, "", structs))
			more[statements] = structs
		structs = line
		sub(/.* -> /, "", structs)
		sub(/, .*/, "", structs)
		row[statements] = structs
	}
	sub(/\).*/, "", line)
	sub(/.*\(/, "", line)
	args[statements] = line
}

function fragment_open(line,    name, list, n, i)
{
	name = list = line
	sub(/^-- @/, "", name)
	sub(/\(.*/, "", name)
	if (name in fragments)
		fail_head("duplicate fragment @" name)
	fragment = name
	fragments[name] = ""
	fragment_lines[name] = comment_line
	fragment_local[name] = FILENAME == output
	parameters[name] = 0
	if (sub(/.*\(/, "", list)) {
		sub(/\)$/, "", list)
		n = split(list, part, ", ")
		for (i = 1; i <= n; i++)
			parameter[name, i] = part[i]
		parameters[name] = n
	}
}

# Ends the comment or the text above a blank line, a comment or the end.
function block_end(file)
{
	if (in_text && fragment == "") {
		if (!sub(/;$/, "", sql[statements]))
			fail_at(file, text_line,
			    "the statement does not end with ;")
	} else if (comment ~ head || comment ~ fragment_head)
		fail_at(file, comment_line, "a head without text")
	comment = ""
	in_text = 0
}

FNR == 1 && last_file != "" {
	block_end(last_file)
}

{
	last_file = FILENAME
}

/^--/ {
	if (in_text)
		block_end(FILENAME)
	comment = $0
	comment_line = FNR
	next
}

/^[ \t]*$/ {
	block_end(FILENAME)
	next
}

{
	if (!in_text) {
		fragment = ""
		if (comment == "")
			fail("text without a head")
		if (comment ~ fragment_head)
			fragment_open(comment)
		else if (comment ~ head)
			statement_open(comment)
		else
			fail_head("malformed head")
		comment = ""
	}
	if (fragment != "")
		fragments[fragment] = fragments[fragment] \
		    (in_text ? "\n" : "") encode($0)
	else
		sql[statements] = sql[statements] \
		    (in_text ? "\n" : "") encode($0)
	in_text = 1
	text_line = FNR
}

# Binds the arguments at the start of a text to the parameters of a fragment, and
# returns the rest of the text.
function bind(at, name, text, frame, inner,    i, c, n, depth, arg)
{
	if (parameters[name] == 0)
		return text
	if (substr(text, 1, 1) != "(")
		fail_token(at, "@" name " needs arguments")
	n = 0
	depth = 1
	arg = ""
	for (i = 2; depth > 0; i++) {
		c = substr(text, i, 1)
		if (c == "")
			fail_token(at, "the arguments of @" name " do not end")
		depth += (c == "(") - (c == ")")
		if (depth == 0 || (depth == 1 && c == ",")) {
			sub(/^[ \n]+/, "", arg)
			if (++n <= parameters[name])
				bound[inner, parameter[name, n]] = \
				    expand(arg, frame)
			arg = ""
		} else
			arg = arg c
	}
	if (n != parameters[name])
		fail_token(at, "@" name " needs " parameters[name] \
		    " arguments, not " n)
	return substr(text, i)
}

# A text with its fragments replaced.  The frame has the arguments of the fragment
# that the text belongs to.
function expand(text, frame,    out, i, n, name, inner)
{
	out = ""
	while ((i = index(text, "\001")) > 0) {
		out = out substr(text, 1, i - 1)
		text = substr(text, i + 1)
		n = text + 0
		text = substr(text, index(text, "\001") + 1)
		name = texts[n]
		if (kinds[n] != "@")
			out = out "\001" n "\001"
		else if ((frame, name) in bound)
			out = out bound[frame, name]
		else if (!(name in fragments))
			fail_token(n, "unknown fragment @" name)
		else if (name in expanding)
			fail_token(n, "@" name " contains itself")
		else {
			used[name] = 1
			inner = ++frames
			text = bind(n, name, text, frame, inner)
			expanding[name] = 1
			out = out expand(fragments[name], inner)
			delete expanding[name]
		}
	}
	return out text
}

# The columns of a SELECT or RETURNING list at the start of a text, separated by
# blanks; "" if the SELECT stores its result in a variable.
function columns(s, text,    i, c, depth, item, out)
{
	depth = 0
	item = out = ""
	sub(/^((DISTINCT|STRAIGHT_JOIN) )+/, "", text)
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		depth += (c == "(") - (c == ")")
		if (depth == 0 && c == ",") {
			out = out column(s, item) " "
			item = ""
			continue
		}
		if (depth == 0 && c == " ") {
			if (substr(text, i, 6) == " INTO ")
				return ""
			if (substr(text, i, 6) == " FROM " ||
			    substr(text, i, 7) == " UNION ")
				break
		}
		item = item c
	}
	return out column(s, item)
}

# The name of a column.
function column(s, item)
{
	gsub(/^ +| +$/, "", item)
	if (!sub(/.* AS /, "", item) && !sub(/^[a-z_0-9]+\./, "", item) &&
	    item !~ /^[a-z_0-9`]+$/)
		fail_statement(s, ": a column has no name: " item)
	gsub(/`/, "", item)
	if (item !~ member "$")
		fail_statement(s, ": " item " is not a member")
	return item
}

# Finds the columns of the results of a statement in result[].  The branches of an
# IF return the same result.
function find_results(s, text,    n, i, piece, found, branches)
{
	results = 0
	branches = ""
	if (sub(/^BEGIN NOT ATOMIC /, "", text))
		n = split(text, pieces, / *; */)
	else
		pieces[n = 1] = text
	for (i = 1; i <= n; i++) {
		piece = pieces[i]
		while (piece ~ /^(IF .* THEN |ELSE )/)
			if (sub(/^ELSE /, "", piece))
				sub(/.$/, "e", branches)
			else {
				branches = branches "i"
				piece = substr(piece, index(piece, " THEN ") + 6)
			}
		if (piece == "END IF")
			sub(/.$/, "", branches)
		if (!sub(/^SELECT /, "", piece) &&
		    !sub(/^(INSERT|REPLACE|DELETE) .* RETURNING /, "", piece))
			continue
		if ((found = columns(s, piece)) == "")
			continue
		if (branches !~ /e/ || results == 0)
			result[++results] = found
		else if (found != result[results])
			fail_statement(s, ": the branches have different columns")
	}
}

# A table of fields, and where each is used.  Returns its name, or that of an equal
# one.
function print_fields(name, type, list, flags,    n, i, key)
{
	key = type " " list (flags && list ~ /\./)
	if (key in tables)
		return tables[key]
	tables[key] = name
	print "static const struct field " name "[] = {"
	n = split(list, part, " ")
	for (i = 1; i <= n; i++) {
		print "#line " place_line[i] " \"" place_file[i] "\""
		print "\tFIELD(" type ", " part[i] ", " \
		    (flags && part[i] ~ /\./ ? "FIELD_NULL" : "0") "),"
	}
	print "\tFIELD_END,"
	print "};"
	return name
}

function print_row(s, name, type, list,    i)
{
	for (i = split(list, part, " "); i > 0; i--) {
		place_file[i] = output
		place_line[i] = heads[s]
	}
	return print_fields(name, type, list, 1)
}

# The parameters in the text of a statement, and where they are.
function parameters_of(text,    i, n, list, count)
{
	list = ""
	count = 0
	while ((i = index(text, "\001")) > 0) {
		text = substr(text, i + 1)
		n = text + 0
		text = substr(text, index(text, "\001") + 1)
		if (kinds[n] != ":")
			continue
		list = list (list == "" ? "" : " ") texts[n]
		place_file[++count] = files[n]
		place_line[count] = lines[n]
	}
	return list
}

function escape(text,    i, out)
{
	for (out = ""; (i = index(text, "\\")) > 0; text = substr(text, i + 1))
		out = out substr(text, 1, i) "\\"
	return out text
}

# A line of a text as a string literal.
function literal(line,    i, n, out)
{
	out = ""
	while ((i = index(line, "\001")) > 0) {
		out = out substr(line, 1, i - 1)
		line = substr(line, i + 1)
		n = line + 0
		line = substr(line, index(line, "\001") + 1)
		out = out (kinds[n] == ":" ? "?" : escape(texts[n]))
	}
	return "\t    \"" out line "\""
}

function print_text(text,    n, i, line, next_line)
{
	n = split(text, part, "\n")
	for (i = 1; i <= n; i++) {
		line = part[i]
		next_line = i < n ? part[i + 1] : ""
		if (i < n && line !~ /\($/ && next_line !~ /^\)/)
			line = line " "
		print literal(line) (i == n ? "," : "")
	}
}

function statement_print(s,    name, text, flat, list, id)
{
	name = names[s]
	id = "sql_" name
	text = expand(sql[s], 0)
	flat = text
	gsub(/\n/, " ", flat)
	find_results(s, flat)
	if (results != (row[s] != "") + (more[s] != ""))
		fail_statement(s, " has " results " results, not as many as its head")
	list = parameters_of(text)
	if (list != "" && args[s] == "")
		fail_statement(s, " has parameters, but no struct of them: " list)
	if (list == "" && args[s] != "")
		fail_statement(s, " has no parameter of " args[s])
	print ""
	if (list != "")
		args_table[s] = print_fields(id "_args", args[s], list, 0)
	if (results > 0)
		row_table[s] = print_row(s, id "_row", row[s], result[1])
	if (results > 1)
		more_table[s] = print_row(s, id "_more", more[s], result[2])
	print "#line " heads[s] " \"" output "\""
	print "static const struct stmt " id " = {"
	print "\t.name = \"" name "\","
	print "\t.sql ="
	print_text(text)
	if (list != "")
		print "\t.args = " args_table[s] ","
	if (results > 0)
		print "\t.row = " row_table[s] ",\n\t.rowsize = sizeof(" row[s] "),"
	if (results > 1)
		print "\t.more = " more_table[s] ",\n\t.moresize = sizeof(" more[s] "),"
	if (reads[s])
		print "\t.reads = true,"
	print "};"
}

END {
	if (failed)
		exit 1
	block_end(last_file)
	print "/* Generated from " base ".sql by statements.awk. */"
	print "/* clang-format off */"
	for (s = 1; s <= statements; s++)
		statement_print(s)
	for (name in fragments)
		if (fragment_local[name] && !(name in used))
			fail_at(output, fragment_lines[name],
			    "no statement uses @" name)
	for (name in used)
		if (fragments[name] ~ /^[0-9]+$/)
			print "enum { SQL_" toupper(name) " = " fragments[name] " };"
	print "\nstatic const struct stmt *const " base "_stmts[] = {"
	for (s = 1; s <= statements; s++)
		print "\t&sql_" names[s] ","
	print "\tNULL,"
	print "};"
}
