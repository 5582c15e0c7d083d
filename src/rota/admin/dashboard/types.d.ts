// Shapes of the admin API. Written by tools/dashboard_types.py; do not edit.

export interface ActivityBucket {
  at: string;
  name: string | null;
  succeeded: number;
  failed: number;
  cancelled: number;
}

export interface ActivityRequest {
  hours?: number;
  step_s?: number;
  by?: "all" | "queue" | "task";
}

export interface AttemptView {
  attempt: number;
  lease_token: number;
  outcome: string;
  worker: string | null;
  started_at: string | null;
  finished_at: string;
  error: unknown;
  logs: LogLine[];
  cost_cents: number;
}

export interface AuditRequest {
  actor?: string | null;
  action?: string | null;
  object?: string | null;
  tenant?: string | null;
  result?: "denied" | "done" | "failed" | null;
  since?: string | null;
  until?: string | null;
  limit?: number;
  cursor?: string | null;
}

export interface AuditVerification {
  ok: boolean;
  head: string | null;
  seals: number;
  entries: number;
  late: number;
  pruned_until: number | null;
  unsealed: number;
  oldest_unsealed_at: string | null;
  problems: ChainProblem[];
  next?: number | null;
}

export interface AuditView {
  id: string;
  at: string;
  action: string;
  actor: string;
  role: string | null;
  via: string;
  tenant: string | null;
  object: string | null;
  before: unknown;
  after: unknown;
  result: string;
  message: string | null;
  request_id: string | null;
  address: string | null;
}

export interface Backfill {
  dry_run: boolean;
  fires: string[];
}

export interface BackfillRequest {
  tenant?: string | null;
  since: string;
  until: string;
  dry_run?: boolean;
}

export interface BudgetView {
  budget: string;
  cents: number;
  period: "day" | "hour" | "month" | "week";
  spent: number;
  reserved: number;
  alert: number | null;
  level: "alert" | "reached" | null;
  starts_at: string;
  ends_at: string;
}

export interface BulkRequest {
  action: "cancel" | "delete" | "move" | "retry";
  ids?: string[] | null;
  filter?: JobSelector | null;
  reason?: string;
  move?: UpdateJobRequest | null;
  dry_run?: boolean;
  limit?: number;
  cursor?: string | null;
}

export interface BulkResult {
  action: string;
  dry_run: boolean;
  matched: number;
  exact: boolean;
  done: number;
  refused: number;
  total?: number;
  sample?: JobView[];
  next?: string | null;
}

export interface CalendarView {
  name: string;
  dates: string[];
  weekend: number[];
}

export interface CancelRequest {
  reason?: string;
}

export interface ChainProblem {
  seal: number;
  text: string;
}

export interface Count {
  count: number;
  exact: boolean;
}

export interface CountRequest {
  state?: State[];
  task?: string | null;
  queue?: string | null;
  tenant?: string | null;
  tag?: string | null;
  key?: string | null;
  concurrency_key?: string | null;
  schedule?: string | null;
  parent?: string | null;
  worker?: string | null;
  error?: string | null;
  payload?: string[];
  not_task?: string[];
  not_queue?: string[];
  since?: string | null;
  until?: string | null;
  most?: number;
}

export interface CreateScheduleRequest {
  cron?: string | null;
  every?: number | string | null;
  at?: string | null;
  timezone?: string | null;
  start_at?: string | null;
  until?: string | null;
  jitter?: number | string | null;
  tenant?: string | null;
  task: string;
  payload?: Record<string, unknown> | null;
  enabled?: boolean;
  queue?: string | null;
  priority?: number | null;
  max_attempts?: number | null;
  timeout?: number | null;
  description?: string;
  missed?: "all" | "latest" | "skip";
  missed_cap?: number;
  missed_window?: number | string | null;
  overlap?: "allow" | "cancel_previous" | "queue" | "skip";
  calendar?: string | null;
  calendar_mode?: "next_working_day" | "skip";
  name: string;
  on_conflict?: "raise" | "update";
}

export interface CreateTokenRequest {
  role: "admin" | "operator" | "producer" | "viewer";
  name?: string;
  tenant?: string | null;
  expires_s?: number | null;
  payloads?: boolean | null;
  tasks?: string[];
  queues?: string[];
  outlives?: boolean;
}

export interface CurrentActor {
  name: string;
  role: string;
  tenant: string | null;
  payloads: boolean;
  permissions: string[];
  version: string;
  store: string | null;
  now: string;
}

export interface DeclaredLimitView {
  running: number | null;
  rate: string | null;
  burst: number | null;
  strict: boolean;
}

export interface DisableRequest {
  tenant?: string | null;
  reason?: string | null;
}

export interface DoctorReport {
  findings: Finding[];
  worst: string;
}

export interface EndSessionsRequest {
  name?: string | null;
  keep_current?: boolean;
}

export interface EndedSessions {
  count: number;
}

export interface EnqueueRequest {
  task: string;
  payload?: Record<string, unknown>;
  queue?: string | null;
  priority?: number | null;
  tenant?: string | null;
  run_at?: string | null;
  delay?: number | null;
  key?: string | null;
  key_for?: string | null;
  key_per?: string | null;
  on_conflict?: "raise" | "replace" | "return" | null;
  max_attempts?: number | null;
  timeout?: number | null;
  auto_remove?: boolean | null;
  expires?: string | number | null;
  keep?: number | null;
  concurrency_key?: string | null;
  units?: number | null;
  price?: number | null;
  tags?: string[];
  parent?: string | null;
  idempotency_key?: string | null;
}

export interface EnqueuedView {
  id: string;
  tenant: string;
  queue: string;
  task: string;
  state: State;
  priority: number;
  payload: unknown;
  output: unknown;
  error: unknown;
  attempt: number;
  max_attempts: number;
  run_at: string;
  scheduled_for: string | null;
  origin: string;
  schedule: string | null;
  key: string | null;
  tags: string[];
  parent: string | null;
  cost_cents: number;
  progress: unknown;
  worker: string | null;
  lease_until: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  timeout: number | null;
  auto_remove: boolean;
  cancel_requested: boolean;
  crashes: number;
  expires_at: string | null;
  keep: number | null;
  snoozes: number;
  concurrency_key: string | null;
  units: number;
  price: number | null;
  warning?: string | null;
}

export interface EventsRequest {
  last_event_id?: string | null;
}

export interface FailureGroup {
  fingerprint: string;
  task: string;
  type: string;
  pattern: string;
  message: string;
  count: number;
  first_at: string;
  last_at: string;
  newest: string;
  ids: string[];
}

export interface FailureGroups {
  items: FailureGroup[];
  groups: number;
  of: number;
  more: boolean;
  last_at: string | null;
  next?: null;
}

export interface FailuresRequest {
  task?: string | null;
  queue?: string | null;
  tenant?: string | null;
  since?: string | null;
  until?: string | null;
  limit?: number;
}

export interface Finding {
  check: string;
  level: "ok" | "problem" | "warning";
  text: string;
  remedy?: string | null;
}

export interface FireView {
  at: string;
  local: string;
  note?: string | null;
}

export interface Fires {
  items: UpcomingFire[];
  cut: TruncatedSchedule[];
  more: boolean;
  next?: null;
}

export interface FiresRequest {
  hours?: number;
  tenant?: string | null;
}

export interface GateRequest {
  reason?: string;
  until?: string | null;
  for_s?: number | null;
  scope: "all" | "queue" | "schedule" | "task" | "tenant";
  name?: string | null;
  tenant?: string | null;
}

export interface GateView {
  id: string;
  scope: string;
  name: string | null;
  tenant: string | null;
  reason: string;
  actor: string;
  since_at: string;
  until_at: string | null;
  by_tenant?: string | null;
  warning?: string | null;
}

export interface HolderView {
  id: string;
  task: string;
  queue: string;
  tenant: string;
  concurrency_key: string | null;
  worker: string | null;
  started_at: string | null;
}

export interface JobSelector {
  state?: State[];
  task?: string | null;
  queue?: string | null;
  tenant?: string | null;
  tag?: string | null;
  key?: string | null;
  concurrency_key?: string | null;
  schedule?: string | null;
  parent?: string | null;
  worker?: string | null;
  error?: string | null;
  payload?: string[];
  not_task?: string[];
  not_queue?: string[];
  since?: string | null;
  until?: string | null;
}

export interface JobView {
  id: string;
  tenant: string;
  queue: string;
  task: string;
  state: State;
  priority: number;
  payload: unknown;
  output: unknown;
  error: unknown;
  attempt: number;
  max_attempts: number;
  run_at: string;
  scheduled_for: string | null;
  origin: string;
  schedule: string | null;
  key: string | null;
  tags: string[];
  parent: string | null;
  cost_cents: number;
  progress: unknown;
  worker: string | null;
  lease_until: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  timeout: number | null;
  auto_remove: boolean;
  cancel_requested: boolean;
  crashes: number;
  expires_at: string | null;
  keep: number | null;
  snoozes: number;
  concurrency_key: string | null;
  units: number;
  price: number | null;
}

export interface JobsRequest {
  state?: State[];
  task?: string | null;
  queue?: string | null;
  tenant?: string | null;
  tag?: string | null;
  key?: string | null;
  concurrency_key?: string | null;
  schedule?: string | null;
  parent?: string | null;
  worker?: string | null;
  error?: string | null;
  payload?: string[];
  not_task?: string[];
  not_queue?: string[];
  since?: string | null;
  until?: string | null;
  limit?: number;
  cursor?: string | null;
  order?: "newest" | "oldest";
}

export interface Limit {
  running?: number | null;
  rate?: string | null;
  burst?: number | null;
  strict?: boolean;
}

export interface LimitView {
  name: string;
  scope: string;
  running: number;
  most: number | null;
  rate: string | null;
  burst: number | null;
  tokens: number | null;
  next_token_at: string | null;
  waiting_lanes: number;
  is_full: boolean;
  strict: boolean;
  source: string;
  declared: DeclaredLimitView | null;
  rule: string;
  keys: LimitView[];
  holders?: HolderView[];
  warning?: string | null;
}

export interface LogLine {
  at: string;
  level: string;
  message: string;
}

export interface NewToken {
  id: string;
  name: string;
  role: string;
  tenant: string | null;
  payloads: boolean;
  tasks: string[];
  queues: string[];
  created_at: string;
  created_by: string;
  ends_with: string | null;
  expires_at: string | null;
  rotated_at: string | null;
  previous_until: string | null;
  last_used_at: string | null;
  last_used_from: string | null;
  token: string;
}

export interface OpenSession {
  id: string;
  name: string;
  role: string;
  tenant: string | null;
  address: string | null;
  agent: string | null;
  created_at: string;
  seen_at: string;
  ends_at: string;
  current: boolean;
}

export interface Page_ActivityBucket {
  items: ActivityBucket[];
  next?: string | null;
}

export interface Page_AttemptView {
  items: AttemptView[];
  next?: string | null;
}

export interface Page_AuditView {
  items: AuditView[];
  next?: string | null;
}

export interface Page_CalendarView {
  items: CalendarView[];
  next?: string | null;
}

export interface Page_GateView {
  items: GateView[];
  next?: string | null;
}

export interface Page_JobView {
  items: JobView[];
  next?: string | null;
}

export interface Page_LimitView {
  items: LimitView[];
  next?: string | null;
}

export interface Page_OpenSession {
  items: OpenSession[];
  next?: string | null;
}

export interface Page_QueueView {
  items: QueueView[];
  next?: string | null;
}

export interface Page_ScheduleRun {
  items: ScheduleRun[];
  next?: string | null;
}

export interface Page_ScheduleView {
  items: ScheduleView[];
  next?: string | null;
}

export interface Page_Setting {
  items: Setting[];
  next?: string | null;
}

export interface Page_TaskView {
  items: TaskView[];
  next?: string | null;
}

export interface Page_TenantView {
  items: TenantView[];
  next?: string | null;
}

export interface Page_TokenView {
  items: TokenView[];
  next?: string | null;
}

export interface Page_UserView {
  items: UserView[];
  next?: string | null;
}

export interface Page_WorkerView {
  items: WorkerView[];
  next?: string | null;
}

export interface PauseRequest {
  reason?: string;
  until?: string | null;
  for_s?: number | null;
}

export interface Preview {
  rule_summary: string;
  timezone: string;
  fires: FireView[];
  truncated?: boolean;
}

export interface PreviewRequest {
  tenant?: string | null;
  n?: number;
}

export interface ProblemView {
  status: number;
  code: string;
  title: string;
  detail: string;
  request_id: string;
  field?: string | null;
  state?: string | null;
  job?: string | null;
  done?: number | null;
}

export interface PutCalendarRequest {
  dates?: string[] | null;
  weekend?: number[];
  ics?: string | null;
  new?: boolean;
}

export interface PutLimitRequest {
  running?: number | null;
  rate?: string | null;
  burst?: number | null;
  strict?: boolean;
}

export interface PutTenantRequest {
  weight?: number | null;
  max_priority?: number | null;
  waiting?: number | null;
  schedules?: number | null;
  bytes_per_day?: number | null;
  budget?: string | null;
  budget_alert?: number | null;
  retention_days?: number | null;
}

export interface PutUserRequest {
  password: string;
  role: "admin" | "operator" | "producer" | "viewer";
  tenant?: string | null;
  payloads?: boolean | null;
  new?: boolean;
  must_change?: boolean;
}

export interface QueueDepth {
  due?: number;
  due_later?: number;
  running?: number;
  oldest_due_s?: number | null;
}

export interface QueueView {
  name: string;
  due: number;
  due_later: number;
  running: number;
  oldest_due_s: number | null;
  per_minute: number;
  failed_per_minute: number;
  workers: number;
  gate: GateView | null;
}

export interface QuotaView {
  name: string;
  used: number;
  most: number | null;
}

export interface Reason {
  code: "budget" | "dependency" | "due_later" | "ended" | "in_line" | "lease_expired" | "limit_full" | "next" | "no_worker" | "oversized" | "paused" | "quarantined" | "rate" | "retry_later" | "running" | "stopping" | "strict" | "unknown_task" | "unserved_queue";
  text: string;
  remedy?: string | null;
  clears_at?: string | null;
  limit?: string | null;
  blocker?: string | null;
}

export interface RotateTokenRequest {
  overlap_s?: number;
  expires_s?: number | null;
}

export interface RunSummary {
  runs: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  success_rate_percent: number | null;
  average_ms: number | null;
  longest_ms: number | null;
  window_days: number;
  since: string;
}

export interface RunsRequest {
  schedule?: string | null;
  tenant?: string | null;
  failed?: boolean;
  limit?: number;
  cursor?: string | null;
}

export interface ScheduleRun {
  schedule: string;
  tenant: string;
  job: string;
  state: State;
  triggered_by: string;
  scheduled_for: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  duration_ms: number | null;
  success: boolean | null;
  message: string | null;
  details?: unknown;
}

export interface ScheduleView {
  id: string;
  name: string;
  tenant: string;
  task: string;
  cron: string | null;
  every: number | null;
  at: string | null;
  timezone: string;
  rule_summary: string;
  start_at: string | null;
  until: string | null;
  jitter: number;
  payload: unknown;
  queue: string | null;
  priority: number | null;
  max_attempts: number | null;
  timeout: number | null;
  description: string;
  enabled: boolean;
  reason: string | null;
  missed: string;
  missed_cap: number;
  missed_window: number | null;
  overlap: string;
  calendar: string | null;
  calendar_mode: string;
  source: string;
  owner: string | null;
  next_run_at: string | null;
  last_fire_at: string | null;
  held: string[];
  late_s: number | null;
  version: number;
  created_at: string;
  updated_at: string;
  gate: GateView | null;
  last_run?: ScheduleRun | null;
  summary?: RunSummary;
}

export interface SchedulesRequest {
  tenant?: string | null;
  task?: string | null;
  enabled?: boolean | null;
  last_run?: boolean;
  summary?: boolean;
  limit?: number;
  cursor?: string | null;
}

export interface ServiceView {
  name: string;
  state: string;
  succeeded_at: string | null;
}

export interface SessionView {
  me: CurrentActor | null;
  csrf?: string | null;
  ends_at?: string | null;
  passwords?: boolean;
}

export interface SetPasswordRequest {
  password: string;
  must_change?: boolean;
}

export interface Setting {
  name: string;
  value: unknown;
  default: unknown;
  source: string;
  range: [number, number] | null;
  help: string;
}

export interface SignInRequest {
  token?: string | null;
  user?: string | null;
  password?: string | null;
  new_password?: string | null;
  once?: string | null;
}

export type State = "cancelled" | "failed" | "queued" | "running" | "succeeded" | "waiting";

export interface Stats {
  waiting: number;
  queued: number;
  running: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  oldest_due_s: number | null;
  queues: Record<string, QueueDepth>;
  estimated: string[];
  paused: boolean;
  now: string;
}

export interface SummaryRequest {
  tenant?: string | null;
  days?: number;
}

export interface TaskDeclaration {
  name: string;
  options?: Record<string, unknown>;
  executor?: string;
  parameters?: TaskParameter[];
  open_ended?: boolean;
  description?: string;
  limit?: Limit | null;
}

export interface TaskParameter {
  name: string;
  type: string;
  required: boolean;
}

export interface TaskView {
  name: string;
  per_minute: number;
  failed_per_minute: number;
  workers: number;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  queues: string[];
  gate: GateView | null;
  declared: TaskDeclaration | null;
}

export interface TenantLimitView {
  name: string;
  running: number;
  most: number | null;
  rate: string | null;
  burst: number | null;
  tokens: number | null;
  next_token_at: string | null;
}

export interface TenantRequest {
  tenant?: string | null;
}

export interface TenantView {
  name: string;
  due: number;
  due_later: number;
  running: number;
  oldest_due_s: number | null;
  schedules: number;
  cost_cents: number;
  estimated: boolean;
  gate: GateView | null;
  waiting: number;
  done: number;
  failed: number;
  weight: number;
  share: number | null;
  max_priority: number | null;
  limit: TenantLimitView | null;
  quotas: QuotaView[];
  spent_cents: number;
  budget: BudgetView | null;
  retention_days: number | null;
  updated_at: string | null;
}

export interface TenantsRequest {
  limit?: number | null;
  cursor?: string | null;
}

export interface TokenView {
  id: string;
  name: string;
  role: string;
  tenant: string | null;
  payloads: boolean;
  tasks: string[];
  queues: string[];
  created_at: string;
  created_by: string;
  ends_with: string | null;
  expires_at: string | null;
  rotated_at: string | null;
  previous_until: string | null;
  last_used_at: string | null;
  last_used_from: string | null;
}

export interface TruncatedSchedule {
  schedule: string;
  tenant: string;
  after: string;
}

export interface UpcomingFire {
  at: string;
  schedule: string;
  tenant: string;
}

export interface UpdateJobRequest {
  now?: boolean;
  run_at?: string | null;
  priority?: number | null;
  queue?: string | null;
}

export interface UpdateScheduleRequest {
  cron?: string | null;
  every?: number | string | null;
  at?: string | null;
  timezone?: string | null;
  start_at?: string | null;
  until?: string | null;
  jitter?: number | string | null;
  tenant?: string | null;
  task?: string;
  payload?: Record<string, unknown> | null;
  enabled?: boolean;
  queue?: string | null;
  priority?: number | null;
  max_attempts?: number | null;
  timeout?: number | null;
  description?: string;
  missed?: "all" | "latest" | "skip";
  missed_cap?: number;
  missed_window?: number | string | null;
  overlap?: "allow" | "cancel_previous" | "queue" | "skip";
  calendar?: string | null;
  calendar_mode?: "next_working_day" | "skip";
}

export interface UserView {
  name: string;
  role: string;
  tenant: string | null;
  payloads: boolean;
  created_at: string;
  password_at: string | null;
  must_change: boolean;
}

export interface ValidateRequest {
  cron?: string | null;
  every?: number | string | null;
  at?: string | null;
  timezone?: string | null;
  start_at?: string | null;
  until?: string | null;
  jitter?: number | string | null;
  n?: number;
}

export interface VerifyAuditRequest {
  after?: number | null;
  limit?: number;
  expect_head?: string | null;
}

export interface Why {
  job: string;
  state: string;
  attempt: number;
  runs: boolean;
  summary: string;
  reasons: Reason[];
  fine?: string;
  likely_start_at?: string | null;
  is_estimate?: boolean;
}

export interface WorkerView {
  id: string;
  name: string | null;
  host: string;
  pid: number;
  state: string;
  queues: string[] | null;
  exclude_queues: string[];
  tasks: string[];
  concurrency: number;
  running: number;
  finished: number;
  started_at: string | null;
  seen_at: string;
  services: ServiceView[];
  version?: string | null;
}

export type GetResponse<P extends string> =
  P extends "/audit/verify" ? AuditVerification :
  P extends "/jobs/count" ? Count :
  P extends "/jobs/stats" ? Stats :
  P extends "/schedules/fires" ? Fires :
  P extends "/activity" ? Page_ActivityBucket :
  P extends "/audit" ? Page_AuditView :
  P extends "/calendars" ? Page_CalendarView :
  P extends "/doctor" ? DoctorReport :
  P extends "/events" ? string :
  P extends "/failures" ? FailureGroups :
  P extends "/gates" ? Page_GateView :
  P extends "/jobs" ? Page_JobView :
  P extends "/limits" ? Page_LimitView :
  P extends "/me" ? CurrentActor :
  P extends "/queues" ? Page_QueueView :
  P extends "/runs" ? Page_ScheduleRun :
  P extends "/schedules" ? Page_ScheduleView :
  P extends "/sessions" ? Page_OpenSession :
  P extends "/settings" ? Page_Setting :
  P extends "/tasks" ? Page_TaskView :
  P extends "/tenants" ? Page_TenantView :
  P extends "/tokens" ? Page_TokenView :
  P extends "/users" ? Page_UserView :
  P extends "/workers" ? Page_WorkerView :
  P extends `/jobs/${string}/attempts` ? Page_AttemptView :
  P extends `/jobs/${string}/why` ? Why :
  P extends `/schedules/${string}/preview` ? Preview :
  P extends `/schedules/${string}/runs` ? Page_ScheduleRun :
  P extends `/schedules/${string}/summary` ? RunSummary :
  P extends `/jobs/${string}` ? JobView :
  P extends `/limits/${string}` ? LimitView :
  P extends `/schedules/${string}` ? ScheduleView :
  P extends `/tenants/${string}` ? TenantView :
  unknown;

export type PostResponse<P extends string> =
  P extends "/jobs/bulk" ? BulkResult :
  P extends "/schedules/validate" ? Preview :
  P extends "/gates" ? GateView :
  P extends "/jobs" ? EnqueuedView :
  P extends "/schedules" ? ScheduleView :
  P extends "/tokens" ? NewToken :
  P extends `/jobs/${string}/cancel` ? JobView :
  P extends `/jobs/${string}/move` ? JobView :
  P extends `/jobs/${string}/retry` ? JobView :
  P extends `/queues/${string}/pause` ? GateView :
  P extends `/queues/${string}/resume` ? null :
  P extends `/schedules/${string}/backfill` ? Backfill :
  P extends `/schedules/${string}/disable` ? ScheduleView :
  P extends `/schedules/${string}/enable` ? ScheduleView :
  P extends `/schedules/${string}/trigger` ? JobView :
  P extends `/tokens/${string}/rotate` ? NewToken :
  unknown;

export type PutResponse<P extends string> =
  P extends `/users/${string}/password` ? UserView :
  P extends `/calendars/${string}` ? CalendarView :
  P extends `/limits/${string}` ? LimitView :
  P extends `/schedules/${string}` ? ScheduleView :
  P extends `/tenants/${string}` ? TenantView :
  P extends `/users/${string}` ? UserView :
  unknown;
