// A sweep over the starts and ends of intervals. It knows how many intervals of each class are open, so it assigns each
// moment to the first open class, and also counts all moments of a class, hidden or not.
#include "diagnose/trace_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace krigtune::diagnose {
namespace {

constexpr double kMicro = 1e-6;

bool has_one_of(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

// The parts of kernel names belong to cuBLAS and cuBLASLt (gemm, xmma, cublas, nvjet, s16816, splitKreduce), CUTLASS,
// ROCm's Tensile (Cijk), Triton's templates of torch.compile (mm), FlashAttention, xFormers (fmha) and cuDNN (sdpa).
Work work_of_kernel(const std::string& name) {
  if (has_one_of(name, {"nccl", "rccl", "oneccl"})) return Work::kCollective;
  if (has_one_of(name, {"flash", "fmha", "attention", "sdpa"})) return Work::kAttention;
  if (has_one_of(name, {"gemm", "gemv", "xmma", "cublas", "nvjet", "s16816", "splitkreduce", "cutlass", "cijk_",
                        "triton_tem_", "conv2d", "convolve", "implicit_conv"})) {
    return Work::kProduct;
  }
  return Work::kMemory;
}

// The names of operators appear in traces of CPU ranks.
Work work_of_operator(const std::string& name) {
  if (has_one_of(name, {"attention", "sdpa"})) return Work::kAttention;
  if (has_one_of(name, {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::matmul", "aten::linear",
                        "aten::convolution", "mkldnn_linear"})) {
    return Work::kProduct;
  }
  return Work::kMemory;
}

// c10d marks the work of a backend's threads; operators like c10d::allreduce_ only request it.
bool is_backend(const std::string& name) { return has_one_of(name, {"gloo:", "nccl:", "mpi:", "ucc:"}); }

bool is_loader(const std::string& name) { return name.find("dataloader") != std::string::npos; }

// In krigtune-bench's traces the stream says most (plan/trace.cpp).
Work work_of_operation(const TraceEvent& event) {
  const std::string name = event.name.substr(0, event.name.find(' '));
  if (event.category == "wait") return event.name.rfind("other ranks", 0) == 0 ? Work::kWait : Work::kNone;
  if (has_one_of(name, {"all_reduce", "reduce_scatter", "all_gather"})) return Work::kCollective;
  if (event.thread_name == "3") return Work::kCopy;
  if (event.thread_name == "4") return Work::kHostWork;
  if (has_one_of(name, {"attention"})) return Work::kAttention;
  return has_one_of(name, {"linear"}) ? Work::kProduct : Work::kMemory;
}

// Before PyTorch 1.12 the categories were "Kernel", "Memcpy" and "Operator".
std::string category_of(const TraceEvent& event) {
  const std::string category = lower_case(event.category);
  if (category == "memcpy" || category == "memset") return "gpu_" + category;
  return category == "operator" ? "cpu_op" : category;
}

constexpr std::array kPhases = {"forward", "recompute", "backward", "optimizer", "wait"};

}  // namespace

Work work_of(const TraceEvent& event) {
  const std::string name = lower_case(event.name);
  const std::string category = category_of(event);
  if (category == "kernel") return work_of_kernel(name);
  if (category == "gpu_memcpy" || category == "gpu_memset") return Work::kCopy;
  if (category == "cpu_op" || category == "user_annotation") {
    if (is_backend(name)) return Work::kCollective;
    if (is_loader(name)) return Work::kInput;
    return category == "cpu_op" ? work_of_operator(name) : Work::kNone;
  }
  return is_one_of(category, kPhases) ? work_of_operation(event) : Work::kNone;
}

std::string collective_kind(const std::string& name) {
  std::string plain;
  for (const char c : lower_case(name)) {
    if (c != '_' && c != '-') plain += c;
  }
  constexpr std::array<std::pair<const char*, const char*>, 6> kKinds = {{{"allreduce", "all_reduce"},
                                                                          {"reducescatter", "reduce_scatter"},
                                                                          {"allgather", "all_gather"},
                                                                          {"broadcast", "broadcast"},
                                                                          {"alltoall", "all_to_all"},
                                                                          {"sendrecv", "send_recv"}}};
  for (const auto& [word, kind] : kKinds) {
    if (plain.find(word) != std::string::npos) return kind;
  }
  return has_one_of(plain, {"send", "recv"}) ? "send_recv" : "collective";
}

// The descriptions come from megatron/core/parallel_state.py (group_desc of create_group) and
// torch/distributed/device_mesh.py ("mesh_" and the dimension's name; torchtitan's are pp, dp_replicate, dp_shard, cp,
// tp, ep). The group of all ranks, "default_pg", may carry any communication.
CommunicationGroup group_of(const std::string& description) {
  const std::string name = lower_case(description);
  if (has_one_of(name, {"pipeline", "mesh_pp"})) return CommunicationGroup::kPipeline;
  if (has_one_of(name, {"expert_model", "expert_tensor", "mesh_ep"})) return CommunicationGroup::kExpert;
  if (has_one_of(name, {"tensor_and", "model_and"})) return CommunicationGroup::kUnknown;  // a group of both kinds
  if (has_one_of(name, {"tensor_model", "mesh_tp", "tensor_parallel"})) return CommunicationGroup::kTensor;
  if (has_one_of(name, {"data_parallel", "mesh_dp", "mesh_fsdp", "mesh_hsdp", "mesh_ddp"})) {
    return CommunicationGroup::kData;
  }
  return has_one_of(name, {"context_parallel", "mesh_cp"}) ? CommunicationGroup::kContext
                                                           : CommunicationGroup::kUnknown;
}

namespace {

/// A class of the sweep: its position in the order, and its name in the report.
struct Class {
  Work work;
  std::string kind;                                         ///< of collectives only
  CommunicationGroup group = CommunicationGroup::kUnknown;  ///< of collectives only
  std::string group_name;                                   ///< "mesh_tp, 4 ranks"; "": unknown
  friend auto operator<=>(const Class&, const Class&) = default;
};

struct Interval {
  Class of;
  double start_us, end_us;
};

/// The result of the sweep for one class.
struct Swept {
  double first_us = 0.0;  ///< time in which it is the first open class
  double all_us = 0.0;    ///< time in which it is open
};

struct Sweep {
  std::map<Class, Swept> classes;
  double idle_us = 0.0;
};

bool is_kernel(Work work) { return work == Work::kProduct || work == Work::kAttention || work == Work::kMemory; }

// Sweeps the time between `from_us` and `to_us`.
Sweep sweep(const std::vector<Interval>& intervals, double from_us, double to_us) {
  std::vector<std::pair<double, std::pair<Class, int>>> edges;
  for (const Interval& interval : intervals) {
    const double start = std::clamp(interval.start_us, from_us, to_us);
    const double end = std::clamp(interval.end_us, from_us, to_us);
    if (!(end > start)) continue;
    edges.push_back({start, {interval.of, 1}});
    edges.push_back({end, {interval.of, -1}});
  }
  std::sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Sweep result;
  std::map<Class, int> open;
  double now_us = from_us;
  const auto pass_to = [&](double next_us) {
    const double passed = next_us - now_us;
    now_us = next_us;
    bool is_first = true;
    for (const auto& [of, count] : open) {
      if (count == 0) continue;
      result.classes[of].all_us += passed;
      if (is_first) result.classes[of].first_us += passed;
      is_first = false;
    }
    if (is_first) result.idle_us += passed;
  };
  for (const auto& [at_us, edge] : edges) {
    if (at_us > now_us) pass_to(at_us);
    open[edge.first] += edge.second;
  }
  pass_to(to_us);
  return result;
}

Interval interval_of(const TraceEvent& event, Work work) {
  Class of{work, "", CommunicationGroup::kUnknown, ""};
  if (work != Work::kCollective) return {of, event.start_us, event.end_us()};
  of.kind = collective_kind(event.name);
  if (of.kind == "collective" && !event.collective.empty()) of.kind = collective_kind(event.collective);
  of.group = group_of(event.group);
  of.group_name = event.group;
  if (event.group_size > 0 && !event.group.empty()) of.group_name += fmt::format(", {} ranks", event.group_size);
  return {of, event.start_us, event.end_us()};
}

// Operators call each other, so at each moment only the innermost one of a thread counts. Everything that the loader
// calls counts as the loader.
class InnermostOperators {
 public:
  void add(const TraceEvent& event, Work work) { threads_[event.thread].push_back(interval_of(event, work)); }

  std::vector<Interval> intervals() {
    std::vector<Interval> result;
    for (auto& [thread, events] : threads_) {
      std::sort(events.begin(), events.end(), [](const Interval& a, const Interval& b) {
        return a.start_us != b.start_us ? a.start_us < b.start_us : a.end_us > b.end_us;
      });
      std::vector<Interval> stack;
      double now_us = 0.0;
      const auto run_to = [&](double until_us) {
        while (!stack.empty() && now_us < until_us) {
          const double end_us = std::min(stack.back().end_us, until_us);
          if (end_us > now_us) result.push_back({stack.back().of, now_us, end_us});
          now_us = std::max(now_us, end_us);
          if (stack.back().end_us <= until_us) stack.pop_back();
        }
      };
      for (Interval event : events) {
        run_to(event.start_us);
        while (!stack.empty() && stack.back().end_us <= event.start_us) stack.pop_back();
        now_us = event.start_us;
        if (!stack.empty() && stack.back().of.work == Work::kInput) event.of = stack.back().of;
        stack.push_back(event);
      }
      if (!events.empty())
        run_to(std::max_element(events.begin(), events.end(), [](const auto& a, const auto& b) {
                 return a.end_us < b.end_us;
               })->end_us);
    }
    return result;
  }

 private:
  std::map<std::int64_t, std::vector<Interval>> threads_;
};

/// The contents of a trace before they become parts.
struct Timeline {
  std::string device;       ///< "the device", "rank 0"
  bool has_kernels = true;  ///< the trace of a GPU, which when idle waits for the host
  std::vector<Interval> intervals;
  std::vector<double> kernels_us;  ///< durations of the kernels
};

constexpr const char* kStep = "ProfilerStep#";

// Returns the number of steps of torch.profiler's schedule; 1 if it had none.
double steps_of(const TraceFile& trace) {
  std::set<std::string> steps;
  for (const TraceEvent& event : trace.events) {
    if (event.name.rfind(kStep, 0) == 0) steps.insert(event.name);
  }
  return std::max<double>(1.0, static_cast<double>(steps.size()));
}

Timeline timeline_of_kernels(const TraceFile& trace) {
  Timeline timeline{"the device", true, {}, {}};
  std::optional<std::int64_t> device;
  for (const TraceEvent& event : trace.events) {
    const Work work = work_of(event);
    const bool is_of_device = category_of(event) == "kernel" || work == Work::kCopy;
    if (is_of_device && !device) device = event.process;
    if (work == Work::kInput || (is_of_device && event.process == *device)) {
      timeline.intervals.push_back(interval_of(event, work));
    }
    if (is_of_device && event.process == *device && is_kernel(work)) timeline.kernels_us.push_back(event.duration_us);
  }
  return timeline;
}

Timeline timeline_of_operators(const TraceFile& trace) {
  Timeline timeline{"the process", false, {}, {}};
  InnermostOperators operators;
  for (const TraceEvent& event : trace.events) {
    const Work work = work_of(event);
    if (work != Work::kNone) operators.add(event, work);
  }
  timeline.intervals = operators.intervals();
  return timeline;
}

Timeline timeline_of_bench(const TraceFile& trace) {
  Timeline timeline{"rank 0", false, {}, {}};
  for (const TraceEvent& event : trace.events) {
    const Work work = work_of(event);
    if (event.process == 0 && work != Work::kNone) timeline.intervals.push_back(interval_of(event, work));
  }
  return timeline;
}

Timeline timeline_of(const TraceFile& trace) {
  const auto has = [&](const char* category) {
    return std::any_of(trace.events.begin(), trace.events.end(),
                       [&](const TraceEvent& event) { return category_of(event) == category; });
  };
  if (trace.program.rfind("krigtune", 0) == 0) return timeline_of_bench(trace);
  if (has("kernel")) return timeline_of_kernels(trace);
  if (has("cpu_op")) return timeline_of_operators(trace);
  throw UserError("the trace has neither kernels nor operators (categories \"kernel\", \"cpu_op\")",
                  "profile with activities CPU and CUDA, or take krigtune-bench --trace");
}

struct WorkWords {
  const char* name;
  Limit limit;
  const char* meaning;
};

WorkWords words_of(Work work, const Timeline& timeline) {
  switch (work) {
    case Work::kProduct:
      return {"products", Limit::kCompute, "matrix products and attention: useful work"};
    case Work::kAttention:
      return {"attention", Limit::kCompute, "matrix products and attention: useful work"};
    case Work::kMemory:
      return {timeline.has_kernels ? "other kernels" : "other operators", Limit::kMemoryBandwidth,
              "elementwise kernels, norms, reductions and the optimizer, limited by memory bandwidth"};
    case Work::kCollective:
      return {"", Limit::kCommunication, "ranks communicate while no kernel runs"};
    case Work::kCopy:
      return {"copies", Limit::kCopies, "copies or host work while no kernel runs"};
    case Work::kHostWork:
      return {"host work", Limit::kCopies, "copies or host work while no kernel runs"};
    case Work::kInput:
      return {"data loading", Limit::kInput, "the next batch is loaded while nothing else runs"};
    case Work::kWait:
      return {"waiting for other ranks", Limit::kStraggler, "the rank waits for slower ranks"};
    case Work::kNone:
      break;
  }
  return {"nothing", Limit::kHost,
          timeline.has_kernels ? "no kernel runs: the host has not issued the next one"
                               : "nothing runs: the program is between operations, or its threads have no core"};
}

// Returns which limit a group's communication belongs to, and its description.
WorkWords words_of(CommunicationGroup group) {
  switch (group) {
    case CommunicationGroup::kData:
      return {"", Limit::kDataCommunication, "data-parallel ranks communicate while no kernel runs"};
    case CommunicationGroup::kTensor:
      return {"", Limit::kTensorCommunication, "tensor-parallel ranks communicate while no kernel runs"};
    case CommunicationGroup::kPipeline:
      return {"", Limit::kPipelineCommunication, "pipeline stages send, or wait for each other, while no kernel runs"};
    case CommunicationGroup::kContext:
      return {"", Limit::kContextCommunication, "ranks that share sequences communicate while no kernel runs"};
    case CommunicationGroup::kExpert:
      return {"", Limit::kExpertCommunication, "tokens travel to their experts or back while no kernel runs"};
    case CommunicationGroup::kUnknown:
      break;
  }
  return {"", Limit::kCommunication, "ranks communicate while no kernel runs"};
}

Part part_of(const Class& of, const Swept& swept, const Timeline& timeline) {
  const bool is_collective = of.work == Work::kCollective;
  const WorkWords words = is_collective ? words_of(of.group) : words_of(of.work, timeline);
  const std::string group = of.group_name.empty() ? "" : fmt::format(" ({})", of.group_name);
  Part part;
  part.name = is_collective ? fmt::format("{}{}, exposed", of.kind, group) : words.name;
  part.seconds = swept.first_us * kMicro;
  if (swept.all_us > swept.first_us) part.all_s = swept.all_us * kMicro;
  // NCCL runs an all-to-all, and the ring of ranks that share sequences, as sends too.
  const bool may_be_pipelines = of.kind == "send_recv" && of.group == CommunicationGroup::kUnknown;
  part.limit = may_be_pipelines ? Limit::kPipelineCommunication : words.limit;
  part.meaning = words.meaning;
  return part;
}

std::string remark_on_kernels(std::vector<double> kernels_us) {
  const auto middle = kernels_us.begin() + static_cast<std::ptrdiff_t>(kernels_us.size() / 2);
  std::nth_element(kernels_us.begin(), middle, kernels_us.end());
  return fmt::format("kernels: {}, half of them shorter than {}", kernels_us.size(), duration_text(*middle * kMicro));
}

}  // namespace

MeasuredParts parts_of(const TraceFile& trace) {
  const Timeline timeline = timeline_of(trace);
  double from_us = std::numeric_limits<double>::infinity();
  double to_us = -from_us;
  for (const Interval& interval : timeline.intervals) {
    if (timeline.has_kernels && interval.of.work == Work::kInput) continue;  // it belongs to the host's process
    from_us = std::min(from_us, interval.start_us);
    to_us = std::max(to_us, interval.end_us);
  }
  if (!(to_us > from_us))
    throw UserError("the trace has no operation with a duration", "profile at least one whole step");
  const Sweep swept = sweep(timeline.intervals, from_us, to_us);
  MeasuredParts measured;
  measured.span_s = (to_us - from_us) * kMicro;
  measured.steps = steps_of(trace);
  measured.subject = "time of " + timeline.device;
  for (const auto& [of, found] : swept.classes) measured.parts.push_back(part_of(of, found, timeline));
  if (swept.idle_us > 0.0) {
    measured.parts.push_back(
        part_of({Work::kNone, "", CommunicationGroup::kUnknown, ""}, {swept.idle_us, swept.idle_us}, timeline));
  }
  if (!timeline.kernels_us.empty()) measured.remarks.push_back(remark_on_kernels(timeline.kernels_us));
  return measured;
}

}  // namespace krigtune::diagnose
