#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The output of real tools for a text that contains a secret is masked, wherever
# the secret stands and however the lines are wrapped and ended.

use strict;
use warnings;
use IO::Handle;
use IPC::Open2;
use MIME::Base64 qw(encode_base64 encode_base64url);
use Test::More;
use Slipway::Test;

my $dir = tempdir();
my $probe = open2(my $answers, my $requests, program('t/unit/mask_probe'));
binmode $_ for $answers, $requests;

# The text as the log would show it, if read in pieces of so many bytes.
sub masked {
	my ($text, $piece, @secrets) = @_;
	print $requests join(' ', $piece, map { length } $text, @secrets), "\n", $text, @secrets;
	$requests->flush;
	my $length = <$answers> // die 'the probe has ended';
	my $out = '';
	read $answers, $out, $length;
	return $out;
}

# The runs of four or more of the secret's own characters that are left in an
# encoded text, in which dots surround the secret.
sub left {
	my ($out, $own, $filler) = @_;
	$out =~ s/\\r|\\n|\\x|0x|[\s:,;-]//g;
	my %seen = map { substr($own, $_, 4) => 1 } 0 .. length($own) - 4;
	delete @seen{ map { substr($filler x 3, $_, 4) } 0 .. 7 };
	return grep { $seen{ substr $out, $_, 4 } } 0 .. length($out) - 4;
}

my @letters = ('a' .. 'z', 'A' .. 'Z', '0' .. '9');
srand 7;
sub secret { return join '', map { $letters[ rand @letters ] } 1 .. shift }

# --- base64: every place in a line, widths, ends, lengths
sub own64 {
	my ($text, $lead, $len) = @_;
	my ($from, $to) = (int(($lead * 8 + 5) / 6), int(($lead + $len) * 8 / 6));
	return substr $text, $from, $to - $from;
}
my @breaks = ([76, "\n"], [64, "\n"], [64, "\r\n"], [76, "\r\n"], [76, "\n    "], [60, '\n'], [20, "\n"],
    [1, "\n"]);
for my $break (@breaks) {
	my ($width, $end) = @$break;
	my ($bad, $unhidden, $lines) = (0, 0, 0);
	for my $len (6, 19, 64, 150) {
		for my $lead (map { $_ * ($len < 64 ? 4 : 7) } 0 .. ($len < 64 ? 15 : 9)) {
			my $secret = secret($len);
			my $plain = ('.' x $lead) . $secret . ('.' x 40);
			for my $url (0, 1) {
				my $whole = $url ? encode_base64url($plain) : encode_base64($plain, '');
				my $own = own64($whole, $lead, $len);
				(my $text = $whole) =~ s/(.{$width})/$1$end/g;
				my $out = masked($text, 1 + $lead, $secret);
				$bad++ if left($out, $own, 'Li4u');
				$unhidden++ if $out !~ /\*\*\*/;
				$lines++ if ($out =~ tr/\n//) != ($text =~ tr/\n//);
			}
		}
	}
	my $ends = $end =~ s/\r/CR/r =~ s/\n/LF/r;
	is($bad, 0, "base64 in lines of $width with '$ends' shows nothing of a secret, wherever it begins");
	is($unhidden, 0, "base64 in lines of $width with '$ends' shows the mask instead");
	is($lines, 0, "base64 in lines of $width with '$ends' has as many lines as before") if $width > 1;
}

# --- encoders
my @tools = (
	['base64', 64], ['base64 -w 64', 64], ['base64 -w 0', 64], ['basenc --base64url', 64],
	['basenc --base64url -w 64', 64], ['openssl base64', 64], ['openssl base64 -A', 64],
	['openssl enc -base64', 64], ["base64 | sed 's/\$/\\r/'", 64], ["base64 | sed 's/^/    /'", 64],
	['basenc --base16', 16], ['basenc --base16 -w 64', 16], ['od -An -v -tx1', 16],
	["od -An -v -tx1 | tr -d ' \\n'", 16], ["od -An -v -tx1 | tr -d ' '", 16],
	["od -An -v -tx1 -w1 | sed 's/^ /0x/; s/\$/,/'", 16],
	["od -An -v -tx1 | sed 's/ /, 0x/g; s/^, //; s/\$/,/'", 16],
	["od -An -v -tx1 | sed 's/ /\\\\x/g'", 16], ["od -An -v -tx1 | tr -d '\\n' | tr ' ' ':'", 16],
	["od -An -v -tx1 | tr a-f A-F | tr ' ' -", 16],
);
my @leads = (0 .. 5, 12 .. 17, 42 .. 58);
for my $tool (@tools) {
	my ($command, $base) = @$tool;
	my ($bad, $unhidden, %secret) = (0, 0);
	for my $lead (@leads) {
		$secret{$lead} = secret(23);
		spew("$dir/plain$lead", ('.' x $lead) . $secret{$lead} . '....');
	}
	my ($status) = run_cmd('bash', '-o', 'pipefail', '-c',
		"for i in @leads; do { $command; } <'$dir'/plain\$i >'$dir'/text\$i || exit 1; done");
	is($status, 0, "$command ends with status 0") if $status != 0;
	for my $lead (@leads) {
		my $text = slurp("$dir/text$lead");
		(my $whole = $text) =~ s/0x|\\x|[\s:,-]//g;
		$whole = encode_base64(slurp("$dir/plain$lead"), '') if $base == 64 && $command !~ /url/;
		my $own = $base == 64 ? own64($whole, $lead, 23) : substr $whole, 2 * $lead, 46;
		for my $piece (3, 100000) {
			my $out = masked($text, $piece, $secret{$lead});
			$bad++ if left($out, $own, $base == 64 ? 'Li4u' : '2e2E2e');
			$unhidden++ if $out !~ /\*\*\*/;
		}
	}
	is($bad + $unhidden, 0, "'$command' shows nothing of a secret inside a text");
}

# --- quoting
my @awkward = ("it's #1 ~of~ {many}, a^b!c\$d", "#x ~y:~z", "tab\there \033[1m\001 bell\a",
	"caf\xc3\xa9 & <b>\"\xf0\x9f\x94\x91\"</b> /\\", 'a%2f/b?c=d&e+f g', "two\nlines'\n", 'a,b;c|d');
# Commands that print $V as JSON, and with every special character escaped.
sub json {
	my ($options) = @_;
	my $encode = "JSON::PP->new->allow_nonref$options->encode(decode(\"UTF-8\", \$ENV{V}))";
	return "perl -MJSON::PP -MEncode -e 'print $encode'";
}
sub escapes {
	my ($format) = @_;
	return "perl -e 'print \$ENV{V} =~ s/([^A-Za-z0-9_.~-])/sprintf \"$format\", ord \$1/egr'";
}
my %quoting = (
	'printf %q' => 'LC_ALL=C.UTF-8 bash -c \'printf "%q" "$V"\'',
	'printf %q in the C locale' => 'LC_ALL=C bash -c \'printf "%q" "$V"\'',
	'${V@Q}' => 'bash -c \'echo "${V@Q}"\'',
	'declare -p' => 'bash -c \'declare -p V\'',
	'set -x' => 'bash -xc \': "$V"\' 2>&1',
	'sh -x' => 'sh -xc \': "$V"\' 2>&1',
	'JSON' => json(''),
	'JSON in ASCII' => json('->ascii'),
	'JSON with slashes escaped' => json('->escape_slash'),
	'repr()' => 'python3 -c "import os; print(repr(os.environ[chr(86)]))"',
	'ascii()' => 'python3 -c "import os; print(ascii(os.environ[chr(86)]))"',
	'repr() of bytes' => 'python3 -c "import os; print(os.environb[b\'V\'])"',
	'html.escape()' => 'python3 -c "import os, html; print(html.escape(os.environ[chr(86)]))"',
	'html.escape() without quotes' =>
	    'python3 -c "import os, html; print(html.escape(os.environ[chr(86)], False))"',
	'xmlcharrefreplace' => 'python3 -c "import os, html, sys; sys.stdout.buffer.write('
	    . 'html.escape(os.environ[chr(86)]).encode(\'ascii\', \'xmlcharrefreplace\'))"',
	'csv' => 'python3 -c "import os, csv, sys; csv.writer(sys.stdout).writerow([os.environ[chr(86)]])"',
	'grep --color' => 'printf "%s\n" "$V" | grep --color=always -e "[a-m]" -e "^"',
	'percent escapes' => escapes('%%%02X'),
	'percent escapes in lower case' => escapes('%%%02x'),
);
for my $tool (sort keys %quoting) {
	for my $n (0 .. $#awkward) {
		my ($status, $text) = run_cmd({ env => { V => $awkward[$n], LC_ALL => 'C.UTF-8' } },
		    'sh', '-c', $quoting{$tool});
		my $out = masked($text, 5, $awkward[$n]);
		like($out, qr/\*\*\*/, "the output of $tool shows the mask instead of secret $n")
		    or diag("$text\n$out");
	}
}

close $requests;
waitpid $probe, 0;
is($?, 0, 'the probe ends with status 0');
done_testing();
