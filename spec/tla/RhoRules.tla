------------------------------ MODULE RhoRules ------------------------------
(* What the catalogue promises of every run, as invariants and properties of RhoRun, each under the id of its rule. *)
EXTENDS RhoRun

Spec == Init /\ [][Next]_vars

------------------------------ (* Small tools *) ------------------------------
Sent(kinds) == {i \in DOMAIN fx : fx[i][1] \in kinds}
Delivers(kinds) == {i \in DOMAIN fx : fx[i][1] = "deliver" /\ fx[i][2][1] \in kinds}
Begins == Sent({"call_model", "prepare", "execute"}) # {}
Terminals == {"Completed", "Cancelled", "Failed"}
Settles == pc # "over" /\ pc' = "over"
Where(s, kind) == {i \in DOMAIN s : s[i][1] = kind}
ResultsOf(id) == {i \in Where(history, "result") : history[i][2] = id}
Reported == {fx[i][2] : i \in Sent({"report"})}

------------------------------ (* The channel *) ------------------------------
RHO_BUF_2 == queue \in 0..Capacity
RHO_BUF_3 == pend # <<>> => reader /\ queue = Capacity       \* an event waits for room, and for nothing else
RHO_BUF_4 == [][pend # <<>> /\ pend' = pend => ~Begins']_vars \* nothing begins past a blocked event
RHO_ORD_1 == [][pc = "fresh" => fx'[1] = <<"deliver", <<"Started", revision>>>>]_vars

------------------------------- (* The turn *) --------------------------------
RHO_RET_1 == budget.malformed < Malformeds
RHO_RET_3 == \A i \in Sent({"start_timer"}) : fx[i][2] = "retry" => fx[i][3] \in 1000..Cap
RHO_RET_4 == budget.requests <= Requests /\ step <= MaxSteps \* RHO-RET-23 as well
RHO_RET_5 == \A i \in Delivers({"ProviderStreamReset"}) : fx[i][2][3] # "permanent"
RHO_RET_7 == pc \in {"reset", "delay"} => capture = {}       \* the abandoned attempt leaves nothing
RHO_RET_8 == [][\A i \in DOMAIN fx' : fx'[i][1] = "call_model" /\ fx'[i][3] > 1 =>
                  pc \in {"reset", "delay"} \/ \E k \in Delivers({"ProviderStreamReset"})' : k < i]_vars
RHO_RET_18 == [][budget.requests > 0 /\ budget'.requests > 0 /\ step' = step =>
                  candidate' = candidate /\ Ids(jobs') = Ids(jobs)]_vars

------------------------------- (* The calls *) -------------------------------
RHO_ORD_4 == pc = "proposed" => slots = <<>> /\ Range(todo \o detach) \cap Ids(jobs) = {}
RHO_ORD_6 == \A i \in Delivers({"ToolStarted"}) : fx[i][2][2] \notin Unknown
RHO_ORD_7 == /\ \A i \in Delivers({"ToolDetached"}) : fx[i][2][2] \in AsyncTools
             /\ slots # <<>> => jobs = <<>> \* a batch waits for every job
RHO_ORD_8 == Count(slots, {"running"}) + Count(jobs, Executing) <= MaxParallel
\* The results of synchronous calls stand in model order.
RHO_ORD_10 == LET made == SelectSeq(Made(history), LAMBDA id : id \notin AsyncTools)
                  results == SelectSeq(history, LAMBDA m : m[1] = "result" /\ m[2] \notin AsyncTools)
              IN  Each(results, LAMBDA m : m[2]) = made

------------------------------- (* Steering *) --------------------------------
RHO_STEER_2 == \A o \in Reported : o[1] = "EndTurn" => o[3] = <<>> \* D8
RHO_STEER_3 == \A id \in Range(steers) : ~Entered(id)
RHO_STEER_6 == [][\A id \in Range(steers) \ Range(steers') : Entered(id)' \/ fx'[1] = <<"reply", "Retracted">>]_vars
RHO_COORD_5 == pc = "applied" => slots = <<>> /\ todo = <<>> /\ detach = <<>>

-------------------------------- (* The ends *) -------------------------------
\* After an accepted cancel nothing begins, and it is accepted once.
RHO_CAN_2 == [][label = "Cancelling" => Sent({"signal_cancel"})' = {}]_vars
RHO_CAN_7 == [][label = "Cancelling" \/ Sent({"signal_cancel"})' # {} => ~Begins']_vars
RHO_CAN_8 == history # <<>> => history[1] = <<"user", "prompt">>
RHO_CAN_9 == Where(history, "aborted") \subseteq {Len(history)}
RHO_CAN_11 == [][IF history' = history THEN revision' = revision ELSE revision' = revision + 1]_vars
\* RHO-CAN-13 and RHO-CAN-14 as well: one result for every call of a committed answer, whatever had become of it.
RHO_CAN_12 == \A id \in Range(Made(history)) : Cardinality(ResultsOf(id)) = 1
RHO_CAN_14 == pc \in {"exit", "over"} => slots = <<>> /\ jobs = <<>> /\ todo = <<>> /\ detach = <<>>
RHO_PERS_2 == (\A o \in Reported : o[1] = "Interrupted" => revision = 0) /\ (revision = 0 => history = <<>>)
RHO_ORD_12 == /\ Delivers(Terminals) # {} => pc = "over" /\ Cardinality(Delivers(Terminals)) = 1
              /\ reader /\ (\E o \in Reported : o[1] \notin {"none", "Interrupted"}) => Delivers(Terminals) # {}
RHO_TERM_1 == \A i \in Delivers(Terminals), k \in Sent({"deliver"}) : k <= i
RHO_TERM_2 == [][(Sent({"report"})' # {}) <=> Settles]_vars
RHO_TERM_3 == \A i \in Delivers({"Completed"}), o \in Reported : <<fx[i][2][2], fx[i][2][3]>> = <<o[1], o[2]>>
RHO_STATE_4 == pc = "over" => label \in {"Idle", "Completed", "Failed"} /\ (label # "Idle" => revision = 1)

\* A run that is not over waits for someone.
CORE_LIVE == Open => \/ pend # <<>> \/ pc = "stream" \/ timer = "armed"
                     \/ Some(slots \o jobs, LAMBDA c : Working(c) \/ c.at = "stopping")
=============================================================================
