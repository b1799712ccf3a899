#include "executor/slurm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"
#include "executor/batch_executor.h"
#include "executor/gpu_count.h"
#include "executor/slurm_steps.h"
#include "executor/slurm_text.h"

namespace krigtune::executor {
namespace {

constexpr double kAnswerS = 30.0;  // Slurm's own MessageTimeout is 10 s, and its commands try again

constexpr EnumWords<SlurmMode, 3> kModeWords = {
    {{"auto", SlurmMode::kAuto}, {"submit", SlurmMode::kSubmit}, {"steps", SlurmMode::kSteps}}};
constexpr EnumWords<JobLaunch, 4> kLaunchWords = {
    {{"auto", JobLaunch::kAuto}, {"once", JobLaunch::kOnce}, {"node", JobLaunch::kNode}, {"rank", JobLaunch::kRank}}};

Block<SbatchOptions> sbatch_block() {
  Block<SbatchOptions> block("Options of sbatch");
  block.key("partition", &SbatchOptions::partition, text(), "--partition").written_where_changed();
  block.key("account", &SbatchOptions::account, text(), "--account").written_where_changed();
  block.key("qos", &SbatchOptions::qos, text(), "--qos").written_where_changed();
  block
      .key("time", &SbatchOptions::time, text(),
           "--time (default: the trial's timeout_s with a margin; shorter once it is known how long trials take)")
      .written_where_changed();
  block.key("gres", &SbatchOptions::gres, text(), "--gres (default: gpu:N for a trial with N GPUs per node)")
      .written_where_changed();
  block.key("constraint", &SbatchOptions::constraint, text(), "--constraint").written_where_changed();
  block.key("extra", &SbatchOptions::extra, texts(), "further options, one word each").written_where_changed();
  return block;
}

// The user's settings must not change the output that krigtune parses, and a job that is submitted from within another
// job must not inherit its sizes.
std::vector<std::string> variables_to_unset() {
  return variables_with({"SQUEUE_", "SINFO_", "SACCT_", "SLURM_"},
                        {"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_CONF_SERVER", "SLURM_JWT"});
}

std::string gres_of(const std::string& said, const trial::TrialNeeds& needs) {
  if (!said.empty()) return said;
  return needs.gpus_per_node > 0 ? fmt::format("gpu:{}", needs.gpus_per_node) : "";
}

int ranks_per_node(const trial::TrialNeeds& needs) {
  const int nodes = std::max(needs.nodes, 1);
  return std::max(1, (needs.ranks + nodes - 1) / nodes);
}

std::string program_name(const std::string& word) { return std::filesystem::path(word).filename().string(); }

std::string refused_text(const Refusal& refusal) {
  return fmt::format("sbatch refused the job: {}{}{}", refusal.reason, refusal.fix.empty() ? "" : "; ", refusal.fix);
}

Block<SlurmSpec> slurm_block(const std::filesystem::path& /*base_dir*/) {
  Block<SlurmSpec> block("Trials as jobs or steps of Slurm");
  block.key("mode", &SlurmSpec::mode, one_of(kModeWords),
            "submit: a job for each trial; steps: steps of the allocation that krigtune runs in; auto: steps inside an "
            "allocation, jobs outside");
  block.block("sbatch", &SlurmSpec::sbatch, sbatch_block());
  block.key("max_queued", &SlurmSpec::max_queued, integer<int>(from_to(1, 1000)),
            "trials at a time, waiting or running");
  block.key("launch", &SlurmSpec::launch, one_of(kLaunchWords),
            "how the program is started: once, on the first node; by srun, once on each node; by srun, once for each "
            "rank; auto: once if there is one node or the command itself is srun or mpirun, once for each rank if it "
            "is krigtune-bench, otherwise once on each node");
  block.key("poll_s", &SlurmSpec::poll_s, number(from_to(0.2, 3600)),
            "seconds between two calls of squeue; one call is for all trials");
  block.key("pending_limit_s", &SlurmSpec::pending_limit_s, number_or_null(above(0)),
            "seconds after which a waiting job is cancelled (default: no limit)");
  block.key("patience_s", &SlurmSpec::patience_s, number(from_to(0, 3600)),
            "seconds that a job's files may take to appear here after its end; NFS takes up to a minute");
  block.key(
      "gpus_per_trial", &SlurmSpec::gpus_per_trial, gpus_codec(),
      "GPUs of a trial: a number, a parameter, or an expression as in constraints; \"auto\": those of the cluster");
  return block;
}

}  // namespace

ExecutorEntry<SlurmSpec> SlurmSpec::entry() {
  return {{.name = "slurm"}, slurm_block, [](const SlurmSpec& spec, const ExecutorJob& job) {
            return runs_as_steps(spec) ? make_slurm_steps(spec, job.clock) : make_slurm_submit(spec, job);
          }};
}

bool runs_as_steps(const SlurmSpec& spec) {
  if (spec.mode != SlurmMode::kAuto) return spec.mode == SlurmMode::kSteps;
  return std::getenv("SLURM_JOB_ID") != nullptr;
}

JobLaunch launch_of(JobLaunch launch, const std::vector<std::string>& argv, const trial::TrialNeeds& needs) {
  if (launch != JobLaunch::kAuto) return launch;
  if (needs.nodes <= 1 || argv.empty()) return JobLaunch::kOnce;
  constexpr std::array<std::string_view, 5> kStarters = {"srun", "mpirun", "mpiexec", "orterun", "prun"};
  if (is_one_of(program_name(argv.front()), kStarters)) return JobLaunch::kOnce;
  return program_name(argv.front()) == "krigtune-bench" ? JobLaunch::kRank : JobLaunch::kNode;
}

std::vector<std::string> srun_words(JobLaunch launch, const std::vector<std::string>& argv,
                                    const trial::TrialNeeds& needs, int cores, const std::string& gres) {
  const JobLaunch chosen = launch_of(launch, argv, needs);
  if (chosen == JobLaunch::kOnce) return {};
  const int nodes = std::max(needs.nodes, 1);
  const int tasks_per_node = chosen == JobLaunch::kNode ? 1 : ranks_per_node(needs);
  const int task_cores = chosen == JobLaunch::kNode ? cores * ranks_per_node(needs) : cores;
  std::vector<std::string> words = {"srun",
                                    "--kill-on-bad-exit=1",
                                    fmt::format("--nodes={}", nodes),
                                    fmt::format("--ntasks={}", nodes * tasks_per_node),
                                    fmt::format("--ntasks-per-node={}", tasks_per_node),
                                    fmt::format("--cpus-per-task={}", task_cores)};
  if (const std::string asked = gres_of(gres, needs); !asked.empty()) words.push_back("--gres=" + asked);
  // The ranks of krigtune-bench meet over TCP; the site's default PMI would only be one more source of errors.
  if (!argv.empty() && program_name(argv.front()) == "krigtune-bench") words.emplace_back("--mpi=none");
  return words;
}

int cores_per_rank(const std::vector<std::string>& extra) {
  const auto number = [](std::string_view text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return std::max(value, 1);
  };
  for (std::size_t i = 0; i < extra.size(); ++i) {
    constexpr std::string_view kLong = "--cpus-per-task";
    const std::string_view word = extra[i];
    if (word.rfind("--cpus-per-task=", 0) == 0) return number(word.substr(kLong.size() + 1));
    if ((word == kLong || word == "-c") && i + 1 < extra.size()) return number(extra[i + 1]);
    if (word.size() > 2 && word.rfind("-c", 0) == 0) return number(word.substr(2));
  }
  return 1;
}

SlurmSystem::SlurmSystem(SlurmSpec spec, const Clock& clock)
    : spec_(std::move(spec)), clock_(clock), unset_(variables_to_unset()) {}

ToolEnd SlurmSystem::ask(const std::vector<std::string>& argv) const {
  return run_tool(argv, kAnswerS, clock_, unset_);
}

std::vector<std::string> SlurmSystem::resources(const trial::TrialNeeds& needs, double time_limit_s) const {
  const SbatchOptions& said = spec_.sbatch;
  constexpr double kMinuteS = 60.0;
  std::vector<std::string> words = {fmt::format("--nodes={}", std::max(needs.nodes, 1)),
                                    fmt::format("--ntasks-per-node={}", ranks_per_node(needs))};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{}={}", option, value));
  };
  const auto minutes = static_cast<std::int64_t>(std::ceil(time_limit_s / kMinuteS));
  add("time", said.time.empty() ? std::to_string(std::max<std::int64_t>(minutes, 1)) : said.time);
  add("gres", gres_of(said.gres, needs));
  add("partition", said.partition);
  add("account", said.account);
  add("qos", said.qos);
  add("constraint", said.constraint);
  words.insert(words.end(), said.extra.begin(), said.extra.end());
  return words;
}

Submission SlurmSystem::submit(const JobRequest& request) {
  // If Slurm ran a job again, it would not count as a trial that was run again. krigtune submits it again itself, which
  // is also two minutes sooner.
  std::vector<std::string> argv = {"sbatch",
                                   "--parsable",
                                   "--no-requeue",
                                   "--job-name=" + request.name,
                                   "--output=" + request.log.string(),
                                   "--chdir=" + request.directory.string()};
  const std::vector<std::string> asked = resources(request.needs, request.time_limit_s);
  argv.insert(argv.end(), asked.begin(), asked.end());
  if (!request.avoid.empty()) argv.push_back("--exclude=" + join(request.avoid, ","));
  argv.push_back(request.script.string());
  const ToolEnd end = ask(argv);
  if (!end.start_error.empty()) {
    return {Submission::Answer::kRefused, "", fmt::format("sbatch cannot be run: {}", end.start_error)};
  }
  if (end.ok()) {
    const std::string id = trimmed(end.out.substr(0, end.out.find_first_of(";\n")));
    if (!id.empty()) return {Submission::Answer::kAccepted, id, ""};
  }
  if (end.timed_out) return {Submission::Answer::kLater, "", "sbatch does not answer"};
  const Refusal refusal = explain_refusal(end.err);
  if (refusal.passes) return {Submission::Answer::kLater, "", fmt::format("sbatch: {}", refusal.reason)};
  return {Submission::Answer::kRefused, "", refused_text(refusal)};
}

std::optional<std::vector<JobState>> SlurmSystem::jobs(const std::vector<Asked>& asked) {
  std::vector<std::string> names;
  names.reserve(asked.size());
  for (const Asked& one : asked) names.push_back(one.name);
  const ToolEnd end = ask({"squeue", "--noheader", "--states=all", fmt::format("--user={}", ::getuid()),
                           "--name=" + join(names, ","), fmt::format("--format={}", kQueueFormat)});
  if (!end.ok()) return std::nullopt;
  return parse_queue(end.out);
}

// squeue lists an ended job for MinJobAge (300 s). The controller may know it a little longer, and accounting forever.
std::optional<JobState> SlurmSystem::forgotten(const std::string& id) {
  const ToolEnd record = ask({"scontrol", "--oneliner", "show", "job", id});
  if (record.ok()) {
    if (std::optional<JobState> job = parse_job_record(record.out)) return job;
  }
  const ToolEnd end =
      ask({"sacct", "--noheader", "--parsable2", "--allocations", "--jobs=" + id, "--format=JobID,State,NodeList"});
  if (!end.ok()) return std::nullopt;
  const std::string line = end.out.substr(0, end.out.find('\n'));
  const std::size_t first = line.find('|');
  const std::size_t second = line.find('|', first + 1);
  if (second == std::string::npos) return std::nullopt;
  JobState job = slurm_state(line.substr(first + 1, second - first - 1), "");
  job.id = id;
  job.nodes = line.substr(second + 1);
  return job;
}

bool SlurmSystem::cancel(const std::string& id) {
  const ToolEnd end = ask({"scancel", id});
  return end.ok() || end.err.find("Invalid job id") != std::string::npos;
}

bool SlurmSystem::take_back(const std::string& id) { return ask({"scancel", "--state=PENDING", id}).ok(); }

void SlurmSystem::cancel_named(const std::string& name) {
  ask({"scancel", fmt::format("--user={}", ::getuid()), "--name=" + name});
}

std::string SlurmSystem::objection(const trial::TrialNeeds& needs, double time_limit_s) {
  std::vector<std::string> argv = {"sbatch", "--test-only"};
  const std::vector<std::string> asked = resources(needs, time_limit_s);
  argv.insert(argv.end(), asked.begin(), asked.end());
  argv.insert(argv.end(), {"--output=/dev/null", "--wrap=true"});
  const ToolEnd end = ask(argv);
  if (!end.start_error.empty()) {
    return fmt::format(
        "the executor is slurm, but sbatch cannot be run: {}; start krigtune where Slurm is installed, or leave "
        "\"executor\" out",
        end.start_error);
  }
  if (end.exit_code == 0 || end.timed_out) return "";
  // If Slurm is only busy, or if its answer is not understood, submitting the job will show what is wrong.
  const Refusal refusal = explain_refusal(end.err);
  return refusal.passes || refusal.fix.empty() ? "" : refused_text(refusal);
}

std::vector<std::string> SlurmSystem::launcher(const std::vector<std::string>& argv,
                                               const trial::TrialNeeds& needs) const {
  return srun_words(spec_.launch, argv, needs, cores_per_rank(spec_.sbatch.extra), spec_.sbatch.gres);
}

std::vector<std::string> SlurmSystem::broken_nodes(const std::string& nodes) {
  std::vector<std::string> names = expand_hosts(nodes);
  if (names.size() == 1) return names;
  const ToolEnd end = ask({"sinfo", "--noheader", "--Node", "--nodes=" + nodes, "--format=%N %T"});
  std::vector<std::string> broken;
  for (const std::string& name : names) {
    const std::string line_begin = name + " ";
    std::size_t at = end.out.rfind(line_begin, 0) == 0 ? 0 : end.out.find("\n" + line_begin);
    if (at == std::string::npos) continue;
    const std::string line = trimmed(end.out.substr(at, end.out.find('\n', at + 1) - at));
    const bool is_down = line.find("down") != std::string::npos || line.find('*') != std::string::npos ||
                         line.find("drain") != std::string::npos || line.find("fail") != std::string::npos;
    if (is_down) broken.push_back(name);
  }
  return broken;
}

std::string requeue_this_job(const Clock& clock) {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr) return "krigtune does not run in a Slurm job (no SLURM_JOB_ID)";
  const ToolEnd end = run_tool({"scontrol", "requeue", job}, kAnswerS, clock);
  return end.ok() ? "" : fmt::format("scontrol requeue {}: {}", job, end.complaint());
}

std::unique_ptr<trial::Executor> make_slurm_submit(const SlurmSpec& spec, const ExecutorJob& job) {
  BatchOptions options = batch_options_of(spec, job);
  options.learns_time = spec.sbatch.time.empty();
  return make_batch_executor(std::make_unique<SlurmSystem>(spec, job.clock), options, job.clock);
}

}  // namespace krigtune::executor
