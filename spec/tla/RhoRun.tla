------------------------------- MODULE RhoRun -------------------------------
(* One run of a Rho session: its bounded channel, the attempts of a step, tool calls (a synchronous batch and         *)
(* detached jobs), steering, and every way to end. Written from spec/pages: ids in comments are rules, D* decisions.  *)
(* A run stands at a place `pc`. Either something outside is at work for it there, or the events `pend` have found    *)
(* the channel full, and `pc` is where it goes on when the last of them is delivered. One action is one input and all *)
(* that the run does about it until it waits again, so that the state graph can be compared with that of rho_core.    *)
EXTENDS RhoTools

CONSTANTS Capacity, MaxSteps, MaxParallel,
          Answers,  \* what a model request may end with: names of the menu in RhoTools
          Steers,   \* ids that the host may steer with
          Allowed,  \* what nobody owes: cancel, close, drop, steer, retract, delta, progress, panic
          Unknown,  \* calls of tools that nobody has registered
          Broken,   \* calls whose preparation may fail
          Grace     \* may an interrupted job still finish in its time? (RHO-CAN-14)

VARIABLES
  pc, pend,     \* the place; events that wait for room, in order
  firm,         \* a cancel may not drop what is pending
  about,        \* the ids that the pending event speaks of
  queue,        \* events in the channel that the reader has not taken
  reader,       \* is there one?
  step, budget, \* model step; what its attempts have used: requests, malformed, failed
  capture,      \* what the open attempt has streamed: "text", ids of calls marked async
  answer,       \* the response that is being announced
  wait, timer,  \* the delay that follows a reset; the timer of the delay
  todo, detach, \* calls of the open response that nobody works for yet: synchronous, async
  slots, jobs,  \* the synchronous batch in model order; the detached calls, those that returned last
  steers,       \* accepted and not yet applied
  candidate,    \* messages of this run, not committed
  history, revision, \* what is committed
  ending,       \* the reason of an end that is decided and not yet committed
  outcome,      \* of a committed run, until it is reported
  label,        \* the state that the session shows
  fx            \* what the last input made the run do, in order
vars == <<pc, pend, firm, about, queue, reader, step, budget, capture, answer, wait, timer, todo, detach, slots, jobs,
          steers, candidate, history, revision, ending, outcome, label, fx>>

Now == [pc |-> pc, pend |-> pend, firm |-> firm, about |-> about, queue |-> queue, reader |-> reader, step |-> step,
        budget |-> budget, capture |-> capture, answer |-> answer, wait |-> wait, timer |-> timer, todo |-> todo,
        detach |-> detach, slots |-> slots, jobs |-> jobs, steers |-> steers, candidate |-> candidate,
        history |-> history, revision |-> revision, ending |-> ending, outcome |-> outcome, label |-> label,
        fx |-> <<>>]
Become(r) ==
  /\ pc' = r.pc /\ pend' = r.pend /\ firm' = r.firm /\ about' = r.about /\ queue' = r.queue /\ reader' = r.reader
  /\ step' = r.step /\ budget' = r.budget /\ capture' = r.capture /\ answer' = r.answer /\ wait' = r.wait
  /\ timer' = r.timer /\ todo' = r.todo /\ detach' = r.detach /\ slots' = r.slots /\ jobs' = r.jobs
  /\ steers' = r.steers /\ candidate' = r.candidate /\ history' = r.history /\ revision' = r.revision
  /\ ending' = r.ending /\ outcome' = r.outcome /\ label' = r.label /\ fx' = r.fx

----------------------------- (* Work outside *) -----------------------------
Do(r, effects) == [r EXCEPT !.fx = @ \o effects]

\* Whatever the place has set going is stopped at once (RHO-CAN-7); jobs are stopped apart from it.
StopWork(r) ==
  [Do(r, (IF r.pc = "stream" THEN <<<<"abort_model", r.step, r.budget.requests>>>> ELSE <<>>)
      \o (IF r.timer = "armed" THEN <<<<"cancel_timer", "retry">>>> ELSE <<>>)
      \o Each(SelectSeq(r.slots, Working), LAMBDA c : <<"abort_tool", c.id>>))
   EXCEPT !.timer = "off"]

\* A job that is still alive at the end is interrupted; one with time left may finish in it (RHO-CAN-14).
Hurries(j) == Grace /\ Working(j) /\ j.at \in Executing
Stop(j) == IF j.at \notin Opening \cup Executing THEN j
           ELSE IF Hurries(j) THEN [j EXCEPT !.at = "stopping"]
           ELSE [j EXCEPT !.at = IF @ \in Opening THEN "closed" ELSE "returned",
                          !.res = IF @ = "none" THEN "interrupted" ELSE @]
StopJobs(r) ==
  Do([r EXCEPT !.jobs = Each(@, Stop)],
     Concat(Each(r.jobs, LAMBDA j : IF Hurries(j) THEN <<<<"cancel_job", j.id>>, <<"start_timer", j.id, 5>>>>
                                    ELSE IF Working(j) THEN <<<<"abort_tool", j.id>>>> ELSE <<>>)))
Stopping(r) == Some(r.jobs, LAMBDA j : j.at = "stopping")

------------------------------- (* The ends *) -------------------------------
Forget(r) == [r EXCEPT !.pend = <<>>, !.firm = FALSE, !.about = <<>>, !.budget = NoBudget, !.capture = {}, !.wait = 0,
                       !.answer = "none", !.todo = <<>>, !.detach = <<>>, !.slots = <<>>, !.jobs = <<>>,
                       !.candidate = <<>>, !.ending = "none"]
\* The outcome is reported once, after the last delivery, and nothing follows (RHO-TERM-2, RHO-ORD-12).
Over(r, reported, shown) ==
  Do([Forget(r) EXCEPT !.pc = "over", !.outcome = NoOutcome, !.label = shown], <<<<"report", reported>>, <<"close">>>>)

\* An end without a commit: nothing installed, no event (RHO-PERS-2, RHO-LIM-2, RHO-LIM-3).
AbortJobs(r) ==
  Do(r, Concat(Each(r.jobs, LAMBDA j : (IF Working(j) \/ j.at = "stopping" THEN <<<<"abort_tool", j.id>>>> ELSE <<>>)
                                    \o (IF j.at = "stopping" THEN <<<<"cancel_timer", j.id>>>> ELSE <<>>))))
Abandon(r, why) ==
  Over(AbortJobs(StopWork(r)), IF why = "none" THEN NoOutcome ELSE <<why, r.revision, r.steers>>, "Idle")

RECURSIVE Go(_)
\* Deliver what there is room for; when all of it is out, go on (RHO-BUF-3, RHO-BUF-4).
Flush(r) ==
  LET n == Min(Len(r.pend), Capacity - r.queue)
      q == Do([r EXCEPT !.queue = @ + n, !.pend = SubSeq(@, n + 1, Len(@))], [i \in 1..n |-> <<"deliver", r.pend[i]>>])
  IN IF q.pend = <<>> THEN Go([q EXCEPT !.firm = FALSE]) ELSE q
\* A lost reader interrupts the run at the next event that is not one of its last (RHO-PERS-1, D4).
Put(r, events, next, keep) ==
  LET q == [r EXCEPT !.pc = next] IN
  IF r.reader THEN Flush([q EXCEPT !.pend = events, !.firm = keep]) ELSE Abandon(q, "Interrupted")
Send(r, events, next) == Put(r, events, next, FALSE)

\* One commit: the candidate, one result for every open call (D23), what was captured; then the tail, best effort
\* (RHO-CAN-8, RHO-CAN-9, RHO-CAN-12, RHO-CAN-13, RHO-FAIL-1, RHO-LIM-4, D2).
Commit(r) ==
  LET parked == SelectSeq(r.jobs, LAMBDA j : j.at = "parked")
      others == InOrder(Made(r.candidate), SelectSeq(r.jobs, LAMBDA j : j.at # "parked"))
      results == Each(r.slots, Result) \o Each(r.todo, Interrupted) \o Each(parked \o others, Result)
      aborted == IF r.capture = {} THEN <<>> ELSE <<<<"aborted", r.capture>>>>
      owed == SelectSeq(r.slots, LAMBDA c : c.at \in {"ready", "running", "returned"})
           \o SelectSeq(others, LAMBDA j : j.at = "returned")
      rev == r.revision + 1
      done == [Forget(r) EXCEPT !.pc = "exit", !.history = @ \o r.candidate \o results \o aborted, !.revision = rev,
                 !.outcome = <<r.ending, rev, r.steers>>,
                 !.label = CASE r.ending = "cancel" -> "Cancelling"
                             [] r.ending \in {"EndTurn", "MaxSteps"} -> "Completed" [] OTHER -> "Failed"]
  IN IF r.reader THEN Flush([done EXCEPT !.pend = Each(owed, Finished) \o Terminal(r.ending, rev), !.firm = TRUE])
     ELSE Go(done)
Conclude(r) == LET s == StopJobs([r EXCEPT !.budget = NoBudget])
               IN  IF Stopping(s) THEN [s EXCEPT !.pc = "stopping"] ELSE Commit(s)
Finish(r, why) == Conclude([r EXCEPT !.ending = why])

----------------------------- (* One model step *) ---------------------------
\* A boundary: finished jobs enter the history in the order they finished, then steering, then the step (D10).
Drain(r) == [r EXCEPT !.candidate = @ \o Each(SelectSeq(r.jobs, LAMBDA j : j.at = "parked"), Result),
                      !.jobs = SelectSeq(@, LAMBDA j : j.at # "parked")] \* RHO-ORD-10
Steering(r) ==
  IF r.steers # <<>>
  THEN Send([r EXCEPT !.about = r.steers], <<<<"SteeringApplied", r.steers>>>>, "applied") \* RHO-STEER-2, RHO-COORD-5
  ELSE IF r.step >= MaxSteps THEN Finish(r, "MaxSteps") \* RHO-RET-23, D1
  ELSE Send([r EXCEPT !.step = @ + 1], <<<<"StepStarted", r.step + 1>>>>, "begun") \* RHO-ORD-2
Applied(r) == Steering([r EXCEPT !.candidate = @ \o Each(r.about, LAMBDA id : <<"user", id>>), !.about = <<>>,
                                 !.steers = SelectSeq(@, LAMBDA id : id \notin Range(r.about))])
\* Every attempt of a step shows the model the same messages (RHO-RET-18): open calls have a stand-in (D9).
Request(r) ==
  Go(Do([r EXCEPT !.budget.requests = @ + 1, !.pc = "stream", !.wait = 0, !.timer = "off"],
        <<<<"call_model", r.step, r.budget.requests + 1, Len(r.candidate) + Len(r.jobs)>>>>))
\* Nothing of the abandoned attempt is kept from here on (RHO-RET-7, RHO-RET-8).
Reset(r, reason, hint, ms) ==
  Send([r EXCEPT !.capture = {}, !.wait = ms], <<<<"ProviderStreamReset", r.budget.requests, reason, hint>>>>, "reset")
Delay(r) == IF r.wait = 0 THEN Request(r) \* a malformed response is retried at once (D12)
            ELSE Go(Do([r EXCEPT !.pc = "delay", !.timer = "armed", !.wait = 0],
                       <<<<"start_timer", "retry", r.wait>>>>))
Fail(r, why) ==
  LET b == [r.budget EXCEPT !.failed = @ + 1]
      q == [r EXCEPT !.budget = b, !.pc = "failed"]
  IN IF Retryable(why) /\ b.requests < Requests \* RHO-RET-4, RHO-RET-5
     THEN Reset(q, why, Hint(why), Max(Min(Hint(why), Cap), 1000 * 2 ^ (b.failed - 1))) \* RHO-RET-2, RHO-RET-3, D28
     ELSE Finish(q, why) \* what the last attempt streamed is kept (RHO-FAIL-1)
\* A response without calls ends the run unless a steer or a job still waits for a step (RHO-STEER-2, D8).
EndTurn(r) == IF r.steers # <<>> THEN Go([r EXCEPT !.pc = "boundary"])
              ELSE IF r.jobs # <<>> THEN Go([r EXCEPT !.pc = "await"]) ELSE Finish(r, "EndTurn")
Malformed(r, a) == a = "malformed" \/ Range(Calls(a)) \cap Ids(r.jobs) # {} \* D14
Judge(r) ==
  LET a == r.answer
      b == [r.budget EXCEPT !.malformed = @ + 1]
      marked == SelectSeq(Calls(a), LAMBDA id : id \in AsyncTools /\ id \in r.capture) \* both agree (RHO-ORD-7)
      others == SelectSeq(Calls(a), LAMBDA id : id \notin Range(marked))
      q == [r EXCEPT !.answer = "none", !.capture = {}]
      kept == [q EXCEPT !.candidate = Append(@, <<"assistant", Calls(a)>>), !.budget = NoBudget,
                        !.todo = others, !.detach = marked]
  IN IF Malformed(r, a)
     THEN IF b.malformed < Malformeds /\ b.requests < Requests \* RHO-RET-1, RHO-RET-4
          THEN Reset([q EXCEPT !.budget = b], "malformed", 0, 0)
          ELSE Finish([q EXCEPT !.budget = b], "malformed")
     ELSE IF Calls(a) = <<>> THEN EndTurn(kept)
     ELSE Send(kept, Each(Calls(a), LAMBDA id : <<"ToolProposed", id>>), "proposed") \* RHO-ORD-4, RHO-ORD-8, D3

------------------------------ (* Tool calls *) ------------------------------
\* A synchronous batch is prepared whole, and only when no job is left (RHO-ORD-4).
OpenBatch(r) ==
  LET Slot(id) == [id |-> id, at |-> IF id \in Unknown THEN "unknown" ELSE "preparing", res |-> "none"]
      s == Each(r.todo, Slot)
  IN Go(Do([r EXCEPT !.pc = "batch", !.slots = s, !.todo = <<>>],
           Each(SelectSeq(s, LAMBDA c : c.at = "preparing"), LAMBDA c : <<"prepare", c.id>>)))
Dispatch(r) == IF r.detach # <<>> THEN Go([r EXCEPT !.pc = "spawn"])
               ELSE IF r.jobs # <<>> THEN Go([r EXCEPT !.pc = "await"]) ELSE OpenBatch(r)

RECURSIVE Execute(_)
Execute(r) == \* RHO-ORD-8: as many at once as there are places
  IF Count(r.slots, {"ready"}) > 0 /\ Count(r.slots, {"running"}) < MaxParallel
  THEN LET c == First(r.slots, LAMBDA x : x.at = "ready")
       IN  Execute(Do([r EXCEPT !.slots = Set(@, c.id, "running")], <<<<"execute", c.id>>>>))
  ELSE r
SendOf(r, c, event, next) == Send([r EXCEPT !.about = <<c.id>>], <<event>>, next)
\* Preparations first, then what has finished. What cannot run goes before what can (RHO-ORD-6), and a failed
\* preparation is started and finished like a call (RHO-ORD-5). One event at a time: a cancel falls between calls.
\* The results enter the history when all are done, in call order (RHO-ORD-10).
Schedule(r) ==
  LET Is(stages) == Count(r.slots, stages) > 0
      One(stages) == First(r.slots, LAMBDA c : c.at \in stages)
  IN IF Is({"preparing"}) THEN r
     ELSE IF Is({"returned"}) THEN SendOf(r, One({"returned"}), Finished(One({"returned"})), "finished")
     ELSE IF Count(r.slots, {"done"}) = Len(r.slots) THEN
       Go([r EXCEPT !.pc = "boundary", !.candidate = @ \o Each(r.slots, Result), !.slots = <<>>])
     ELSE IF Is({"unknown", "refused"}) THEN
       LET c == One({"unknown", "refused"}) IN
       IF c.at = "refused" THEN SendOf(r, c, <<"ToolStarted", c.id>>, "started")
       ELSE SendOf([r EXCEPT !.slots = End(@, c.id, "unknown", "unavailable")], c,
                   <<"ToolFinished", c.id, "unavailable">>, "finished")
     ELSE IF Is({"prepared"}) THEN SendOf(r, One({"prepared"}), <<"ToolStarted", One({"prepared"}).id>>, "started")
     ELSE Execute(r)
Announced(r, refused, ready) == \* ToolStarted of a slot was delivered
  LET id == r.about[1] stage == IF At(r.slots, id, {"refused"}) THEN refused ELSE ready
  IN  Schedule([r EXCEPT !.pc = "batch", !.about = <<>>, !.slots = Set(@, id, stage)])

\* Async calls are started one by one; each is announced, set to work, detached (RHO-ORD-7).
Spawn(r) ==
  IF Count(r.jobs, Opening) > 0 THEN
    LET j == First(r.jobs, LAMBDA x : x.at \in Opening)
    IN IF j.at = "failed" \/ (j.at = "ready" /\ Count(r.jobs, Executing) < MaxParallel)
       THEN SendOf(r, j, <<"ToolStarted", j.id>>, "job started") ELSE r
  ELSE IF r.detach # <<>> THEN
    Do([r EXCEPT !.detach = Tail(@), !.jobs = Append(@, [id |-> Head(r.detach), at |-> "preparing", res |-> "none"])],
       <<<<"prepare", Head(r.detach)>>>>)
  ELSE Go([r EXCEPT !.pc = IF r.todo # <<>> THEN "await" ELSE "boundary"])
JobStarted(r) ==
  LET id == r.about[1] IN
  IF At(r.jobs, id, {"failed"})
  THEN Go([r EXCEPT !.pc = "spawn", !.about = <<>>, !.jobs = Last(Set(@, id, "returned"), id)])
  ELSE Send(Do([r EXCEPT !.jobs = Set(@, id, "started")], <<<<"execute", id>>>>),
            <<<<"ToolDetached", id>>>>, "detached")
JobDetached(r) ==
  LET id == r.about[1] q == [r EXCEPT !.pc = "spawn", !.about = <<>>] IN
  Go(IF Some(r.jobs, LAMBDA j : j.id = id /\ j.res # "none")
     THEN [q EXCEPT !.jobs = Last(Set(@, id, "returned"), id)] ELSE [q EXCEPT !.jobs = Set(@, id, "running")])
\* All jobs before a batch; any job, or a steer, after an end turn (RHO-ORD-10, RHO-STEER-2).
Await(r) ==
  IF r.todo # <<>> THEN IF Some(r.jobs, LAMBDA j : j.at # "parked") THEN r ELSE OpenBatch(Drain(r))
  ELSE IF r.steers # <<>> \/ Some(r.jobs, LAMBDA j : j.at = "parked") THEN Go([r EXCEPT !.pc = "boundary"]) ELSE r

\* A job that returned is announced wherever the run looks; that event is never suppressed (RHO-ORD-7b).
Listening == {"boundary", "stream", "delay", "spawn", "await"}
Owing(r) == Some(r.jobs, LAMBDA j : j.at = "returned")
Announce(r) ==
  LET j == First(r.jobs, LAMBDA x : x.at = "returned")
  IN  Put([r EXCEPT !.jobs = Last(Set(@, j.id, "parked"), j.id)], <<Finished(j)>>, r.pc, TRUE)

Go(r) ==
  IF r.pc \in Listening /\ Owing(r) THEN Announce(r) ELSE
  CASE r.pc = "boundary"    -> Steering(Drain(r))
    [] r.pc = "delay"       -> IF r.timer = "fired" THEN Request(r) ELSE r
    [] r.pc = "spawn"       -> Spawn(r)
    [] r.pc = "await"       -> Await(r)
    [] r.pc = "applied"     -> Applied(r)
    [] r.pc = "begun"       -> Request(r)
    [] r.pc = "answered"    -> Judge(r)
    [] r.pc = "reset"       -> Delay(r)
    [] r.pc = "proposed"    -> Dispatch(r)
    [] r.pc = "batch"       -> Schedule(r)
    [] r.pc = "started"     -> Announced(r, "returned", "ready")
    [] r.pc = "finished"    -> Announced(r, "done", "done")
    [] r.pc = "job started" -> JobStarted(r)
    [] r.pc = "detached"    -> JobDetached(r)
    [] r.pc = "conclude"    -> Conclude(r)
    [] r.pc = "exit"        -> Over(r, r.outcome, IF r.outcome[1] = "cancel" THEN "Idle" ELSE r.label)
    [] OTHER -> r

-------------------------------- (* Inputs *) --------------------------------
Open == pc \notin {"fresh", "over"}
Decided == pc \in {"conclude", "stopping", "exit"} \* no command is accepted any more (D5, D7)
Ready == pend = <<>>                              \* otherwise providers and tools are held (RHO-BUF-4)
Record(r) == Become(IF Ready THEN Go(r) ELSE r)   \* a result is always taken, and acted upon when nothing is blocked

Begin == /\ pc = "fresh" \* RHO-ORD-1
         /\ Become(Send([Now EXCEPT !.candidate = <<<<"user", "prompt">>>>], <<<<"Started", revision>>>>, "boundary"))
Take == /\ Open /\ reader /\ queue > 0
        /\ Become(IF Ready THEN [Now EXCEPT !.queue = @ - 1] ELSE Flush([Now EXCEPT !.queue = @ - 1]))

\* Accepted once, wherever the run waits, from the host or from a clone of the token, which gets no answer (RHO-CAN-1,
\* RHO-CAN-2, RHO-CAN-3, RHO-CAN-5). A blocked event is dropped and has not happened; one that must not be lost keeps
\* its place, and the commit follows it.
Cancel ==
  \E answered \in {<<>>, <<<<"reply", "ok">>>>} :
    /\ "cancel" \in Allowed /\ Open
    /\ LET ok == Do(Now, answered)
           told == Do([ok EXCEPT !.ending = "cancel", !.label = "Cancelling"], <<<<"signal_cancel">>>>)
           s == StopJobs(StopWork(told))
           t == [s EXCEPT !.todo = todo \o detach, !.detach = <<>>, !.budget = NoBudget, !.answer = "none", !.wait = 0]
       IN Become(IF Decided THEN (IF pc = "stopping" /\ ending # "cancel" THEN told ELSE ok)
                 ELSE IF firm THEN [t EXCEPT !.pc = "conclude"]
                 ELSE Conclude([t EXCEPT !.pend = <<>>, !.about = <<>>]))
Drop == /\ "drop" \in Allowed /\ Open \* RHO-DROP-1, RHO-DROP-3
        /\ Become(IF pc = "exit" THEN Over(Now, NoOutcome, IF outcome[1] = "cancel" THEN "Idle" ELSE label)
                  ELSE Abandon(IF ending = "cancel" THEN Now ELSE Do(Now, <<<<"signal_cancel">>>>), "none"))
\* RHO-PERS-1; a run that has decided its end goes on with it (RHO-LIM-4)
Close == /\ "close" \in Allowed /\ Open /\ reader
         /\ LET r == [Now EXCEPT !.reader = FALSE, !.pend = <<>>, !.firm = FALSE]
            IN Become(IF Ready THEN r ELSE IF Decided THEN Go(r) ELSE Abandon(r, "Interrupted"))
Entered(id) == <<"user", id>> \in Range(candidate \o history)
Steer ==
  \E id \in Steers :
    /\ "steer" \in Allowed /\ Open
    /\ LET r == Do([Now EXCEPT !.steers = Append(@, id)], <<<<"reply", id>>>>) \* RHO-STEER-1
       IN Become(IF Decided THEN Do(Now, <<<<"rejected", "RHO-STEER-2">>>>)
                 ELSE IF id \in Range(steers) \/ Entered(id) THEN Do(Now, <<<<"rejected", "RHO-STEER-4">>>>)
                 ELSE IF Ready /\ pc = "await" THEN Go(r) ELSE r)
\* One side wins, at once (RHO-STEER-5, RHO-STEER-6, D27); a SteeringApplied that is still blocked has not happened.
Retract ==
  \E id \in Steers :
    /\ "retract" \in Allowed /\ Open
    /\ LET left == SelectSeq(about, LAMBDA x : x # id)
           r == Do([Now EXCEPT !.steers = SelectSeq(@, LAMBDA x : x # id)], <<<<"reply", "Retracted">>>>)
       IN Become(IF id \notin Range(steers)
                 THEN Do(Now, <<<<"reply", IF Entered(id) THEN "AlreadyApplied" ELSE "NotFound">>>>)
                 ELSE IF pc # "applied" \/ id \notin Range(about) THEN r
                 ELSE IF left = <<>> THEN Steering([r EXCEPT !.pend = <<>>, !.about = <<>>])
                 ELSE [r EXCEPT !.pend = <<<<"SteeringApplied", left>>>>, !.about = left])

Fresh(id) == id \notin Range(Made(candidate))
Streams == pc = "stream" /\ Ready
\* One delta stands for all of an attempt: where a stream is cut means nothing (RHO-BUF-9).
Delta == /\ "delta" \in Allowed /\ Streams /\ "text" \notin capture
         /\ Become(Send([Now EXCEPT !.capture = @ \cup {"text"}],
                        <<<<"AssistantTextDelta", budget.requests>>>>, "stream"))
Mark == \E id \in AsyncTools :
          /\ Streams /\ id \notin capture /\ Fresh(id) /\ \E a \in Answers : id \in Range(Calls(a))
          /\ Become(Send([Now EXCEPT !.capture = @ \cup {id}], <<<<"ProviderContextUpdated">>>>, "stream"))
Respond == \E a \in Answers \ Failures :
             /\ Streams /\ \A id \in Range(Calls(a)) : Fresh(id) \/ id \in Ids(jobs)
             /\ Become(Send([Now EXCEPT !.answer = a], <<<<"ModelCallCompleted", budget.requests>>>>, "answered"))
ModelFails == \E a \in Answers \cap Failures : Streams /\ Become(Fail(Now, a))
ModelPanics == "panic" \in Allowed /\ pc = "stream" /\ Become(Abandon([Now EXCEPT !.pc = "broken"], "Interrupted"))

Call(id) == First(slots \o jobs, LAMBDA c : c.id = id)
\* What a call reports is stored with it, wherever it is.
Store(id, slotAt, jobAt, res) ==
  [Now EXCEPT !.slots = IF id \in Ids(@) THEN End(@, id, slotAt, res) ELSE @,
              !.jobs = IF id \in Ids(@) THEN End(@, id, jobAt, res) ELSE @]
Prepared == \E id \in Ids(slots \o jobs) :
  Call(id).at = "preparing" /\ Record(Store(id, "prepared", "ready", "none"))
PrepareFails == \E id \in Ids(slots \o jobs) \cap Broken :
  Call(id).at = "preparing" /\ Record(Store(id, "refused", "failed", "error"))
Progress == \E id \in Ids(slots \o jobs) :
  "progress" \in Allowed /\ Ready /\ Call(id).at = "running" /\ Become(Send(Now, <<<<"ToolUpdated", id>>>>, pc))
\* A result is kept from now on, whatever happens (RHO-CAN-12); a job stays where it is until its ToolDetached is out.
CommitWhenStopped(r) == IF r.pc = "stopping" /\ ~Stopping(r) THEN Commit(r) ELSE r
ToolReturns == \E id \in Ids(slots \o jobs), res \in {"ok", "error"} :
  LET c == Call(id)
      r == Store(id, "returned", IF c.at = "started" THEN "started" ELSE "returned", res)
  IN \/ /\ c.at \in {"running", "started"} /\ c.res = "none"
        /\ Record(IF c.at = "running" THEN [r EXCEPT !.jobs = Last(@, id)] ELSE r)
     \/ c.at = "stopping" /\ Become(CommitWhenStopped(Do(r, <<<<"cancel_timer", id>>>>)))
TimerFires == \/ timer = "armed" /\ Record([Now EXCEPT !.timer = "fired"])
              \/ \E id \in Ids(jobs) : \* its time is over (RHO-CAN-14)
                   /\ Call(id).at = "stopping"
                   /\ Become(CommitWhenStopped(Do(Store(id, "none", "returned", "interrupted"),
                                                   <<<<"abort_tool", id>>>>)))

Init == /\ pc = "fresh" /\ pend = <<>> /\ firm = FALSE /\ about = <<>> /\ queue = 0 /\ reader = TRUE /\ step = 0
        /\ budget = NoBudget /\ capture = {} /\ answer = "none" /\ wait = 0 /\ timer = "off" /\ todo = <<>>
        /\ detach = <<>> /\ slots = <<>> /\ jobs = <<>> /\ steers = <<>> /\ candidate = <<>> /\ history = <<>>
        /\ revision = 0 /\ ending = "none" /\ outcome = NoOutcome /\ label = "Running" /\ fx = <<>>
Next == \/ Begin \/ Take \/ Cancel \/ Drop \/ Close \/ Steer \/ Retract
        \/ Delta \/ Mark \/ Respond \/ ModelFails \/ ModelPanics
        \/ Prepared \/ PrepareFails \/ Progress \/ ToolReturns \/ TimerFires
=============================================================================
