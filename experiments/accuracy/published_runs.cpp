// Where the table leaves something open, the row says in `assumed` what was taken.
#include "published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "core/units.h"
#include "published_models.h"
#include "table_rows.h"

namespace krigtune::accuracy {
namespace {

constexpr double kTera = 1e12;

struct Gpus {
  const char* id;
  std::int64_t per_node;
  const char* network;  ///< one card of this rate per GPU, unless the vendor's reference design has another
};
const std::map<std::string, Gpus>& gpus_of_table() {
  static const std::map<std::string, Gpus> kGpus = {
      {"H100", {"h100-80gb", 8, "ib-ndr-400"}},
      {"H200", {"h200-141gb", 8, "ib-ndr-400"}},
      {"H800", {"h800-80gb", 8, "ib-ndr-400"}},
      {"A100-80GB", {"a100-80gb", 8, "ib-hdr-200"}},
      {"B200", {"b200-180gb", 8, "ib-ndr-400"}},
      {"B300", {"b300-288gb", 8, "ib-xdr-800"}},
      {"GB200", {"gb200-186gb", 4, "ib-ndr-400"}},
      {"GB300", {"gb300-288gb", 4, "ib-xdr-800"}},
      {"MI300", {"mi300x-192gb", 8, "ib-ndr-400"}},
      {"MI325X", {"mi325x-256gb", 8, "ib-ndr-400"}},
      {"MI355", {"mi355x-288gb", 8, "ib-ndr-400"}},
      {"MI355X", {"mi355x-288gb", 8, "ib-ndr-400"}},
      {"Ampere (A100 class)", {"a100-80gb", 8, "ib-hdr-200"}},
      {"H200 (text says B200)", {"h200-141gb", 8, "ib-ndr-400"}},
  };
  return kGpus;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// A row, with empty cells as empty values.
class Row {
 public:
  /// `schedule`: that of the row of the same job that states it, or of this one.
  Row(const Table& table, std::size_t row, std::size_t schedule) : table_(table), row_(row), schedule_(schedule) {}
  const std::string& text(std::string_view column) const {
    return table_.text(column == "schedule" ? schedule_ : row_, column);
  }
  bool takes_schedule() const { return schedule_ != row_; }
  const std::string& schedule_id() const { return table_.text(schedule_, "id"); }
  std::optional<std::int64_t> count(std::string_view column) const {
    const std::string& cell = text(column);
    const bool is_count = !cell.empty() && cell.find_first_not_of("0123456789") == std::string::npos;
    return is_count ? std::optional(table_.integer(row_, column)) : std::nullopt;  // "On"
  }
  std::int64_t ways(std::string_view column) const { return std::max<std::int64_t>(1, count(column).value_or(1)); }
  // Sources write "~704" too.
  double real(std::string_view column) const {
    const std::string& cell = text(column);
    return cell.empty() ? 0.0 : std::stod(cell.front() == '~' ? cell.substr(1) : cell);
  }

 private:
  const Table& table_;
  std::size_t row_, schedule_;
};

bool is_same_job(const Table& table, std::size_t one, std::size_t other) {
  const auto name = [&](std::size_t row) {
    const std::string& model = table.text(row, "model");
    if (model == "Nemotron_3_5_Lightning") return std::string("Nemotron_3_Nano");  // whose recipe it changes
    return model.substr(0, model.find(" (hybrid"));
  };
  constexpr std::array kColumns = {"gpu", "precision", "seq_len", "mbs", "tp", "pp", "vp", "ep"};
  return name(one) == name(other) && std::ranges::all_of(kColumns, [&](const char* column) {
           return table.text(one, column) == table.text(other, column);
         });
}

// Megatron-Bridge states the dispatcher, overlap and kernels of its runs up to release 26.06.01. Its later runs of the
// same jobs, whose recipes did not change in this, are taken to have them too.
std::size_t schedule_row(const Table& table, std::size_t row) {
  const std::string& source = table.text(row, "source");
  const bool is_later =
      source == "Megatron-Bridge model verification cards" || table.text(row, "source_part") == "26.08";
  const auto states_dispatcher = [&](std::size_t of) {
    const std::string& schedule = table.text(of, "schedule");
    return contains(schedule, "hybridep") || contains(schedule, "overlap") || contains(schedule, "graph");
  };
  if (!contains(source, "Megatron-Bridge") || !is_later || states_dispatcher(row)) return row;
  for (std::size_t other = 0; other < table.rows(); ++other) {
    const bool states = contains(table.text(other, "source_part"), "26.06") && states_dispatcher(other);
    if (states && is_same_job(table, row, other)) return other;
  }
  return row;
}

bool is_fp8(const std::string& precision) { return contains(precision, "FP8") || precision == "NVFP4"; }

// "FP8" is that of Hopper, and "FP8-CS" current scaling.
workload::ProductFormat products_of(const std::string& precision) {
  using workload::ProductFormat;
  if (precision == "NVFP4") return ProductFormat::kNvFp4;
  if (precision == "MXFP8" || precision == "FP8-MX") return ProductFormat::kMxFp8;
  if (precision == "FP8 blockwise") return ProductFormat::kFp8Blockwise;
  return is_fp8(precision) ? ProductFormat::kFp8Tensorwise : ProductFormat::kAsModel;
}

// "ZB-1p" and "ZB-2p" are schedules found by a search for the memory of H1 and of H2 (arXiv:2401.10241, section 5).
const char* schedule_of(const std::string& schedule) {
  if (contains(schedule, "ZB-1p")) return "zb-h1";
  if (contains(schedule, "ZB-2p")) return "zb-h2";
  if (contains(schedule, "ZB-V") || contains(schedule, "ZBV")) return "zb-v";
  return "1f1b";
}
bool is_zero_bubble(const Row& row) { return std::string_view(schedule_of(row.text("schedule"))) != "1f1b"; }

std::string group_of(const Row& row, const workload::ModelSpec& model) {
  if (row.text("task") == "lora") return "adapters";
  if (row.ways("cp") > 1) return "context parallel";
  const char* kind = model.is_hybrid() ? "hybrids" : model.has_experts() ? "experts" : "dense";
  const std::string& precision = row.text("precision");
  if (precision == "NVFP4") return fmt::format("{}, fp4", kind);
  if (is_fp8(precision)) return fmt::format("{}, fp8", kind);
  if (is_zero_bubble(row) && !model.has_experts()) return "dense, bf16, zero bubble";
  if (row.ways("vp") > 1 && !model.has_experts() && !model.is_hybrid()) return "dense, bf16, interleaved";
  return fmt::format("{}, bf16", kind);
}

// Why the models cannot be asked, as far as the row alone says it.
std::string not_asked(const Row& row, bool known_model) {
  const std::string& schedule = row.text("schedule");
  if (!known_model) return "a model of other layers";
  if (!row.count("gpus") || !row.count("seq_len") || !row.count("gbs")) return "not stated: GPUs, sequence or batch";
  if (!row.count("tp") || !row.count("pp")) return "not stated: tensor or pipeline parallelism";
  if (contains(row.text("notes"), "packed rows")) return "fine-tuning on packed real data, not tuned";
  if (contains(schedule, "V-half") || contains(schedule, "V-min") || contains(schedule, "zero bubble"))
    return "another pipeline schedule without bubbles";
  return "";
}

// Sets what is computed again: everything, nothing, or modules of Megatron, of which the ModelZoo writes short names.
void set_recomputation(const std::string& recompute, PublishedRun& run) {
  const auto set = [&](const char* word) { run.configuration.set("activation_checkpointing", std::string(word)); };
  if (recompute == "full") return set("full");
  if (recompute.empty() || contains(recompute, "none")) return set("none");
  if (contains(recompute, "full:") || contains(recompute, "save_dot")) {
    run.assumed.push_back("recomputation of other modules: " + recompute);
    return set("none");
  }
  set("selective");
  std::string modules = recompute;
  if (contains(recompute, "norm, act"))
    modules = contains(recompute, "shared_expert") ? "layernorm+moe_act+shared_experts" : "layernorm+moe_act";
  run.configuration.set("recompute_modules", modules);
}

void set_framework(const Row& row, PublishedRun& run) {
  using workload::Framework;
  workload::Workload& workload = run.workload;
  const std::string& schedule = row.text("schedule");
  run.configuration.set("zero_stage", std::int64_t{1});
  workload.framework = Framework::kMegatron;
  if (contains(schedule, "ZeRO-3 (DeepSpeed)")) {
    workload.framework = Framework::kDeepSpeed;
    workload.dialect = workload::Dialect::kDeepSpeed;
    workload.training.kernels = workload::Kernels::kFused;
    run.configuration.set("zero_stage", std::int64_t{3});
  } else if (row.ways("fsdp") > 1 || contains(schedule, "FSDP")) {
    // Megatron-FSDP; MaxText has fused kernels and cuDNN's attention too.
    run.configuration.set("zero_stage", std::int64_t{3});
  }
}

// Narayanan et al. 2021, equation 3, which counts the recomputation of the forward pass.
double narayanan_flops(const workload::ModelSpec& model, std::int64_t sequences) {
  const auto h = static_cast<double>(model.hidden), s = static_cast<double>(model.seq_len);
  const auto layers = static_cast<double>(model.layers);
  return 96.0 * static_cast<double>(sequences) * s * layers * h * h *
         (1.0 + s / (6.0 * h) + static_cast<double>(model.vocab) / (16.0 * layers * h));
}

double seconds_of(const Row& row, const PublishedRun& run) {
  const auto gpus = static_cast<double>(run.cluster.ranks());
  const std::int64_t sequences = *run.workload.train_batch_size;
  const double tokens = static_cast<double>(sequences * run.workload.model.seq_len);
  if (const double step_s = row.real("step_time_s"); step_s > 0.0) return step_s;
  if (const double rate = row.real("tokens_per_s_per_gpu"); rate > 0.0)
    return static_cast<double>(sequences * *row.count("seq_len")) / (rate * gpus);
  if (const double step_s = row.real("step_time_calc_s"); step_s > 0.0) return step_s;
  if (const double rate = row.real("tokens_per_s_total"); rate > 0.0) return tokens / rate;
  if (const double tflops = row.real("tflops_per_gpu"); tflops > 0.0) {
    const bool narayanan = contains(run.source, "Narayanan");
    const double flops =
        narayanan ? narayanan_flops(run.workload.model, sequences) : bridge_flops(run.workload.model, sequences);
    return flops / (tflops * kTera * gpus);
  }
  constexpr double kH100Tflops = 989.5;  // the only source that prints nothing but an MFU: arXiv:2504.14960
  if (const double mfu = row.real("mfu_pct"); mfu > 0.0)
    return bridge_flops(run.workload.model, sequences) / (0.01 * mfu * kH100Tflops * kTera * gpus);
  return 0.0;
}

// "59" in "GB, peak", "119040.02" in "MiB". Those who print GB read an allocator's bytes divided by 2^30.
std::optional<std::int64_t> peak_of(const Row& row) {
  const std::string& unit = row.text("mem_unit");
  const std::string& text = row.text("peak_mem");
  if (text.empty() || text.front() == '<') return std::nullopt;
  const double scale = contains(unit, "MiB") ? 1.0 / 1024.0 : 1.0;
  return from_gib(scale * std::stod(text)).count;
}

// As Megatron-Bridge trains it: te_quant.cfg and nemotron_3_super_bf16_with_nvfp4_mixed of its recipes; blocks that
// predict further tokens are in bf16 in every plan.
workload::PreciseProducts precise_of(const Row& row) {
  const bool is_super = contains(row.text("model"), "Nemotron_3_Super") && row.text("precision") == "NVFP4";
  return is_super ? workload::PreciseProducts{true, true, true, 14} : workload::PreciseProducts{};
}

// What a schedule says of kernels. A graph of a whole step of dropless experts needs kernels that read how many tokens
// each expert has on the device (docs/training/moe-optimization.md of Megatron-Bridge).
void set_kernels(const std::string& schedule, workload::TrainingSpec& training) {
  training.fused_experts = contains(schedule, "fused grouped MLP") || contains(schedule, "full_iteration");
  training.fp8_attention = contains(schedule, "fp8 att");
}

// The defaults of NeMo 24.07 (attention_qkv) and of Megatron-Bridge (all linear layers).
void set_adapters(PublishedRun& run) {
  workload::AdapterSpec& adapters = run.workload.training.lora;
  adapters.rank = 32;
  adapters.joined = true;
  const bool nemo = contains(run.source, "NeMo");
  if (nemo) adapters.targets = {true, true, true, false, false, false, false};
  run.assumed.emplace_back(nemo ? "adapters of rank 32 of q, k, v" : "adapters of rank 32 of all layers");
}

void set_layout(const Row& row, PublishedRun& run) {
  space::Configuration& configuration = run.configuration;
  configuration.set("overlap_comm", true);
  configuration.set("micro_batch", row.ways("mbs"));
  if (!row.count("mbs")) run.assumed.push_back("micro-batch of 1");
  for (const auto& [name, column] :
       {std::pair("tensor_parallel", "tp"), std::pair("pipeline_parallel", "pp"), std::pair("context_parallel", "cp"),
        std::pair("expert_parallel", "ep"), std::pair("virtual_pipeline", "vp")}) {
    const bool always = std::string_view(column) == "tp" || std::string_view(column) == "pp";
    const bool of_schedule = std::string_view(column) == "vp" && is_zero_bubble(row);  // ZB-V has two
    if (of_schedule) continue;
    if (always || row.ways(column) > 1) configuration.set(name, row.ways(column));
  }
  const std::int64_t tensor = row.ways("tp");
  // Korthikanti et al. 2022 came after Narayanan et al. 2021.
  if (tensor > 1) configuration.set("sequence_parallel", !contains(run.source, "Narayanan"));
  // As the ModelZoo's rows have that state it.
  const bool whole_experts = contains(run.source, "ModelZoo") && !row.count("etp");
  if (run.workload.model.has_experts() && row.count("etp").value_or(whole_experts ? 1 : tensor) != tensor) {
    configuration.set("expert_tensor_parallel", row.ways("etp"));
    if (whole_experts) run.assumed.emplace_back("whole experts");
  }
  const std::string& schedule = row.text("schedule");
  if (contains(schedule, "eepEP") || contains(schedule, "deepep") || contains(schedule, "ybridEP") ||
      contains(schedule, "hybridep"))
    configuration.set("moe_dispatch", std::string("flex"));
  // The report names DeepEP and HybridEP as the dispatchers of its runs across nodes, not row by row.
  if (contains(run.source, "2603.07685") && run.workload.model.has_experts()) {
    configuration.set("moe_dispatch", std::string("flex"));
    run.assumed.emplace_back("DeepEP or HybridEP");
  }
  const bool overlaps = contains(schedule, "a2a overlap") || contains(schedule, "EP overlap");
  if (overlaps && !contains(schedule, "no EP overlap") && !contains(schedule, "EP overlap off"))
    configuration.set("moe_overlap", true);
  if (is_zero_bubble(row)) configuration.set("pipeline_schedule", std::string(schedule_of(schedule)));
  set_recomputation(row.text("recompute"), run);
}

// A source that does not state it: the sequence that its tokens per second make of its step, or twice that if its
// FLOP/s are those of twice as many tokens.
std::int64_t sequence_of(const Row& row, workload::ModelSpec model) {
  const std::int64_t stated = *row.count("seq_len");
  const double tokens_per_s = row.real("tokens_per_s_per_gpu"), tflops = row.real("tflops_per_gpu");
  if (!contains(row.text("notes"), "seq_len computed from tokens/s") || !(tokens_per_s > 0.0)) return stated;
  model.seq_len = 2 * stated;
  const double flops_of_twice = bridge_flops(model, 1) / static_cast<double>(stated);
  return std::abs(tflops * kTera / tokens_per_s / flops_of_twice - 1.0) < 0.1 ? 2 * stated : stated;
}

PublishedRun run_of(const Row& row) {
  PublishedRun run;
  run.id = row.text("id");
  run.source = row.text("source");
  run.part = row.text("source_part");
  run.model = row.text("model");
  run.gpu = row.text("gpu");
  run.ran = row.text("status") == "ok";
  const std::optional<workload::ModelSpec> model = published_model(run.model);
  run.group = group_of(row, model.value_or(workload::ModelSpec{}));
  run.not_asked = not_asked(row, model.has_value());
  if (!run.not_asked.empty()) return run;
  run.workload.model = *model;
  run.workload.model.seq_len = sequence_of(row, *model);
  if (run.workload.model.seq_len != *row.count("seq_len"))
    run.assumed.push_back("sequences of twice the tokens, of which it states the FLOP/s");
  run.workload.train_batch_size = *row.count("gbs");
  const std::string& precision = row.text("precision");
  run.workload.precision = precision == "FP16" ? workload::Precision::kFp16 : workload::Precision::kBf16;
  if (precision.empty()) run.assumed.emplace_back("bf16");
  run.workload.training.products = products_of(precision);
  run.workload.training.precise = precise_of(row);
  set_kernels(row.text("schedule"), run.workload.training);
  if (row.text("task") == "lora") set_adapters(run);
  const Gpus& known = gpus_of_table().at(run.gpu);
  run.cluster = gpus(*row.count("gpus"), known.per_node, known.id, known.network);
  // Neither had FlashAttention: Zero Bubble's table 1 has the bytes of the scores. Megatron's dropout is 0.1.
  if (contains(run.source, "Narayanan") || contains(run.source, "Zero Bubble")) {
    run.workload.model.attention = workload::Attention::kEager;
    run.workload.model.dropout = 0.1;
  }
  set_framework(row, run);
  set_layout(row, run);
  run.seconds = seconds_of(row, run);
  run.peak_bytes = peak_of(row);
  return run;
}

}  // namespace

double bridge_flops(const workload::ModelSpec& model, std::int64_t sequences) {
  return workload::palm_flops(model, sequences) - 0.5 * workload::palm_attention_flops(model, sequences);
}

std::vector<PublishedRun> published_runs(const std::filesystem::path& data) {
  const Table table(data / "published_runs.csv");
  std::vector<PublishedRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) runs.push_back(run_of(Row(table, i, schedule_row(table, i))));
  return runs;
}

}  // namespace krigtune::accuracy
