// The environment variables that people set for training jobs, and what they change in what is predicted. Sources:
//
//   NCCL_*           NCCL user guide, "Environment Variables"
//   PYTORCH_*, TORCH_*, CUDA_*   PyTorch documentation: "CUDA Environment Variables", "CUDA semantics" (memory
//                    management), "ProcessGroupNCCL Environment Variables"; CUDA programming guide, "Environment
//                    Variables"
//   NVTE_*           Transformer Engine, "Environment Variables" and dot_product_attention
//   ACCELERATE_*, FSDP_*   accelerate: utils/launch.py sets them, and utils/dataclasses.py reads them
//   OMP_NUM_THREADS  torch.distributed.run sets 1 for several ranks of a node, unless it is set
#include "workload/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/text.h"

namespace krigtune::workload {
namespace {

// The values with which a variable has its effect; with others it changes nothing.
enum class If { kSet, kOn, kOff };
// kElse: time, or memory within the bounds that predictions have anyway. kMemory: memory beyond these bounds.
enum class Changes { kElse, kMemory };

// A name may end with *.
struct Effect {
  std::string_view name;
  If when;
  const char* text;
  Changes changes = Changes::kElse;
};

constexpr const char* kWithinANode = "slower collectives within a node";
constexpr const char* kWaits = "more time: the program waits for every collective";
constexpr const char* kTogether = "other times where collectives and kernels run together";
constexpr const char* kAttention = "another kernel of attention: other times";
constexpr const char* kAccelerates = "a setting of accelerate that the command does not state: other memory and time";

constexpr std::array kEffects = {
    Effect{"NCCL_P2P_DISABLE", If::kOn, kWithinANode},
    Effect{"NCCL_SHM_DISABLE", If::kOn, kWithinANode},
    Effect{"NCCL_IB_DISABLE", If::kOn, "slower collectives between nodes"},
    Effect{"NCCL_BLOCKING_WAIT", If::kOn, kWaits},
    Effect{"NCCL_BUFFSIZE", If::kSet, "other times of collectives, other memory of their buffers"},
    Effect{"TORCH_NCCL_BLOCKING_WAIT", If::kOn, kWaits},
    Effect{"TORCH_NCCL_AVOID_RECORD_STREAMS", If::kOn, "less memory"},
    Effect{"TORCH_NCCL_HIGH_PRIORITY", If::kOn, kTogether},
    Effect{"CUDA_DEVICE_MAX_CONNECTIONS", If::kSet, kTogether},
    Effect{"CUDA_LAUNCH_BLOCKING", If::kOn, "more time: nothing overlaps"},
    Effect{"PYTORCH_NO_CUDA_MEMORY_CACHING", If::kOn, "more time: the driver allocates every tensor"},
    Effect{"PYTORCH_TUNABLEOP_ENABLED", If::kOn, "less time of products"},
    Effect{"NVIDIA_TF32_OVERRIDE", If::kSet, "other times of products in fp32"},
    Effect{"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", If::kOn, "less time of products in fp32"},
    Effect{"NVTE_FLASH_ATTN", If::kOff, kAttention},
    Effect{"NVTE_FUSED_ATTN", If::kOff, kAttention},
    Effect{"NVTE_ALLOW_NONDETERMINISTIC_ALGO", If::kOff, "more time: attention is deterministic"},
    Effect{"ACCELERATE_MIXED_PRECISION", If::kSet, kAccelerates, Changes::kMemory},
    Effect{"ACCELERATE_USE_*", If::kOn, kAccelerates, Changes::kMemory},
    Effect{"ACCELERATE_DYNAMO_*", If::kSet, kAccelerates, Changes::kMemory},
    Effect{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", If::kSet, kAccelerates, Changes::kMemory},
    Effect{"FSDP_*", If::kSet, kAccelerates, Changes::kMemory}};

// The others of these libraries, except those that change nothing.
constexpr std::array kEffectsOfOthers = {Effect{"NCCL_*", If::kSet, "other times of collectives"},
                                         Effect{"NVTE_*", If::kSet, "other times of Transformer Engine's kernels"}};

// Which cards NCCL uses is the "network" of a session, ranks are counted elsewhere, and a command that compiles or
// trains in FP8 says so itself.
constexpr std::array<std::string_view, 7> kChangeNothing = {
    "NCCL_DEBUG* NCCL_SOCKET_IFNAME NCCL_SOCKET_FAMILY NCCL_IB_HCA NCCL_IB_GID_INDEX NCCL_IB_TIMEOUT "
    "NCCL_IB_RETRY_CNT NCCL_IB_TC NCCL_IB_SL NCCL_TOPO_DUMP_FILE NCCL_GRAPH_DUMP_FILE NCCL_HOSTID NCCL_TIMEOUT "
    "NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_* GLOO_SOCKET_IFNAME TP_SOCKET_IFNAME",
    "TORCHINDUCTOR_* TORCHDYNAMO_* TORCH_COMPILE_DISABLE TORCHELASTIC_* TORCH_FR_* TORCH_LOGS* TORCH_CPP_LOG_LEVEL "
    "TORCH_SHOW_CPP_STACKTRACES TORCH_DISTRIBUTED_DEBUG TORCH_HOME TORCH_EXTENSIONS_DIR TORCH_CUDA_ARCH_LIST "
    "CUBLAS_WORKSPACE_CONFIG TRITON_CACHE_DIR CUDA_CACHE_* CUDA_HOME CUDA_PATH",
    "NVTE_FLASH_ATTN NVTE_FUSED_ATTN NVTE_UNFUSED_ATTN NVTE_ALLOW_NONDETERMINISTIC_ALGO NVTE_FP8_* NVTE_DEBUG* "
    "NVTE_FRAMEWORK",
    "DS_ACCELERATOR DS_BUILD_* DS_SKIP_CUDA_CHECK DS_IGNORE_CUDA_DETECTION DEEPSPEED_TIMEOUT ACCELERATE_LOG_LEVEL "
    "OMP_NUM_THREADS MKL_NUM_THREADS KMP_* MAX_JOBS AXOLOTL_DO_NOT_TRACK AXOLOTL_LOG_LEVEL AXOLOTL_NCCL_TIMEOUT "
    "DO_NOT_TRACK LLAMAFACTORY_VERBOSITY ALLOW_EXTRA_ARGS",
    "CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES CUDA_DEVICE_ORDER "
    "MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK LOCAL_SIZE NODE_RANK NNODES NPROC_PER_NODE GPUS_PER_NODE "
    "FORCE_TORCHRUN PET_* SLURM_* OMPI_*",
    "WANDB_* MLFLOW_* COMET_* CLEARML_* NEPTUNE_* SWANLAB_* TENSORBOARD_* TF_CPP_MIN_LOG_LEVEL LOGLEVEL LOG_LEVEL "
    "RECORD_VRAM HF_* HUGGINGFACE_* HUGGING_FACE_* TRANSFORMERS_* TOKENIZERS_PARALLELISM DISABLE_VERSION_CHECK",
    "PYTHON* PATH LD_LIBRARY_PATH LD_PRELOAD HOME TMPDIR XDG_* LANG LC_* KRIGTUNE_*"};

bool is_off(const std::string& value) {
  const std::string word = lower_case(value);
  return word == "0" || word == "false" || word == "no" || word == "off";
}

bool is_placeholder(const std::string& value) { return value.find('{') != std::string::npos; }

bool applies(If when, const std::string& value) {
  if (is_placeholder(value)) return true;
  if (when == If::kOff) return is_off(value);
  return !value.empty() && (when == If::kSet || !is_off(value));
}

bool matches(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

const Effect* find_effect(const auto& effects, std::string_view name) {
  const auto* found =
      std::find_if(effects.begin(), effects.end(), [&](const Effect& effect) { return matches(effect.name, name); });
  return found == effects.end() ? nullptr : found;
}

bool changes_nothing(std::string_view name) {
  return std::any_of(kChangeNothing.begin(), kChangeNothing.end(), [&](std::string_view names) {
    while (!names.empty()) {
      const std::size_t end = std::min(names.find(' '), names.size());
      if (matches(names.substr(0, end), name)) return true;
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    return false;
  });
}

bool is_of_allocator(std::string_view name) {
  return name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF" || name == "PYTORCH_HIP_ALLOC_CONF";
}

// Fragments are a part of the bounds of predictions.
const char* effect_on_fragments(const std::string& value) {
  const bool expands = lower_case(value).find("expandable_segments:true") != std::string::npos;
  return expands ? "less memory: fewer fragments" : "other memory: other fragments";
}

class Sorter {
 public:
  Sorter(const Variables& variables, Framework framework, bool offloads, Caveats& caveats)
      : variables_(variables), framework_(framework), offloads_(offloads), caveats_(caveats) {}

  void sort() {
    for (const auto& [name, value] : variables_) see(name, value);
    if (is_switched_off("NVTE_FLASH_ATTN") && is_switched_off("NVTE_FUSED_ATTN")) {
      add_once("attention without a fused kernel (NVTE_FLASH_ATTN=0, NVTE_FUSED_ATTN=0): more memory and time",
               caveats_.not_modelled);
    }
    if (unknown_.empty()) return;
    add_once(fmt::format("{} {} neither time nor memory, because krigtune does not know {}", join(unknown_, ", "),
                         unknown_.size() == 1 ? "changes" : "change", unknown_.size() == 1 ? "it" : "them"),
             caveats_.assumed);
  }

 private:
  void see(const std::string& name, const std::string& value) {
    if (const auto effect = effect_of(name, value)) {
      const std::string what = is_placeholder(value) ? name : fmt::format("{}={}", name, value);
      add_once(fmt::format("{}: {}", what, effect->text),
               effect->changes == Changes::kMemory ? caveats_.not_modelled : caveats_.also_not_modelled);
    } else if (!is_known(name) && !is_placeholder(value)) {
      add_once(name, unknown_);
    }
  }

  // Empty if it changes nothing, or if nobody knows it.
  std::optional<Effect> effect_of(const std::string& name, const std::string& value) const {
    if (is_of_allocator(name)) return Effect{name, If::kSet, effect_on_fragments(value)};
    if (name == "OMP_NUM_THREADS" && offloads_) return Effect{name, If::kSet, "other times of the update on the host"};
    if (name == "TORCH_DISTRIBUTED_DEBUG" && lower_case(value) == "detail")
      return Effect{name, If::kSet, "more time: every collective is checked first"};
    if (name == "CUDA_DEVICE_MAX_CONNECTIONS" && value == "1" && is_usual_with_one_connection()) return std::nullopt;
    const Effect* effect = find_effect(kEffects, name);
    if (effect == nullptr && !changes_nothing(name)) effect = find_effect(kEffectsOfOthers, name);
    return effect != nullptr && applies(effect->when, value) ? std::optional(*effect) : std::nullopt;
  }

  static bool is_known(std::string_view name) {
    return is_of_allocator(name) || changes_nothing(name) || find_effect(kEffects, name) != nullptr ||
           find_effect(kEffectsOfOthers, name) != nullptr;
  }

  // The measured steps that their predictions were compared with had it.
  bool is_usual_with_one_connection() const {
    return framework_ == Framework::kMegatron || framework_ == Framework::kNanotron;
  }

  bool is_switched_off(std::string_view name) const {
    return std::any_of(variables_.begin(), variables_.end(),
                       [&](const auto& one) { return one.first == name && is_off(one.second); });
  }

  const Variables& variables_;
  Framework framework_;
  bool offloads_;
  Caveats& caveats_;
  std::vector<std::string> unknown_;
};

}  // namespace

void add_variables(const Variables& variables, Framework framework, bool offloads, Caveats& caveats) {
  Sorter(variables, framework, offloads, caveats).sort();
}

}  // namespace krigtune::workload
