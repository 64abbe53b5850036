# A table of SQLite's that is asked for one row again and again, with an index and without: the variant is "index" or "scan".
use strict;
use warnings;
use DBI;
my $base = DBI->connect("dbi:SQLite:dbname=:memory:", "", "", { RaiseError => 1 });
$base->do("create table t (a integer, b text)");
my $into = $base->prepare("insert into t values (?, ?)");
$base->begin_work;
$into->execute($_, "text$_") for 1 .. 50000;
$base->commit;
$base->do("create index i on t (b)") if $ARGV[0] eq "index";
my $one = $base->prepare("select a from t where b = ?");
for (;;) {
    $one->execute("text" . int(rand(50000)));
    $one->fetchall_arrayref;
}
