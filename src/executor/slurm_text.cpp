#include "executor/slurm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "core/text.h"

namespace krigtune::executor {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator, std::size_t most = 0) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = most > 0 && parts.size() + 1 == most ? std::string_view::npos : text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<int> slurm_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct StateWord {
  std::string_view word;
  JobState::Phase phase;
  JobState::End end = JobState::End::kByItself;
};
using Phase = JobState::Phase;
using End = JobState::End;
constexpr std::array kStateWords = {
    StateWord{"PENDING", Phase::kPending},
    StateWord{"CONFIGURING", Phase::kPending},
    StateWord{"REQUEUED", Phase::kPending},
    StateWord{"REQUEUE_FED", Phase::kPending},
    StateWord{"REQUEUE_HOLD", Phase::kPending},
    StateWord{"RESV_DEL_HOLD", Phase::kPending},
    StateWord{"SPECIAL_EXIT", Phase::kPending},
    StateWord{"RUNNING", Phase::kRunning},
    StateWord{"COMPLETING", Phase::kRunning},
    StateWord{"STAGE_OUT", Phase::kRunning},
    StateWord{"SUSPENDED", Phase::kRunning},
    StateWord{"STOPPED", Phase::kRunning},
    StateWord{"SIGNALING", Phase::kRunning},
    StateWord{"RESIZING", Phase::kRunning},
    StateWord{"COMPLETED", Phase::kEnded, End::kByItself},
    StateWord{"FAILED", Phase::kEnded, End::kByItself},
    StateWord{"TIMEOUT", Phase::kEnded, End::kTimeLimit},
    StateWord{"DEADLINE", Phase::kEnded, End::kTimeLimit},
    StateWord{"OUT_OF_MEMORY", Phase::kEnded, End::kOutOfMemory},
    StateWord{"CANCELLED", Phase::kEnded, End::kCancelled},
    StateWord{"NODE_FAIL", Phase::kEnded, End::kNodeFailure},
    StateWord{"BOOT_FAIL", Phase::kEnded, End::kNodeFailure},
    StateWord{"PREEMPTED", Phase::kEnded, End::kPreempted},
    StateWord{"REVOKED", Phase::kEnded, End::kOther},
};

// Reasons that do not resolve by waiting. Those that end in PerJobLimit are about this job alone
// (AssocMaxNodePerJobLimit, QOSMaxWallDurationPerJobLimit, ...).
bool lasts(std::string_view reason) {
  constexpr std::array<std::string_view, 9> kLasting = {
      "PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints",           "InvalidAccount",   "InvalidQOS",
      "JobHeldAdmin",       "JobHeldUser",        "DependencyNeverSatisfied", "AccountNotAllowed"};
  std::string word(reason.substr(0, reason.find_first_of(", ")));
  constexpr std::string_view kPerJob = "PerJobLimit";
  const bool per_job = word.size() > kPerJob.size() && word.ends_with(kPerJob);
  std::string plain(reason);
  std::replace(plain.begin(), plain.end(), '_', ' ');
  return per_job || is_one_of(word, kLasting) || plain.find("requeued held") != std::string::npos;
}

struct KnownRefusal {
  std::string_view text;
  std::string_view fix;
  bool passes = false;
};
// Messages of slurm_strerror and sbatch (src/common/slurm_errno.c, 22.05 to 24.05). The first match counts.
constexpr std::array kRefusals = {
    KnownRefusal{"Unable to contact slurm controller", "", true},
    KnownRefusal{"Socket timed out", "", true},
    KnownRefusal{"Connection refused", "", true},
    KnownRefusal{"Zero Bytes were transmitted", "", true},
    KnownRefusal{"temporarily unable to accept", "", true},
    KnownRefusal{"MaxSubmitJob", "", true},
    KnownRefusal{"job submit limit has been reached", "", true},
    KnownRefusal{"Job violates accounting/QOS policy",
                 "ask for less: \"time\", nodes or GPUs; `sacctmgr show assoc user=$USER` and `sacctmgr show qos` say "
                 "what is allowed"},
    KnownRefusal{"nvalid partition", "set \"sbatch\": {\"partition\": ...} to one of those that `sinfo -o %P` shows"},
    KnownRefusal{"Access/permission denied",
                 "this account may not use the partition: set \"partition\" or \"account\""},
    KnownRefusal{"roup not permitted to use this partition", "set \"sbatch\": {\"partition\": ...} to another one"},
    KnownRefusal{"nvalid account", "set \"sbatch\": {\"account\": ...}; `sacctmgr show assoc user=$USER` lists yours"},
    KnownRefusal{"nvalid qos",
                 "set \"sbatch\": {\"qos\": ...}; `sacctmgr show assoc user=$USER format=qos` lists yours"},
    KnownRefusal{"ime limit",
                 "set \"sbatch\": {\"time\": ...} to less, or the runner's timeout_s: `sinfo -o '%P %l'` "
                 "shows each partition's limit"},
    KnownRefusal{"eneric resource (gres)", "set \"sbatch\": {\"gres\": ...} as `sinfo -o '%N %G'` shows them"},
    KnownRefusal{"nvalid feature", "set \"sbatch\": {\"constraint\": ...} to one that `sinfo -o '%N %f'` shows"},
    KnownRefusal{"emory specification can not be satisfied", "ask for less memory in \"sbatch\": {\"extra\": [...]}"},
    KnownRefusal{"CPU count per node can not be satisfied", "no node has so many cores; ask for fewer ranks a node"},
    KnownRefusal{"ode count specification invalid", "the partition has fewer nodes than the trial needs"},
    KnownRefusal{"ode configuration is not available",
                 "no node has what the trial asks for: compare its ranks and GPUs a node, \"gres\" and \"constraint\" "
                 "with `sinfo -N -o '%N %c %G %f'`"},
    KnownRefusal{"unrecognized option", "fix \"sbatch\": {\"extra\": [...]}"},
    KnownRefusal{"invalid option", "fix \"sbatch\": {\"extra\": [...]}"},
};

}  // namespace

JobState slurm_state(std::string_view word, std::string_view reason) {
  JobState state;
  const std::size_t end = word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
  state.word = std::string(word.substr(0, end));
  if (reason != "None") state.reason = std::string(reason);
  const auto known = std::find_if(kStateWords.begin(), kStateWords.end(),
                                  [&](const StateWord& other) { return other.word == state.word; });
  // If the state is unknown, the job exists, and its own files will say when it has ended.
  state.phase = known == kStateWords.end() ? Phase::kRunning : known->phase;
  if (known != kStateWords.end()) state.end = known->end;
  const bool is_held = state.word == "REQUEUE_HOLD" || state.word == "RESV_DEL_HOLD" || state.word == "SPECIAL_EXIT";
  state.never_starts = state.phase == Phase::kPending && (is_held || lasts(state.reason));
  return state;
}

std::vector<JobState> parse_queue(std::string_view text) {
  constexpr std::size_t kFields = 6;
  std::vector<JobState> jobs;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split(line, '|', kFields);
    if (fields.size() != kFields) continue;
    JobState job = slurm_state(trimmed(fields[2]), trimmed(fields[5]));
    job.id = trimmed(fields[0]);
    job.name = trimmed(fields[1]);
    if (job.phase != Phase::kPending) job.elapsed_s = parse_elapsed(trimmed(fields[3]));
    job.nodes = trimmed(fields[4]);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string record_field(std::string_view record, std::string_view key) {
  const std::string wanted = std::string(key) + "=";
  for (std::size_t at = record.find(wanted); at != std::string_view::npos; at = record.find(wanted, at + 1)) {
    if (at != 0 && std::isspace(static_cast<unsigned char>(record[at - 1])) == 0) continue;
    const std::size_t begin = at + wanted.size();
    return std::string(record.substr(begin, record.find_first_of(" \n\t", begin) - begin));
  }
  return "";
}

std::optional<JobState> parse_job_record(std::string_view text) {
  const std::string word = record_field(text, "JobState");
  if (word.empty()) return std::nullopt;
  JobState job = slurm_state(word, record_field(text, "Reason"));
  job.id = record_field(text, "JobId");
  job.name = record_field(text, "JobName");
  const std::string nodes = record_field(text, "NodeList");
  if (nodes != "(null)") job.nodes = nodes;
  if (job.phase != Phase::kPending) job.elapsed_s = parse_elapsed(record_field(text, "RunTime"));
  return job;
}

std::optional<double> parse_elapsed(std::string_view text) {
  int days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::optional<int> number = slurm_number(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0.0;
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  for (const std::string_view part : parts) {
    const std::optional<int> number = slurm_number(part);
    if (!number) return std::nullopt;
    seconds = 60.0 * seconds + *number;
  }
  constexpr double kDayS = 86400.0;
  return kDayS * days + seconds;
}

namespace {

// Returns the numbers of one bracket with their leading zeros.
std::vector<std::string> bracket_numbers(std::string_view inside) {
  std::vector<std::string> numbers;
  for (const std::string_view range : split(inside, ',')) {
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::optional<int> low = slurm_number(first);
    const std::optional<int> high = dash == std::string_view::npos ? low : slurm_number(range.substr(dash + 1));
    if (!low || !high) continue;
    for (int number = *low; number <= *high; ++number) numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  }
  return numbers;
}

std::vector<std::string> expand_host(std::string_view host) {
  const std::size_t open = host.find('[');
  const std::size_t close = host.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {std::string(host)};
  std::vector<std::string> hosts;
  const std::vector<std::string> rests = expand_host(host.substr(close + 1));
  for (const std::string& number : bracket_numbers(host.substr(open + 1, close - open - 1))) {
    for (const std::string& rest : rests) hosts.push_back(std::string(host.substr(0, open)) + number + rest);
  }
  return hosts;
}

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']') --depth;
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    for (std::string& host : expand_host(list.substr(begin, at - begin))) {
      if (!host.empty()) hosts.push_back(std::move(host));
    }
    begin = at + 1;
  }
  return hosts;
}

std::vector<int> expand_counts(std::string_view text) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t open = part.find("(x");
    const std::optional<int> count = slurm_number(part.substr(0, open));
    if (!count) continue;
    int times = 1;
    if (open != std::string_view::npos) {
      times = slurm_number(part.substr(open + 2, part.find(')', open) - open - 2)).value_or(1);
    }
    counts.insert(counts.end(), static_cast<std::size_t>(std::max(times, 0)), *count);
  }
  return counts;
}

Refusal explain_refusal(std::string_view standard_error) {
  Refusal refusal;
  std::vector<std::string> said;
  for (const std::string_view line : split(standard_error, '\n')) {
    std::string_view words = line;
    for (const std::string_view prefix : {"sbatch: ", "srun: ", "error: ", "fatal: "}) {
      if (words.substr(0, prefix.size()) == prefix) words.remove_prefix(prefix.size());
    }
    if (!trimmed(words).empty() && said.size() < 3) said.push_back(trimmed(words));
  }
  refusal.reason = said.empty() ? "it gave no reason" : join(said, "; ");
  const auto known = std::find_if(kRefusals.begin(), kRefusals.end(), [&](const KnownRefusal& other) {
    return standard_error.find(other.text) != std::string_view::npos;
  });
  if (known == kRefusals.end()) return refusal;
  refusal.fix = std::string(known->fix);
  refusal.passes = known->passes;
  return refusal;
}

DaemonWords daemon_words(std::string_view output) {
  DaemonWords words;
  bool by_srun = false;  // srun ended the step because one of its tasks failed (--kill-on-bad-exit)
  std::string cancelled_line;
  for (const std::string_view line : split(output, '\n')) {
    const bool is_theirs = line.rfind("srun: error:", 0) == 0 || line.rfind("srun: Job step aborted", 0) == 0 ||
                           (line.rfind("srun: ", 0) == 0 && line.find("Terminating") != std::string_view::npos) ||
                           (line.rfind("slurmstepd", 0) == 0 && line.find(": error:") != std::string_view::npos);
    if (!is_theirs) continue;
    const auto has = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
    const bool node = has("ode failure") || has("NODE FAILURE") || has("Node failure on");
    const bool memory = has("oom-kill event") || has("oom_kill event") || has("Out Of Memory") ||
                        has("Exceeded job memory limit") || has("Exceeded step memory limit");
    const bool preempted = has("DUE TO PREEMPTION");
    const bool limit = has("DUE TO TIME LIMIT");
    const bool cancelled = has(" CANCELLED AT ") && !has("DUE TO");
    if (words.line.empty() && (node || memory || preempted || limit)) words.line = std::string(line);
    words.node_failure = words.node_failure || node;
    words.out_of_memory = words.out_of_memory || memory;
    words.preempted = words.preempted || preempted;
    words.time_limit = words.time_limit || limit;
    if (cancelled) cancelled_line = std::string(line);
    by_srun = by_srun || has("Terminating") || has("Exited with exit code");
  }
  words.cancelled = !cancelled_line.empty() && !by_srun;
  if (words.cancelled && words.line.empty()) words.line = cancelled_line;
  return words;
}

}  // namespace krigtune::executor
