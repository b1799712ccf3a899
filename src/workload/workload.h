#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/codec.h"
#include "core/units.h"
#include "workload/hardware.h"
#include "workload/measured_machine.h"
#include "workload/model.h"
#include "workload/optimizer.h"
#include "workload/training.h"

namespace krigtune::workload {

inline constexpr EnumWords<Precision, 3> kPrecisionWords = {{{to_string(Precision::kFp32), Precision::kFp32},
                                                             {to_string(Precision::kFp16), Precision::kFp16},
                                                             {to_string(Precision::kBf16), Precision::kBf16}}};

/// Whose schedule is used. kCanonical is based on reduce-scatter, as in the ZeRO paper (Rajbhandari et al. 2020),
/// Megatron and FSDP; kDeepSpeed is what DeepSpeed's code does.
enum class Dialect { kCanonical, kDeepSpeed };

/// The program that trains; it determines the buffers and the schedule (cost/framework.h). kKrigtune is krigtune-bench.
enum class Framework { kKrigtune, kDeepSpeed, kFsdp, kMegatron, kNanotron };
inline constexpr EnumWords<Framework, 5> kFrameworkWords = {{{"krigtune", Framework::kKrigtune},
                                                             {"deepspeed", Framework::kDeepSpeed},
                                                             {"fsdp", Framework::kFsdp},
                                                             {"megatron", Framework::kMegatron},
                                                             {"nanotron", Framework::kNanotron}}};

/// The training job: the session's block "workload".
struct Workload {
  ModelSpec model;
  Precision precision = Precision::kFp32;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  TrainingSpec training = {};
  std::optional<std::int64_t> train_batch_size;  ///< sequences per step; empty: may vary
  Dialect dialect = Dialect::kCanonical;
  double gradient_clipping = 0.0;  ///< largest norm of all gradients; 0: no clipping
  Framework framework = Framework::kKrigtune;
  /// If anything is not modelled, predictions are rough, and no configuration is excluded because of its memory.
  Caveats caveats{};
};

/// Returns the word of "precision" in a session: that of the products if they are narrower than the model's type.
std::string precision_word(const Workload& workload);
/// Returns whether norms and gated activations are PyTorch's own (Kernels::kEager): as the job says, else in the
/// frameworks that leave kernels to the model. A compiled model has fused ones.
bool has_eager_kernels(const Workload& workload);
/// Returns the type in which Megatron and nanotron sum gradients and send them: as the job says, else fp32, except that
/// Megatron sums those of a model in fp16 in fp16 (its docs, "Distributed optimizer": 4 + 16 / d bytes a parameter).
StateType kept_gradients(const Workload& workload);
/// Returns what krigtune-bench does not do of how the job trains, and predictions know: "adapters"; empty if it does
/// all.
const char* training_predicted_only(const Workload& workload);

/// Returns the parameters of the adapters; 0 without them.
std::int64_t adapter_parameter_count(const Workload& workload);
/// Returns the FLOPs by which model_flops and palm_flops of `sequences` sequences exceed those of the job: frozen
/// weights need no gradient, 2 FLOPs a token each, while adapters take 6. 0 if all weights are trained.
double spared_flops(const Workload& workload, std::int64_t sequences);

struct Hardware;

/// The machines: the session's block "cluster".
struct ClusterSpec {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 2;    ///< with gpu "local" and no GPU: CPU ranks
  std::int64_t gpus_per_domain = 0;  ///< GPUs that the links within a node join; 0: gpus_per_node
  std::string gpu = "local";
  std::optional<DeviceSpec> device;      ///< empty if "local"
  std::optional<NodeNetwork> network{};  ///< real links; empty if "local"
  std::optional<EmulatedNetwork> emulated_network;
  std::optional<MeasuredMachine> measured{};  ///< "local" after it was measured; not part of a session
  std::shared_ptr<const Hardware>
      hardware{};  ///< for "local" with "hardware": the tables in which this machine is looked up

  /// Nobody said how many ranks there are: gpus_per_node is only an assumption.
  bool assumes_ranks = false;

  std::int64_t ranks() const { return nodes * gpus_per_node; }
  std::int64_t domain() const { return gpus_per_domain > gpus_per_node ? gpus_per_domain : gpus_per_node; }
  /// "GPU-hours", or "rank-hours" where the ranks may run on processors.
  const char* hours_unit() const { return is_local() ? "rank-hours" : "GPU-hours"; }
  bool is_local() const { return gpu == "local"; }  ///< no GPU is named: the job runs on this machine, whatever it has
};

/// kDeepSpeedAutotuner: the formula of DeepSpeed's autotuner, for comparison.
enum class MemoryModelKind { kKrigtune, kDeepSpeedAutotuner };

/// The session's block "memory".
struct MemorySpec {
  std::optional<double> limit_gib;       ///< per rank; empty: the memory of the device
  std::optional<double> host_limit_gib;  ///< host memory of a node; empty: no limit
  double reserve_fraction = 0.05;        ///< ignored if the plan is exact
  MemoryModelKind model = MemoryModelKind::kKrigtune;
  double peak_factor = 1.0;  ///< measured over planned peaks in earlier runs; ignored if the plan is exact
};

/// Paths are relative to `base_dir`.
Workload read_workload(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir = {});
/// Reads "local" or an object. Throws UserError for unknown devices and networks.
ClusterSpec read_cluster(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                         const std::filesystem::path& base_dir = {});
MemorySpec read_memory(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer);
nlohmann::ordered_json to_json(const Workload& workload);
nlohmann::ordered_json to_json(const ClusterSpec& cluster);
nlohmann::ordered_json to_json(const MemorySpec& memory);

/// Returns the JSON Schemas of the blocks.
nlohmann::ordered_json workload_schema();
nlohmann::ordered_json framework_schema();  ///< of the key beside "cluster", for sessions without a workload
nlohmann::ordered_json cluster_schema();
nlohmann::ordered_json memory_schema();

/// Returns the bytes that one rank may use: the stated limit, or else the machine's memory divided by its local ranks.
Bytes memory_limit_per_rank(const MemorySpec& memory, const ClusterSpec& cluster);

}  // namespace krigtune::workload
