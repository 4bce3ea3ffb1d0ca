------------------------------ MODULE RhoTools ------------------------------
(* What RhoRun is made of and what has no state: the menu of answers, sequences, and tool calls as records of a       *)
(* sequence, [id, at, res]: `at` says how far the call has come, `res` how it ended.                                  *)
EXTENDS Integers, Sequences, FiniteSets

Requests   == 4     \* RHO-RET-4
Malformeds == 2     \* RHO-RET-1
Cap        == 60000 \* RHO-RET-3, milliseconds

\* The menu. A failure's name is also the reason of the end it may lead to.
Calls(a) == CASE a = "sync" -> <<"B">> [] a = "async" -> <<"A">> [] a = "pair" -> <<"A", "B">>
              [] a = "batch" -> <<"B", "D", "E">> [] a = "jobs" -> <<"A", "C">> [] OTHER -> <<>>
Failures  == {"fail", "hint", "long", "permanent"}
Hint(a)   == CASE a = "hint" -> 2500 [] a = "long" -> 90000 [] OTHER -> 0
Retryable(a) == a \in {"fail", "hint", "long"}
AsyncTools == {"A", "C"} \* calls of tools that are registered as async

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Range(s) == {s[i] : i \in DOMAIN s}
Ids(s) == {s[i].id : i \in DOMAIN s}
Each(s, F(_)) == [i \in DOMAIN s |-> F(s[i])]
Some(s, P(_)) == \E i \in DOMAIN s : P(s[i])
First(s, P(_)) == s[CHOOSE i \in DOMAIN s : P(s[i]) /\ \A k \in 1..(i - 1) : ~P(s[k])]
Concat(s) == LET upTo[n \in 0..Len(s)] == IF n = 0 THEN <<>> ELSE upTo[n - 1] \o s[n] IN upTo[Len(s)]

At(s, id, stages) == Some(s, LAMBDA c : c.id = id /\ c.at \in stages)
Set(s, id, stage) == Each(s, LAMBDA c : IF c.id = id THEN [c EXCEPT !.at = stage] ELSE c)
End(s, id, stage, res) == Each(s, LAMBDA c : IF c.id = id THEN [c EXCEPT !.at = stage, !.res = res] ELSE c)
Last(s, id) == SelectSeq(s, LAMBDA c : c.id # id) \o SelectSeq(s, LAMBDA c : c.id = id)
InOrder(ids, s) == Each(SelectSeq(ids, LAMBDA id : id \in Ids(s)), LAMBDA id : First(s, LAMBDA c : c.id = id))
Count(s, stages) == Len(SelectSeq(s, LAMBDA c : c.at \in stages))

Result(c) == <<"result", c.id, IF c.res = "none" THEN "interrupted" ELSE c.res>>
Finished(c) == <<"ToolFinished", c.id, IF c.res = "none" THEN "interrupted" ELSE c.res>>
Interrupted(id) == <<"result", id, "interrupted">>
\* Calls of completed answers, in the order in which the model made them.
Made(messages) == Concat(Each(messages, LAMBDA m : IF m[1] = "assistant" THEN m[2] ELSE <<>>))

Opening == {"preparing", "ready", "failed"} \* of a job: not announced yet
Executing == {"started", "running"}         \* of a job: "started" = ToolDetached is not delivered yet
Working(c) == c.at \in {"preparing", "started", "running"} /\ c.res = "none"

NoBudget == [requests |-> 0, malformed |-> 0, failed |-> 0]
NoOutcome == <<"none", 0, <<>>>>
\* The last event of a committed run, with what belongs right before it (RHO-TERM-1, RHO-TERM-5).
Terminal(why, rev) ==
  CASE why = "cancel" -> <<<<"Cancelled", rev>>>>
    [] why \in {"EndTurn", "MaxSteps"} -> <<<<"Completed", why, rev>>>>
    [] why = "permanent" -> <<<<"ProviderDiagnostic">>, <<"Failed", why, FALSE, rev>>>>
    [] OTHER -> <<<<"Failed", why, Retryable(why), rev>>>>
=============================================================================
