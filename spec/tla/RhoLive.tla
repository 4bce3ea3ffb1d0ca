------------------------------ MODULE RhoLive ------------------------------
(* CORE-LIVE as a liveness property: when everyone who owes the run something acts some time, the run settles.        *)
(* Weak fairness of five parties. It is spelled out, with `who` acted last, as TLC's own WF_ needs ENABLED of actions *)
(* that are computed by recursion, which takes it minutes.                                                            *)
EXTENDS RhoRules
VARIABLE who
all == <<vars, who>>

Owes(p) == CASE p = "host" -> pc = "fresh"
             [] p = "reader" -> Open /\ reader /\ queue > 0
             [] p = "model" -> Streams
             [] p = "tool" -> Some(slots \o jobs, LAMBDA c : Working(c) \/ c.at = "stopping")
             [] p = "timer" -> timer = "armed" \/ Some(jobs, LAMBDA j : j.at = "stopping")
By(p, action) == action /\ who' = p
LiveInit == Init /\ who = "nobody"
LiveNext == \/ By("host", Begin) \/ By("reader", Take) \/ By("model", Respond \/ ModelFails)
            \/ By("tool", Prepared \/ PrepareFails \/ ToolReturns) \/ By("timer", TimerFires)
            \/ By("nobody", Cancel \/ Drop \/ Close \/ Steer \/ Retract \/ Delta \/ Mark \/ ModelPanics \/ Progress)
Fair(p) == []<>~Owes(p) \/ []<><<who' = p>>_all
LiveSpec == /\ LiveInit /\ [][LiveNext]_all
            /\ Fair("host") /\ Fair("reader") /\ Fair("model") /\ Fair("tool") /\ Fair("timer")
Settled == <>(pc = "over")
=============================================================================
