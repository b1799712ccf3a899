// What predictions of a session leave out that its model and its recipe do not say: parameters that only count as
// divisors, environment variables of its trials, and two costs of work on the host.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "core/text.h"
#include "cost/framework.h"
#include "cost/machine.h"
#include "jobs/command/command.h"
#include "session/session_blocks.h"
#include "space/usual_names.h"
#include "space/well_known.h"
#include "workload/variables.h"

namespace krigtune::session {
namespace {

// Calls `see` for each value that configurations of the session may have.
template <class See>
void for_each_value(const Session& session, const char* name, const See& see) {
  if (const space::Parameter* parameter = space::find_usual(session.space.parameters(), name)) {
    for (const space::Value& value : parameter->values) see(value);
  } else if (const space::Value* fixed = session.space.facts().fixed.find(name)) {
    see(*fixed);
  }
}

bool may_be(const Session& session, const char* name, const space::Value& wanted) {
  bool found = false;
  for_each_value(session, name, [&](const space::Value& value) { found = found || value == wanted; });
  return found;
}

bool may_reach(const Session& session, const char* name, double least) {
  bool found = false;
  for_each_value(session, name, [&](const space::Value& value) {
    found = found || (space::is_number(value) && space::as_number(value) >= least);
  });
  return found;
}

workload::Variables variables_of(const Session& session) {
  const std::optional<runner::UsersProgram> program = runner::users_program(session.runner);
  if (!program) return {};
  workload::Variables variables;
  if (!program->argv.empty()) variables = jobs::variables_of(jobs::read_command(program->argv));
  variables.insert(variables.end(), program->environment.begin(), program->environment.end());
  return variables;
}

bool offloads_update(const Session& session) { return may_be(session, space::kOffloadOptimizer, std::string("cpu")); }

// Times of this machine itself are calibrated with what was measured on it.
bool predicts_time_of_gpus(const Session& session) {
  return session.cluster.device.has_value() && !session.cluster.is_local() &&
         session.workload->framework != workload::Framework::kKrigtune;
}

// Predictions update parameters at the rate of all processors of a node, but torch.distributed.run gives each of
// several ranks one thread. Llama-7B on 8 A800, 64 sequences of 4096 tokens a step: the update took 17 s (ZeRO stage 3)
// and 20 s (stage 2) longer than on the GPUs (gist chenyaofo/d4cd6a20), and predictions add 1.2 and 1.5 s.
void add_update_on_host(const Session& session, workload::Caveats& caveats) {
  if (!predicts_time_of_gpus(session) || session.cluster.gpus_per_node < 2 || !offloads_update(session)) return;
  workload::add_once(
      fmt::format("the {} that share the processors of a node while they update offloaded parameters: more time, in a "
                  "published run of 8 ranks the update took more than ten times as long as predicted",
                  counted(session.cluster.gpus_per_node, "rank")),
      caveats.also_not_modelled);
}

double fewest_sequences(const Session& session) {
  double fewest = std::numeric_limits<double>::infinity();
  for_each_value(session, space::kMicroBatch, [&](const space::Value& value) {
    if (space::is_number(value)) fewest = std::min(fewest, space::as_number(value));
  });
  return std::isfinite(fewest) ? fewest : 1.0;
}

// At stage 3 DeepSpeed's hooks gather and release the parameters of each module from Python. Micro-steps of 512 tokens
// took 0.385 s with 24 layers (BLOOM 560M on 2 TITAN RTX, BELLE#402; 0.147 s at stage 2) and 0.6 s with 32
// (DeepSpeedExamples, bf16_master_weight, 4 H100): 10 ms and more for a layer, beyond what kernels take.
void add_hooks_of_stage_3(const Session& session, workload::Caveats& caveats) {
  constexpr double kHooksOfALayerS = 0.01;
  constexpr double kUsualUtilization = 0.5;
  const workload::Workload& workload = *session.workload;
  if (!predicts_time_of_gpus(session) || workload.framework != workload::Framework::kDeepSpeed) return;
  if (!may_reach(session, space::kZeroStage, 3.0)) return;
  const double peak = cost::peak_flops_per_s(*session.cluster.device, workload.precision);
  const auto length = static_cast<double>(workload.model.seq_len);
  const double flops_of_token = workload::palm_flops(workload.model, 1) / length;
  const double hooks_s = kHooksOfALayerS * static_cast<double>(workload.model.layers);
  const double tokens = hooks_s * kUsualUtilization * peak / flops_of_token;
  if (fewest_sequences(session) * length >= tokens) return;
  constexpr double kRounded = 100.0;
  workload::add_once(
      fmt::format("the host's work for each module at ZeRO stage 3: more time where a rank has fewer than about {:.0f} "
                  "tokens in a micro-step; published ones of 512 took 0.4 and 0.6 s",
                  kRounded * std::round(tokens / kRounded)),
      caveats.also_not_modelled);
}

// Nothing is excluded on a guess: a framework that usually spreads experts may do so where nobody says it. A command
// says it, and its recipe reads that.
void add_experts(const Session& session, workload::Caveats& caveats) {
  const workload::Workload& workload = *session.workload;
  const bool is_spread = may_reach(session, space::kExpertParallel, 2.0);
  if (!workload.model.has_experts()) {
    if (is_spread)
      workload::add_once("expert_parallel, of a model without experts: another memory and time", caveats.not_modelled);
    return;
  }
  workload::add_once("every expert receives the same number of tokens, and none is dropped", caveats.assumed);
  if (workload.model.has_two_kinds_of_layers() && workload.model.experts.dense_places == workload::DensePlaces::kSpread)
    workload::add_once("layers without experts come before the others of their pipeline stage", caveats.assumed);
  if (may_reach(session, space::kTensorParallel, 2.0))
    workload::add_once("tensor parallelism splits each expert as it splits the other layers", caveats.assumed);
  if (is_spread && !schedule::predicts_expert_ranks(workload)) {
    workload::add_once(fmt::format("experts that {} spreads over ranks (expert_parallel): less memory, and an exchange "
                                   "of tokens",
                                   cost::traits_of(workload.framework).name),
                       caveats.not_modelled);
  }
  if (may_reach(session, space::kExpertParallel, 1.0)) return;
  if (schedule::predicts_expert_ranks(workload) && !runner::traits_of(session.runner).starts_a_command) {
    workload::add_once(
        "experts that are spread over ranks, if they are: say expert_parallel; less memory, and an "
        "exchange of tokens",
        caveats.not_modelled);
  } else {
    workload::add_once("every data rank has all experts", caveats.assumed);
  }
}

void add_adapters(const workload::Workload& workload, workload::Caveats& caveats) {
  const workload::TrainingSpec& training = workload.training;
  if (!training.freezes()) return;
  workload::add_once("frozen weights are loaded in the type of the precision, token table, norms and head too",
                     caveats.assumed);
  if (workload.optimizer == workload::OptimizerKind::kAdamW) {
    workload::add_once(
        "the adapters' optimizer keeps what AdamW keeps, also if it is one that krigtune does not know: they are few",
        caveats.assumed);
  }
  using Layer = workload::AdaptedLayer;
  const bool adapts_heads = training.lora.targets_layer(Layer::kQuery) || training.lora.targets_layer(Layer::kKey) ||
                            training.lora.targets_layer(Layer::kValue);
  if (workload.model.has_latents() && adapts_heads) {
    workload::add_once("adapters of latent attention's queries, keys and values: a little more memory and time",
                       caveats.also_not_modelled);
  }
  if (!workload.model.has_experts()) return;
  workload::add_once("experts have no adapters", caveats.assumed);
  if (training.base_bits())
    workload::add_once("experts that are quantised as the other matrices are: less memory", caveats.not_modelled);
}

void add_narrow_products(const Session& session, workload::Caveats& caveats) {
  const workload::Workload& workload = *session.workload;
  if (!workload.training.has_narrow_products()) return;
  workload::add_once(
      "the blocks' matrix products read numbers in " + workload::precision_word(workload) +
          ", for which weights have two further copies; attention, router, embedding, head and what is exchanged "
          "remain in bf16",
      caveats.assumed);
  if (!session.cluster.device)
    workload::add_once("how fast this machine multiplies in " + workload::precision_word(workload) + ": less time",
                       caveats.also_not_modelled);
}

// Of state-space layers and linear attention.
void add_mixers(const Session& session, workload::Caveats& caveats) {
  const workload::ModelSpec& model = session.workload->model;
  if (!model.is_hybrid()) return;
  workload::add_once("layers of different kinds are spread evenly over the model, and so over its pipeline stages",
                     caveats.assumed);
  const bool scans = model.layers_with(workload::Mixer::kMamba) + model.layers_with(workload::Mixer::kDelta) > 0;
  if (!scans) return;
  workload::add_once("the kernels of the scans reach the rates of attention and of memory that this GPU's others reach",
                     caveats.assumed);
  if (may_reach(session, space::kContextParallel, 2.0))
    workload::add_once("states that context parallelism sends from rank to rank in layers without attention: more time",
                       caveats.also_not_modelled);
  if (session.workload->training.freezes())
    workload::add_once(
        "adapters of state-space layers and linear attention, which have none here: more memory and time",
        caveats.not_modelled);
}

void add_kernels(const workload::Workload& workload, workload::Caveats& caveats) {
  const workload::ModelSpec& model = workload.model;
  const bool matters = model.gated_mlp || model.norm == workload::Norm::kRmsNorm;
  if (workload.training.kernels || !matters || !workload::has_eager_kernels(workload)) return;
  workload::add_once(
      "norms and gated activations are PyTorch's own, which keep more than fused ones: say \"training\": {\"kernels\": "
      "\"fused\"} if they are fused",
      caveats.assumed);
}

void add_pipeline(const Session& session, workload::Caveats& caveats) {
  const bool has_no_bubbles = std::ranges::any_of(std::array{"zb-h1", "zb-h2", "zb-v"}, [&](const char* word) {
    return may_be(session, space::kPipelineSchedule, std::string(word));
  });
  if (has_no_bubbles) {
    const bool validates_later = session.workload->framework == workload::Framework::kMegatron;
    workload::add_once(
        std::string("zero-bubble pipelines follow the orders that their paper draws for equal passes") +
            (validates_later ? ", and ranks begin the next step without waiting for each other (post-validation)"
                             : ", and all ranks end a step together"),
        caveats.assumed);
  } else if (may_reach(session, space::kVirtualPipeline, 2.0)) {
    workload::add_once("with several stages on a pipeline rank the schedule is interleaved 1F1B", caveats.assumed);
  }
}

void add_context(const Session& session, workload::Caveats& caveats) {
  if (!may_reach(session, space::kContextParallel, 2.0)) return;
  const auto may_be_kind = [&](const char* word) { return may_be(session, space::kContextKind, std::string(word)); };
  const bool may_exchange_heads = may_be_kind("alltoall") || may_be_kind("alltoall+ring");
  if (!may_exchange_heads && !may_be_kind("allgather")) {
    workload::add_once(
        "context parallelism is a ring: keys and values go round while attention computes, and every rank has as much "
        "of it to do",
        caveats.assumed);
    return;
  }
  workload::add_once(
      "of context parallelism only a ring exchanges beside attention: an all-gather or all-to-all comes before it",
      caveats.assumed);
}

}  // namespace

void add_caveats(Session& session) {
  if (!session.workload || runner::traits_of(session.runner).trains_our_step) return;
  workload::Caveats& caveats = session.workload->caveats;
  add_context(session, caveats);
  add_pipeline(session, caveats);
  add_experts(session, caveats);
  add_mixers(session, caveats);
  add_adapters(*session.workload, caveats);
  add_narrow_products(session, caveats);
  add_kernels(*session.workload, caveats);
  add_update_on_host(session, caveats);
  add_hooks_of_stage_3(session, caveats);
  workload::add_variables(variables_of(session), session.workload->framework, offloads_update(session), caveats);
}

}  // namespace krigtune::session
