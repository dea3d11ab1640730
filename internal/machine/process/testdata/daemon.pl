# daemon.pl KIND FILE [stay]: locks FILE, leaves a daemon behind that keeps the lock, says
# "ready", and ends with code 5, or stays. The daemon leaves its parent, session, group,
# environment and title. A second work that finds the lock held says "overlap".
use strict;
use POSIX ();
use Fcntl qw(:flock F_SETFD);
$| = 1;

sub nap { select(undef, undef, undef, $_[0]) }

# chain forks again and again, each time as a new process whose parent is gone.
sub chain {
    for (1 .. $_[0]) {
        my $pid = fork // POSIX::_exit(1);
        POSIX::_exit(0) if $pid;
        nap(0.001);
    }
}

# lower sets the limit for resident memory (RLIMIT_RSS), soft and hard.
sub lower {
    my $limit = pack('QQ', $_[0], $_[0]);
    syscall((POSIX::uname())[4] eq 'aarch64' ? 261 : 302, 0, 5, $limit, 0) == 0 or die "setrlimit: $!";
}

sub behave {
    my $kind = shift;
    if ($kind eq 'stubborn') { $SIG{$_} = 'IGNORE' for grep { !/^(KILL|STOP|CHLD|CLD|NUM.*)$/ } keys %SIG }
    if ($kind eq 'refork')   { chain(300) }
    if ($kind eq 'swarm')    { for (1 .. 15) { my $pid = fork // last; if (!$pid) { chain(30); last } } }
    if ($kind eq 'tracer') {
        my $traced = fork // POSIX::_exit(1);
        if ($traced) { syscall((POSIX::uname())[4] eq 'aarch64' ? 117 : 101, 16, $traced + 0, 0, 0) }    # PTRACE_ATTACH
    }
    $0 = 't' x 6000;
    sleep 1000 while 1;
}

my ($kind, $file, @rest) = @ARGV;
if ($kind eq 'daemon') {
    my ($real, $ready) = @rest;
    if ($real eq 'lowers') { lower(1024000) }
    if ($real eq 'zero')   { lower(0) }
    open(my $out, '>&=', $ready) or die;
    print $out "on\n";
    close $out;
    behave($real);
}
open(my $work, '>>', $file) or die "$file: $!";
if (!flock($work, LOCK_EX | LOCK_NB)) { print "overlap\n"; exit 9 }
pipe(my $r, my $w) or die;
my $pid = fork // die;
if (!$pid) {
    close $r;
    POSIX::setsid();
    POSIX::_exit(0) if fork;
    POSIX::setsid();
    open(STDIN, '<', '/dev/null'); open(STDOUT, '>', '/dev/null'); open(STDERR, '>', '/dev/null');
    fcntl($_, F_SETFD, 0) for $work, $w;
    %ENV = ();
    exec $^X, $0, 'daemon', $file, $kind, fileno $w;
}
close $w;
waitpid($pid, 0);
<$r>;
print "ready\n";
sleep 1000 while @rest;
exit 5;
