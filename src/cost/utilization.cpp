// Model FLOPs utilization as in PaLM (Chowdhery et al. 2022, appendix B), for R tokens per second on N GPUs of peak F:
//
//   MFU = R (6 P + 12 L s h) / (N F),     without attention  R 6 P / (N F)
//
// P is the number of parameters in matrix products, including the head (workload/model.h). The causal mask does not
// halve attention. HFU counts what is computed, including recomputation: with full activation checkpointing the forward
// pass of every block once more (Narayanan et al. 2021, equation 3), with selective checkpointing of eager attention
// its core, 4 L s h per token. With flash attention, selective checkpointing recomputes no matrix products, so nothing
// is added.
#include "cost/utilization.h"

#include "cost/machine.h"

namespace krigtune::cost {
namespace {

double recomputed_flops(const workload::ModelSpec& model, schedule::Checkpointing checkpointing,
                        std::int64_t sequences) {
  constexpr double kForwardShare = 1.0 / 3.0;
  switch (checkpointing) {
    case schedule::Checkpointing::kNone:
      return 0.0;
    case schedule::Checkpointing::kSelective:
      return model.attention == workload::Attention::kEager
                 ? kForwardShare * workload::palm_attention_flops(model, sequences)
                 : 0.0;
    case schedule::Checkpointing::kFull:
      return workload::forward_block_flops(model, sequences);
  }
  return 0.0;
}

}  // namespace

std::optional<Utilization> utilization_of(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                                          schedule::Checkpointing checkpointing, std::int64_t sequences,
                                          double step_time_s) {
  const double peak = cluster.device ? peak_flops_per_s(*cluster.device, workload.precision) : 0.0;
  if (!(peak > 0.0) || !(step_time_s > 0.0)) return std::nullopt;
  const workload::ModelSpec& model = workload.model;
  const auto gpus = static_cast<double>(cluster.ranks());
  const double all = workload::palm_flops(model, sequences) - workload::spared_flops(workload, sequences);
  const auto share = [&](double flops) { return flops / step_time_s / gpus / peak; };
  Utilization utilization;
  utilization.tokens_per_s_per_gpu =
      static_cast<double>(sequences) * static_cast<double>(model.seq_len) / step_time_s / gpus;
  utilization.mfu = share(all);
  utilization.mfu_without_attention = share(all - workload::palm_attention_flops(model, sequences));
  utilization.hfu = share(all + recomputed_flops(model, checkpointing, sequences));
  utilization.too_good = utilization.mfu > kTooGoodMfu * product_flops_per_s(*cluster.device, workload) / peak;
  return utilization;
}

}  // namespace krigtune::cost
