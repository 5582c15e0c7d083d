------------------------------- MODULE Leases -------------------------------
(* One job that workers claim, keep by heartbeats, release, settle and rescue.

   A request is carried out at the store at some later moment, also when its sender has given up on it; its
   response may be lost. Durations are what is left of them: every tick takes one off. A worker counts its own
   lease from the moment it SENT the request that renewed it, so it never believes longer than the store does.

   Each constant named after a rule is TRUE in rota. With FALSE, the model must fail: see models/README.md. *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Workers, Lease, MostTokens, MostLost, Skew,
    StoreJudges,        \* the store's clock decides that a lease is over, not the rescuer's
    CountsSleep,        \* the worker's clock goes on while its machine is suspended
    CountsFromSending,  \* a renewed lease is counted from the request, not from the response
    FencedSettle,       \* a settlement needs the lease token and the holder
    FencedRefund        \* so does releasing a job

VARIABLES
    job,        \* [state, token, holder, left]: the row; left: ticks until the lease is over
    belief,     \* belief[w] = [token, left]: what w thinks it holds; left 0: it has stopped the job
    call,       \* call[w]: the request that w waits for, or None
    lost,       \* requests whose sender has given up: they may still be carried out
    accepted    \* tokens of the settlements that the store accepted

vars == <<job, belief, call, lost, accepted>>

None == [kind |-> "none", token |-> 0, credit |-> 0, done |-> FALSE, ok |-> FALSE]
Nothing == [token |-> 0, left |-> 0]
Holds(w) == belief[w].left > 0
Less(n) == IF n > 0 THEN n - 1 ELSE 0

Init ==
    /\ job = [state |-> "queued", token |-> 0, holder |-> "nobody", left |-> 0]
    /\ belief = [w \in Workers |-> Nothing]
    /\ call = [w \in Workers |-> None]
    /\ lost = {}
    /\ accepted = {}

(* ---- what a worker sends -------------------------------------------------------------------------- *)

Send(w, kind, token) ==
    /\ call[w] = None
    /\ call' = [call EXCEPT ![w] = [kind |-> kind, token |-> token, credit |-> Lease, done |-> FALSE, ok |-> FALSE]]
    /\ UNCHANGED <<job, lost, accepted>>

AskClaim(w) == ~Holds(w) /\ Send(w, "claim", 0) /\ UNCHANGED belief
AskBeat(w) == Holds(w) /\ Send(w, "beat", belief[w].token) /\ UNCHANGED belief
\* The job has ended, or is released: the worker stops believing before it sends.
AskSettle(w) == Holds(w) /\ Send(w, "settle", belief[w].token) /\ belief' = [belief EXCEPT ![w] = Nothing]
AskRefund(w) == Holds(w) /\ Send(w, "refund", belief[w].token) /\ belief' = [belief EXCEPT ![w] = Nothing]

(* ---- what the store does -------------------------------------------------------------------------- *)

IsHeld(w, token) == job.state = "running" /\ job.token = token /\ job.holder = w
Passes(w, kind, token) ==
    CASE kind = "claim" -> job.state = "queued" /\ job.token < MostTokens
      [] kind = "beat" -> IsHeld(w, token)
      [] kind = "settle" -> IF FencedSettle THEN IsHeld(w, token) ELSE job.state = "running"
      [] kind = "refund" -> IF FencedRefund THEN IsHeld(w, token) ELSE job.state = "running"
      [] OTHER -> FALSE

After(w, kind) ==
    CASE kind = "claim" -> [state |-> "running", token |-> job.token + 1, holder |-> w, left |-> Lease]
      [] kind = "beat" -> [job EXCEPT !.left = Lease]
      [] kind = "settle" -> [job EXCEPT !.state = "ended", !.left = 0]
      [] kind = "refund" -> [job EXCEPT !.state = "queued", !.left = 0]
      [] OTHER -> job

Apply(w, kind, token) ==
    IF Passes(w, kind, token)
    THEN /\ job' = After(w, kind)
         /\ accepted' = IF kind = "settle" THEN accepted \cup {token} ELSE accepted
    ELSE UNCHANGED <<job, accepted>>

CarryOut(w) ==
    LET this == call[w] IN
    /\ this.kind # "none" /\ ~this.done
    /\ Apply(w, this.kind, this.token)
    /\ call' = [call EXCEPT ![w] = [this EXCEPT
            !.done = TRUE, !.ok = Passes(w, this.kind, this.token),
            !.token = IF this.kind = "claim" THEN job.token + 1 ELSE this.token]]
    /\ UNCHANGED <<belief, lost>>

CarryOutLate(request) ==
    /\ request \in lost
    /\ Apply(request.worker, request.kind, request.token)
    /\ lost' = lost \ {request}
    /\ UNCHANGED <<belief, call>>

(* ---- what a worker learns ------------------------------------------------------------------------- *)

Learn(w) ==
    LET this == call[w]
        counted == IF CountsFromSending THEN this.credit ELSE Lease IN
    /\ this.done
    /\ call' = [call EXCEPT ![w] = None]
    /\ belief' = [belief EXCEPT ![w] =
            IF this.kind = "claim" /\ this.ok /\ counted > 0 THEN [token |-> this.token, left |-> counted]
            ELSE IF this.kind = "beat" /\ ~this.ok THEN Nothing
            ELSE IF this.kind = "beat" /\ Holds(w) THEN [belief[w] EXCEPT !.left = counted]
            ELSE belief[w]]
    /\ UNCHANGED <<job, lost, accepted>>

\* No response in time. What was not carried out yet may be, once, much later.
GiveUp(w) ==
    LET this == call[w] IN
    /\ this.kind # "none"
    /\ Cardinality(lost) < MostLost
    /\ lost' = IF this.done THEN lost ELSE lost \cup {[kind |-> this.kind, worker |-> w, token |-> this.token]}
    /\ call' = [call EXCEPT ![w] = None]
    /\ UNCHANGED <<job, belief, accepted>>

Crash(w) ==
    /\ Holds(w)
    /\ belief' = [belief EXCEPT ![w] = Nothing]
    /\ UNCHANGED <<job, call, lost, accepted>>

(* ---- rescue: lock the lost worker out, then decide ------------------------------------------------- *)

IsOver == IF StoreJudges THEN job.left = 0 ELSE job.left <= Skew

Reclaim(w) ==
    /\ job.state = "running" /\ IsOver /\ job.token < MostTokens
    /\ job' = [state |-> "running", token |-> job.token + 1, holder |-> "rescuer", left |-> Lease]
    /\ UNCHANGED <<belief, call, lost, accepted>>

Requeue(w) ==
    /\ job.state = "running" /\ job.holder = "rescuer"
    /\ job' = [job EXCEPT !.state = "queued", !.left = 0]
    /\ UNCHANGED <<belief, call, lost, accepted>>

(* ---- time ------------------------------------------------------------------------------------------ *)

Tick ==
    /\ job' = [job EXCEPT !.left = Less(job.left)]
    /\ call' = [w \in Workers |-> [call[w] EXCEPT !.credit = Less(call[w].credit)]]
    /\ \E asleep \in (IF CountsSleep THEN {{}} ELSE SUBSET Workers) :
         belief' = [w \in Workers |-> IF w \in asleep THEN belief[w]
                                      ELSE [belief[w] EXCEPT !.left = Less(belief[w].left)]]
    /\ UNCHANGED <<lost, accepted>>

Next ==
    \/ Tick
    \/ \E w \in Workers :
         \/ AskClaim(w) \/ AskBeat(w) \/ AskSettle(w) \/ AskRefund(w)
         \/ CarryOut(w) \/ Learn(w) \/ GiveUp(w) \/ Crash(w) \/ Reclaim(w) \/ Requeue(w)
    \/ \E request \in lost : CarryOutLate(request)

Spec == Init /\ [][Next]_vars

(* ---- what must always hold ------------------------------------------------------------------------- *)

\* A worker that believes it holds the job does: it is running, under its token. So no two run it at once.
BeliefIsTrue == \A w \in Workers : Holds(w) => IsHeld(w, belief[w].token)

\* The store accepts one outcome, under the newest token.
OneOutcome == Cardinality(accepted) <= 1
NewestToken == \A token \in accepted : token = job.token

\* What has ended stays ended.
EndedIsFinal == accepted # {} => job.state = "ended"
=============================================================================
