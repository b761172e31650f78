# SPDX-License-Identifier: ISC
package Slipway::Bomb;

# A gzip stream (RFC 1952) that expands to much more than its size, made in no time.
#
#   my $stream = bomb('[', ' ', 100 << 20, ']');   # 100 MiB of blanks in brackets

use strict;
use warnings;
use Compress::Raw::Zlib qw(MAX_WBITS Z_FINISH Z_FULL_FLUSH crc32);
use Exporter 'import';

our @EXPORT = qw(bomb);

# After a full flush, zlib compresses the same bytes in the same way.
sub bomb {
	my ($before, $byte, $size, $after) = @_;
	my $piece = $byte x 65536;
	my $rest = ($byte x ($size % length $piece)) . $after;
	my $zip = Compress::Raw::Zlib::Deflate->new(-WindowBits => -MAX_WBITS, -AppendOutput => 1);
	my ($first, $again, $last, $sum) = ('', '', '', crc32($before));
	for ([$before, \$first, Z_FULL_FLUSH], [$piece, \$again, Z_FULL_FLUSH], [$rest, \$last, Z_FINISH]) {
		my ($text, $to, $how) = @$_;
		$zip->deflate($text, $$to);
		$zip->flush($$to, $how);
	}
	my $times = int($size / length $piece);
	my ($one, $two) = (crc32($piece), crc32($rest));
	$sum = Compress::Raw::Zlib::crc32_combine($sum, $one, length $piece) for 1 .. $times;
	$sum = Compress::Raw::Zlib::crc32_combine($sum, $two, length $rest);
	return "\x1f\x8b\x08" . "\0" x 6 . "\xff" . $first . $again x $times . $last
	    . pack 'VV', $sum, length($before . $after) + $size;
}

1;
