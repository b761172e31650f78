#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The scripts of the first half of the templates with hostile values: see Slipway::HostileValues.

use strict;
use warnings;
use Slipway::HostileValues;
use Test::More;

Slipway::HostileValues::test(sub { $_ lt 'p' });

done_testing;
