// A model of which only the number of parameters is known, as a GPT of the usual shape: the width of the nearest model
// in Brown et al. 2020 (arXiv:2005.14165, table 2.1), and as many layers as make up the number:
//
//   P = 12 layers hidden^2 + vocab hidden,   vocab = 50257 (GPT-2's) where no flag says it
//
// Is that of use? On the 8 replayed spaces of ultrascale_dev (Llama models of 1.3 and 80 billion parameters with a
// vocabulary of 131072) `bayes` needed 2.1 trials to 5 % with the exact shape, 2.1 with this one, 3.3 without any. The
// tokens of a sequence matter more: 2.3 with half of them, 2.9 with twice, 7.9 with four times as many
// (experiments/search/guessed_shape.py). A measured activation tells them no better than that, since recomputation and
// the kind of attention are not known (a factor of 17 between 34 s h and 2 s h bytes a layer: Korthikanti et al. 2022,
// arXiv:2205.05198, table 2); so without a flag that says them there is no guess.
#include <array>
#include <cmath>

#include "ds_job.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

struct Published {
  double params;
  std::int64_t hidden;
  std::int64_t head;  ///< width of one
};
constexpr std::array<Published, 8> kGpt3 = {{{125e6, 768, 64},
                                             {350e6, 1024, 64},
                                             {760e6, 1536, 96},
                                             {1.3e9, 2048, 128},
                                             {2.7e9, 2560, 80},
                                             {6.7e9, 4096, 128},
                                             {13e9, 5120, 128},  // 5140 in the paper: 40 heads of 128 are 5120
                                             {175e9, 12288, 128}}};

const Published& nearest(double params) {
  const auto distance = [&](const Published& one) { return std::abs(std::log(one.params / params)); };
  const Published* best = kGpt3.data();
  for (const Published& one : kGpt3) {
    if (distance(one) < distance(*best)) best = &one;
  }
  return *best;
}

}  // namespace

// A sequence leaves 34 s h bytes in each layer of 16-bit numbers, and 2 s h where it is recomputed (Korthikanti et al.
// 2022, eq. 1 with flash attention; table 2), and with either up to 6 s vocab in the logits: between the two is
// s (sqrt(34 * 2) h layers + 6 vocab).
Recomputation recomputation_of(const DsJob& job) {
  if (job.has_flag(kCheckpointing)) return Recomputation::kByFlag;
  const std::optional<double>& slope = job.inputs.model.activation_slope_bytes;
  if (job.workload.is_null() || !slope) return Recomputation::kUnknown;
  const Workload workload = read_workload(job.workload, job.source, "/workload");
  const ModelSpec& model = workload.model;
  const double scale = workload.precision == Precision::kFp32 ? 2.0 : 1.0;
  const double blocks = std::sqrt(34.0 * 2.0) * static_cast<double>(model.hidden * model.layers);
  const double between = (blocks + 6.0 * static_cast<double>(model.vocab)) * static_cast<double>(model.seq_len) * scale;
  return *slope < between ? Recomputation::kFull : Recomputation::kNone;
}

Json usual_shape(std::int64_t num_params, std::int64_t vocab) {
  const Published& gpt = nearest(static_cast<double>(num_params));
  const auto hidden = static_cast<double>(gpt.hidden);
  const double blocks = static_cast<double>(num_params) - static_cast<double>(vocab) * hidden;
  const std::int64_t layers = std::llround(blocks / (12.0 * hidden * hidden));
  if (layers < 1) return {};
  return {{"layers", layers}, {"hidden", gpt.hidden}, {"heads", gpt.hidden / gpt.head}, {"vocab", vocab}};
}

}  // namespace krigtune
