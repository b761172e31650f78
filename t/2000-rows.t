#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Rows written and read by field table, and statements that do not fit their
# tables: tested in C against a private server.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Test;

my $db = Slipway::DB->start;
$db->sql(<<'SQL');
CREATE TABLE probe (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    number BIGINT NOT NULL, text LONGTEXT, flag TINYINT NOT NULL, some BIGINT,
    at DATETIME(3), json LONGTEXT CHECK (JSON_VALID(json)), data LONGBLOB)
    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE probe_log (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    text VARCHAR(40) NOT NULL UNIQUE) CHARACTER SET utf8mb4;
CREATE TABLE counter (id BIGINT NOT NULL PRIMARY KEY, n BIGINT NOT NULL);
SQL
# The program writes the TAP; its status is this test's.
my $status = system { program('t/unit/db_types') } 'db_types', $db->conf_file(timeout => 5);
$db->stop;
exit($status == 0 ? 0 : 1);
