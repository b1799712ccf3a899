#include "executor/slurm_steps.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>

#include "core/environment.h"
#include "core/error.h"
#include "core/text.h"
#include "executor/allocation.h"
#include "executor/batch_executor.h"
#include "executor/slurm_text.h"
#include "trial/trial_files.h"

namespace krigtune::executor {
namespace {

constexpr double kStepAnswerS = 30.0;

// The allocation's own sizes would break a smaller step: "More processors requested than permitted".
std::vector<std::string> sizes_of_the_job() {
  return variables_with({"SLURM_NTASKS",
                         "SLURM_NPROCS",
                         "SLURM_TASKS_PER_NODE",
                         "SLURM_CPUS_PER",
                         "SLURM_GPUS",
                         "SLURM_NNODES",
                         "SLURM_JOB_NUM_NODES",
                         "SLURM_MEM_PER",
                         "SLURM_DISTRIBUTION",
                         "SLURM_CPU_BIND",
                         "SLURM_STEP",
                         "SLURM_PROCID",
                         "SLURM_LOCALID",
                         "SLURM_NODEID",
                         "SLURM_GRES",
                         "SLURM_TRES_PER_TASK",
                         "SLURM_EXACT",
                         "SLURM_OVERLAP",
                         "SLURM_WHOLE",
                         "SLURM_HINT",
                         "SLURM_CORE_SPEC",
                         "SLURM_THREADS_PER_CORE",
                         "SLURM_SRUN_",
                         "SQUEUE_",
                         "SINFO_"},
                        {});
}

// Reads 8 from "TresPerNode=gres:gpu:h100:8" or "gres/gpu:8".
int gpus_of_record(const std::string& record) {
  const std::string tres = record_field(record, "TresPerNode");
  const std::size_t gpu = tres.find("gpu");
  if (gpu == std::string::npos) return 0;
  const std::string words = tres.substr(gpu, tres.find(',', gpu) - gpu);
  const std::string last = words.substr(words.find_last_of(":=") + 1);
  int number = 1;
  std::from_chars(last.data(), last.data() + last.size(), number);
  return number;
}

/// The state that all steps share.
class StepRoom {
 public:
  StepRoom(SlurmSpec settings, const Clock& time)
      : spec(std::move(settings)),
        clock(time),
        unset(sizes_of_the_job()),
        job(environment_variable("SLURM_JOB_ID").value_or("")),
        cores_per_rank(executor::cores_per_rank(spec.sbatch.extra)),
        allocation_(read_allocation()) {}

  const SlurmSpec spec;
  const Clock& clock;
  const std::vector<std::string> unset;
  const std::string job;
  const int cores_per_rank;

  ToolEnd ask(const std::vector<std::string>& argv) const { return run_tool(argv, kStepAnswerS, clock, unset); }

  bool has_room(const trial::TrialNeeds& needs) const {
    const std::lock_guard lock(mutex_);
    return allocation_.choose(needs, cores_per_rank).has_value();
  }
  int capacity() const {
    const std::lock_guard lock(mutex_);
    std::size_t most = 0;
    for (const Allocation::Node& node : allocation_.nodes()) {
      most += static_cast<std::size_t>(std::max(node.gpus, std::max(node.cores, 1)));
    }
    return static_cast<int>(std::min<std::size_t>(most, static_cast<std::size_t>(spec.max_queued)));
  }
  Allocation::Share take(const trial::TrialNeeds& needs) {
    const std::lock_guard lock(mutex_);
    Allocation::Share share = allocation_.choose(needs, cores_per_rank).value();
    allocation_.take(share);
    return share;
  }
  void give_back(const Allocation::Share& share) {
    const std::lock_guard lock(mutex_);
    allocation_.give_back(share);
  }
  void note_broken(const std::string& node) {
    const std::lock_guard lock(mutex_);
    allocation_.note_broken(node);
  }
  int take_slot() {
    const std::lock_guard lock(mutex_);
    int slot = 0;
    while (slots_.count(slot) != 0) ++slot;
    slots_.insert(slot);
    return slot;
  }
  void free_slot(int slot) {
    const std::lock_guard lock(mutex_);
    slots_.erase(slot);
  }

  /// Cancels the steps of this allocation whose names begin with `name_begin`.
  void cancel_steps(const std::string& name_begin) const {
    const ToolEnd end = ask({"squeue", "--noheader", "--steps", "--jobs=" + job, "--format=%i|%j"});
    std::size_t at = 0;
    while (end.ok() && at < end.out.size()) {
      const std::size_t line_end = std::min(end.out.find('\n', at), end.out.size());
      const std::string line = trimmed(end.out.substr(at, line_end - at));
      const std::size_t bar = line.find('|');
      if (bar != std::string::npos && line.compare(bar + 1, name_begin.size(), name_begin) == 0)
        ask({"scancel", line.substr(0, bar)});
      at = line_end + 1;
    }
  }

  /// Runs once for each run directory, because an earlier process may have been killed without ending its steps.
  void cancel_leftovers(const std::string& run) {
    const std::lock_guard lock(
        cleaning_);  // a second caller waits, so that its own step, whose name matches too, is not cancelled
    if (cleaned_.insert(run).second) cancel_steps(run);
  }

 private:
  Allocation read_allocation() const {
    const ToolEnd record = job.empty() ? ToolEnd{} : ask({"scontrol", "--oneliner", "show", "job", job});
    return Allocation::from(environment_variable, gpus_of_record(record.out));
  }

  mutable std::mutex mutex_;  // guards the next two
  Allocation allocation_;
  std::set<int> slots_;
  std::mutex cleaning_;  // guards cleaned_
  std::set<std::string> cleaned_;
};

// Returns a name that the resolver knows, or the address that Slurm has for the node.
std::string address_of(const StepRoom& room, const Allocation::Share& share) {
  if (share.nodes.size() <= 1) return "localhost";
  const std::string& node = share.nodes.front();
  addrinfo* found = nullptr;
  const bool known = ::getaddrinfo(node.c_str(), nullptr, nullptr, &found) == 0;
  if (found != nullptr) ::freeaddrinfo(found);
  if (known) return node;
  const std::string address = record_field(room.ask({"scontrol", "--oneliner", "show", "node", node}).out, "NodeAddr");
  return address.empty() ? node : address;
}

class StepPlace final : public trial::Place {
 public:
  StepPlace(std::shared_ptr<StepRoom> room, trial::TrialTask task)
      : room_(std::move(room)),
        task_(std::move(task)),
        name_(job_name(task_)),
        share_(room_->take(task_.needs)),
        slot_(room_->take_slot()) {}
  ~StepPlace() override {
    room_->free_slot(slot_);
    room_->give_back(share_);
  }
  StepPlace(const StepPlace&) = delete;
  StepPlace& operator=(const StepPlace&) = delete;

  trial::PlaceFacts facts() const override {
    return {.slot = slot_, .gpus = {}, .port = rendezvous_port(task_), .is_elsewhere = true};
  }

  trial::ProcessResult run(const trial::ProcessSpec& spec, const Clock& clock) override {
    room_->cancel_leftovers(name_.substr(0, name_.rfind('-') + 1));
    trial::ProcessSpec step = spec;
    step.argv = without_variables(room_->unset, step_words(spec.argv));
    const auto add = [&](const char* name, const std::string& value) {
      const auto is_it = [&](const auto& pair) { return pair.first == name; };
      if (std::none_of(spec.environment.begin(), spec.environment.end(), is_it))
        step.environment.emplace_back(name, value);
    };
    add("MASTER_ADDR", address_of(*room_, share_));
    add("MASTER_PORT", std::to_string(facts().port));
    trial::ProcessResult result = trial::run_process(step, clock);
    const bool was_ended = result.stopped || result.timed_out || result.hung || result.cut_short || result.signal != 0;
    if (was_ended) room_->cancel_steps(name_);  // srun may have ended before its step did
    read_words(spec, result);
    result.peak_rss_bytes = 0;  // this is srun's own, which is meaningless
    return result;
  }

  std::string where() const override { return fmt::format("{}, step of job {}", join(share_.nodes, ","), room_->job); }

 private:
  std::vector<std::string> step_words(const std::vector<std::string>& argv) const {
    const trial::TrialNeeds& needs = task_.needs;
    JobLaunch launch = launch_of(room_->spec.launch, argv, needs);
    // On several nodes, srun and mpirun start their own steps.
    if (launch == JobLaunch::kOnce && needs.nodes > 1) return argv;
    const bool once = launch == JobLaunch::kOnce;
    if (once) launch = JobLaunch::kNode;
    std::vector<std::string> words = srun_words(launch, argv, needs, room_->cores_per_rank, "");
    std::erase_if(words, [](const std::string& word) {
      return word.rfind("--cpus-per-task=", 0) == 0 || word.rfind("--gres=", 0) == 0;
    });
    const int nodes = std::max(needs.nodes, 1);
    const int tasks_a_node = launch == JobLaunch::kNode ? 1 : std::max(1, (needs.ranks + nodes - 1) / nodes);
    words.insert(words.end(), {"--exact", "--nodelist=" + join(share_.nodes, ","), "--job-name=" + name_,
                               fmt::format("--cpus-per-task={}", std::max(1, share_.cores / tasks_a_node))});
    if (share_.cores < tasks_a_node) words.emplace_back("--overcommit");
    words.push_back(share_.gpus > 0 ? fmt::format("--gres=gpu:{}", share_.gpus) : "--gres=none");
    if (const std::string memory = memory_share(); !memory.empty()) words.push_back("--mem=" + memory);
    words.insert(words.end(), argv.begin(), argv.end());
    return words;
  }

  // Without this option a step takes all memory that the job has on a node, and a second step waits.
  std::string memory_share() const {
    const std::optional<std::string> text = environment_variable("SLURM_MEM_PER_NODE");
    if (!text || share_.cores >= share_.of_cores) return "";
    std::int64_t all_mib = 0;
    std::from_chars(text->data(), text->data() + text->size(), all_mib);
    return all_mib > 0 ? std::to_string(all_mib * share_.cores / share_.of_cores) : "";
  }

  // Reads what srun says about a failed node or the memory limit. It returns 0 after some of these messages (Slurm
  // 22.05).
  void read_words(const trial::ProcessSpec& spec, trial::ProcessResult& result) const {
    constexpr std::size_t kTailBytes = 1 << 16;
    if (result.stopped || result.timed_out || result.hung || result.cut_short) return;
    const DaemonWords said = daemon_words(trial::read_tail(spec.stderr_file, kTailBytes));
    if (said.node_failure) {
      for (const std::string& node : share_.nodes) {
        if (said.line.find(node) != std::string::npos || share_.nodes.size() == 1) room_->note_broken(node);
      }
      result.lost = fmt::format("a node of {} failed ({})", where(), said.line);
    } else if (said.preempted) {
      result.lost = fmt::format("job {} was preempted ({})", room_->job, said.line);
    } else if (said.cancelled && result.exit_code != 0) {
      result.lost = fmt::format("{} was cancelled, not by krigtune ({})", where(), said.line);
    } else if (said.out_of_memory && result.exit_code != 0) {
      result.out_of_memory = true;
    }
  }

  std::shared_ptr<StepRoom> room_;
  const trial::TrialTask task_;
  const std::string name_;
  const Allocation::Share share_;
  const int slot_;
};

class StepExecutor final : public trial::Executor {
 public:
  StepExecutor(const SlurmSpec& spec, const Clock& clock) : room_(std::make_shared<StepRoom>(spec, clock)) {}
  int capacity() const override { return room_->capacity(); }
  bool has_room(const trial::TrialNeeds& needs) const override { return room_->has_room(needs); }
  std::unique_ptr<trial::Place> place(const trial::TrialTask& task) override {
    return std::make_unique<StepPlace>(room_, task);
  }
  bool survives() const override { return false; }

 private:
  std::shared_ptr<StepRoom> room_;
};

}  // namespace

std::unique_ptr<trial::Executor> make_slurm_steps(const SlurmSpec& spec, const Clock& clock) {
  return std::make_unique<StepExecutor>(spec, clock);
}

}  // namespace krigtune::executor
