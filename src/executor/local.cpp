// Slots of one machine. GPUs are assigned to trials by number, from one NUMA node if a node has enough of them, and
// each GPU brings the cores beside it. On a machine without GPUs, the cores are divided into as many parts as there are
// slots. Memory is not divided: krigtune sets no limit that a program could run into. On a NUMA machine, the pages that
// a trial touches first are on its own node, because its threads run there.
//
// If trials have several sizes, a trial that needs more than is free waits, and no other trial overtakes it (run/loop
// begins trials in the order in which they were proposed). So a large trial waits at most for those that were running
// when it was proposed, however many small ones would fit meanwhile. The price is that GPUs are idle for that long.
#include "executor/local.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "executor/gpu_count.h"
#include "trial/placeholders.h"

namespace krigtune::executor {
namespace {

// The place of a trial returns what it took when the place is destroyed.
struct Taken {
  std::mutex mutex;
  std::set<int> slots;
  std::set<int> gpus;
  std::set<int> ports;
};

/// Sets the processors of this thread for its lifetime, and so those of the programs that the thread starts, because
/// fork(2) inherits the affinity.
class ThreadAffinity {
 public:
  explicit ThreadAffinity(const std::vector<int>& processors) {
    if (processors.empty() || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : processors) CPU_SET(static_cast<std::size_t>(cpu), &set);
    is_set_ = ::sched_setaffinity(0, sizeof set, &set) == 0;
  }
  ~ThreadAffinity() {
    if (is_set_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  ThreadAffinity(const ThreadAffinity&) = delete;
  ThreadAffinity& operator=(const ThreadAffinity&) = delete;

 private:
  cpu_set_t before_{};
  bool is_set_ = false;
};

const char* inherited_variable(const char* name) { return std::getenv(name); }

class SlotPlace final : public trial::Place {
 public:
  SlotPlace(Taken& taken, SlotShare share) : taken_(taken), share_(std::move(share)) {}
  ~SlotPlace() override {
    const std::lock_guard lock(taken_.mutex);
    taken_.slots.erase(share_.facts.slot);
    taken_.ports.erase(share_.facts.port);
    for (const int gpu : share_.facts.gpus) taken_.gpus.erase(gpu);
  }
  SlotPlace(const SlotPlace&) = delete;
  SlotPlace& operator=(const SlotPlace&) = delete;

  trial::PlaceFacts facts() const override { return share_.facts; }
  trial::ProcessResult run(const trial::ProcessSpec& spec, const Clock& clock) override {
    trial::ProcessSpec in_slot = spec;
    for (auto& variable : slot_environment(share_, spec.environment, inherited_variable))
      in_slot.environment.push_back(std::move(variable));
    const ThreadAffinity affinity(share_.processors);
    return trial::run_process(in_slot, clock);
  }
  std::string where() const override {
    const std::vector<int>& gpus = share_.facts.gpus;
    const std::string of_gpus =
        gpus.empty() ? "" : fmt::format(", GPU{} {}", gpus.size() > 1 ? "s" : "", trial::gpu_list(gpus));
    return fmt::format("slot {}{}", share_.facts.slot, of_gpus);
  }

 private:
  Taken& taken_;
  SlotShare share_;
};

class SlotExecutor final : public trial::Executor {
 public:
  SlotExecutor(const LocalSpec& spec, MachineParts machine, std::filesystem::path directory)
      : slots_(spec.slots),
        machine_(std::move(machine)),
        directory_(std::move(directory)),
        gpu_cores_(cores_of_gpus(machine_)),
        slot_cores_(divided_cores(machine_, spec.slots)) {
    if (machine_.gpus.empty() && spec.gpus_per_trial != kAutoGpus) {
      throw UserError("/executor/gpus_per_trial: this machine has no visible GPU (nvidia-smi, CUDA_VISIBLE_DEVICES)",
                      "leave it out: the cores are then divided among the slots");
    }
    const std::size_t gpus = machine_.gpus.size();
    if (gpus > 0 && spec.gpus_per_trial == kAutoGpus && gpus < static_cast<std::size_t>(slots_)) {
      throw UserError(fmt::format("/executor/slots: {} slots share {}", slots_, counted(gpus, "GPU")),
                      "use as many slots as GPUs at most, or set CUDA_VISIBLE_DEVICES= where trials use none");
    }
  }

  int capacity() const override { return slots_; }
  std::optional<int> usual_gpus() const override { return static_cast<int>(machine_.gpus.size()) / slots_; }
  bool survives() const override { return false; }

  bool has_room(const trial::TrialNeeds& needs) const override {
    const int wanted = wanted_gpus(needs);
    const int all = static_cast<int>(machine_.gpus.size());
    if (wanted > all) {
      throw UserError(fmt::format("a trial needs {}, and this machine has {}", counted(wanted, "GPU"), all),
                      "lower /executor/gpus_per_trial, or exclude such configurations by a constraint");
    }
    const std::lock_guard lock(taken_.mutex);
    const int free = all - static_cast<int>(taken_.gpus.size());
    return static_cast<int>(taken_.slots.size()) < slots_ && wanted <= free;
  }

  std::unique_ptr<trial::Place> place(const trial::TrialTask& task) override {
    const std::lock_guard lock(taken_.mutex);
    SlotShare share;
    while (taken_.slots.contains(share.facts.slot)) ++share.facts.slot;
    do {
      share.facts.port = static_cast<int>(trial::free_port());
    } while (taken_.ports.contains(share.facts.port));
    share.has_gpus = !machine_.gpus.empty();
    for (const std::size_t gpu : chosen_gpus(wanted_gpus(task.needs))) {
      share.facts.gpus.push_back(machine_.gpus[gpu].number);
      const std::vector<int>& beside = gpu_cores_[gpu];
      share.processors.insert(share.processors.end(), beside.begin(), beside.end());
    }
    const auto slot = static_cast<std::size_t>(share.facts.slot);
    if (share.facts.gpus.empty() && slot < slot_cores_.size()) share.processors = slot_cores_[slot];
    share.caches = std::filesystem::absolute(directory_) / "slots" / std::to_string(share.facts.slot);
    taken_.slots.insert(share.facts.slot);
    taken_.ports.insert(share.facts.port);
    taken_.gpus.insert(share.facts.gpus.begin(), share.facts.gpus.end());
    return std::make_unique<SlotPlace>(taken_, std::move(share));
  }

 private:
  // On a machine without GPUs, ranks are processes or threads on the cores.
  int wanted_gpus(const trial::TrialNeeds& needs) const {
    return machine_.gpus.empty() ? 0 : needs.gpus_per_node * needs.nodes;
  }

  // Returns indices of free GPUs: those of the NUMA node with the fewest free ones that has enough, otherwise the first
  // ones.
  std::vector<std::size_t> chosen_gpus(int wanted) const {
    std::map<int, std::vector<std::size_t>> free_of_node;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < machine_.gpus.size(); ++i) {
      if (taken_.gpus.contains(machine_.gpus[i].number)) continue;
      free_of_node[machine_.gpus[i].numa_node].push_back(i);
      chosen.push_back(i);
    }
    const auto count = static_cast<std::size_t>(wanted);
    const std::vector<std::size_t>* best = nullptr;
    for (const auto& [node, free] : free_of_node) {
      if (free.size() >= count && (best == nullptr || free.size() < best->size())) best = &free;
    }
    if (best != nullptr) chosen = *best;
    chosen.resize(std::min(count, chosen.size()));
    return chosen;
  }

  int slots_;
  MachineParts machine_;
  std::filesystem::path directory_;
  std::vector<std::vector<int>> gpu_cores_;   ///< by index of the GPU
  std::vector<std::vector<int>> slot_cores_;  ///< for trials without GPUs
  mutable Taken taken_;
};

Block<LocalSpec> local_block(const std::filesystem::path& /*base_dir*/) {
  constexpr double kMostSlots = 4096;
  Block<LocalSpec> block("Slots of this machine: each trial has its own GPUs, cores, port and caches");
  block.key("slots", &LocalSpec::slots, integer<int>(from_to(1, kMostSlots)),
            "trials at a time; with 1 and \"auto\" below a trial has the whole machine");
  block.key("gpus_per_trial", &LocalSpec::gpus_per_trial, gpus_codec(),
            "GPUs of a trial: a number, a parameter, or an expression as in constraints; \"auto\": those of the "
            "cluster if it names a GPU, otherwise the machine's GPUs divided by the slots");
  return block;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> slot_environment(
    const SlotShare& share, const std::vector<std::pair<std::string, std::string>>& asked,
    const char* (*inherited)(const char* name)) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto set = [&](const char* name, const std::string& value) {
    const auto is_it = [&](const auto& variable) { return variable.first == name; };
    if (std::none_of(asked.begin(), asked.end(), is_it)) variables.emplace_back(name, value);
  };
  const auto set_by_default = [&](const char* name, const std::string& value) {
    if (inherited(name) == nullptr) set(name, value);
  };
  const std::vector<int>& gpus = share.facts.gpus;
  if (share.has_gpus) {
    set("CUDA_VISIBLE_DEVICES", trial::gpu_list(gpus));
    set_by_default("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  }
  set("MASTER_PORT", std::to_string(share.facts.port));
  set("PET_MASTER_PORT", std::to_string(share.facts.port));  // torchrun's option, if the command does not set it
  const std::size_t processes = std::max<std::size_t>(gpus.size(), 1);
  set_by_default("OMP_NUM_THREADS", std::to_string(std::max<std::size_t>(share.processors.size() / processes, 1)));
  set_by_default("TRITON_CACHE_DIR", (share.caches / "triton").string());
  set_by_default("TORCHINDUCTOR_CACHE_DIR", (share.caches / "inductor").string());
  set_by_default("TORCH_EXTENSIONS_DIR", (share.caches / "extensions").string());
  return variables;
}

std::unique_ptr<trial::Executor> make_slots(const LocalSpec& spec, MachineParts machine,
                                            std::filesystem::path directory) {
  return std::make_unique<SlotExecutor>(spec, std::move(machine), std::move(directory));
}

ExecutorEntry<LocalSpec> LocalSpec::entry() {
  return {{.name = "local", .is_this_machine = true},
          local_block,
          [](const LocalSpec& spec, const ExecutorJob& job) -> std::unique_ptr<trial::Executor> {
            if (spec.slots == 1 && spec.gpus_per_trial == kAutoGpus) return make_undivided_executor(1);
            return make_slots(spec, parts_of_this_machine(job.clock), job.directory);
          }};
}

}  // namespace krigtune::executor
