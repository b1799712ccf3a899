// The section of `krigtune plan` that describes the job: its model, how it trains, and the machine.
#include <fmt/format.h>

#include "core/text.h"
#include "cost/framework.h"
#include "programs/krigtune/plan_tables.h"
#include "programs/krigtune/plan_text.h"
#include "search/model/job_words.h"

namespace krigtune::cli {
namespace {

std::string machine_text(const workload::ClusterSpec& cluster) {
  if (!cluster.network) return counted(cluster.ranks(), "rank") + " on this machine";
  const auto link = [](const workload::NetworkLevel& level, const char* where) {
    return fmt::format("{} {} ({:.3g} GB/s a GPU)", level.name, where, level.bytes_per_s / 1e9);
  };
  const std::string joined = fmt::format("among {} GPUs", cluster.domain());
  const bool is_node = cluster.domain() == cluster.gpus_per_node;
  const std::string within = link(cluster.network->intra, is_node ? "within a node" : joined.c_str());
  if (cluster.nodes == 1) return fmt::format("{} x {}, {}", cluster.gpus_per_node, cluster.gpu, within);
  std::string nodes =
      fmt::format("{} nodes of {} x {},\n  {}", cluster.nodes, cluster.gpus_per_node, cluster.gpu, within);
  if (cluster.ranks() <= cluster.domain()) return nodes;
  return nodes + ", " + link(cluster.network->inter, is_node ? "between nodes" : "beyond these");
}

std::string experts_text(const workload::ModelSpec& model, const char* mlp) {
  const workload::ExpertSpec& experts = model.experts;
  std::string text = fmt::format("{} experts ({} of width {}) of which a token uses {}", experts.count, mlp,
                                 experts.ffn_hidden, experts.per_token);
  if (experts.shared_ffn_hidden > 0) text += fmt::format(", and a shared one of width {}", experts.shared_ffn_hidden);
  return experts.latent > 0 ? text + fmt::format(", on vectors of {} numbers", experts.latent) : text;
}

// The kinds of layers of a hybrid model, and their sizes.
std::string hybrid_text(const workload::ModelSpec& model, const char* mlp) {
  std::vector<std::string> parts;
  for (const workload::LayersOfKind& of : model.kinds())
    parts.push_back(fmt::format("{} layers of {}", of.layers, workload::to_string(of.kind)));
  const workload::MambaSpec& mamba = model.mamba;
  const workload::DeltaSpec& delta = model.delta;
  if (mamba.heads > 0)
    parts.push_back(
        fmt::format("{} heads of Mamba-2 of width {} and state {}", mamba.heads, mamba.head_dim, mamba.state));
  if (delta.value_heads > 0)
    parts.push_back(
        fmt::format("{} delta heads of width {} for {} of keys", delta.value_heads, delta.value_dim, delta.key_heads));
  if (model.dense_layers() > 0) parts.push_back(fmt::format("{} of width {}", mlp, model.ffn_hidden));
  if (model.has_experts()) parts.push_back(experts_text(model, mlp));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string mlp_text(const workload::ModelSpec& model) {
  const char* const mlp = model.gated_mlp ? "gated MLP" : "MLP";
  if (model.is_hybrid()) return hybrid_text(model, mlp);
  if (!model.has_experts()) return fmt::format("{} of width {}", mlp, model.ffn_hidden);
  if (!model.has_two_kinds_of_layers()) return experts_text(model, mlp);
  return experts_text(model, mlp) + fmt::format(" (in {} of {} layers one {} of width {} instead)",
                                                model.dense_layers(), model.layers, mlp, model.ffn_hidden);
}

std::string parameters_text(const workload::ModelSpec& model) {
  std::string text = count_text(static_cast<double>(workload::parameter_count(model))) + " parameters";
  if (!model.has_experts()) return text;
  return text + fmt::format(", of which a token uses {}",
                            count_text(static_cast<double>(workload::active_parameter_count(model))));
}

std::string heads_text(const workload::ModelSpec& model) {
  const std::string heads = fmt::format("{} heads", model.heads);
  if (model.has_latents()) {
    const workload::LatentSpec& latent = model.latent;
    const std::string queries =
        latent.q_rank > 0 ? fmt::format("queries from {} numbers a token, ", latent.q_rank) : "";
    return heads + fmt::format(" of width {} (latent attention: {}keys and values of width {} from {})",
                               model.head_width(), queries, latent.value_dim, latent.kv_rank);
  }
  const std::string width = model.head_dim == 0 ? "" : fmt::format(" of width {}", model.head_dim);
  const std::string shared =
      model.kv_heads == model.heads ? "" : fmt::format(" ({} for keys and values)", model.kv_heads);
  return heads + width + shared;
}

std::string architecture_text(const workload::ModelSpec& model) {
  return fmt::format("{}, {}, {}, {} positions, {} embeddings, vocabulary of {}", heads_text(model), mlp_text(model),
                     model.norm == workload::Norm::kRmsNorm ? "RMSNorm" : "LayerNorm",
                     model.positions == workload::Positions::kRotary ? "rotary" : "learned",
                     model.tied_embeddings ? "tied" : "untied", model.vocab);
}

// Empty if all weights are trained.
std::string training_text(const workload::Workload& workload) {
  const workload::TrainingSpec& training = workload.training;
  if (!training.freezes()) return "";
  std::vector<std::string> layers;
  for (int i = 0; i < workload::kAdaptedLayerCount; ++i) {
    const auto layer = static_cast<workload::AdaptedLayer>(i);
    const bool exists = layer != workload::AdaptedLayer::kGate || workload.model.gated_mlp;
    if (exists && training.lora.targets_layer(layer)) layers.emplace_back(workload::to_string(layer));
  }
  const std::string base =
      training.base_bits()
          ? fmt::format("frozen, those of the blocks in {:.4g} bits with their constants", *training.base_bits())
          : "frozen";
  return fmt::format("trained: adapters of rank {} on {} ({} parameters); all other weights are {}", training.lora.rank,
                     join(layers, ", "), count_text(static_cast<double>(workload::adapter_parameter_count(workload))),
                     base);
}

// Returns ", compiled, fused loss"; empty if all is as usual.
std::string kernels_text(const workload::TrainingSpec& training) {
  std::string text;
  if (training.states == workload::OptimizerStates::kAsModel) text += " in the weights' type";
  if (training.compile) text += ", compiled";
  if (training.kernels) text += *training.kernels == workload::Kernels::kEager ? ", eager kernels" : ", fused kernels";
  if (training.loss == workload::LossKind::kFused) text += ", fused loss";
  return text;
}

}  // namespace

void print_training(std::ostream& out, const session::Session& session) {
  const workload::Workload& workload = *session.workload;
  const workload::ModelSpec& model = workload.model;
  out << "Job\n"
      << wrapped(fmt::format("  {}: {}, hidden size {}, {} tokens a sequence", parameters_text(model),
                             counted(model.layers, "layer"), model.hidden, model.seq_len),
                 2);
  out << wrapped("  " + architecture_text(model), 2);
  if (const std::string training = training_text(workload); !training.empty()) out << wrapped("  " + training, 2);
  std::string batch;
  if (workload.train_batch_size) {  // in tokens too, since train_batch_size is often mistaken for their number
    const auto sequences = static_cast<double>(*workload.train_batch_size);
    batch = fmt::format(", {} ({} tokens) a step", counted(*workload.train_batch_size, "sequence"),
                        count_text(sequences * static_cast<double>(model.seq_len)));
  }
  out << fmt::format("  {}, {}{}{}, trained by {}\n", workload::precision_word(workload),
                     workload::traits_of(workload.optimizer).name, kernels_text(workload.training), batch,
                     cost::traits_of(workload.framework).name);
}

void print_job(const PlanText& text) {
  if (text.assumed) {
    text.out << "Job\n" << wrapped("  " + search::assumed_job_sentence(*text.assumed), 2) << '\n';
  }
  if (!text.session.workload) return;
  print_training(text.out, text.session);
  text.out << fmt::format("  {}\n", machine_text(text.session.cluster));
  text.out << '\n';
}

}  // namespace krigtune::cli
