%% Eight processes that compute.
-module(work).
-export([main/0]).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

forever() -> fib(20), forever().

main() ->
    [spawn(fun forever/0) || _ <- lists:seq(1, 8)],
    receive stop -> ok end.
