------------------------------- MODULE Firing -------------------------------
(* One schedule with a fire time at every tick. Schedulers read its row, decide, and write the row and the job
   in one transaction, if the row's version is still the one they read. An operator edits and disables it.
   There is no leader. A write may be carried out long after its scheduler gave up on it; a backup may be restored.

   Each constant named after a rule is TRUE in rota. With FALSE, the model must fail: see models/README.md. *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Schedulers, LastTime, MostEdits, MostRestores, Skew,
    ChecksVersion,  \* a fire is written only if the version is the one that was read
    ChecksTime,     \* used when the version is not checked: compare the next fire time instead
    DerivedIds,     \* a job's id follows from the schedule and its fire time
    StoreJudges     \* the store's clock decides that a fire time has come

VARIABLES
    now,
    row,       \* [next, version, enabled, rule]
    read,      \* read[s]: the row as s read it, or None
    jobs,      \* jobs[t]: how many jobs were created for fire time t
    skipped,   \* fire times that passed while the schedule was disabled
    edits,     \* how often an operator wrote
    rule,      \* the rule that the operator wrote last
    restores,
    wrong      \* a fire was written for a disabled schedule, or before its time

vars == <<now, row, read, jobs, skipped, edits, rule, restores, wrong>>

Times == 1..LastTime
None == [next |-> 0, version |-> -1, enabled |-> FALSE, rule |-> 0]

Init ==
    /\ now = 0
    /\ row = [next |-> 1, version |-> 0, enabled |-> TRUE, rule |-> 0]
    /\ read = [s \in Schedulers |-> None]
    /\ jobs = [t \in Times |-> 0]
    /\ skipped = {}
    /\ edits = 0
    /\ rule = 0
    /\ restores = 0
    /\ wrong = FALSE

Tick == now < LastTime /\ now' = now + 1 /\ UNCHANGED <<row, read, jobs, skipped, edits, rule, restores, wrong>>

(* ---- schedulers ------------------------------------------------------------------------------------ *)

ReadDue(s) ==
    /\ row.enabled /\ row.next <= LastTime
    /\ row.next <= (IF StoreJudges THEN now ELSE now + Skew)
    /\ read' = [read EXCEPT ![s] = row]
    /\ UNCHANGED <<now, row, jobs, skipped, edits, rule, restores, wrong>>

\* It crashed, or took its write for lost and forgot it.
Forget(s) == read[s] # None /\ read' = [read EXCEPT ![s] = None]
             /\ UNCHANGED <<now, row, jobs, skipped, edits, rule, restores, wrong>>

Matches(s) ==
    IF ChecksVersion THEN row.version = read[s].version
    ELSE ~ChecksTime \/ row.next = read[s].next

\* The whole row is written as it was decided. ``keep``: the response was lost, and the write comes again.
Fire(s, keep) ==
    LET t == read[s].next IN
    /\ read[s] # None
    /\ IF Matches(s)
       THEN /\ row' = [read[s] EXCEPT !.next = t + 1, !.version = row.version + 1]
            /\ jobs' = [jobs EXCEPT ![t] = IF DerivedIds /\ jobs[t] > 0 THEN jobs[t] ELSE jobs[t] + 1]
            /\ wrong' = (wrong \/ ~row.enabled \/ t > now)
       ELSE UNCHANGED <<row, jobs, wrong>>
    /\ read' = IF keep THEN read ELSE [read EXCEPT ![s] = None]
    /\ UNCHANGED <<now, skipped, edits, rule, restores>>

(* ---- others ---------------------------------------------------------------------------------------- *)

Edit ==
    /\ edits < MostEdits
    /\ row' = [row EXCEPT !.rule = edits + 1, !.version = row.version + 1]
    /\ edits' = edits + 1 /\ rule' = edits + 1
    /\ UNCHANGED <<now, read, jobs, skipped, restores, wrong>>

Disable ==
    /\ edits < MostEdits /\ row.enabled
    /\ row' = [row EXCEPT !.enabled = FALSE, !.version = row.version + 1]
    /\ edits' = edits + 1
    /\ UNCHANGED <<now, read, jobs, skipped, rule, restores, wrong>>

Enable ==
    /\ edits < MostEdits /\ ~row.enabled
    /\ LET next == IF row.next > now THEN row.next ELSE now + 1 IN
       /\ row' = [row EXCEPT !.enabled = TRUE, !.version = row.version + 1, !.next = next]
       /\ skipped' = skipped \cup (row.next..(next - 1))
    /\ edits' = edits + 1
    /\ UNCHANGED <<now, read, jobs, rule, restores, wrong>>

\* The schedule comes back from a backup one fire older, the jobs stay. The version still grows.
Restore ==
    /\ restores < MostRestores /\ row.next > 1
    /\ row' = [row EXCEPT !.next = row.next - 1, !.version = row.version + 1]
    /\ restores' = restores + 1
    /\ UNCHANGED <<now, read, jobs, skipped, edits, rule, wrong>>

Next ==
    \/ Tick \/ Edit \/ Disable \/ Enable \/ Restore
    \/ \E s \in Schedulers : ReadDue(s) \/ Forget(s) \/ Fire(s, TRUE) \/ Fire(s, FALSE)

Spec == Init /\ [][Next]_vars

(* ---- what must always hold ------------------------------------------------------------------------- *)

FiredOnce == \A t \in Times : jobs[t] <= 1
NoneMissed == \A t \in Times : t < row.next => (jobs[t] > 0 \/ t \in skipped)
EditsStay == row.rule = rule
NeverWrong == ~wrong
=============================================================================
